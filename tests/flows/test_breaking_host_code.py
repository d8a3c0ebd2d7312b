"""Odd code of hosts: what actions return, raise and set, what gates and opening hours answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from onrecord.errors import FeatureFailed
from onrecord.flows import Collect, Defer, Do, Failed, Flow, Ok, OnEvent, OnMessage, OnSilence, Say, Skipped, Wait
from onrecord.governance.rules import on_output
from onrecord.session import pack, unpack
from onrecord.testing import FakeEffects, call, raises
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Allow, Answer, Deny
from tests.flows.playing import Play, Result, after, line, lines, said_by, says, wakes

pytestmark = pytest.mark.unit

STEPS: list[Any] = [Do("odd", id="d", on_fail="f"), Say("Fine.", id="s", then="end"), Say("Failed.", id="f")]


class Unshowable:
    """What cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


def deep() -> Any:
    """A list that no encoder can walk."""
    made: Any = None
    for _ in range(5000):
        made = [made]
    return made


def kept(play: Play, result: Result) -> None:
    """Everything that is to be stored can be, and is the same when it comes back."""
    msgspec.json.encode(result.entries)
    play.session = unpack(pack(play.kept))


async def acted(code: Callable[[Any, Any], Any], **how: Any) -> tuple[Play, Result]:
    """A flow whose action runs this code."""
    play = Play(Flow("f", steps=STEPS), actions=[Tool("odd", code)], idle="silent", **how)
    result = await play.started("f")
    kept(play, result)
    return play, result


# ---- actions ---------------------------------------------------------------------------------------------------------


OK: Any = Ok  # given what it does not take
SKIPPED: Any = Skipped
FAILED: Any = Failed
DEFER: Any = Defer


@pytest.mark.parametrize(
    ("value", "code", "detail"),
    [
        (OK(None), None, None),
        (OK(7), None, "7"),
        (OK(Unshowable()), None, "a Unshowable"),
        (OK("\ud83d"), None, "\ufffd"),
        (SKIPPED(None), "action-skipped", ""),
        (SKIPPED({"why": [1]}), "action-skipped", '{"why":[1]}'),
        (FAILED(ValueError("no rooms")), "action-failed", "no rooms"),
        (FAILED(Unshowable()), "action-failed", "a Unshowable"),
        (
            DEFER(Unshowable()),
            "action-failed",
            'action "odd" deferred by a value of type Unshowable, which is no duration',
        ),
        (DEFER(float("nan")), "action-failed", 'action "odd" deferred by nan, which is no duration'),
        (DEFER(timedelta.max), "action-failed", 'action "odd" deferred by "86400000000000s", which is no duration'),
        (Unshowable(), "action-failed", "the action returned Unshowable, which is no result and no JSON"),
        (deep(), "action-failed", "the action returned list, which is no result and no JSON"),
        ({"type": deep()}, "action-failed", "the action returned dict, which is no result and no JSON"),
        ({"type": ["action.defer"]}, None, None),
        ({"type": "action.defer"}, None, None),
        (10**400, None, None),
    ],
)  # fmt: skip
async def test_whatever_an_action_returns_the_turn_ends_well(value: Any, code: str | None, detail: Any) -> None:
    """What it did is done, so its turn is kept; reasons and details are text."""
    _, result = await acted(lambda *_: value)
    (done,) = (each for each in result.outcomes if each.kind == "do")
    assert (done.code, done.detail) == (code, detail)
    assert [message.text for message in result.messages] == ["Failed." if code == "action-failed" else "Fine."]


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (Exception('{"error":"x"}'), '{"error":"x"}'),
        (Exception("[" * 100_000), "[" * 100_000),
        (Exception("\ud83d"), "\ufffd"),
        (Exception(Unshowable()), "Exception"),
        (KeyError(), "KeyError"),
        (asyncio.CancelledError(), "CancelledError"),
        (RecursionError(), "RecursionError"),
    ],
)
async def test_whatever_an_action_raises_it_has_failed(error: BaseException, detail: str) -> None:
    """The reason is what it says, whatever that looks like."""

    def code(*_: object) -> None:
        raise error

    _, result = await acted(code)
    assert line(result, "action-failed").detail == detail


@pytest.mark.parametrize("patch", [{"x": object()}, {1: 2}, {"x": "\ud83d"}, {"\ud83d": 1}, {"x": deep()}, None])
async def test_whatever_an_action_sets_can_be_stored_or_fails_it(patch: Any) -> None:
    """Nothing of a patch that could not be stored is written."""
    play, result = await acted(lambda _, ctx: ctx.set(patch))
    assert line(result, "action-failed")
    assert play.data == {}


# ---- gates -----------------------------------------------------------------------------------------------------------


async def test_a_gate_that_answers_oddly_is_open_or_shut() -> None:
    """By what Python makes of it; what it gives later is waited for."""

    async def later(_: object) -> list[int]:
        return [0]

    for gate, said in ((lambda _: None, []), (lambda _: "no", ["Hi."]), (lambda _: [], []), (later, ["Hi."])):
        play = Play(Flow("f", on=[OnMessage(only_if=gate)], steps=[Say("Hi.", id="s")]), idle="silent")
        assert [text for text, _, _ in said_by(await play.said())] == said


# ---- opening hours ---------------------------------------------------------------------------------------------------


