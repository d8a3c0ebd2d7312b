"""Windows over pauses, edits, failures and histories of others: what has left stays out, and what must stays in."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered
from onrecord.errors import ModelError
from onrecord.governance import Permissions, Policy, before_tool
from onrecord.models.request import Request
from onrecord.prompt.window.evicted import Evicted, Stayed
from onrecord.prompt.window.gaps import Windowed
from onrecord.prompt.window.window import Window
from onrecord.session import pack, unpack
from onrecord.session.codec import slot_value
from onrecord.session.history import remove_message
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.moments import SLOTS, Allow, Hooks
from onrecord.turn.turn import Turn
from tests.prompt.window_units import LONG, session_of, tools
from tests.prompt.windows import Record, dialogue, spans
from tests.turn.acting import Named, bodies, read, tool, turn
from tests.turn.pausing.asking import approve, asks, open_question

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("by", "why"),
    [("rule", "pending-check-in"), ("second look", "pending-check-in"), ("tool", "paused-tool")],
)
async def test_a_resumed_turn_shows_what_it_is_about(by: str, why: str) -> None:
    """Other messages came while it waited; its own stayed by name, and leads when it goes on."""
    model = ScriptedModel([call("pay")], *[LONG] * 4, "Paid.")
    double = before_tool(lambda *_: Allow({"euros": 90}, "doubled"))
    policy = Policy(name="dear", tools=("pay",), args={"euros": 90}, then="ask")
    asking: dict[str, list[Any]] = {"rule": [approve("pay")], "second look": [Permissions(policies=[policy]), double]}
    held = tool("pay", asks()) if by == "tool" else tool("pay")
    agent = Agent(model, tools=[held], features=[*asking.get(by, ()), Window.last(1)])
    waits = await turn(agent, "#0 pay", session="s")
    session = session_of(waits)
    for _ in range(3):
        session = session_of(await turn(agent, LONG, session=session))
    later = await turn(agent, LONG, session=session)
    session = session_of(later)
    kept = [each for body in bodies(later, Evicted) for each in body.kept]
    assert next(each.why for each in kept) == why
    answer = Answered(open_question(waits).key, approved=True, value="yes")
    done = await agent.turn(answer, session=session, effects=FakeEffects())
    assert done.text == "Paid."
    assert read(model.requests[-1])["messages"][0]["content"] == "#0 pay"


async def windowed(turns: int) -> tuple[ScriptedModel, Agent[Any, str], Session]:
    """A session of which something has left."""
    model = ScriptedModel(*[LONG] * (turns + 2))
    agent = Agent(model, features=[Window.last(4, slack=2)])
    session: Session | str = "s"
    for number in range(turns):
        session = session_of(await turn(agent, f"#{number} {LONG}", session=session))
    assert isinstance(session, Session)
    return model, agent, session


@pytest.mark.parametrize("folded", [True, False])
async def test_a_history_that_was_changed_is_shown_whole_again(folded: bool) -> None:
    """What has left was decided over another one, whether or not the window was told. It leaves again when it must."""
    model, agent, session = await windowed(4)
    assert len(spans(model.requests[-1])) == 2
    told = {"folds": agent.plan.folds} if folded else {}
    removed = remove_message(session, session.conversation.messages[0].id, by="t", at=FakeEffects().now(), **told)
    after = await turn(agent, LONG, session=removed.session)
    (evicted,) = bodies(after, Evicted)
    assert (evicted.start, evicted.held) == (0, 0)
    assert slot_value(session_of(after).slots["window"], Windowed).gaps[0].start == 0


async def test_a_history_of_the_caller_has_a_window_of_its_own() -> None:
    """The session's gaps are about the session's units: they say nothing of these."""
    model, agent, session = await windowed(4)
    await turn(agent, LONG, session=session, history=dialogue(3))
    assert spans(model.requests[-1]) == [(0, 4)]
    await turn(agent, LONG, session=session)
    assert len(spans(model.requests[-1])) == 2


async def test_a_history_of_the_caller_that_says_something_else_is_another_one() -> None:
    """Though its messages have the same places and names: what was decided of the one is none of the other's."""
    model = ScriptedModel(*[LONG] * 3)
    agent = Agent(model, features=[Window.last(4, slack=2)])
    first = await turn(agent, session="s", history=dialogue(8, 900))
    other = [{"role": "user", "content": "Something else."}, *dialogue(8, 900)[1:]]
    second = await turn(agent, session=first.session, history=other)
    (evicted,) = bodies(second, Evicted)
    assert (evicted.held, evicted.start, evicted.upto) == (0, 0, 5)
    third = await turn(agent, session=second.session, history=other)
    assert bodies(third, Evicted) == []


