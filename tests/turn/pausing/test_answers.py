"""Answers that do not fit, come late, come twice or never come: nothing runs, and the question stays open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask, AskField, Said, Woke, ends_question, expiry_key
from onrecord.errors import UsageError
from onrecord.record.kinds import TurnResumed, WakeArmed, WakeDisarmed
from onrecord.session import pack, unpack
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Hooks
from tests.turn.acting import Named, Result, bodies, keeping, results, texts, tool, turn
from tests.turn.pausing.asking import answered, approve, asks, checked, open_question, waiting

pytestmark = pytest.mark.unit

FIELDS = (AskField("size", schema={"type": "string"}), AskField("n", schema={"type": "integer"}, required=False))


def guarded(model: ScriptedModel, ran: list[str], **fields: Any) -> Agent[Any, Any]:
    """An agent whose payment a rule asks about."""
    return Agent(model, tools=[tool("pay", keeping(ran, "pay", "paid"))], features=[approve("pay", **fields)])


async def refused(agent: Agent[Any, Any], paused: Result, **answer: Any) -> str:
    """The code of an answer that is refused; the session is as it was."""
    before = paused.session
    assert before is not None
    kept = pack(before)
    with pytest.raises(UsageError) as told:
        await answered(agent, paused, **answer)
    assert pack(before) == kept
    assert told.value.hint
    return told.value.code


async def test_an_approval_is_asked_for_and_nothing_else_is_one() -> None:
    """A value, or nothing, is no decision: not even no. Then the right answer comes."""
    ran: list[str] = []
    agent = guarded(ScriptedModel([call("pay")], "Done."), ran)
    paused = await turn(agent)
    assert open_question(paused).decision
    for wrong in ({"value": "sure"}, {"value": True}, {}, {"note": "yes"}):
        assert await refused(agent, paused, **wrong) == "decision-required"
    assert ran == []
    assert (await answered(agent, paused, approved=True)).text == "Done."
    assert ran == ["pay"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({}, "answer-required"),
        ({"value": "XL"}, "answer-invalid"),
        ({"value": {"size": 3}}, "answer-invalid"),
        ({"value": {"n": 3}}, "answer-invalid"),
        ({"value": {"size": "XL", "n": "3"}}, "answer-invalid"),
        ({"value": {"size": "XL", "colour": "red"}}, "answer-invalid"),
        ({"approved": True}, "answer-invalid"),
    ],
)
async def test_values_fit_the_fields_that_were_asked_for(wrong: dict[str, Any], code: str) -> None:
    """All required ones, of their types, and no others; what was answered is not in the error."""
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("form")], "Ordered."), tools=[tool("form", asks(fields=FIELDS))])
    paused = await turn(agent)
    assert await refused(agent, paused, **wrong) == code
    done = await answered(agent, paused, value={"size": "XL"})
    assert done.text == "Ordered."
    checked(agent, paused, done)


async def test_a_refusal_needs_no_values() -> None:
    """To every kind of question."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("form")], "Then not."), tools=[tool("form", asks(fields=FIELDS))]
    )
    assert (await answered(agent, await turn(agent), approved=False)).text == "Then not."


async def test_a_handler_may_ask_for_a_decision() -> None:
    """Then only that answers it."""
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("form")], "x"), tools=[tool("form", asks(decision=True))])
    paused = await turn(agent)
    assert await refused(agent, paused, value="yes") == "decision-required"
    assert (await answered(agent, paused, approved=True)).status == "answered"


async def test_what_a_sub_agent_asks_is_answered_as_it_must_be() -> None:
    """The question that is passed up says what answers it; the child never sees another answer."""
    ran: list[str] = []
    model = ScriptedModel([call("clerk", message="go")], [call("pay")], "Paid.", "All paid.")
    child = guarded(model, ran, expires_s=60).with_(name="clerk")
    agent: Agent[Any, Any] = Agent(model, tools=[child.as_tool()])
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.decision, question.by, question.expires is not None) == (True, "agent:clerk", True)
    assert await refused(agent, paused, value="sure") == "decision-required"
    assert (await answered(agent, paused, approved=True)).text == "All paid."
    assert ran == ["pay"]


async def test_what_a_sub_agent_asks_expires_for_both() -> None:
    """The wake of the turn above ends the question of the one below."""
    ran: list[str] = []
    model = ScriptedModel([call("clerk", message="go")], [call("pay")], "Nobody came.", "Not paid.")
    agent: Agent[Any, Any] = Agent(model, tools=[guarded(model, ran, expires_s=60).with_(name="clerk").as_tool()])
    paused = await turn(agent)
    done = await turn(agent, Woke(paused.wakes[0].key), session=paused.session)
    assert (done.text, ran) == ("Not paid.", [])
    assert texts(model.requests[2]) == ["Expired: nobody answered in time."]


async def test_a_second_answer_is_stale() -> None:
    """Whatever it says, the call ran once."""
    ran: list[str] = []
    agent = guarded(ScriptedModel([call("pay")], "Done."), ran)
    paused = await turn(agent)
    done = await answered(agent, paused, approved=True)
    for again in ({"approved": True}, {"approved": False}, {"value": 1}):
        late = await turn(agent, Answered(open_question(paused).key, **again), session=done.session)
        assert (late.status, late.lines[0].code, late.changed) == ("ignored", "stale-answer", False)
    assert ran == ["pay"]


# ---- a question that expires


EXPIRES = {"expires_s": 3600}


