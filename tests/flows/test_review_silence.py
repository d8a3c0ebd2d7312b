"""Silence: when it is counted, from what, for whom, and what a lost queue is told again: 12.4 and 19."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Anchor,
    Claims,
    Collect,
    Cooldown,
    Do,
    Flow,
    FlowOptions,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.flows.flow import Event
from onrecord.testing import raises
from onrecord.tools.tool import Tool
from onrecord.turn.options import Silenced
from tests.flows.playing import T0, Play, after, keys, line, says, skips, starts, wakes

pytestmark = pytest.mark.unit

HELLO = [says("Hello")]
NUDGE = Flow("nudge", on=[OnSilence("1h")], steps=[Talk("There?", id="t")])
SILENCE = "silence:nudge:s1:1789898400000"
EVENTS = {"sent": Event(direction="outbound"), "called": Event(direction="inbound"), "ping": Event()}


def lead(*, wrote: Any = None, **claims: Any) -> list[FlowOptions]:
    """The customer behind the session, and when they wrote last, wherever."""
    return [FlowOptions(anchors={"lead": Anchor("lead:4", last_inbound_at=wrote)}, claims=Claims(**claims))]


# ---- when it is armed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["idle", "say", "spoke", "question", "talk"])
async def test_whoever_speaks_arms_the_silence(how: str) -> None:
    """The idle speaker, a line, an action that spoke, a fixed question and a reply."""
    steps: Any = {
        "say": Say("Hi", id="s"), "spoke": Do("call", id="s"), "question": Collect("ok", id="s", question="Right?"),
        "talk": Talk("Hi.", id="s"), "idle": Do("notify", id="s"),
    }  # fmt: skip
    play = Play(
        Flow("f", on=[OnMention()], steps=[steps[how]]), NUDGE, actions=[Tool("call", lambda *_: Ok(spoke=True))]
    )
    speak = HELLO if how in ("idle", "talk") else [says("Well?")] if how == "question" else []
    assert wakes(await play.said(speak=speak)) == [(SILENCE, after(hours=1))]


async def test_a_turn_without_a_word_arms_nothing() -> None:
    """Nor does one whose answer failed, or in which nobody may speak."""
    play = Play(NUDGE, Flow("f", steps=[Do("notify", id="n")]), idle="silent")
    assert wakes(await play.started("f")) == []
    assert wakes(await play.said()) == []
    failed = Play(NUDGE)
    assert wakes(await failed.said(speak=[raises("network")])) == []
    assert wakes(await failed.said(key="m2", options=[Silenced("human")])) == []


async def test_what_was_said_before_is_not_counted_again() -> None:
    """A later turn without a word leaves the timer as it is."""
    play = Play(NUDGE, Flow("f", steps=[Do("notify", id="n")]))
    await play.said(speak=HELLO)
    play.clock.advance(minutes=10)
    result = await play.started("f")
    assert (wakes(result), result.disarmed) == ([], ())


async def test_the_first_time_replaces_nothing_and_every_later_one_the_one_before() -> None:
    """Also when that one was never armed."""
    play = Play(
        Flow(
            "nudge", on=[OnSilence("1h", repeat="always", only_if=lambda ctx: ctx.context)], steps=[Talk("Hi.", id="t")]
        )
    )
    await play.said(key="m1", context=False, speak=HELLO)
    play.clock.advance(minutes=10)
    second = await play.said(key="m2", context=True, speak=HELLO)
    assert [(w.key, w.replaces) for w in second.schedule] == [("silence:nudge:s1:1789899000000", SILENCE)]


async def test_a_condition_of_a_silence_sees_the_run_that_would_begin() -> None:
    """Its id, no step, and no input."""
    seen: list[Any] = []

    def look(ctx: Any) -> bool:
        seen.append((ctx.run.step_id, ctx.input, ctx.run.trigger_kind))
        return True

    await Play(Flow("nudge", on=[OnSilence("1h", only_if=look)], steps=[Talk("Hi.", id="t")])).said(speak=HELLO)
    assert seen == [(None, None, "silence")]


async def test_claims_of_other_sessions_arm_nothing() -> None:
    """Under the anchor that the flow has; a cooldown that is over arms again."""
    nudge = Flow("nudge", on=[OnSilence("1h", repeat=Cooldown("1d"))], anchor="lead", steps=[Talk("Hi.", id="t")])
    play = Play(nudge)
    assert wakes(await play.said(key="m1", speak=HELLO, options=lead(held={"nudge:lead:4:": T0}))) == []
    play.clock.advance(days=1)
    assert len(wakes(await play.said(key="m2", speak=HELLO, options=lead(held={"nudge:lead:4:": T0})))) == 1
    assert len(wakes(await play.said(key="m3", speak=HELLO, options=lead(held={"nudge:s1:": T0})))) == 0


async def test_several_flows_are_armed_each() -> None:
    """With times of their own."""
    two = Flow("two", on=[OnSilence("2h")], steps=[Talk("Hi.", id="t")])
    assert wakes(await Play(two, NUDGE).said(speak=HELLO)) == [
        ("silence:two:s1:1789898400000", after(hours=2)), (SILENCE, after(hours=1))
    ]  # fmt: skip


# ---- when it fires ---------------------------------------------------------------------------------------------------


async def test_a_silence_is_broken_by_what_was_said_or_written_since() -> None:
    """By the assistant, by the customer, and by an event that says so; not by one that says nothing of it."""
    for event, broken in (("sent", True), ("called", True), ("ping", False)):
        play = Play(NUDGE, events=EVENTS)
        await play.said(speak=HELLO)
        play.clock.advance(minutes=30)
        await play.happened(event)
        play.clock.advance(minutes=30)
        result = await play.woke(SILENCE, speak=[] if broken else HELLO)
        assert bool(result.skipped or result.started) is not broken
        assert [each.code for each in result.lines if each.code == "silence-broken"] == ["silence-broken"] * broken


async def test_under_an_anchor_only_what_was_written_since_breaks_it() -> None:
    """At the same instant as the assistant spoke is not since."""
    nudge = Flow("nudge", on=[OnSilence("1h")], anchor="lead", steps=[Talk("Hi.", id="t")])
    for wrote, broken in ((after(minutes=0), False), (after(seconds=1), True)):
        play = Play(nudge)
        await play.said(speak=HELLO, options=lead())
        play.clock.advance(hours=1)
        result = await play.woke(SILENCE, options=lead(wrote=wrote), speak=[] if broken else HELLO)
        assert bool(result.started) is not broken
        assert result.changed is not broken


async def test_without_an_anchor_what_was_written_elsewhere_does_not_count() -> None:
    """The flow is about this session."""
    play = Play(NUDGE)
    await play.said(speak=HELLO)
    play.clock.advance(hours=1)
    assert starts(await play.woke(SILENCE, options=lead(wrote=after(minutes=30)), speak=HELLO)) == [
        "nudge#1789898400000"
    ]


async def test_a_run_of_a_silence_is_named_after_its_anchor_and_has_the_floor() -> None:
    """Whoever asked waits behind it."""
    nudge = Flow("nudge", on=[OnSilence("1h")], anchor="lead", steps=[Collect("ok", id="q")])
    play = Play(nudge, Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q")]))
    await play.said(speak=HELLO, options=lead())
    play.clock.advance(hours=1)
    result = await play.woke(SILENCE, options=lead(), speak=HELLO)
    assert result.started[0].about["dedupe_key"] == "nudge:lead:4:"
    assert play.statuses == {"f": "suspended", "nudge": "asking"}
    assert (play.run("nudge").trigger_key, play.run("nudge").payload) == ("1789898400000", None)


async def test_a_silence_of_a_flow_that_listens_to_none_any_more_is_told_as_gone() -> None:
    """It is skipped, not ignored."""
    play = Play(NUDGE)
    await play.said(speak=HELLO)
    for flows in ((), (Flow("nudge", steps=[Talk("Hi.", id="t")]),)):
        other = Play(*flows, session=play.kept)
        result = await other.woke(SILENCE)
        assert (skips(result), result.changed) == ([("nudge", "1789898400000", "flow-gone")], True)


async def test_a_silence_fires_once() -> None:
    """Its claim is spent, or for one that always repeats: the assistant has spoken since."""
    play = Play(NUDGE)
    await play.said(speak=HELLO)
    play.clock.advance(hours=1)
    await play.woke(SILENCE, speak=HELLO)
    assert line(await play.woke(SILENCE), "silence-broken").key == SILENCE
    quiet = Play(Flow("nudge", on=[OnSilence("1h", repeat="always")], steps=[Do("notify", id="n")]))
    await quiet.said(speak=HELLO)
    quiet.clock.advance(hours=1)
    await quiet.woke(SILENCE)
    assert skips(await quiet.woke(SILENCE)) == [("nudge", "1789898400000", "already-claimed")]
    assert len(quiet.notified) == 1


# ---- what is told again ----------------------------------------------------------------------------------------------


async def test_what_a_lost_queue_is_told_again() -> None:
    """Parked runs in the order in which they started, then silences; each as its turn armed it."""
    play = Play(
        NUDGE, Flow("w", steps=[Wait("1d", id="w")]), Flow("e", steps=[WaitEvent("ping", id="e", up_to="2d")]),
        Flow("r", steps=[Talk("Hi.", id="t")]),
        Flow("l", on=[OnEvent("ping", after="1h")], steps=[Talk("Hi.", id="t")]), events=EVENTS,
    )  # fmt: skip
    armed = wakes(await play.happened("ping"))
    for flow, speak in (("e", []), ("w", []), ("r", [raises("network")])):
        armed += wakes(await play.started(flow, key=flow, speak=speak))
    armed += wakes(await play.happened("sent"))
    told = play.flows.pending_wakes(play.kept, now=T0)
    assert [(wake.key, wake.at) for wake in told] == armed
    assert all(wake.replaces is None for wake in told)
    assert len(armed) == 5


async def test_a_silence_that_is_over_is_not_told_again() -> None:
    """The customer wrote, here or under the flow's anchor."""
    nudge = Flow("nudge", on=[OnSilence("1h")], anchor="lead", steps=[Talk("Hi.", id="t")])
    play = Play(nudge)
    await play.said(speak=HELLO, options=lead())
    now = after(minutes=30)
    assert len(play.flows.pending_wakes(play.kept, now=now, options=lead())) == 1
    assert len(play.flows.pending_wakes(play.kept, now=now, options=lead(wrote=T0))) == 1
    assert play.flows.pending_wakes(play.kept, now=now, options=lead(wrote=after(minutes=1))) == ()
    assert play.flows.pending_wakes(play.kept, now=now, options=lead(held={"nudge:lead:4:": T0})) == ()


