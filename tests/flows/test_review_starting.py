"""What starts, what does not, under which keys and claims, and how far chains go: 12 to 14 and 10.8."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.inputs import Happened
from onrecord.flows import (
    Anchor,
    Chain,
    Claims,
    Cooldown,
    Defer,
    Do,
    Flow,
    FlowOptions,
    If,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Wait,
    WaitEvent,
)
from onrecord.flows.flow import Event
from onrecord.tools.tool import Tool
from tests.flows.playing import T0, Play, after, ends, says, skips, starts, wakes

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
NOTIFY = Do("notify", id="n")
EVENTS = {"ping": Event(), "pong": Event(), "sent": Event(direction="outbound"), "called": Event(direction="inbound")}


def night(at: datetime, context: object) -> datetime:
    """Business opens at nine."""
    return at.replace(hour=9, minute=0) if at.hour < 9 else at


# ---- claims ----------------------------------------------------------------------------------------------------------


async def test_a_claim_comes_before_the_depth_and_the_depth_before_a_live_run() -> None:
    """The first reason that holds is told."""
    flow = Flow("f", steps=[Wait("1d", id="w")])
    play = Play(flow)
    await play.started("f", key="k1")
    assert skips(await play.started("f", key="k1", hop=5)) == [("f", "k1", "already-claimed")]
    assert skips(await play.started("f", key="k2", hop=5)) == [("f", "k2", "hop-limit")]
    assert skips(await play.started("f", key="k3", hop=4)) == [("f", "k3", "already-running")]
    assert [*play.claims] == ["f:s1:k1"]


async def test_a_condition_that_is_false_says_nothing_of_the_claim() -> None:
    """It is asked first."""
    play = Play(Flow("f", on=[OnMention(only_if=lambda ctx: ctx.context)], steps=[NOTIFY]), idle="silent")
    await play.said(key="m1", context=True)
    assert (await play.said(key="m2", context=False)).lines == ()


async def test_a_cooldown_is_counted_from_the_latest_start_wherever_it_was() -> None:
    """Here or in another session; each start counts anew."""
    play = Play(Flow("f", on=[OnMention(repeat=Cooldown("1h"))], steps=[NOTIFY]), idle="silent")
    await play.said(key="m1")
    play.clock.advance(minutes=61)
    elsewhere = [FlowOptions(claims=Claims(held={"f:s1:": after(minutes=30)}))]
    assert skips(await play.said(key="m2", options=elsewhere)) == [("f", "m2", "cooldown")]
    assert starts(await play.said(key="m3")) == ["f#m3"]
    assert play.claims == {"f:s1:": after(minutes=61)}
    play.clock.advance(minutes=59)
    assert skips(await play.said(key="m4")) == [("f", "m4", "cooldown")]
    play.clock.advance(minutes=1)
    assert starts(await play.said(key="m5")) == ["f#m5"]


async def test_an_older_claim_elsewhere_does_not_hide_a_younger_one_here() -> None:
    """The latest counts."""
    play = Play(Flow("f", on=[OnMention(repeat=Cooldown("1h"))], steps=[NOTIFY]), idle="silent")
    await play.said(key="m1")
    play.clock.advance(minutes=10)
    elsewhere = [FlowOptions(claims=Claims(held={"f:s1:": T0 - timedelta(days=1)}))]
    assert skips(await play.said(key="m2", options=elsewhere)) == [("f", "m2", "cooldown")]


async def test_claims_of_a_flow_are_kept_per_anchor() -> None:
    """Another customer's run is another run."""
    flow = Flow("f", on=[OnEvent("ping", repeat="once")], anchor="lead", steps=[NOTIFY])
    play = Play(flow, events=EVENTS)
    for number, (lead, started) in enumerate([("a", True), ("b", True), ("a", False)]):
        result = await play.happened("ping", key=f"e{number}", options=[FlowOptions(anchors={"lead": lead})])
        assert bool(starts(result)) is started
    assert [*play.claims] == ["f:a:", "f:b:"]
    assert [key for _, key, _ in play.notified] == ["f:a:", "f:b:"]