async def test_a_turn_that_breaks_off_leaves_the_window_as_it_was_told() -> None:
    """What it removed stays out, and is not removed again: it is on the record."""
    model = ScriptedModel(LONG, LONG, LONG, ["So far", raises("auth")], "Hello.")
    agent = Agent(model, features=[Window.last(3, slack=2)])
    session: Session | str = "s"
    for _ in range(3):
        session = session_of(await turn(agent, LONG, session=session))
    stream = agent.turn_stream(LONG, session=session, effects=FakeEffects())
    with pytest.raises(ModelError) as raised:
        _ = [text async for text in stream.text]
    broken = raised.value.result
    assert broken is not None
    (told,) = bodies(broken, Evicted)
    again = await turn(agent, LONG, session=unpack(pack(session_of(broken))))
    assert (again.text, bodies(again, Evicted)) == ("Hello.", [])
    assert spans(model.requests[-1])[0] == spans(model.requests[-2])[0]
    assert spans(model.requests[-1])[1][0] == told.upto


async def test_pins_of_features_stay_and_are_named() -> None:
    """`View.pins` says which unit and why, at the slot before windows."""
    model = ScriptedModel(*[LONG] * 3)
    pinned: list[str] = []

    async def pin(turn: Turn, request: Request) -> Request:
        return replace(request, view=replace(request.view, pins=dict.fromkeys(pinned, "ledger-fact")))

    pins = Named("pins", Hooks(on_request=pin, order={"request": SLOTS["request"]["PINS"]}))
    agent = Agent(model, features=[Window.last(1), pins])
    first = await turn(agent, LONG, session="s")
    pinned.append(session_of(first).conversation.units[0].id)
    second = await turn(agent, LONG, session=first.session)
    assert [[each.why for each in body.kept] for body in bodies(second, Evicted)] == [
        ["ledger-fact", "inside-keep-window"]
    ]
    assert spans(model.requests[-1])[0] == (0, 1)


async def test_the_first_reason_that_holds_is_told() -> None:
    """In the order of §13.2; what a feature gave is told of what stays for nothing else."""

    async def pin(turn: Turn, request: Request) -> Request:
        pins = dict.fromkeys((unit.id for unit in request.conversation.units), "ledger-fact")
        return replace(request, view=replace(request.view, pins=pins))

    pins = Named("pins", Hooks(on_request=pin, order={"request": SLOTS["request"]["PINS"]}))
    history: list[Record] = [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": LONG},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "look", "arguments": {}}]},
    ]  # fmt: skip
    model = ScriptedModel(call("toolA"), call("toolB"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=tools("toolA", "toolB"), features=[Window.last(1), pins])
    result = await turn(agent, history=history)
    assert [each.why for each in bodies(result, Stayed)[-1].kept] == [
        "system-envelope", "ledger-fact", "unresolved-tool-call", "current-request", "last-tool-result",
        "inside-keep-window",
    ]  # fmt: skip


async def test_what_is_pinned_after_it_left_is_shown_again() -> None:
    """Inside of the gap, behind its notice."""
    model, agent, session = await windowed(4)
    pins = {session.conversation.units[1].id: "ledger-fact"}

    async def pin(turn: Turn, request: Request) -> Request:
        return replace(request, view=replace(request.view, pins=pins))

    pinning = Named("pins", Hooks(on_request=pin, order={"request": SLOTS["request"]["PINS"]}))
    await turn(agent.with_(features=[Window.last(4, slack=9), pinning]), session=session)
    head, *rest = spans(model.requests[-1])
    assert head.startswith("[dropped history")
    assert rest == [(1, 2), (3, 9)]
