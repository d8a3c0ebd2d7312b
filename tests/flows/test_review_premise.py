"""What must keep holding for a run to move, by what started it: 17.5 of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Do,
    Flow,
    FlowOptions,
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
from onrecord.flows.flow_options import Anchor
from onrecord.flows.predicates import PredContext
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, after, ends, keys, line, lines, says, skips, starts, wakes

pytestmark = pytest.mark.unit

EVENTS = {"called": Event(direction="inbound"), "booked": Event(), "ping": Event(), "pong": Event()}
SAY = [says("Right?")]


def vip(ctx: PredContext) -> bool:
    """Whether the customer is one of the best."""
    return bool(ctx.context["vip"])


async def slowly(ctx: PredContext) -> bool:
    """The same, asked of somebody else."""
    return vip(ctx)


VIP: dict[str, Any] = {"context": {"vip": True}}
NOT: dict[str, Any] = {"context": {"vip": False}}


# ---- silence ---------------------------------------------------------------------------------------------------------


async def silent(*steps: Any, hours: int = 24) -> Play:
    """A play in which a silence has started a flow with these steps."""
    play = Play(Flow("nudge", on=[OnSilence("24h")], steps=steps), events=EVENTS)
    ((silence, _),) = wakes(await play.said(key="m1", speak=[says("Hello")]))
    play.clock.advance(hours=hours)
    await play.woke(silence, speak=[says("There?")] if isinstance(steps[0], Talk) else [])
    play.clock.advance(hours=1)
    return play


async def test_an_inbound_event_is_a_reply_to_a_silence_not_its_end() -> None:
    """Only at a wake does a silence run end because the customer wrote: a reply takes the way that is made for it."""
    play = await silent(Talk("There?", id="p"), Wait("2d", id="w", else_="b"), Say("Bye", id="e"), Say("Back", id="b"))
    result = await play.happened("called", key="e1")
    assert lines(result) == [("w", "wait", "ok", "replied"), ("b", "say", "ok", None)]
    assert [m.text for m in result.messages] == ["Back"]


async def test_an_event_moves_a_silence_run_whose_customer_wrote() -> None:
    """It waited for that event, whatever was written meanwhile."""
    play = await silent(WaitEvent("booked", id="w"), Say("Booked!", id="s"))
    await play.said(key="m2", speak=[says("Hello")])
    result = await play.happened("booked", key="e1")
    assert [m.text for m in result.messages] == ["Booked!"]


async def test_a_silence_run_ends_at_a_wake_when_the_customer_wrote_under_its_anchor() -> None:
    """In whichever session: the silence is over."""
    flow = Flow("nudge", on=[OnSilence("24h")], anchor="lead", steps=[Wait("2d", id="w"), Say("Bye", id="b")])
    play = Play(flow)
    options = [FlowOptions(anchors={"lead": Anchor("lead:4")})]
    ((silence, _),) = wakes(await play.said(speak=[says("Hello")], options=options))
    play.clock.advance(hours=24)
    ((wake, at),) = wakes(await play.woke(silence, options=options))
    play.clock.at = at
    wrote = [FlowOptions(anchors={"lead": Anchor("lead:4", last_inbound_at=after(hours=25))})]
    result = await play.woke(wake, options=wrote)
    assert (ends(result), line(result, "customer-replied").about["step_id"]) == (
        [("nudge#1789898400000", "skipped")], "b"
    )  # fmt: skip


async def test_who_wrote_before_the_silence_run_began_did_not_answer_it() -> None:
    """Neither here nor elsewhere."""
    flow = Flow("nudge", on=[OnSilence("24h")], anchor="lead", steps=[Wait("2d", id="w"), Say("Bye", id="b")])
    play = Play(flow)
    options = [FlowOptions(anchors={"lead": Anchor("lead:4", last_inbound_at=after(hours=0))})]
    ((silence, _),) = wakes(await play.said(speak=[says("Hello")], options=options))
    play.clock.advance(hours=24)
    ((wake, at),) = wakes(await play.woke(silence, options=options))
    play.clock.at = at
    assert keys(await play.woke(wake, options=options)) == ["nudge#1789898400000:b:1"]


async def test_a_silence_s_condition_is_its_premise() -> None:
    """It is judged when the silence is armed, when it fires, and whenever the run moves."""
    steps: list[Any] = [Wait("2d", id="w", else_="b"), Say("Bye", id="e"), Say("Back", id="b")]
    play = Play(Flow("nudge", on=[OnSilence("24h", only_if=vip)], steps=steps))
    ((silence, _),) = wakes(await play.said(key="m1", speak=[says("Hello")], **VIP))
    play.clock.advance(hours=24)
    await play.woke(silence, **VIP)
    result = await play.said(key="m2", speak=[says("Hello")], **NOT)
    assert lines(result)[:2] == [("w", "wait", "ok", "replied"), ("b", "say", "skipped", "premise-changed")]
    assert ends(result) == [("nudge#1789898400000", "skipped")]


# ---- events, mentions, messages --------------------------------------------------------------------------------------


async def test_an_event_s_condition_is_judged_with_the_payload_whenever_its_run_moves() -> None:
    """Also of the run that waited for its delay; the line has no step, and is about an ``if``."""
    flow = Flow(
        "prop", on=[OnEvent("ping", after="1h", only_if=lambda ctx: ctx.context["stage"] == ctx.input["stage"])],
        steps=[Say("How is it?", id="s")],
    )  # fmt: skip
    play = Play(flow, events=EVENTS)
    assert starts(await play.happened("ping", key="e0", payload={"stage": "q"}, context={"stage": "p"})) == []
    ((wake, at),) = wakes(await play.happened("ping", key="e1", payload={"stage": "p"}, context={"stage": "p"}))
    play.clock.at = at
    result = await play.woke(wake, context={"stage": "q"})
    (ended,) = result.outcomes
    assert (ended.kind, ended.status, ended.code, ended.key) == ("if", "skipped", "premise-changed", None)
    assert ended.about == {"run_id": "prop#e1", "flow_id": "prop"}
    assert (ends(result), result.messages) == ([("prop#e1", "skipped")], ())


async def test_any_trigger_of_the_run_s_kind_may_hold() -> None:
    """A flow with several triggers of one kind goes on while one of them does."""
    flow = Flow("f", on=[OnEvent("ping", only_if=vip), OnEvent("pong")], steps=[Wait("1h", id="w"), Say("Hi", id="s")])
    play = Play(flow, events=EVENTS)
    ((wake, _),) = wakes(await play.happened("ping", key="e1", **VIP))
    play.clock.advance(hours=1)
    assert keys(await play.woke(wake, **NOT)) == ["f#e1:s:1"]


async def test_triggers_of_another_kind_are_not_asked() -> None:
    """A run that a message started does not care for the condition of an event."""
    flow = Flow("f", on=[OnMessage("x"), OnEvent("ping", only_if=vip)], steps=[Collect("ok", id="q")])
    play = Play(flow, events=EVENTS)
    await play.said(key="m1", speak=SAY, **NOT)
    assert keys(await play.said(key="m2", speak=SAY, **NOT)) == ["f#m1:q:1/2"]


async def test_a_mention_s_condition_sees_what_was_extracted() -> None:
    """It is judged at the start alone, with the values as input; the run's own are asked when it moves on."""
    flow = Flow(
        "rival", on=[OnMention("names a rival", extract={"who": {"type": "string"}},
                               only_if=lambda ctx: ctx.input is not None and ctx.input["who"] == "Zeta")],
        steps=[Wait("1h", id="w"), Do("notify", id="n", args={"text": "{{input.who}}"})],
    )  # fmt: skip
    play = Play(flow, idle="silent")
    other = {"mentions": {"rival": True}, "extract": {"rival": {"who": "Eta"}}}
    assert starts(await play.said(key="m1", judge=other)) == []
    judged = {"mentions": {"rival": True}, "extract": {"rival": {"who": "Zeta"}}}
    result = await play.said(key="m2", judge=judged)
    assert starts(result) == ["rival#m2"]
    ((wake, _),) = wakes(result)
    play.clock.advance(hours=1)
    await play.woke(wake)
    assert [args for _, _, args in play.notified] == [{"text": "Zeta"}]


