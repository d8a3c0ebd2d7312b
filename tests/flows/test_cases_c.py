"""Cases C of the specification: which flow takes a message."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import Collect, Flow, OnMessage, Talk
from tests.flows.playing import Play, keys, lines, says, skips, starts

pytestmark = pytest.mark.unit

SALES = Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q")])
HELP = Flow("help", on=[OnMessage("has a problem", repeat="always")], steps=[Collect("ok", id="q")])
OPEN = Flow("open", on=[OnMessage()], steps=[Talk("Answer anything.", id="p")])
SAY = [says("Right?")]


def scores(**each: Any) -> dict[str, Any]:
    """An understand reply that scores flows."""
    return {"flows": each}


async def asking(*flows: Flow) -> Play:
    """A play in which sales asks."""
    play = Play(*(flows or (SALES, HELP, OPEN)))
    await play.said(key="m0", judge=scores(sales=90, help=0), speak=SAY)
    assert play.statuses == {"sales": "asking"}
    return play


async def test_c3_margin() -> None:
    """Fourteen points above the asker leave it the floor, fifteen take it, and the asker is suspended now."""
    play = await asking()
    result = await play.said(key="m1", judge=scores(sales=50, help=64), speak=SAY)
    assert (starts(result), keys(result)) == ([], ["sales#m0:q:1/2"])
    play.clock.advance(minutes=1)
    result = await play.said(key="m2", judge=scores(sales=50, help=65), speak=SAY)
    assert (starts(result), keys(result)) == (["help#m2"], ["help#m2:q:1"])
    assert play.statuses == {"sales": "suspended", "help": "asking"}
    assert play.run("sales").suspended_at == play.clock.at


async def test_c4_floor_minimum() -> None:
    """Below 40 nobody takes the floor, however little the asker scores; a score that is missing counts as 0."""
    play = await asking()
    assert starts(await play.said(key="m1", judge=scores(sales=10, help=39), speak=SAY)) == []
    assert starts(await play.said(key="m2", judge=scores(help=40), speak=SAY)) == ["help#m2"]
    assert play.statuses == {"sales": "suspended", "help": "asking"}


@pytest.mark.parametrize("lone_flow", ["start", "score"])
async def test_c5_lone_silent_idle(lone_flow: str) -> None:
    """With nobody idle to speak in its place, the only flow starts unscored under either rule."""
    play = Play(SALES, idle="silent", lone_flow=lone_flow)
    assert starts(await play.said(speak=SAY)) == ["sales#m1"]


async def test_c6_lone_idle_on_scored() -> None:
    """Under ``lone_flow="score"`` the only flow is scored, and the idle speaker answers when it is not meant."""
    play = Play(SALES, lone_flow="score")
    result = await play.said(judge=scores(sales=10), speak=[says("Hello")])
    assert starts(result) == []
    (message,) = result.messages
    assert (message.text, message.key, dict(message.about)) == ("Hello", "idle:m1", {})
    (spoken,) = result.outcomes
    assert (spoken.kind, spoken.status, spoken.code, spoken.key) == ("idle", "ok", None, "idle:m1")
    assert (spoken.llm_calls, result.llm_calls) == (1, 2)


async def test_c8_nothing_at_all() -> None:
    """Without flows and with a silent idle speaker a message is only remembered."""
    play = Play(idle="silent")
    result = await play.said(key="m1")
    assert (result.messages, result.outcomes, result.changed, result.status) == ((), (), True, "silent")
    assert (await play.said(key="m1")).status == "ignored"


async def test_c9_idle_alone() -> None:
    """Without flows the idle speaker answers everything."""
    assert keys(await Play().said(speak=SAY)) == ["idle:m1"]


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ({"sales": "85", "help": "high"}, "sales#m1"),
        ({"sales": 100, "help": 250}, "sales#m1"),
        ({"sales": -3, "help": 40}, "help#m1"),
        ({"sales": "-30", "help": "250"}, "help#m1"),
        ({"sales": True, "help": 41}, "help#m1"),
    ],
)
async def test_c10_string_scores(given: dict[str, Any], started: str) -> None:
    """Numeric text counts, words do not, and what is out of range is clamped: 250 is no more than 100."""
    play = Play(SALES, HELP)
    assert starts(await play.said(judge=scores(**given), speak=SAY)) == [started]


async def test_c11_useless_reply(caplog: pytest.LogCaptureFixture) -> None:
    """A reply without the object is one call and one warning, and routing goes on as if every score were 0."""
    play = Play(SALES, HELP, OPEN)
    result = await play.said(judge="no idea", speak=SAY)
    assert (starts(result), result.llm_calls) == (["open#m1"], 2)
    assert [record.levelname for record in caplog.records if record.name == "onrecord.flows"] == ["WARNING"]
    assert "no idea" not in caplog.text


async def test_c13_catch_all_default_once() -> None:
    """A catch-all takes one message of a session; later ones that nobody wants are the idle speaker's."""
    play = Play(SALES, HELP, OPEN)
    assert starts(await play.said(key="m1", judge=scores(sales=0, help=0), speak=SAY)) == ["open#m1"]
    assert play.state.runs == ()
    result = await play.said(key="m2", judge=scores(sales=39, help=0), speak=SAY)
    assert (starts(result), skips(result), keys(result)) == ([], [], ["idle:m2"])
    assert lines(result) == [(None, "idle", "ok", None)]
