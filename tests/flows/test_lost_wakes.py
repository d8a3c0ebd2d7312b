"""A wake whose turn came to nothing is armed again by the next turn: nobody waits for ever."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from onrecord.conversation.inputs import Interruption, Woke
from onrecord.errors import FeatureFailed
from onrecord.flows import Collect, Defer, Do, Flow, Ok, OnEvent, OnSilence, Say, Talk, Wait, WaitEvent
from onrecord.flows.lost_wakes import KEPT_LOST, LOST, LostWakes
from onrecord.flows.predicates import PredContext
from onrecord.record.entry import Entry
from onrecord.record.kinds import TurnFailed, TurnInput
from onrecord.session import pack, unpack
from onrecord.session.codec import slot_value
from onrecord.session.folding import Folds, refold
from onrecord.session.session import Session
from onrecord.testing import raises
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.options import Silenced
from onrecord.turn.result import TurnResult
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn
from tests.flows.playing import T0, Play, after, ends, said_by, says, wakes

pytestmark = pytest.mark.unit


def works(ctx: PredContext) -> bool:
    """A condition that needs something which may be down."""
    if ctx.context == "down":
        raise ConnectionError
    return True


def deferring(args: Any, ctx: ToolContext[Any]) -> Any:
    """An action that wants to wait first."""
    return Defer("1h") if ctx.now < after(minutes=30) else Ok()


BYE = Say("Bye.", id="bye")
FLOWS = {
    "wait": Flow("f", steps=[Wait("1h", id="w"), BYE], while_=works),
    "event": Flow("f", steps=[WaitEvent("paid", id="w", up_to="1h", else_="bye"), BYE], while_=works),
    "action": Flow("f", steps=[Do("later", id="w"), BYE], while_=works),
    "answer": Flow("f", steps=[Talk("Hi.", id="w"), BYE], while_=works),
    "start": Flow("f", on=[OnEvent("go", after="1h")], steps=[BYE], while_=works),
}
EVENTS = ["paid", "go", "other"]


async def parked(kind: str, *others: Flow) -> tuple[Play, str, datetime]:
    """A play with a run that waits for a wake, its key and its time."""
    tool = Tool("later", deferring)
    play = Play(FLOWS[kind], *others, actions=[tool], events=EVENTS, idle="silent")
    if kind == "start":
        begun = await play.happened("go", key="k")
    else:
        begun = await play.started("f", speak=[raises("network")] if kind == "answer" else [])
    ((key, at),) = wakes(begun)
    play.clock.at = at
    return play, key, at


async def fail(play: Play, key: str) -> TurnResult[Any]:
    """The wake fires in a turn that fails, and whose session is kept."""
    play.script(None, [])
    with pytest.raises(FeatureFailed) as failed:
        await play.agent.turn(Woke(key), session=play.kept, effects=play.clock, context="down")
    assert failed.value.result is not None
    assert (failed.value.result.wakes, failed.value.result.messages) == ((), ())
    play.session = failed.value.result.session
    return failed.value.result


@pytest.mark.parametrize("kind", FLOWS)
async def test_the_next_turn_arms_it_again(kind: str) -> None:
    """Whatever the run waits for; and when the wake fires again the run goes on as if nothing had happened."""
    play, key, at = await parked(kind)
    await fail(play, key)
    assert play.run("f").status == "waiting"
    play.session = unpack(pack(play.kept))
    assert wakes(await play.said("hello?", key="m1") if kind != "answer" else await play.happened("other")) == [(key, at)]
    speak = [says("Hi!")] if kind == "answer" else []
    done = await play.woke(key, speak=speak)
    assert said_by(done)[-1][0] == "Bye."
    assert [reason for _, reason in ends(done)] == ["end"]


async def test_it_is_armed_once() -> None:
    """Later turns leave it alone, as they do one that never was lost."""
    play, key, at = await parked("wait")
    await fail(play, key)
    assert wakes(await play.said(key="m1")) == [(key, at)]
    assert wakes(await play.said(key="m2")) == []
    assert held(play.kept) == LostWakes()


async def test_a_wake_that_is_lost_twice_is_armed_twice() -> None:
    """Each time by the turn that follows."""
    play, key, at = await parked("wait")
    for name in ("m1", "m2"):
        await fail(play, key)
        assert wakes(await play.said(key=name)) == [(key, at)]


async def test_a_turn_that_fails_does_not_arm_it() -> None:
    """What it armed never left it, so it is still for the next one to do."""
    other = Flow("other", steps=[Say("Hi", id="s")], while_=works)
    play, key, at = await parked("wait", other)
    await fail(play, key)
    with pytest.raises(FeatureFailed) as failed:
        await play.started("other", context="down")
    assert failed.value.result is not None
    play.session = failed.value.result.session
    assert wakes(await play.said(key="m1")) == [(key, at)]


async def test_nobody_arms_what_nobody_waits_for() -> None:
    """The run went on without it."""
    play, key, _ = await parked("event")
    await fail(play, key)
    done = await play.happened("paid")
    assert (ends(done), wakes(done)) == ([("f#k", "end")], [])


async def test_an_interrupted_wake_is_armed_again() -> None:
    """Somebody stopped what it began."""
    at_work = asyncio.Event()

    async def slow(args: Any, ctx: ToolContext[Any]) -> Any:
        at_work.set()
        await asyncio.Event().wait()

    flow = Flow("f", steps=[Wait("1h", id="w"), Do("slow", id="d")])
    play = Play(flow, actions=[Tool("slow", slow, read_only=True)], idle="silent")
    ((key, at),) = wakes(await play.started("f"))
    play.clock.at = at
    turns: list[Turn] = []
    order = Order(input=Woke(key), session=play.kept, began=turns.append)
    taking = asyncio.create_task(take(play.agent.plan, order, play.clock))
    await at_work.wait()
    turns[0].interrupt(Interruption(id="i1"))
    stopped = await taking
    assert (stopped.status, stopped.wakes) == ("interrupted", ())
    play.session = stopped.session
    assert wakes(await play.said()) == [(key, at)]


async def test_a_silence_that_was_lost_is_armed_again() -> None:
    """As long as nobody broke it."""
    nudge = Flow("nudge", on=[OnSilence("1h")], steps=[Collect("ok", id="q")], while_=works)
    play = Play(nudge, events=EVENTS)
    ((key, at),) = wakes(await play.said(speak=[says("Hello.")]))
    play.clock.at = at
    await fail(play, key)
    again = await play.happened("other")
    assert [(wake.key, wake.at, wake.replaces) for wake in again.schedule] == [(key, at, None)]
    assert wakes(await play.happened("other", key="e2")) == []
    done = await play.woke(key, speak=[says("Still there?")])
    assert said_by(done)[0][0] == "Still there?"


async def test_a_silence_that_was_lost_and_broken_stays_lost() -> None:
    """The customer wrote meanwhile: nobody is silent."""
    nudge = Flow("nudge", on=[OnSilence("1h")], steps=[Collect("ok", id="q")], while_=works)
    play = Play(nudge, events=EVENTS)
    ((key, at),) = wakes(await play.said(speak=[says("Hello.")]))
    play.clock.at = at
    await fail(play, key)
    assert wakes(await play.said(key="m2", options=[Silenced("human")])) == []
    assert wakes(await play.happened("other")) == []


async def test_what_was_lost_is_known_from_the_record() -> None:
    """The record folds to the same session, however its takes ended."""
    play = Play(FLOWS["wait"], idle="silent")
    begun = await play.started("f")
    ((key, at),) = wakes(begun)
    play.clock.at = at
    lost = await fail(play, key)
    assert held(play.kept) == LostWakes(keys=(key,))
    entries, folds = [*begun.entries, *lost.entries], Folds(play.agent.plan.folds.all)
    assert refold(play.kept.key, entries, folds, digest_key=play.kept.digest_key) == play.kept
    entries += (await play.said()).entries
    assert refold(play.kept.key, entries, folds, digest_key=play.kept.digest_key) == play.kept


def test_a_session_remembers_a_bounded_number_of_them() -> None:
    """Wakes that nobody waits for any more are forgotten, the oldest first."""
    state = LostWakes()
    for number in range(KEPT_LOST + 5):
        for body in (TurnInput(input=Woke(f"k{number}"), now=T0), TurnFailed(code="x", error="y")):
            entry = Entry(seq=0, n=0, turn="t", take=1, where="main", at=T0, cause=None, body=body)
            state = LOST.apply(state, entry)
    assert state.keys == tuple(f"k{number}" for number in range(5, KEPT_LOST + 5))


def held(session: Session) -> LostWakes:
    """What a session knows of lost wakes."""
    return slot_value(session.slots["flows_lost"], LostWakes)
