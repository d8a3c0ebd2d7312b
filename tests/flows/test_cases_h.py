"""Cases H of the specification: silence, wakes that come late or twice, and two writers of one session."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.inputs import Said, Woke
from onrecord.errors import SessionConflict
from onrecord.flows import Anchor, Claims, Collect, Flow, FlowOptions, OnMessage, OnSilence, Say, Talk, Wait
from onrecord.flows.flow import Event
from onrecord.flows.outcomes import OUTCOME_MESSAGES
from onrecord.session.memory_store import MemoryStore
from onrecord.turn.options import Silenced
from tests.flows.playing import (
    NOTHING,
    T0,
    Play,
    Result,
    after,
    ends,
    keys,
    line,
    lines,
    said_by,
    says,
    skips,
    starts,
    told,
    wakes,
)

pytestmark = pytest.mark.unit

INTAKE = Flow("intake", on=[OnMessage()], steps=[Collect("name", id="who")])
NUDGE = Flow(
    "nudge", on=[OnSilence("24h")],
    steps=[
        Talk("Pick it up lightly.", id="p1"), Wait("2d", id="w1", else_="end"), Talk("Last try, short.", id="p2"),
    ],
)  # fmt: skip
SILENCE = "silence:nudge:s1:1789898400000"
WAIT = "nudge#1789898400000:w1:1790157600000"


async def spoken(*flows: Flow, **given: Any) -> Play:
    """A play in which intake has asked for the name, and nobody has answered."""
    play = Play(*(flows or (INTAKE, NUDGE)), **given)
    result = await play.said(speak=[says("Name?")])
    assert wakes(result) == [(SILENCE, after(hours=24))]
    return play


async def nudged() -> tuple[Play, Result]:
    """The same a day later, when the silence has fired and the nudge waits for an answer."""
    play = await spoken()
    play.clock.advance(hours=24)
    return play, await play.woke(SILENCE, speak=[says("Still there?")])


# ---- silence ---------------------------------------------------------------------------------------------------------


async def test_h2_fire() -> None:
    """After a day of silence the assistant speaks first, and gives the floor back while it waits."""
    play, result = await nudged()
    assert starts(result) == ["nudge#1789898400000"]
    assert said_by(result) == [("Still there?", "ai", "nudge#1789898400000:p1:1")]
    assert "There is no new message from the customer" in told(play.requests[0])
    assert wakes(result) == [(WAIT, after(days=3))]
    assert play.statuses == {"intake": "asking", "nudge": "waiting"}
    assert play.run("nudge").trigger_kind == "silence"


async def test_h2_the_last_try() -> None:
    """Nobody answered for two days more: the flow speaks again, under the next step's key, and is over."""
    play, _ = await nudged()
    play.clock.advance(days=2)
    result = await play.woke(WAIT, speak=[says("Bye then.")])
    assert lines(result) == [("w1", "wait", "ok", "no-reply"), ("p2", "prompt", "ok", None)]
    assert keys(result) == ["nudge#1789898400000:p2:1"]
    assert ends(result) == [("nudge#1789898400000", "end")]


async def test_h4_stale() -> None:
    """A reply ended the wait, so its wake finds nobody: nothing changes."""
    play, _ = await nudged()
    play.clock.advance(hours=1)
    replied = await play.said("Ana", key="m2", judge=NOTHING, speak=[says("Name?")])
    assert line(replied, "replied").next == "end"
    assert ends(replied) == [("nudge#1789898400000", "end")]
    play.clock.advance(days=2)
    before = play.kept
    result = await play.woke(WAIT)
    assert (result.changed, result.status, result.session) == (False, "ignored", before)
    stale = line(result, "stale-wake")
    assert (stale.kind, stale.status, stale.key) == ("wait", "skipped", WAIT)


