"""A plan of the application says what leaves; everything else stays the window's (the port of spec 13.4)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.messages import Round, UserMessage
from onrecord.errors import ConfigurationError
from onrecord.jsonio import loads
from onrecord.models.request import Span
from onrecord.prompt import Window, WindowLook
from onrecord.prompt.window.evicted import Evicted, Stayed
from onrecord.prompt.window.gaps import DROPPED_HEAD
from onrecord.prompt.window.planning import MOST_STRETCHES, MOST_TOLD
from onrecord.prompt.window.sizes import estimate
from onrecord.session import refold
from onrecord.session.codec import dumps_session
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call, raises
from onrecord.turn.result import TurnResult
from tests.prompt.test_stable_prefix import WIRES, Wired
from tests.prompt.test_window_promises import talk, told, units_shown
from tests.prompt.test_window_wires import Talk, Told, turns
from tests.prompt.window_units import LONG, counting, kept, tools
from tests.prompt.windows import dialogue, spans
from tests.providers.vendor_rules import RULES
from tests.turn.acting import bodies, read, turn

pytestmark = pytest.mark.unit

Plan = Callable[[WindowLook], Any]


async def planned(plan: Plan, *, history: int = 6, **given: Any) -> tuple[ScriptedModel, TurnResult[Any]]:
    """A turn over so many long messages, with a window that goes by this plan."""
    model = counting("done", tokens=99)
    agent = Agent(model, features=[Window.by("mine", plan, **given)])
    return model, await turn(agent, "now", history=dialogue(history, 900))


async def test_a_plan_chooses_what_leaves() -> None:
    """Units beside each other leave together; each stretch is an entry under the plan's name, and has its notice."""
    model, result = await planned(lambda _: [4, 0, 1, 0])
    assert [(each.by, each.how, each.start, each.upto) for each in bodies(result, Evicted)] == [
        ("window.mine", "dropped", 0, 2), ("window.mine", "dropped", 4, 5)
    ]  # fmt: skip
    first, rest, second, newest = spans(model.requests[0])
    assert first.startswith(f"{DROPPED_HEAD}: 2 messages and rounds left the window before request 0 (window.mine).")
    assert second.startswith(f"{DROPPED_HEAD}: 1 message or round left")
    assert (rest, newest) == ((2, 4), (5, 7))
    assert bodies(result, Stayed) == []


async def test_a_plan_may_be_async_and_may_want_nothing() -> None:
    """Then nothing is told."""

    async def patient(look: WindowLook) -> Iterable[int] | None:
        return None

    model, result = await planned(patient)
    assert spans(model.requests[0]) == [(0, 7)]
    assert bodies(result, Evicted) + bodies(result, Stayed) == []


async def test_a_plan_sees_units_with_sizes_and_why_they_stay() -> None:
    """And what was counted, and which request it is; the sizes are those of every estimate."""
    looks: list[tuple[list[tuple[str, int, str]], int | None, bool, int]] = []

    def looks_on(look: WindowLook) -> None:
        told = [(type(each.unit).__name__, each.tokens, each.stays) for each in look.units]
        assert [each.tokens for each in look.units] == [estimate([each.unit]) for each in look.units]
        assert look.units[-2:] == [look.units[len(look.units) - 2], look.units[-1]]
        looks.append((told, look.measured, look.too_long, look.round))

    model = counting(call("look"), call("look"), "done", tokens=99)
    agent = Agent(model, tools=tools("look"), features=[Window.by("mine", looks_on)])
    await turn(agent, "now", history=dialogue(1, 36))
    assert [(len(told), *rest) for told, *rest in looks] == [
        (2, None, False, 0), (3, 99, False, 1), (4, 99, False, 2)
    ]  # fmt: skip
    assert looks[1][0][:2] == [("UserMessage", 10, ""), ("UserMessage", 2, "current-request")]
    assert [(kind, why) for kind, _, why in looks[2][0]] == [
        ("UserMessage", ""), ("UserMessage", "current-request"), ("Round", ""), ("Round", "inside-keep-window")
    ]  # fmt: skip
    assert looks[2][0][2][1] > len(LONG) // 4


async def test_what_may_not_leave_is_told_by_name_and_stays() -> None:
    """The current request, the newest ``keep``, last results; and what is not shown at all."""
    model = counting(call("look"), call("find"), call("find"), "done", tokens=99)
    window = Window.by("mine", lambda look: range(-1, len(look.units)) if look.round == 3 else None)
    agent = Agent(model, tools=tools("look", "find"), features=[window])
    result = await turn(agent, "now", history=dialogue(2, 900))
    left, early = bodies(result, Evicted)
    assert [(left.start, left.upto), (early.start, early.upto)] == [(0, 2), (4, 5)]
    assert (left.pinned, early.kept) == (("look",), ())
    assert kept(left) == ["not-shown@", "current-request@u", "last-tool-result@r0", "inside-keep-window@r2"]
    assert read(model.requests[3])["messages"][-1]["content"] == LONG