async def test_a_run_is_live_per_flow_and_anchor() -> None:
    """Two of one flow may live for two anchors; one that waits to begin is replaced by its own anchor's alone."""
    flow = Flow("f", on=[OnEvent("ping", after="1h")], anchor="lead", steps=[NOTIFY])
    play = Play(flow, events=EVENTS)
    await play.happened("ping", key="e1", options=[FlowOptions(anchors={"lead": "a"})])
    assert ends(await play.happened("ping", key="e2", options=[FlowOptions(anchors={"lead": "b"})])) == []
    replaced = await play.happened("ping", key="e3", options=[FlowOptions(anchors={"lead": Anchor("a")})])
    assert (ends(replaced), replaced.disarmed) == ([("f#e1", "replaced")], ("f#e1:start:1789902000000",))


async def test_a_live_run_of_another_session_stops_its_own_anchor_s_alone() -> None:
    """The host names flow and anchor."""
    play = Play(Flow("f", on=[OnEvent("ping")], anchor="lead", steps=[NOTIFY]), events=EVENTS)
    options = [FlowOptions(anchors={"lead": "a"}, claims=Claims(active=("f:a", "f:s1")))]
    assert skips(await play.happened("ping", key="e1", options=options)) == [("f", "e1", "already-running")]
    options = [FlowOptions(anchors={"lead": "b"}, claims=Claims(active=("f:a",)))]
    assert starts(await play.happened("ping", key="e2", options=options)) == ["f#e2"]


async def test_one_key_starts_one_run_of_a_flow_whatever_its_anchor() -> None:
    """A run is named by its flow and key: another anchor's claim is free, and its run would have the same name."""
    play = Play(Flow("f", on=[OnEvent("ping")], anchor="lead", steps=[Wait("1d", id="w")]), events=EVENTS)
    await play.started("f", key="e1", options=[FlowOptions(anchors={"lead": "a"})])
    second = await play.started("f", key="e1", options=[FlowOptions(anchors={"lead": "b"})])
    assert (starts(second), skips(second)) == ([], [("f", "e1", "already-running")])


async def test_a_delay_of_no_time_is_a_delay() -> None:
    """The run starts at its wake, which is due at once."""
    play = Play(Flow("f", on=[OnEvent("ping", after="0s")], steps=[NOTIFY]), events=EVENTS)
    assert wakes(await play.happened("ping")) == [("f#e1:start:1789898400000", T0)]
    assert play.notified == []


async def test_a_condition_sees_the_claim_that_its_run_would_spend() -> None:
    """Before it starts as well as when it does."""
    seen: list[str] = []

    def look(ctx: Any) -> bool:
        seen.append(ctx.run.dedupe_key)
        return True

    once, often = OnMessage("x", only_if=look), OnMessage("x", repeat="always", only_if=look)
    for trigger in (once, often):
        await Play(Flow("f", on=[trigger], while_={"known": []}, steps=[NOTIFY]), idle="silent").said()
    assert seen == ["f:s1:", "f:s1:", "f:s1:m1", "f:s1:m1"]


async def test_a_flow_of_the_session_has_no_other_anchor() -> None:
    """Whatever a host gives under that name; one that it does not give is the session, too."""
    play = Play(Flow("f", steps=[NOTIFY]), Flow("g", anchor="lead", steps=[NOTIFY]))
    for flow in ("f", "g"):
        result = await play.started(flow, options=[FlowOptions(anchors={"session": "x", "deal": "y"})])
        assert result.started[0].about["anchor"] == "s1"


async def test_a_run_that_has_begun_is_not_replaced() -> None:
    """It waits for something else than its beginning."""
    play = Play(Flow("f", on=[OnEvent("ping", after="1h")], steps=[Wait("1d", id="w")]), events=EVENTS)
    ((wake, play.clock.at),) = wakes(await play.happened("ping", key="e1"))
    await play.woke(wake)
    assert skips(await play.happened("ping", key="e2")) == [("f", "e2", "already-running")]