@pytest.mark.parametrize("kind", ["start", "flow"])
async def test_what_was_started_by_hand_or_by_a_flow_needs_no_premise(kind: str) -> None:
    """The condition of a trigger that did not start it is not asked."""
    flow = Flow("f", on=[OnMessage("x", only_if=vip)], steps=[Say("Hi", id="s")])
    play = Play(flow, Flow("first", steps=[Do("notify", id="n", then=Chain("f"))]))
    result = await play.started("f" if kind == "start" else "first", **NOT)
    assert [m.text for m in result.messages] == ["Hi"]


@pytest.mark.parametrize("kind", ["start", "flow"])
async def test_a_premise_of_the_flow_is_asked_of_every_run(kind: str) -> None:
    """However it was started: a run that it does not hold for ends before its first step."""
    flow = Flow("f", while_=vip, steps=[Say("Hi", id="s")])
    play = Play(flow, Flow("first", steps=[Do("notify", id="n", then=Chain("f"))]))
    result = await play.started("f" if kind == "start" else "first", **NOT)
    assert (result.messages, line(result, "premise-changed").kind) == ((), "if")


async def test_a_premise_is_asked_again_between_an_answer_and_the_next_step() -> None:
    """What the answer brought may end the run."""
    flow = Flow(
        "f", while_=lambda ctx: ctx.data.get("ok") is not False, steps=[Collect("ok", id="q"), Say("Hi", id="s")]
    )
    play = Play(flow)
    result = await play.started("f", speak=[says("I see.", ok=False)])
    assert lines(result) == [("q", "collect", "ok", None), ("s", "say", "skipped", "premise-changed")]
    assert [m.text for m in result.messages] == ["I see."]


