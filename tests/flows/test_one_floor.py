"""One run has the floor, also while nobody may speak and whatever wakes fire meanwhile."""

from __future__ import annotations

import pytest

from onrecord.flows import Collect, Flow, FlowOptions, OnMessage, Say, Talk, Wait
from onrecord.testing import raises
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, says, skips, starts, wakes

pytestmark = pytest.mark.unit

STAY = Flow("stay", on=[OnMessage()], on_end="stay", steps=[Talk("Help on.", id="t")])
ASK = Flow("ask", steps=[Wait("30s", id="w"), Collect("name", id="q")])


async def test_a_silenced_retry_leaves_one_asker() -> None:
    """A run that stays comes back to its step, and whoever asked waits behind it."""
    play = Play(STAY, ASK)
    await play.said(key="m1", speak=[says("Hi.")])
    play.clock.advance(minutes=1)
    ((retry, at),) = wakes(await play.said(key="m2", speak=[raises("network")]))
    ((wait, due),) = wakes(await play.started("ask"))
    play.clock.at = due
    await play.woke(wait, speak=[says("Your name?")])
    play.clock.at = at
    result = await play.woke(retry, options=[Silenced("human")])
    assert (result.messages, play.statuses) == ((), {"stay": "asking", "ask": "suspended"})


async def test_a_silenced_retry_asks_on_where_nobody_else_does() -> None:
    """The run that stays has the floor, without a word."""
    play = Play(STAY)
    await play.said(key="m1", speak=[says("Hi.")])
    ((retry, at),) = wakes(await play.said(key="m2", speak=[raises("network")]))
    play.clock.at = at
    result = await play.woke(retry, options=[Silenced("human")])
    assert (result.messages, play.statuses) == ((), {"stay": "asking"})


@pytest.mark.parametrize("other", ["c2", None], ids=["another anchor", "none"])
async def test_one_run_has_one_key(other: str | None) -> None:
    """The same start for another customer does not begin a run whose messages would have the keys of a live one's."""
    flow = Flow("f", anchor="customer", steps=[Say("Hi", id="s"), Wait("1d", id="w")])
    play = Play(flow)
    here = FlowOptions(anchors={"customer": "c1"})
    there = [] if other is None else [FlowOptions(anchors={"customer": other})]
    assert starts(await play.started("f", options=[here])) == ["f#k"]
    again = await play.started("f", options=there)
    assert (again.messages, skips(again)) == ((), [("f", "k", "already-running")])
    assert [run.anchor for run in play.state.runs] == ["c1"]