async def test_a_run_that_waits_to_begin_is_replaced_by_a_start_by_hand_too() -> None:
    """Whatever starts it."""
    play = Play(Flow("f", on=[OnEvent("ping", after="1h")], steps=[NOTIFY]), events=EVENTS)
    await play.happened("ping", key="e1")
    result = await play.started("f", key="k")
    assert ends(result) == [("f#e1", "replaced"), ("f#k", "end")]


async def test_what_was_not_begun_forgets_no_field() -> None:
    """A claim, a live run and a false condition leave data alone."""
    flow = Flow("f", on=[OnMention(only_if=lambda ctx: ctx.context)], clear_on_start=["ok"], steps=[NOTIFY])
    play = Play(flow, data={"ok": True}, idle="silent")
    await play.said(key="m1", context=False)
    assert play.data == {"ok": True}
    await play.said(key="m2", context=True)
    assert play.data == {}
    play.session = replace(play.kept, data={"ok": True})
    await play.said(key="m3", context=True)
    assert play.data == {"ok": True}


@pytest.mark.parametrize("kind", ["message", "mention", "silence", "event", "start", "flow"])
async def test_every_kind_of_start_forgets_what_the_flow_forgets(kind: str) -> None:
    """And nothing else."""
    on: Any = {"message": OnMessage(), "mention": OnMention(), "silence": OnSilence("1h"), "event": OnEvent("ping")}
    flow = Flow("f", on=[on[kind]] if kind in on else [], clear_on_start=["ok", "name"], steps=[NOTIFY])
    play = Play(flow, Flow("p", steps=[Do("notify", id="n", then=Chain("f"))]), events=EVENTS,
                data={"ok": True, "company": "Zeta"})  # fmt: skip
    if kind in ("message", "mention"):
        await play.said(speak=RIGHT)
    elif kind == "silence":
        ((wake, play.clock.at),) = wakes(await play.happened("sent", key="e0"))
        await play.woke(wake)
    elif kind == "event":
        await play.happened("ping")
    else:
        await play.started("f" if kind == "start" else "p")
    assert play.data == {"company": "Zeta"}


# ---- events ----------------------------------------------------------------------------------------------------------


async def test_a_delay_ends_when_business_opens() -> None:
    """The moved instant names the timer; with no delay, and business open, nothing waits."""
    flow = Flow("f", on=[OnEvent("ping", after="30m", business_hours=True)], steps=[NOTIFY])
    play = Play(flow, events=EVENTS, business_hours=night, at=T0.replace(hour=3))
    result = await play.happened("ping")
    assert wakes(result) == [("f#e1:start:1789894800000", T0.replace(hour=9))]
    assert play.notified == []


async def test_opening_hours_are_asked_for_where_they_are_asked_for_alone() -> None:
    """Not by a trigger, a wait or a silence without the flag, nor by what gives up or tries again."""
    act = Tool("act", lambda *_: Defer("1h"))
    play = Play(
        Flow("ev", on=[OnEvent("ping", after="1h")], steps=[NOTIFY]), Flow("now", on=[OnEvent("pong")], steps=[NOTIFY]),
        Flow("wait", steps=[Wait("1h", id="w")]), Flow("event", steps=[WaitEvent("ping", id="w", up_to="1h")]),
        Flow("defer", steps=[Do("act", id="a")]), Flow("quiet", on=[OnSilence("1h")], steps=[NOTIFY]),
        events=EVENTS, actions=[act], business_hours=night, at=T0.replace(hour=3),
    )  # fmt: skip
    four = T0.replace(hour=4)
    assert [at for _, at in wakes(await play.happened("ping", key="e1"))] == [four]
    assert len((await play.happened("pong", key="e2")).ended) == 1
    for flow in ("wait", "event", "defer"):
        assert [at for _, at in wakes(await play.started(flow))] == [four]
    assert [at for _, at in wakes(await play.happened("sent", key="e3"))] == [four]


async def test_opening_hours_see_the_context_of_the_turn() -> None:
    """Where the customer lives, for one."""
    flow = Flow("f", steps=[Wait("1h", id="w", business_hours=True)])
    play = Play(flow, business_hours=lambda at, context: at + timedelta(hours=context["hours"]))
    assert [at for _, at in wakes(await play.started("f", context={"hours": 5}))] == [after(hours=6)]