def timed(hours: Any) -> tuple[Play, Play, Play]:
    """Everything that asks about opening hours: a wait, an event, a silence."""
    given: dict[str, Any] = {"business_hours": hours, "idle": "silent", "events": ["ev"]}
    return (
        Play(Flow("f", steps=[Wait("1h", id="w", business_hours=True), Do("notify", id="n")]), **given),
        Play(Flow("f", on=[OnEvent("ev", after="1h", business_hours=True)], steps=[Do("notify", id="n")]), **given),
        Play(
            Flow("f", on=[OnSilence("1h", business_hours=True)], steps=[Do("notify", id="n")]),
            Flow("g", steps=[Say("Hi.", id="s")]), **given,
        ),
    )  # fmt: skip


async def armed(plays: tuple[Play, Play, Play]) -> list[datetime]:
    """When each of them wakes; a session that is loaded tells the same."""
    waits, event, silence = plays
    results = (await waits.started("f"), await event.happened("ev"), await silence.started("g"))
    for play, result in zip(plays, results, strict=True):
        kept(play, result)
        assert [*result.schedule] == [*play.flows.pending_wakes(play.kept, now=play.clock.now())]
    return [at for result in results for _, at in wakes(result)]


async def test_opening_hours_may_be_told_in_any_zone() -> None:
    """The instant counts, to the millisecond; it is kept in UTC."""
    zone = timezone(timedelta(hours=5, minutes=45))
    ats = await armed(timed(lambda at, _: (at + timedelta(hours=1, microseconds=1500)).astimezone(zone)))
    assert [at.isoformat() for at in ats] == [(after(hours=2) + timedelta(milliseconds=1)).isoformat()] * 3


@pytest.mark.parametrize(
    ("hours", "problem"),
    [
        (lambda *_: None, "business_hours returned NoneType, not an aware datetime"),
        (lambda *_: "2026-01-01", "business_hours returned str, not an aware datetime"),
        (lambda *_: date(2026, 1, 1), "business_hours returned date, not an aware datetime"),
        (
            lambda at, _: at.replace(tzinfo=None),
            "business_hours returned a datetime without UTC offset, not an aware datetime",
        ),
        (lambda *_: asyncio.sleep(0), "business_hours returned coroutine, not an aware datetime"),
    ],
)
async def test_opening_hours_that_answer_wrongly_are_named(hours: Any, problem: str) -> None:
    """The same way wherever they are asked."""
    waits, event, silence = timed(hours)
    for turn in (waits.started("f"), event.happened("ev"), silence.started("g")):
        with pytest.raises(FeatureFailed) as caught:
            await turn
        assert str(caught.value) == f"feature 'Flows' failed at direct: {problem}"


async def test_a_clock_of_another_zone_gives_the_same_keys() -> None:
    """A host far from Greenwich arms what any other would."""
    flows = [Flow("f", steps=[Say("Hi.", id="s"), Wait("1d", id="w"), Say("Bye.", id="b")]),
             Flow("n", on=[OnSilence("1h")], steps=[Say("Still there?", id="s")])]  # fmt: skip
    far = Play(*flows, idle="silent")
    far.clock = FakeEffects(after().astimezone(timezone(timedelta(hours=-11))))
    here = Play(*flows, idle="silent")
    there = await far.started("f")
    kept(far, there)
    assert wakes(there) == wakes(await here.started("f"))
    assert said_by(await far.woke(wakes(there)[1][0])) == [("Still there?", "verbatim", "n#1789898400000:s:1")]


# ---- tools that ran, and an answer that did not come -----------------------------------------------------------------


@on_output(holds_drafts=True)
async def refused(_: Any, answer: Answer) -> Any:
    """Only lines that are fixed go out."""
    return Allow() if answer.verbatim else Deny("Not like this.")


@pytest.mark.parametrize("failure", ["network", "blank", "refused"])
async def test_what_a_tool_set_stays_when_the_answer_fails(failure: str) -> None:
    """The model sees in the conversation that the tool ran, and will not call it again."""
    book = Tool("book", lambda _, ctx: ctx.set({"model": "R1"}))
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("name", id="c")]), tools=[book])
    if failure == "refused":
        play.agent = play.agent.with_(features=[refused])
    ends = {"network": raises("network"), "blank": says(" "), "refused": says("Booked.")}[failure]
    result = await play.said(speak=[[*says("A moment.").chunks, call("book")], ends])
    assert play.data == {"model": "R1"}
    assert lines(result)[-1][2:] in {("deferred", "provider-unavailable"), ("failed", "refused")}


async def test_a_line_said_once_that_was_refused_is_still_to_be_said() -> None:
    """What a rule let nobody read has not been said."""
    refusing = [True]

    @on_output(holds_drafts=True)
    async def rule(*_: object) -> Any:
        return Deny("Not now.") if refusing[0] else Allow()

    play = Play(Flow("f", steps=[Say("Read this.", id="s", once=True)]), idle="silent")
    play.agent = play.agent.with_(features=[rule])
    assert lines(await play.started("f", key="k1")) == [("s", "say", "failed", "refused")]
    refusing[0] = False
    assert [text for text, _, _ in said_by(await play.started("f", key="k2"))] == ["Read this."]
    assert lines(await play.started("f", key="k3")) == [("s", "say", "skipped", "already-sent")]
