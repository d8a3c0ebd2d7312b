"""A clock that is set back does not turn round who wrote first: silence is what followed, not what a clock says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from onrecord.flows import Event, Flow, Idle, OnSilence, Talk
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, after, line, says, starts, wakes

pytestmark = pytest.mark.unit

HUMAN = Silenced("human")
NUDGE = Flow("nudge", on=[OnSilence("1h", repeat="always")], steps=[Talk("Ask.", id="t")])


def nudging() -> Play:
    """A play in which somebody is reminded after an hour."""
    return Play(NUDGE, events={"sent": Event(direction="outbound"), "wrote": Event(direction="inbound")}, idle=Idle())


async def test_silence_is_armed_after_an_earlier_message_with_a_later_time() -> None:
    """The assistant spoke after the customer, whose message has a time that is yet to come."""
    play = nudging()
    await play.said(key="m1", options=[HUMAN])
    play.clock.at = after(hours=-2)
    result = await play.happened("sent")
    assert wakes(result) == [("silence:nudge:s1:1789891200000", after(hours=-1))]
    play.clock.at = after(hours=-1)
    assert starts(await play.woke(wakes(result)[0][0], speak=[says("Still there?")])) == ["nudge#1789891200000"]


@pytest.mark.parametrize("by", ["message", "event"])
async def test_silence_is_broken_by_a_later_message_with_an_earlier_time(by: str) -> None:
    """The customer wrote after the assistant spoke, so nobody is silent."""
    play = nudging()
    ((key, at),) = wakes(await play.said(key="m1", speak=[says("Hello.")]))
    play.clock.at = after(hours=-2)
    await (play.said(key="m2", options=[HUMAN]) if by == "message" else play.happened("wrote", options=[HUMAN]))
    assert play.flows.pending_wakes(play.kept, now=at) == ()
    play.clock.at = at
    late = await play.woke(key)
    assert (late.changed, line(late, "silence-broken").key) == (False, key)


async def test_a_message_that_its_channel_held_back_breaks_nothing() -> None:
    """It was written before the assistant spoke: who has been silent since is reminded."""
    play = nudging()
    play.clock.at = after(minutes=10)
    ((key, at),) = wakes(await play.said(key="m1", speak=[says("Hello.")]))
    play.clock.at = after(minutes=11)
    await play.said(key="m2", at=after(minutes=5), options=[HUMAN])
    play.clock.at = at + timedelta(minutes=1)
    assert starts(await play.woke(key, speak=[says("Still there?")]))