async def test_a_question_arms_a_wake_and_an_answer_disarms_it() -> None:
    """Both are on the record, and in what the host is told."""
    effects, ran = FakeEffects(), list[str]()
    agent = guarded(ScriptedModel([call("pay")], "Done."), ran, **EXPIRES)
    paused = await turn(agent, effects=effects)
    question = open_question(paused)
    assert question.expires == effects.now() + timedelta(hours=1)
    key = expiry_key(question)
    assert [(w.key, w.at) for w in paused.wakes] == [(key, question.expires)]
    assert [b.wake for b in bodies(paused, WakeArmed)] == list(paused.wakes)
    done = await answered(agent, paused, approved=True, effects=effects)
    assert (done.disarmed, [b.key for b in bodies(done, WakeDisarmed)], ran) == ((key,), [key], ["pay"])
    late = await turn(agent, Woke(key), session=done.session)
    assert (late.status, late.lines[0].code, late.changed) == ("ignored", "stale-answer", False)
    checked(agent, paused, done)


async def test_a_question_without_a_time_waits_for_ever() -> None:
    """And arms nothing."""
    paused = await turn(guarded(ScriptedModel([call("pay")]), []))
    assert (paused.wakes, open_question(paused).expires) == ((), None)


async def test_an_approval_that_comes_too_late_runs_nothing() -> None:
    """Also where no wake was taken: a program without a host forgets them."""
    effects, ran = FakeEffects(), list[str]()
    model = ScriptedModel([call("pay")], "Too late.")
    agent = guarded(model, ran, **EXPIRES)
    paused = await turn(agent, effects=effects)
    effects.advance(hours=1)
    done = await answered(agent, paused, approved=True, by="ana", effects=effects)
    assert (done.text, ran, results(done)) == ("Too late.", [], [("pay", "denied")])
    assert texts(model.requests[1]) == ["Expired: nobody answered in time."]
    (resumed,) = bodies(done, TurnResumed)
    assert (resumed.answer.expired, resumed.answer.approved) == (True, False)


async def test_a_message_that_comes_too_late_is_no_answer_either() -> None:
    """Where messages count as answers; and whoever says that a question expired has declined."""
    effects = FakeEffects()
    model = ScriptedModel([call("form")], "Nobody.", [call("form")], "Oh.")
    form = tool("form", lambda *_: Ask("Which?", on_message="answer", expires_s=60))
    agent: Agent[Any, Any] = Agent(model, tools=[form])
    paused = await turn(agent, effects=effects)
    effects.advance(minutes=1)
    await turn(agent, "XL", session=paused.session, effects=effects)
    assert texts(model.requests[1]) == ["Expired: nobody answered in time."]
    again = await turn(agent, effects=effects)
    done = await answered(agent, again, approved=True, expired=True, effects=effects)
    assert texts(model.requests[3])[-1] == "Expired: nobody answered in time."
    assert bodies(done, TurnResumed)[0].answer.approved is False


async def test_handlers_and_hooks_see_that_nobody_answered() -> None:
    """What a handler asks, returns or a reply hook asks about: each hears of it in its own way."""
    seen: list[tuple[bool | None, bool]] = []

    async def form(args: Any, ctx: Any) -> str:
        answer = await ctx.ask(Ask("Which?", expires_s=60))
        seen.append((answer.approved, answer.expired))
        return "none"

    async def batch(turn: Any, held: Any) -> Any:
        if held.calls and turn.resumed is None and not seen:
            return Ask("All of it?", expires_s=60)
        if turn.resumed is not None:
            seen.append((turn.resumed.approved, turn.resumed.expired))
        return held

    returned = tool("form", lambda *_: Ask("Which?", expires_s=60))
    agents: list[tuple[Agent[Any, Any], str]] = []
    for given in ({"tools": [tool("form", form)]}, {"tools": [returned]}, {
        "tools": [tool("form", lambda *_: "none")], "features": [Named("batch", Hooks(on_reply=batch))],
    }):  # fmt: skip
        seen.clear()
        model = ScriptedModel([call("form")], "Nobody.")
        agent: Agent[Any, Any] = Agent(model, **given)
        paused = await turn(agent)
        done = await turn(agent, Woke(paused.wakes[0].key), session=unpack(pack(waiting(paused))))
        assert done.text == "Nobody."
        heard = "Expired: nobody answered in time." if given["tools"] == [returned] else "none"
        assert (texts(model.requests[1]), list(seen)) == ([heard], [] if heard != "none" else [(False, True)])
        agents.append((agent, heard))
    assert len(agents) == 3


async def test_a_message_that_drops_the_question_leaves_a_wake_that_does_nothing() -> None:
    """It comes, and is ignored."""
    agent = guarded(ScriptedModel([call("pay")], "Hello.", "Later."), [], on_message="drop", **EXPIRES)
    paused = await turn(agent)
    said = await turn(agent, Said("never mind"), session=paused.session)
    woken = await turn(agent, Woke(paused.wakes[0].key), session=said.session)
    assert (said.text, woken.status, woken.changed) == ("Hello.", "ignored", False)


def test_only_wakes_of_questions_are_taken_for_them() -> None:
    """Names that programs give their own wakes are left alone."""
    assert ends_question(Woke("s:said::m~3/q0/expires"))
    for other in (Woke("remind/expires"), Woke("s:said::m~3/q0"), Said("s:said::m~3/q0/expires")):
        assert not ends_question(other)


@pytest.mark.parametrize("seconds", [0, -1, True, "soon", float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    """Where the question is made."""
    with pytest.raises(UsageError, match="expires_s="):
        Ask("Pay?", expires_s=seconds)
