"""While a question is open: another message holds, answers or drops it, and what was said meanwhile is history."""

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Happened, Said
from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.record.kinds import TurnOpened, TurnResumed
from onrecord.testing import ScriptedModel, call
from tests.turn.acting import Result, bodies, read, texts, tool, turn
from tests.turn.pausing.asking import answered, approve, asks, checked, open_question, over, statuses, waiting

pytestmark = pytest.mark.unit


def paying(model: ScriptedModel, on_message: str, **given: Any) -> Agent[Any, str]:
    """An agent that asks before it pays, and says what another message does to the question."""
    return Agent(model, tools=[tool("pay"), tool("look")], features=[approve("pay", on_message=on_message)], **given)


def shown(model: ScriptedModel, request: int) -> list[tuple[str, str]]:
    """Role and text of everything that one request shows."""
    return [(m["role"], m["content"]) for m in read(model.requests[request])["messages"]]


def told(result: Result) -> list[str]:
    """The words of each message of the conversation, in order."""
    assert result.session is not None
    return [m.text for m in result.session.conversation.messages if isinstance(m, (UserMessage, AssistantMessage))]


async def test_hold_lets_another_message_have_a_turn_of_its_own() -> None:
    """The held turn reads what was said, but not the rounds that wait; the question stays open."""
    model = ScriptedModel([call("look"), call("pay")], "Soon.", "Paid.")
    agent = paying(model, "hold")
    paused = await turn(agent, "pay it")
    held = await turn(agent, "how long?", session=paused.session)
    assert held.status == "answered"
    assert shown(model, 1) == [("user", "pay it"), ("user", "how long?")]
    assert held.session is not None
    assert held.session.question == open_question(paused)
    done = await answered(agent, over(held, paused), approved=True)
    assert shown(model, 2) == [
        ("user", "pay it"), ("user", "how long?"), ("assistant", "Soon."),
        ("assistant", ""), ("tool", "look"), ("tool", "pay"),
    ]  # fmt: skip
    assert told(done) == ["pay it", "how long?", "Soon.", "Paid."]
    checked(agent, paused, held, done)


async def test_two_answers_of_one_turn_are_two_messages() -> None:
    """What a take said before its pause is a message of that take; the resumed one has the next number."""
    model = ScriptedModel([call("pay")], "Paid.")
    agent = paying(model, "hold")
    paused = await turn(agent, "pay it")
    done = await answered(agent, paused, approved=True)
    assert done.session is not None
    (answer,) = [m for m in done.session.conversation.messages if isinstance(m, AssistantMessage)]
    assert answer.id == f"{paused.entries[0].turn}/a2"
    assert {entry.take for entry in done.entries} == {2}


async def test_answer_takes_the_next_message_as_the_answer() -> None:
    """Its words are the value, and the turn that asked goes on."""
    model = ScriptedModel([call("order")], "Ordered.")
    agent = Agent(model, tools=[tool("order", asks(on_message="answer"))])
    paused = await turn(agent, "a shirt")
    done = await turn(agent, "XL", session=paused.session)
    assert (done.text, texts(model.requests[1])) == ("Ordered.", ["XL"])
    (resumed,) = bodies(done, TurnResumed)
    assert resumed.answer == Answered(open_question(paused).key, value="XL")
    checked(agent, paused, done)


async def test_a_message_that_answered_is_known_when_it_comes_again() -> None:
    """A channel that delivers it twice neither answers twice nor starts a turn."""
    model = ScriptedModel([call("order")], "Ordered.")
    agent = Agent(model, tools=[tool("order", asks(on_message="answer"))])
    paused = await turn(agent, "a shirt")
    done = await turn(agent, Said("XL", key="m2"), session=paused.session)
    again = await turn(agent, Said("XL", key="m2"), session=done.session)
    assert (again.status, [line.code for line in again.lines]) == ("ignored", ["duplicate-input"])
    checked(agent, paused, done)


async def test_drop_cancels_the_calls_and_takes_the_message() -> None:
    """The paused rounds stand in the conversation with cancelled calls, and an answer comes too late."""
    model = ScriptedModel([call("look"), call("pay")], "Never mind.")
    agent = paying(model, "drop")
    paused = await turn(agent, "pay it")
    other = await turn(agent, "forget it", session=paused.session)
    assert other.text == "Never mind."
    assert other.session is not None
    assert other.session.question is None
    assert bodies(other, TurnOpened)[0].drops == paused.entries[0].turn
    messages = other.session.conversation.messages
    assert [type(m).__name__ for m in messages] == [
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
        "AssistantMessage",
    ]
    assert [c.status for r in getattr(messages[1], "rounds", ()) for c in r.calls] == ["returned", "cancelled"]
    late = await turn(agent, Answered(open_question(paused).key, approved=True), session=other.session)
    assert late.status == "ignored"
    checked(agent, paused, other)


async def test_only_a_message_drops_a_question() -> None:
    """An event leaves it open."""
    model = ScriptedModel([call("pay")], "Rain, I see.")
    agent = paying(model, "drop")
    paused = await turn(agent)
    other = await turn(agent, Happened("rain", key="e1"), session=paused.session)
    assert other.session is not None
    assert other.session.question == open_question(paused)


async def test_dropped_rounds_belong_to_the_session_also_when_the_turn_runs_elsewhere() -> None:
    """A turn over the caller's own history drops the question; the record and the session agree about the rounds."""
    model = ScriptedModel([call("pay")], "Elsewhere.")
    agent = paying(model, "drop")
    paused = await turn(agent, "pay it")
    other = await turn(agent, "hi", session=paused.session, history=[{"role": "user", "content": "earlier"}])
    assert shown(model, 1) == [("user", "earlier"), ("user", "hi")]
    assert statuses(other.session) == ["cancelled"]
    checked(agent, paused, other)


async def test_data_of_a_held_turn_is_seen_by_the_resumed_one() -> None:
    """Data that a held turn lands is there when the paused one goes on."""

    def note(args: object, ctx: Any) -> str:
        ctx.set({"seen": True})
        return "ok"

    def see(args: object, ctx: Any) -> str:
        return str(dict(ctx.data))

    model = ScriptedModel([call("pay")], [call("note")], "Noted.", [call("see")], "Paid.")
    agent = Agent(model, tools=[tool("pay"), tool("note", note), tool("see", see)], features=[approve("pay")])
    paused = await turn(agent)
    held = await turn(agent, "remember", session=waiting(paused))
    done = await answered(agent, over(held, paused), approved=True)
    assert texts(model.requests[-1])[-1] == "{'seen': True}"
    checked(agent, paused, held, done)
