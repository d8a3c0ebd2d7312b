"""What a turn comes to when two ends meet, and what leaves no message behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Answered, Ask, Interruption
from onrecord.conversation.messages import UserMessage
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.errors import ModelError, UsageError
from onrecord.models.chunks import ThinkingChunk
from onrecord.session import refold
from onrecord.testing import ScriptedModel, raises
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.turn.acting import call, kinds, reply, rounds_of, tool, turn

pytestmark = pytest.mark.unit

PASS = Outcome(kind="input", status="ignored", code="not-mine", message="nobody waits for it")


class Scripted:
    """A director that asks, or says a line, and then does something else."""

    def __init__(self, *does: str) -> None:
        self.does = does

    async def direct(self, turn: Turn, stage: Stage) -> None:
        for done in self.does:
            if done == "say":
                await stage.say("hello", key="line")
            elif done == "ask":
                await stage.speak(turn.spec.brief)
            elif done == "ignore":
                turn.ignore(PASS)
            elif done == "defer":
                stage.outcome(Outcome(kind="talk", status="deferred"))
            else:
                turn.interrupt(Interruption(id="i1", turn=turn.id))
                await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("does", "status"),
    [
        (("ask", "interrupt"), "paused"),
        (("ask", "ignore"), "paused"),
        (("defer", "interrupt"), "interrupted"),
        (("say", "interrupt"), "interrupted"),
        (("say", "defer"), "deferred"),
        (("say", "ignore"), "answered"),
        (("say",), "answered"),
        (("ignore",), "ignored"),
        ((), "silent"),
    ],
)
async def test_of_two_ends_the_one_that_keeps_more_stands(does: tuple[str, ...], status: str) -> None:
    """Paused before interrupted, deferred, answered, ignored and silent: no question and no said line is lost."""
    asking = tool("lookup", lambda *_: Ask("Which?"))
    result = await turn(Agent(ScriptedModel([call("lookup")]), tools=[asking], director=Scripted(*does)))
    assert result.status == status
    assert (result.question is not None) == (status == "paused")
    assert bool(result.messages) == ("say" in does and status != "interrupted")
    assert result.changed == (status != "ignored")
    if result.session is not None:
        key = result.session.digest_key
        assert refold(result.session.key, result.entries, digest_key=key) == result.session


@pytest.mark.parametrize("blank", ["", "  \n", reply()])
async def test_a_blank_reply_leaves_no_message(blank: Any) -> None:
    """Neither words, reasoning nor a result: the record has the reply, the conversation does not."""
    result = await turn(Agent(ScriptedModel(blank)))
    assert (result.status, result.messages) == ("silent", ())
    assert "model.replied" in kinds(result)
    assert result.session is not None
    assert [type(m) for m in result.session.conversation.messages] == [UserMessage]
    assert len(result.session.conversation.units) == 1
    key = result.session.digest_key
    assert refold(result.session.key, result.entries, digest_key=key) == result.session


async def test_reasoning_alone_and_a_result_without_words_are_kept() -> None:
    """They are something that happened between the two."""
    thought = await turn(Agent(ScriptedModel(reply(ThinkingChunk("hm")))))
    assert len(rounds_of(thought)) == 1
    looked = await turn(Agent(ScriptedModel([call("lookup")], ""), tools=[tool()]))
    assert rounds_of(looked)[0].calls[0].result == (Text("lookup"),)


def _asking(about: str = "A city.", **schema: Any) -> Any:
    city = {"type": "string", "description": about, **schema}
    return tool("lookup", lambda *_: Ask("Which?"), parameters={"type": "object", "properties": {"city": city}})


async def _answered_by(changed: dict[str, Any]) -> Any:
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("lookup", city="Lund")], '"done"'), tools=[_asking()])
    paused = await turn(agent)
    assert paused.question is not None
    return await turn(agent.with_(**changed), Answered(paused.question.key, value="x"), session=paused.session)


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"tools": [_asking(enum=["Oslo"])]}, "the tool 'lookup' has another schema"),
        ({"output": int}, "the agent's output type is another"),
    ],
)
async def test_a_paused_turn_does_not_go_on_with_another_schema(changed: dict[str, Any], missing: str) -> None:
    """The recorded arguments, or the value that was promised, belong to the schema of then."""
    with pytest.raises(UsageError, match=missing) as refused:
        await _answered_by(changed)
    assert refused.value.code == "asker-gone"


async def test_other_words_in_a_schema_do_not_stop_a_paused_turn() -> None:
    """A better description is a newer build of the same tool."""
    assert (await _answered_by({"tools": [_asking("The city to look up.")]})).status == "answered"


class Failing:
    """A director that arms and disarms, says a line, and then speaks in vain."""

    async def direct(self, turn: Turn, stage: Stage) -> None:
        stage.arm(Wake(key="later", at=turn.now))
        stage.disarm("earlier")
        await stage.say("One moment.", key="line")
        await stage.speak(turn.spec.brief)


async def test_a_failed_turn_leaves_no_timers() -> None:
    """What a director armed and disarmed is on the record only, as is what it said."""
    stream = Agent(ScriptedModel(raises("network")), director=Failing()).turn_stream("hi")
    with pytest.raises(ModelError) as failed:
        await stream.result()
    result = failed.value.result
    assert result is not None
    assert (result.status, result.wakes, result.disarmed, result.messages) == ("failed", (), (), ())
    assert kinds(result)[2:5] == ["wake.armed", "wake.disarmed", "said"]


async def test_a_line_that_a_reader_saw_is_kept_when_the_model_fails_behind_it() -> None:
    """Nobody read along: then nothing was shown, and the same input can be taken again."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(raises("network"), raises("network")), director=Failing())
    with pytest.raises(ModelError) as shown:
        await agent.turn_stream("hi").result()
    assert shown.value.result is not None
    with pytest.raises(ModelError) as unseen:
        await turn(agent)
    assert unseen.value.result is None