async def test_a_run_that_waits_is_not_asked_for_its_premise() -> None:
    """Nothing moves it, so nothing ends it, until its time has come."""
    play = Play(Flow("w", while_=vip, steps=[Wait("1h", id="w"), Say("Hi", id="s")]), idle="silent")
    ((wake, _),) = wakes(await play.started("w", **VIP))
    assert ends(await play.said(**NOT)) == []
    play.clock.advance(hours=1)
    assert line(await play.woke(wake, **NOT), "premise-changed").about["step_id"] == "s"


async def test_a_premise_may_be_async() -> None:
    """So may every other condition: of a trigger, of a branch, of an instruction."""
    flow = Flow(
        "f", on=[OnMessage("x", only_if=slowly)], while_=slowly,
        steps=[Collect("ok", id="q", branches=[Branch(only_if=slowly, then="s")]), Say("Hi", id="s")],
    )  # fmt: skip
    play = Play(flow)
    assert keys(await play.said(key="m1", speak=SAY, **NOT)) == ["idle:m1"]
    assert keys(await play.said(key="m2", speak=SAY, **VIP)) == ["f#m2:q:1"]
    assert keys(await play.said(key="m3", **VIP)) == ["f#m2:s:1"]


async def test_a_premise_ends_the_asker_in_a_silenced_turn_too() -> None:
    """Code still runs there."""
    play = Play(Flow("f", while_=vip, steps=[Collect("ok", id="q")]))
    await play.started("f", speak=SAY, **VIP)
    result = await play.said(options=[Silenced("human")], **NOT)
    assert (ends(result), skips(result)) == ([("f#k", "skipped")], [])