async def test_h5_broken() -> None:
    """A silence in which somebody wrote, or another one than this, is none."""
    play = await spoken()
    other = await play.woke("silence:nudge:s1:1789898399999")
    assert (other.changed, line(other, "silence-broken").key) == (False, "silence:nudge:s1:1789898399999")
    play.clock.advance(hours=1)
    await play.said("still thinking", key="m2", options=[Silenced("human")])
    assert play.kept.last_assistant_at == T0
    play.clock.advance(hours=23)
    written = await play.woke(SILENCE)
    assert (written.changed, line(written, "silence-broken").status) == (False, "skipped")


async def test_h5_broken_elsewhere() -> None:
    """For a flow with an anchor a message in another session breaks the silence too."""
    play = Play(INTAKE, Flow("nudge", on=[OnSilence("24h")], anchor="lead", steps=[Talk("Lightly.", id="p1")]))
    await play.said(speak=[says("Name?")])
    play.clock.advance(hours=24)
    options = [FlowOptions(anchors={"lead": Anchor("lead:456", last_inbound_at=after(hours=2))})]
    assert line(await play.woke(SILENCE, options=options), "silence-broken").key == SILENCE


async def test_h6_if_at_fire() -> None:
    """The condition is judged again when the silence fires; one that does not hold leaves no trace."""
    flow = Flow(
        "nudge", on=[OnSilence("24h", only_if=lambda ctx: ctx.context["owner"] == "ai")],
        steps=[Talk("Pick it up lightly.", id="p1")],
    )  # fmt: skip
    play = Play(INTAKE, flow)
    armed = await play.said(context={"owner": "ai"}, speak=[says("Name?")])
    assert wakes(armed) == [(SILENCE, after(hours=24))]
    play.clock.advance(hours=24)
    result = await play.woke(SILENCE, context={"owner": "human"})
    assert (starts(result), skips(result), result.changed) == ([], [], False)


async def test_h6_if_when_armed() -> None:
    """A condition that does not hold when the assistant has spoken arms nothing."""
    flow = Flow(
        "nudge", on=[OnSilence("24h", only_if=lambda ctx: ctx.context["owner"] == "ai")],
        steps=[Talk("Pick it up lightly.", id="p1")],
    )  # fmt: skip
    assert wakes(await Play(INTAKE, flow).said(context={"owner": "human"}, speak=[says("Name?")])) == []


async def test_h7_replaces() -> None:
    """Each time the assistant speaks the silence is counted anew, and its wake names the one before."""
    play = Play(Flow("poke", on=[OnSilence("1h", repeat="always")], steps=[Talk("Poke.", id="p")]))
    first = await play.said(key="m1", speak=[says("Hello")])
    assert [(w.key, w.replaces) for w in first.schedule] == [("silence:poke:s1:1789898400000", None)]
    play.clock.advance(minutes=10)
    second = await play.said(key="m2", speak=[says("Hello")])
    assert [(w.key, w.at, w.replaces) for w in second.schedule] == [
        ("silence:poke:s1:1789899000000", after(minutes=70), "silence:poke:s1:1789898400000")
    ]


async def test_h7_business_hours() -> None:
    """A silence may wait until business is open; its key names when the assistant spoke all the same."""

    def next_morning(at: datetime, context: object) -> datetime:
        return at.replace(hour=9) + timedelta(days=1)

    flow = Flow("poke", on=[OnSilence("1h", business_hours=True)], steps=[Talk("Poke.", id="p")])
    play = Play(flow, business_hours=next_morning)
    expected = [("silence:poke:s1:1789898400000", after(hours=23))]
    assert wakes(await play.said(speak=[says("Hello")])) == expected
    assert [(w.key, w.at) for w in play.flows.pending_wakes(play.kept, now=T0)] == expected


async def test_h9_no_session() -> None:
    """A wake for a session that does not exist makes none."""
    result = await Play(INTAKE, NUDGE).woke(SILENCE)
    assert (result.changed, result.session, result.status) == (False, None, "ignored")
    assert (line(result, "no-session").key, line(result, "no-session").kind) == (SILENCE, "wait")