async def test_so_much_is_told_of_what_a_plan_may_not_have() -> None:
    """However many places it names: a record is no place for all of them."""
    _, result = await planned(lambda _: range(-5000, 0))
    (stayed,) = bodies(result, Stayed)
    assert [each.why for each in stayed.kept] == ["not-shown"] * MOST_TOLD


async def test_where_nothing_may_leave_that_is_told_and_last_results_stand_down() -> None:
    """As with every window: after two visits in a row that they kept from removing anything."""

    def plan(look: WindowLook) -> list[int]:
        return [at for at, each in enumerate(look.units) if isinstance(each.unit, Round)][:1]

    model = counting(call("look"), *[call("find")] * 4, "done", tokens=99)
    agent = Agent(model, tools=tools("look", "find"), features=[Window.by("mine", plan)])
    result = await turn(agent, "now")
    stayed = [[each.why for each in body.kept] for body in bodies(result, Stayed)]
    assert stayed[:3] == [["inside-keep-window"], ["last-tool-result"], ["last-tool-result"]]
    first = bodies(result, Evicted)[0]
    assert (first.stood_down, first.tools) == (True, ("look",))


@pytest.mark.parametrize(
    ("plan", "error"),
    [
        (lambda _: [1 // 0], "ZeroDivisionError (test_window_own_plan.py, line "),
        (lambda _: "01", "TypeError"),
        (lambda _: [True], "TypeError"),
        (lambda _: [1.0], "TypeError"),
        (lambda _: 3, "TypeError"),
        (lambda _: (each / 0 for each in (1, 2)), "ZeroDivisionError (test_window_own_plan.py, line "),
    ],
)  # fmt: skip
async def test_a_plan_that_raises_removes_nothing_and_is_not_asked_again_in_this_turn(plan: Plan, error: str) -> None:
    """What it raised and where is told, and never what it said; the next turn asks it again."""
    asked: list[int] = []

    def fails(look: WindowLook) -> Any:
        asked.append(look.round)
        return plan(look)

    model = counting(call("look"), "done", "again", tokens=99)
    agent = Agent(model, tools=tools("look"), features=[Window.by("mine", fails)])
    first = await turn(agent, "now", session="s")
    (stayed,) = bodies(first, Stayed)
    assert [each.why for each in stayed.kept] == ["plan-failed"]
    assert stayed.error.startswith(error)
    assert (first.text, asked) == ("done", [0])
    await turn(agent, "now", session=first.session)
    assert asked == [0, 0]


async def test_who_stops_the_program_is_not_a_plan_that_failed() -> None:
    """It goes through."""

    class Stopped(BaseException):
        pass

    def stops(look: WindowLook) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        await planned(stops)


async def test_a_request_that_was_refused_as_too_long_is_asked_about_once_more() -> None:
    """As often as it gets shorter."""
    looks: list[tuple[int, bool]] = []

    def shorter(look: WindowLook) -> Iterable[int]:
        looks.append((len(look.units), look.too_long))
        return range(2) if look.too_long else ()

    model = ScriptedModel(raises("context"), raises("context"), "done")
    agent = Agent(model, features=[Window.by("mine", shorter)])
    result = await turn(agent, "now", history=dialogue(6, 900))
    assert result.text == "done"
    assert looks == [(7, False), (7, True), (5, True)]
    assert [body.why for body in bodies(result, Evicted)] == ["model-context"] * 2


async def test_one_request_removes_so_many_stretches() -> None:
    """The rest is told by name and asked for again with the next request."""
    _, result = await planned(lambda look: range(0, len(look.units), 2), history=MOST_STRETCHES * 2 + 4)
    left = bodies(result, Evicted)
    assert len(left) == MOST_STRETCHES
    assert [each.why for each in left[0].kept] == ["too-many-stretches"] * 2 + ["current-request"]


async def test_what_has_left_is_no_more_among_the_units_of_a_look() -> None:
    """Places count what is shown, whatever left in between."""
    looks: list[list[str]] = []

    def second(look: WindowLook) -> Iterable[int]:
        looks.append([each.unit.id for each in look.units])
        return [1]

    model = counting(*["answer " + LONG] * 4, tokens=99)
    agent = Agent(model, features=[Window.by("mine", second)])
    session: Session | str | None = "s"
    for _ in range(4):
        session = (await turn(agent, LONG, session=session)).session
    assert isinstance(session, Session)
    ids = [unit.id for unit in session.conversation.units]
    assert looks == [ids[:1], ids[:3], [ids[0], *ids[2:5]], [ids[0], *ids[3:7]]]


async def test_units_on_both_sides_of_what_has_left_leave_together() -> None:
    """They are shown beside each other: one entry tells of them, and one notice stands for all."""
    by_length = {1: [], 3: [1], 4: [0, 1]}
    model = counting(*["answer " + LONG] * 3, tokens=99)
    agent = Agent(model, features=[Window.by("mine", lambda look: by_length[len(look.units)])])
    first = await turn(agent, LONG, session="s")
    second = await turn(agent, LONG, session=first.session)
    third = await turn(agent, LONG, session=second.session)
    assert [(body.start, body.upto) for body in bodies(third, Evicted)] == [(0, 3)]
    notice, rest = spans(model.requests[2])
    assert notice.startswith(f"{DROPPED_HEAD}: 3 messages and rounds left")
    assert rest == (3, 5)


def test_a_plan_is_a_function_with_a_name_of_its_own() -> None:
    """Which is said when it is declared."""
    for name in ("last", "two words", "", "a\nb", 3):
        with pytest.raises(ConfigurationError, match="cannot be called"):
            Window.by(name, lambda _: None)  # type: ignore[arg-type]  # a mistake
    with pytest.raises(ConfigurationError, match="a function of what is shown, not a int"):
        Window.by("mine", 3)  # type: ignore[arg-type]  # a mistake
    with pytest.raises(ConfigurationError, match="keep"):
        Window.by("mine", lambda _: None, keep=0)


# ---- whatever a plan names -------------------------------------------------------------------------------------------


def _random_plan(seed: int, kind: str) -> Plan:
    """A plan that names anything, and the same again of the same look."""

    def names(look: WindowLook) -> Any:
        chance = random.Random(f"{seed}/{len(look.units)}/{look.round}/{look.too_long}")  # noqa: S311 - no secret
        size = len(look.units)
        if kind == "fails" and chance.random() < 0.3:
            raise ValueError(LONG)
        if kind == "people":
            return [at for at, each in enumerate(look.units) if isinstance(each.unit, UserMessage)]
        if kind == "first":
            return range(chance.randint(0, size))
        return [at for at in range(-1, size + 2) if chance.random() < 0.5]

    return names


plans = st.builds(_random_plan, st.integers(0, 999), st.sampled_from(["some", "first", "people", "fails"]))
windows = st.builds(
    lambda plan, keep, pins: Window.by("random", plan, keep=keep, keep_last_tool_results=pins),
    plans, st.integers(1, 3), st.integers(0, 2),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(windows, st.lists(told, min_size=1, max_size=5))
async def test_whatever_a_plan_names_the_promises_of_a_window_hold(
    window: Window, turns: list[tuple[int, list[str], int]]
) -> None:
    """Nothing grows, what is asked for is there, and a window that is asked again shows the same."""
    (_, model), _, again = await talk(window, turns)
    for request in model.requests:
        newest = [unit for unit in request.conversation.units if isinstance(unit, UserMessage)][-1]
        assert newest in units_shown(request)
        assert estimate(units_shown(request)) <= estimate(request.conversation.units)
        places = [span for span in request.view.spans if isinstance(span, Span)]
        assert all(one.stop <= other.start for one, other in pairwise(places))
    assert all(first == second for first, second in again.seen)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in RULES], ids=lambda wire: wire.name)
@settings(max_examples=25, deadline=None)
@given(windows, st.lists(turns, min_size=1, max_size=4))
async def test_whatever_a_plan_names_what_is_sent_is_well_formed(
    wire: Wired, window: Window, told: Sequence[Told]
) -> None:
    """No result without its call, no call without its result, on the wires of all vendors; the question is there.

    What the record tells makes the same session again.
    """
    talk = Talk(wire, window)
    for number, each in enumerate(told):
        before = len(talk.model.requests)
        await talk.turn(number, each)
        for request in talk.model.requests[before:]:
            words = [m["content"] for m in read(request)["messages"] if m["role"] == "user"]
            assert any(text.startswith(f"#{number} ") for text in words)
    for body in talk.model.bodies:
        RULES[wire.name](loads(body))
    if isinstance(session := talk.session, Session):
        again = refold(session.key, talk.entries, talk.agent.plan.folds, digest_key=session.digest_key)
        assert dumps_session(again) == dumps_session(session)
