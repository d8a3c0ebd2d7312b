"""Cases E of the specification: lines said word for word, short delays, and waits."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from onrecord.flows import Anchor, Branch, Collect, Do, Flow, FlowOptions, OnMessage, Say, Talk, Wait, WaitEvent
from onrecord.flows.flow import Event
from tests.flows.playing import Play, after, ends, keys, line, lines, says, starts, wakes

pytestmark = pytest.mark.unit

NOTIFY = Do("notify", id="n")

# ---- lines and short waits -------------------------------------------------------------------------------------------


async def test_e1_inline_delay() -> None:
    """A short wait before a line is a delay of that line, and no timer."""
    flow = Flow(
        "trid", on=[OnMessage("wants a filter")],
        steps=[Say("A", id="a"), Wait("3s", id="p"), Say("B", id="b"), Collect("model", id="q")],
    )  # fmt: skip
    play = Play(flow, lone_flow="score")
    result = await play.said(judge={"flows": {"trid": 90}}, speak=[says("Which?", model="X")])
    assert [(m.text, m.kind, m.after_ms, m.key) for m in result.messages] == [
        ("A", "verbatim", 0, "trid#m1:a:1"),
        ("B", "verbatim", 3000, "trid#m1:b:1"),
        ("Which?", "ai", 0, "trid#m1:q:1"),
    ]
    delayed = line(result, "inline-delay")
    assert (delayed.kind, delayed.status, delayed.detail, delayed.about["step_id"]) == ("wait", "ok", "3000ms", "p")
    assert wakes(result) == []
    assert ends(result) == [("trid#m1", "end")]


async def test_e2_two_short_waits_add() -> None:
    """A short wait before another wait parks for real; the second one rides on the line behind it."""
    flow = Flow("w", steps=[Wait("3s", id="p"), Wait("4s", id="r"), Say("Now", id="s")])
    play = Play(flow)
    result = await play.started("w")
    assert wakes(result) == [("w#k:p:1789898403000", after(seconds=3))]
    play.clock.advance(seconds=3)
    result = await play.woke("w#k:p:1789898403000")
    assert [(m.text, m.after_ms) for m in result.messages] == [("Now", 4000)]


async def test_e3_short_wait_before_do() -> None:
    """A short wait before an action is a timer: nothing could carry the delay."""
    play = Play(Flow("w", steps=[Wait("5s", id="p"), NOTIFY]))
    assert wakes(await play.started("w")) == [("w#k:p:1789898405000", after(seconds=5))]
    assert play.notified == []


async def test_e4_exactly_10_s() -> None:
    """Ten seconds still ride on the line; eleven are a timer."""
    short = await Play(Flow("w", steps=[Wait("10s", id="p"), Say("S", id="s")])).started("w")
    assert [(m.text, m.after_ms) for m in short.messages] == [("S", 10000)]
    assert wakes(short) == []
    long = await Play(Flow("w", steps=[Wait("11s", id="p"), Say("S", id="s")])).started("w")
    assert [key for key, _ in wakes(long)] == ["w#k:p:1789898411000"]
    assert long.messages == ()


async def test_e4_before_a_talk_step() -> None:
    """A short wait rides on a reply of the model as well."""
    play = Play(Flow("w", steps=[Wait("3s", id="p"), Talk("Hi.", id="t")]))
    result = await play.started("w", speak=[says("Hi")])
    assert [(m.kind, m.after_ms) for m in result.messages] == [("ai", 3000)]


async def test_e5_say_once() -> None:
    """A line that is said once is passed over in later runs of the session, which go on behind it."""
    play = Play(Flow("hello", steps=[Say("Hello", id="s", once=True), NOTIFY]))
    first = await play.started("hello", key="k1")
    assert keys(first) == ["hello#k1:s:1"]
    assert "hello:s:s1" in play.claims
    second = await play.started("hello", key="k2")
    assert lines(second) == [("s", "say", "skipped", "already-sent"), ("n", "do", "ok", None)]
    assert second.messages == ()
    assert len(play.notified) == 2


# ---- timers ----------------------------------------------------------------------------------------------------------

BACK = Flow(
    "w", steps=[Wait("1d", id="p", else_="back"), Do("notify", id="n", then="end"), Say("Welcome back", id="back")]
)


async def test_e7_reply_first() -> None:
    """A reply before the time takes the other way at once; that run has the floor, so the message starts nothing."""
    play = Play(BACK, Flow("open", on=[OnMessage()], steps=[Talk("Answer.", id="t")]))
    await play.started("w")
    play.clock.advance(hours=2)
    result = await play.said()
    assert lines(result) == [("p", "wait", "ok", "replied"), ("back", "say", "ok", None)]
    assert line(result, "replied").next == "back"
    assert keys(result) == ["w#k:back:1"]
    assert starts(result) == []


async def test_e8_wait_without_else() -> None:
    """A message does not end a wait that has no other way: somebody else answers."""
    play = Play(Flow("w", steps=[Wait("1d", id="p"), NOTIFY]))
    await play.started("w")
    result = await play.said(speak=[says("Hello")])
    assert keys(result) == ["idle:m1"]
    assert play.statuses == {"w": "waiting"}
    assert play.run("w").waiting is not None


@pytest.mark.parametrize(
    ("branch", "text"), [(Branch(only_if={"known": ["name"]}, then="x"), "X"), (Branch("says yes", then="x"), "Y")]
)
async def test_e9_branch_on_wait(branch: Branch, text: str) -> None:
    """On a reply the branches in code decide before the other way does; those for the model are never judged here."""
    flow = Flow(
        "w",
        steps=[
            Wait("1d", id="p", branches=[branch], else_="y"), Do("notify", id="n", then="end"),
            Say("X", id="x", then="end"), Say("Y", id="y"),
        ],
    )  # fmt: skip
    play = Play(flow, data={"name": "Ana"})
    await play.started("w")
    result = await play.said("yes")
    assert [m.text for m in result.messages] == [text]
    assert line(result, "replied").next == text.lower()


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (BACK, [("p", "wait", "ok", "replied"), ("back", "say", "ok", None)]),
        (Flow("w", steps=[Wait("1d", id="p"), NOTIFY]), [("p", "wait", "ok", "no-reply"), ("n", "do", "ok", None)]),
    ],
)
async def test_e10_wake_after_reply(flow: Flow, told: list[tuple[str | None, ...]]) -> None:
    """A wake that fires after the customer wrote takes the other way, where the step has one."""
    play = Play(flow)
    await play.started("w")
    play.session = replace(play.kept, last_user_at=after(hours=2))
    play.clock.advance(days=1)
    assert lines(await play.woke("w#k:p:1789984800000")) == told


async def test_e10_a_reply_elsewhere() -> None:
    """For a flow with an anchor the host says when the customer wrote last, in whichever session."""
    play = Play(replace(BACK, anchor="lead"))
    options = [FlowOptions(anchors={"lead": Anchor("lead:456")})]
    await play.started("w", options=options)
    play.clock.advance(days=1)
    options = [FlowOptions(anchors={"lead": Anchor("lead:456", last_inbound_at=after(hours=2))})]
    result = await play.woke("w#k:p:1789984800000", options=options)
    assert lines(result) == [("p", "wait", "ok", "replied"), ("back", "say", "ok", None)]


async def test_e10_no_reply() -> None:
    """Nobody wrote: the wait goes on as declared, and says that nobody did."""
    play = Play(BACK)
    await play.started("w")
    play.clock.advance(days=1)
    result = await play.woke("w#k:p:1789984800000")
    assert lines(result) == [("p", "wait", "ok", "no-reply"), ("n", "do", "ok", None)]


# ---- events ----------------------------------------------------------------------------------------------------------

BOOKED = Flow("w", steps=[WaitEvent("booked", id="e"), Do("notify", id="n", args={"text": "{{input.x}}"})])


async def test_e11_event_wait() -> None:
    """A run waits up to thirty days for an event, whose payload does not replace the run's input."""
    play = Play(BOOKED, events={"booked": Event()})
    parked = await play.started("w", input={"x": 7})
    assert wakes(parked) == [("w#k:e:1792490400000", after(days=30))]
    awaiting = line(parked, "awaiting-event")
    assert (awaiting.kind, awaiting.status, awaiting.detail, awaiting.until) == (
        "wait", "waiting", "booked", after(days=30)
    )  # fmt: skip
    result = await play.happened("booked", key="e1", payload={"x": 8})
    assert lines(result) == [("e", "wait", "ok", "event-arrived"), ("n", "do", "ok", None)]
    assert [args for _, _, args in play.notified] == [{"text": "7"}]


async def test_e11_no_event() -> None:
    """When the time is over first, a step without another way ends the run."""
    play = Play(BOOKED, events={"booked": Event()})
    await play.started("w")
    play.clock.advance(days=30)
    result = await play.woke("w#k:e:1792490400000")
    assert lines(result) == [("e", "wait", "ok", "no-event")]
    assert ends(result) == [("w#k", "end")]
    assert play.notified == []


async def test_e12_business_hours_on_wait() -> None:
    """What is kept, and what names the timer, is the instant after moving it into open hours."""

    def next_morning(at: datetime, context: object) -> datetime:
        return at.replace(hour=9, minute=0) + timedelta(days=1)

    play = Play(Flow("w", steps=[Wait("1h", id="p", business_hours=True), NOTIFY]), business_hours=next_morning)
    result = await play.started("w")
    assert wakes(result) == [("w#k:p:1789981200000", after(hours=23))]
    (parked,) = result.outcomes
    assert (parked.status, parked.code, parked.until) == ("waiting", None, after(hours=23))
