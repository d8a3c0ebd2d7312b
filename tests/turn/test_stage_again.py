"""Wakes and lines, and a director that is called again from the top (architecture §6, §7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.models.request import Reading, Shape
from onrecord.record.kinds import (
    DataPatched,
    OutcomeFiled,
    TextSaid,
    ToolReturned,
    WakeArmed,
    WakeDisarmed,
)
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.tools.tool import ToolResult
from onrecord.turn.director import Brief, Stage
from onrecord.turn.turn import Turn
from tests.turn.acting import bodies, tool, turn
from tests.turn.directing import PLAIN, Directed, played, query

pytestmark = pytest.mark.unit

# ---- wakes and lines -------------------------------------------------------------------------------------------------

AT = datetime(2026, 9, 21, 12, tzinfo=UTC)


async def test_wakes_and_lines_are_filed_and_returned() -> None:
    """A line without a time gets the turn's."""

    async def script(turn: Turn, stage: Stage) -> None:
        stage.arm(Wake(key="w", at=AT))
        stage.disarm("old")
        stage.outcome(Outcome(kind="run", status="started", key="f"))
        stage.outcome(Outcome(kind="run", status="ended", at=AT))
        stage.outcome(Outcome(kind="run", status="skipped", code="busy"))
        stage.outcome(Outcome(kind="talk", status="skipped", code="silenced"))

    result = await played(script)
    assert result.wakes == result.schedule == (Wake(key="w", at=AT),)
    assert result.disarmed == ("old",)
    assert [b.wake for b in bodies(result, WakeArmed)] == [Wake(key="w", at=AT)]
    assert [b.key for b in bodies(result, WakeDisarmed)] == ["old"]
    assert [line.at for line in result.lines[:3]] == [FakeEffects().at, AT, FakeEffects().at]
    assert [line.kind for line in result.outcomes] == ["talk"]
    assert [line.status for line in (*result.started, *result.ended, *result.skipped)] == [
        "started",
        "ended",
        "skipped",
    ]
    assert result.status == "silent"


async def test_a_deferred_line_is_the_turns_status() -> None:
    """The answer comes later."""

    async def script(turn: Turn, stage: Stage) -> None:
        stage.outcome(Outcome(kind="step", status="deferred"))

    assert (await played(script)).status == "deferred"


async def test_a_director_called_again_files_nothing_twice() -> None:
    """It starts from the top: what was performed returns its record, equal lines count by their number."""
    seen: list[Any] = []
    asking = tool("ask", lambda *_: Ask("Which?"))

    async def script(turn: Turn, stage: Stage) -> None:
        line = Outcome(kind="flow", status="started")
        stage.outcome(line)
        stage.outcome(line)
        stage.arm(Wake(key="w", at=AT))
        judged = await stage.judge(query())
        await stage.say("One moment.", key="wait")
        did = await stage.act(tool("book", lambda *_: ToolResult({"n": 1}, data={"n": 1})), {}, key="do")
        spoken = await stage.speak(Brief(key="first", shape=PLAIN))
        asked = await stage.act(asking, {}, key="ask")
        seen.append((judged, did.value, spoken.text, spoken.value, asked.value))
        if asked.asked is None:
            await stage.speak(Brief(key="last"))

    model = ScriptedModel("spoken", "done", judge=["judged"])
    agent: Agent[Any, Any] = Agent(model, director=Directed(script))
    paused = await turn(agent)
    assert paused.question is not None
    assert (paused.status, len(paused.lines), len(paused.wakes)) == ("paused", 2, 1)
    done = await turn(agent, Answered(paused.question.key, value="blue"), session=paused.session)
    first, second = seen
    assert first == ("judged", {"n": 1}, "spoken", "spoken", None)
    assert second == ("judged", {"n": 1}, "spoken", "spoken", "blue")
    assert (done.text, model.calls) == ("done", ["judge", "speak", "speak"])
    assert [bodies(done, kind) for kind in (OutcomeFiled, WakeArmed, DataPatched)] == [[], [], []]
    assert [b.text for b in bodies(done, TextSaid)] == ["done"]
    assert [b.name for b in bodies(done, ToolReturned)] == ["ask"]


async def test_the_values_before_a_pause_are_merged_with_those_behind_it() -> None:
    """A round that paused on its call had a value too; also when the verb is read again from its record."""
    seen: list[Any] = []

    def letters(made: Round) -> Reading[str]:
        return Reading(text=made.text, value=made.text)

    shape = Shape(name="letters", schema={}, read=letters)

    async def script(turn: Turn, stage: Stage) -> None:
        brief = Brief(key="answer", shape=shape, merge=lambda before, now: before + now)
        spoken = await stage.speak(brief)
        if spoken.asked is None:
            seen.append(spoken.value)
            seen.append((await stage.act(asking, {}, key="later")).value)

    asking = tool("ask", lambda *_: Ask("Which?"))
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(reply("a", call("ask")), "b"), tools=[asking], director=Directed(script)
    )
    one = await turn(agent)
    assert one.question is not None
    two = await turn(agent, Answered(one.question.key, value=1), session=one.session)
    assert two.question is not None
    await turn(agent, Answered(two.question.key, value=2), session=two.session)
    assert seen == ["ab", None, "ab", 2]


async def test_a_value_that_json_cannot_keep_is_read_again_as_the_record_has_it() -> None:
    """Within the take it is the object itself; across a pause it is the text that a model would read."""
    seen: list[Any] = []
    opaque = object()

    async def script(turn: Turn, stage: Stage) -> None:
        seen.append((await stage.act(tool("make", lambda *_: opaque), {}, key="make")).value)
        await stage.act(tool("ask", lambda *_: Ask("Which?")), {}, key="ask")

    agent: Agent[Any, Any] = Agent(ScriptedModel(), director=Directed(script))
    paused = await turn(agent)
    assert paused.question is not None
    await turn(agent, Answered(paused.question.key, value=1), session=paused.session)
    assert seen == [opaque, "[result could not be serialized]"]