# ---- two writers -----------------------------------------------------------------------------------------------------


async def test_h10_race() -> None:
    """Of a wake and a message that both began from version 1 the second to save replays, and finds the nudge waiting.

    The numbers of the conflict are those of the case; its class is the library's.
    """
    play, store = Play(INTAKE, NUDGE), MemoryStore(clock=lambda: T0)
    stored = await store.commit((await play.said(speak=[says("Name?")])).change())
    assert stored.version == 1

    async def take(input: Said | Woke, session: Any, judge: Any, text: str) -> Result:
        play.script(judge, [says(text)])
        return await play.agent.turn(input, session=session, effects=play.clock)

    play.clock.advance(hours=24)
    both = await store.load("s1"), await store.load("s1")
    text, answer = Said("Ana", key="m2"), {"fields": {"name": "Ana"}}
    woke = await take(Woke(SILENCE), both[0], None, "Still there?")
    lost = await take(text, both[1], answer, "Thanks.")
    assert (await store.commit(woke.change())).version == 2
    with pytest.raises(SessionConflict) as refused:
        await store.commit(lost.change())
    assert (refused.value.expected, refused.value.found) == (1, 2)
    again = await take(text, await store.load("s1"), answer, "Thanks.")
    assert (line(again, "replied").message, ends(again)[0]) == (
        OUTCOME_MESSAGES["replied"], ("nudge#1789898400000", "end")
    )  # fmt: skip
    assert (await store.commit(again.change())).version == 3


# ---- what is due -----------------------------------------------------------------------------------------------------


async def test_h12_pending_wakes() -> None:
    """After a queue is lost the wakes of a saved session are told again, as its turns armed them."""
    play = await spoken()
    before = play.kept
    pending = play.flows.pending_wakes(play.kept, now=after(hours=1))
    assert [(w.key, w.at, w.replaces) for w in pending] == [(SILENCE, after(hours=24), None)]
    later = replace(play.kept, last_user_at=after(hours=1))
    assert play.flows.pending_wakes(later, now=after(hours=1)) == ()
    claimed = FlowOptions(claims=Claims(held={"nudge:s1:": T0}))
    assert play.flows.pending_wakes(play.kept, now=after(hours=1), options=[claimed]) == ()
    assert play.kept == before


async def test_h12_pending_wakes_of_parked_runs() -> None:
    """A parked run's wake is told as the turn that parked it armed it."""
    play, result = await nudged()
    assert play.flows.pending_wakes(play.kept, now=play.clock.at) == result.schedule
    assert [w.key for w in result.schedule] == [WAIT]


# ---- events that are somebody speaking -------------------------------------------------------------------------------

CALLED = {"sent": Event(direction="outbound"), "called": Event(direction="inbound")}


async def test_h13_outbound_event() -> None:
    """An event that says that the host spoke to the customer starts the silence."""
    play = Play(INTAKE, NUDGE, events=CALLED)
    result = await play.happened("sent", key="e1")
    assert play.kept.last_assistant_at == T0
    assert wakes(result) == [(SILENCE, after(hours=24))]


async def test_h13_inbound_event() -> None:
    """An event that says that the customer was in touch is a reply to whoever waits for one."""
    flow = Flow("w", steps=[Wait("1d", id="p", else_="back"), Say("Too late", id="s"), Say("You called", id="back")])
    play = Play(flow, events=CALLED)
    await play.started("w")
    play.clock.advance(hours=1)
    result = await play.happened("called", key="e1")
    assert play.kept.last_user_at == after(hours=1)
    assert lines(result) == [("p", "wait", "ok", "replied"), ("back", "say", "ok", None)]


def test_the_clock_of_the_cases() -> None:
    """The milliseconds in these keys are those of the times that the cases name."""
    assert datetime.fromtimestamp(1789898400, tz=T0.tzinfo) == T0
    assert datetime.fromtimestamp(1790157600, tz=T0.tzinfo) == after(days=3)