async def test_an_event_hands_its_payload_and_depth_on() -> None:
    """As the run's input; what it chains to is one deeper."""
    flow = Flow("f", on=[OnEvent("ping")], steps=[Do("notify", id="n", args={"text": "{{input.x}}"}, then=Chain("g"))])
    play = Play(flow, Flow("g", steps=[Wait("1d", id="w")]), events=EVENTS)
    await play.took(Happened("ping", key="e1", payload={"x": 7}, hop=3))
    assert play.notified[0][2] == {"text": "7"}
    run = play.run("g")
    assert (run.hop, run.payload, run.input, run.trigger_kind, run.trigger_key) == (
        4, {"x": 7}, {"x": 7}, "flow", "f#e1:n:1"
    )  # fmt: skip
    deep = await play.took(Happened("ping", key="e2", hop=5))
    assert skips(deep) == [("f", "e2", "hop-limit")]


# ---- chains and resets -----------------------------------------------------------------------------------------------


async def test_a_flow_that_begins_anew_keeps_input_and_data_and_is_one_deeper() -> None:
    """Its run is named after the last step of the flow, with how often the one before had been there."""
    steps: list[Any] = [If({"known": []}, id="g", then="w"), Wait("1h", id="w", then="end"), Do("notify", id="n")]
    play = Play(Flow("f", clear_on_start=["ok"], on_end="reset", steps=steps))
    ((wake, play.clock.at),) = wakes(await play.started("f", input={"x": 7}))
    play.session = replace(play.kept, data={"ok": True})
    result = await play.woke(wake)
    assert (ends(result), starts(result)) == ([("f#k", "reset")], ["f#f#k:n:0"])
    run = play.run("f")
    assert (run.hop, run.input, run.payload, run.trigger_kind, run.trigger_key, play.data) == (
        1, {"x": 7}, {"x": 7}, "flow", "f#k:n:0", {"ok": True}
    )  # fmt: skip


async def test_a_flow_begins_anew_five_times_at_most() -> None:
    """Then it is told off, under the key of its last step."""
    play = Play(Flow("f", on_end="reset", steps=[Do("notify", id="n")]))
    result = await play.started("f")
    assert len(play.notified) == 5
    ((flow, key, code),) = skips(result)
    assert (flow, code, str(key).endswith(":n:1"), play.state.runs) == ("f", "hop-limit", True, ())


async def test_a_chain_may_lead_to_its_own_flow() -> None:
    """The run before is over, so nothing is live."""
    flow = Flow("f", steps=[Do("notify", id="n", then=Chain("f", input={"again": True}))])
    play = Play(flow)
    result = await play.started("f")
    assert len(play.notified) == 5
    assert [code for _, _, code in skips(result)] == ["hop-limit"]
    assert [key.count("#") for key, _, _ in play.notified] == [1, 2, 3, 4, 5]


async def test_a_chain_by_a_template_of_the_input() -> None:
    """What it names is looked up when it is taken; one that there is not is told, and revives nobody."""
    flow = Flow("f", steps=[Do("notify", id="n", then=Chain("{{input.next}}"))])
    play = Play(flow, Flow("g", steps=[Say("G", id="s")]))
    assert [m.text for m in (await play.started("f", key="a", input={"next": "g"})).messages] == ["G"]
    gone = await play.started("f", key="b", input={"next": "h"})
    (skipped,) = gone.skipped
    assert (skipped.code, skipped.about) == (
        "flow-gone", {"flow_id": "h", "anchor": "s1", "trigger_key": "f#b:n:1"}
    )  # fmt: skip
    assert (ends(gone), play.state.runs) == ([("f#b", "flow")], ())


async def test_a_chain_to_a_live_flow_ends_the_run_and_starts_nobody() -> None:
    """A failed start revives nobody."""
    play = Play(Flow("f", steps=[Do("notify", id="n", then=Chain("g"))]), Flow("g", steps=[Wait("1d", id="w")]))
    await play.started("g", key="a")
    result = await play.started("f", key="b")
    assert (ends(result), skips(result)) == ([("f#b", "flow")], [("g", "f#b:n:1", "already-running")])