async def test_conditions_and_cooldowns_are_asked_of_what_is_told_again() -> None:
    """With the context given, and now; one that is async counts as open."""

    async def later(ctx: Any) -> bool:
        return False

    flows = (
        Flow("no", on=[OnSilence("1h", only_if=lambda ctx: ctx.context)], steps=[Talk("Hi.", id="t")]),
        Flow("later", on=[OnSilence("1h", only_if=later)], steps=[Talk("Hi.", id="t")]),
        Flow("cool", on=[OnSilence("1h", repeat=Cooldown("1d"))], steps=[Talk("Hi.", id="t")]),
        Flow("often", on=[OnSilence("1h", repeat="always")], steps=[Talk("Hi.", id="t")]),
    )
    play = Play(*flows)
    await play.said(context=True, speak=HELLO)

    def told(context: Any, now: Any, **held: Any) -> list[str]:
        options = [FlowOptions(claims=Claims(held=held))]
        found = play.flows.pending_wakes(play.kept, now=now, context=context, options=options)
        return [wake.key.split(":")[1] for wake in found]

    assert told(True, T0) == ["no", "later", "cool", "often"]
    assert told(False, T0, **{"cool:s1:": T0, "often:s1:1789898400000": T0}) == ["later"]
    assert told(False, after(days=1), **{"cool:s1:": T0, "often:s1:": T0}) == ["later", "cool", "often"]


async def test_a_session_in_which_nobody_has_spoken_waits_for_no_silence() -> None:
    """And one that holds runs of another agent's flows tells nothing of theirs."""
    play = Play(NUDGE, Flow("w", steps=[Wait("1d", id="w")]), idle="silent")
    await play.said()
    assert play.flows.pending_wakes(play.kept, now=T0) == ()
    await play.started("w")
    other = Play(Flow("w", steps=[Wait("1d", id="w")]), name="Bo", session=play.kept)
    assert [wake.key for wake in other.flows.pending_wakes(play.kept, now=T0)] == ["w#k:w:1789984800000"]
    assert keys(await play.said(key="m2")) == []
