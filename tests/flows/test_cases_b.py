"""Cases B of the specification: how runs start, what their keys are, and what a claim stops."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from onrecord.flows import (
    Anchor,
    Chain,
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
    Talk,
    Wait,
)
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool, ToolContext
from tests.flows.playing import T0, Play, Result, after, ends, keys, line, lines, says, skips, starts, wakes

pytestmark = pytest.mark.unit

WELCOME = Flow(
    "welcome", on=[OnMessage()], steps=[Collect("name", id="name"), Talk("Ask how to help.", id="help")]
)  # fmt: skip
TASK = Flow("task", steps=[Do("notify", id="n", args={"text": "{{input.x}}"})])
HI = [says("Hello")]


def promo(**how: Any) -> Flow:
    """A flow that code alone detects, on every message turn."""
    given = {name: how.pop(name) for name in ("repeat",) if name in how}
    return Flow("promo", on=[OnMention(**given)], steps=[Do("notify", id="n")], **how)


def about(result: Result) -> list[dict[str, Json]]:
    """What the lines of flows that were not begun say, with code and sentence."""
    return [{**each.about, "code": each.code, "message": each.message} for each in result.skipped]


# ---- the first messages ----------------------------------------------------------------------------------------------


async def test_b1_first_message() -> None:
    """A catch-all starts, and its first step asks, without an understand call: that step's reply reads its field."""
    play = Play(WELCOME)
    result = await play.said(key="m1", speak=[says("Your name?")])
    assert [dict(each.about) for each in result.started] == [
        {"run_id": "welcome#m1", "flow_id": "welcome", "anchor": "s1", "dedupe_key": "welcome:s1:"}
    ]
    (message,) = result.messages
    assert (message.text, message.kind, message.after_ms, message.key) == ("Your name?", "ai", 0, "welcome#m1:name:1")
    assert dict(message.about) == {"run_id": "welcome#m1", "step_id": "name"}
    run = play.run("welcome")
    assert (run.id, run.status, run.step_id, run.hop) == ("welcome#m1", "asking", "name", 0)
    assert (dict(run.asked), dict(run.visits)) == ({"name": 1}, {"name": 1})
    assert (run.trigger_kind, run.trigger_key, run.anchor, run.dedupe_key) == ("message", "m1", "s1", "welcome:s1:")
    assert play.claims == {"welcome:s1:": T0}
    assert (play.kept.last_user_at, play.kept.last_assistant_at, play.kept.version) == (T0, T0, 0)
    assert (result.llm_calls, result.changed, result.status) == (1, True, "answered")


async def test_b1_the_input_is_remembered() -> None:
    """The same message again is a duplicate, and nothing happens (the case lists ids; the core keeps its own form)."""
    play = Play(WELCOME)
    await play.said(key="m1", speak=[says("Your name?")])
    before = play.kept
    again = await play.said(key="m1")
    assert (again.status, again.changed, again.session) == ("ignored", False, before)
    assert [(each.status, each.code) for each in again.lines] == [("ignored", "duplicate-input")]


async def test_b2_second_message() -> None:
    """The value lands, the step is over, and the next one speaks in the same turn; then the run has ended."""
    play = Play(WELCOME)
    await play.said(key="m1", speak=[says("Your name?")])
    result = await play.said("I'm Ana", key="m2", judge={"fields": {"name": "Ana"}}, speak=[says("How can I help?")])
    assert play.data == {"name": "Ana"}
    assert lines(result) == [("name", "collect", "ok", None), ("help", "prompt", "ok", None)]
    assert [each.llm_calls for each in result.outcomes] == [0, 1]
    assert keys(result) == ["welcome#m1:help:1"]
    assert ends(result) == [("welcome#m1", "end")]
    assert play.state.runs == ()


async def test_b4_no_id() -> None:
    """Without an id the time of receipt names the run, and the input is not remembered."""
    play = Play(WELCOME)
    result = await play.said(key=None, at=after(minutes=-1), speak=[says("Your name?")])
    assert starts(result) == ["welcome#2026-09-20T09:59:00.000Z"]
    assert play.kept.inputs == ()


async def test_b6_deterministic_replay() -> None:
    """Two agents, one clock, one script: the two results are equal to the last entry."""
    first, second = Play(WELCOME), Play(WELCOME)
    assert await first.said(key="m1", speak=[says("Your name?")]) == await second.said(
        key="m1", speak=[says("Your name?")]
    )
    again: dict[str, Any] = {"key": "m2", "judge": {"fields": {"name": "Ana"}}, "speak": [says("How can I help?")]}
    assert await first.said(**again) == await second.said(**again)
    assert first.kept == second.kept


# ---- by hand ---------------------------------------------------------------------------------------------------------


async def test_b7_manual_start() -> None:
    """A start by hand runs code steps without a model, under keys made of the start's own."""
    play = Play(TASK)
    result = await play.started("task", key="k", input={"x": 7})
    assert starts(result) == ["task#k"]
    assert play.notified == [("task#k:n:1", "task:s1:k", {"text": "7"})]
    assert [*play.claims] == ["task:s1:k"]
    assert ends(result) == [("task#k", "end")]
    assert (result.llm_calls, result.messages) == (0, ())


async def test_b8_start_twice() -> None:
    """The same start again is skipped by its claim, and the line says so."""
    play = Play(TASK)
    await play.started("task", key="k", input={"x": 7})
    result = await play.started("task", key="k", input={"x": 7})
    assert starts(result) == []
    assert about(result) == [
        {
            "flow_id": "task", "anchor": "s1", "trigger_key": "k",
            "code": "already-claimed", "message": "this flow already ran here",
        }
    ]  # fmt: skip
    assert len(play.notified) == 1
    assert result.changed


# ---- how often -------------------------------------------------------------------------------------------------------


async def test_b10_once() -> None:
    """One run per flow and anchor; a second match is skipped under its own trigger key."""
    play = Play(promo())
    first = await play.said(key="m1", speak=HI)
    second = await play.said(key="m2", speak=HI)
    assert [(each.about["run_id"], each.about["dedupe_key"]) for each in first.started] == [("promo#m1", "promo:s1:")]
    assert skips(second) == [("promo", "m2", "already-claimed")]
    assert len(play.notified) == 1


async def test_b11_always() -> None:
    """A run per input, each with its own claim."""
    play = Play(promo(repeat="always"))
    await play.said(key="m1", speak=HI)
    assert starts(await play.said(key="m2", speak=HI)) == ["promo#m2"]
    assert [*play.claims] == ["promo:s1:m1", "promo:s1:m2"]


async def test_b12_prune() -> None:
    """Of 55 claims that always repeat the last 50 are kept."""
    play = Play(Flow("ev", on=[OnEvent("ping")], steps=[Do("notify", id="n")]), events=["ping"])
    for number in range(55):
        await play.happened("ping", key=f"e{number}")
    assert [*play.claims] == [f"ev:s1:e{number}" for number in range(5, 55)]
    assert len(play.notified) == 55


async def test_b13_cooldown() -> None:
    """Younger than the window blocks, exactly as old passes, and the claim is refreshed."""
    play = Play(promo(repeat=Cooldown("1h")))
    assert starts(await play.said(key="m1", speak=HI)) == ["promo#m1"]
    play.clock.advance(minutes=10)
    assert skips(await play.said(key="m2", speak=HI)) == [("promo", "m2", "cooldown")]
    assert play.claims == {"promo:s1:": T0}
    play.clock.advance(minutes=50)
    assert starts(await play.said(key="m3", speak=HI)) == ["promo#m3"]
    assert play.claims == {"promo:s1:": after(hours=1)}


# ---- to what a run is tied -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "started", "skipped"),
    [
        ([FlowOptions(anchors={"lead": Anchor("lead:456")})], [("lead:456", "promo:lead:456:")], []),
        (
            [FlowOptions(anchors={"lead": Anchor("lead:456")}, claims=Claims(held={"promo:lead:456:": T0}))],
            [],
            [("lead:456", "already-claimed")],
        ),
        ([], [("s1", "promo:s1:")], []),
    ],
)
async def test_b14_anchor(
    options: list[FlowOptions], started: list[tuple[str, str]], skipped: list[tuple[str, str]]
) -> None:
    """The anchor that the host names, and what the customer's other sessions claimed for it; else the session."""
    result = await Play(promo(anchor="lead")).said(key="m1", speak=HI, options=options)
    assert [(each.about["anchor"], each.about["dedupe_key"]) for each in result.started] == started
    assert [(each.about["anchor"], each.code) for each in result.skipped] == skipped


AGENDA = Flow("agenda", on=[OnEvent("ping")], steps=[Wait("1d", id="w"), Do("notify", id="n")])


async def test_b15_live_elsewhere() -> None:
    """A live run in another of the customer's sessions stands in the way."""
    play = Play(AGENDA, events=["ping"])
    options = [FlowOptions(claims=Claims(active=("agenda:s1",)))]
    result = await play.happened("ping", key="e1", options=options)
    assert skips(result) == [("agenda", "e1", "already-running")]
    assert result.changed
    assert play.state.runs == ()


async def test_b16_one_live_run() -> None:
    """One live run per flow and anchor."""
    play = Play(AGENDA, events=["ping"])
    await play.happened("ping", key="e1")
    assert skips(await play.happened("ping", key="e2")) == [("agenda", "e2", "already-running")]
    assert [run.id for run in play.state.runs] == ["agenda#e1"]


# ---- later -----------------------------------------------------------------------------------------------------------

PROP = Flow("prop", on=[OnEvent("entered", after="1h")], steps=[Talk("Ask whether the offer arrived.", id="p")])


async def test_b17_after() -> None:
    """The run is there at once, parked before its first step, with the event's payload as input."""
    play = Play(PROP, events=["entered"])
    result = await play.happened("entered", key="k1", payload={"stage": "p"})
    assert starts(result) == ["prop#k1"]
    run = play.run("prop")
    assert (run.status, run.step_id, run.input) == ("waiting", None, {"stage": "p"})
    assert wakes(result) == [("prop#k1:start:1789902000000", after(hours=1))]
    (parked,) = result.outcomes
    assert (parked.kind, parked.status, parked.code, parked.until) == (
        "wait", "waiting", "awaiting-trigger", after(hours=1)
    )  # fmt: skip
    assert (parked.key, "step_id" in parked.about) == (None, False)
    assert result.llm_calls == 0


async def test_b17_the_wake_enters_the_first_step() -> None:
    """At the wake the run speaks under its own key."""
    play = Play(PROP, events=["entered"])
    await play.happened("entered", key="k1", payload={"stage": "p"})
    play.clock.advance(hours=1)
    result = await play.woke("prop#k1:start:1789902000000", speak=[says("Did it arrive?")])
    assert keys(result) == ["prop#k1:p:1"]


async def test_b18_replaced() -> None:
    """A second event takes the place of the run that is parked, whose wake is then stale."""
    play = Play(PROP, events=["entered"])
    await play.happened("entered", key="k1")
    play.clock.advance(minutes=30)
    result = await play.happened("entered", key="k2")
    assert ends(result) == [("prop#k1", "replaced")]
    assert starts(result) == ["prop#k2"]
    assert [key for key, _ in wakes(result)] == ["prop#k2:start:1789903800000"]
    play.clock.advance(minutes=30)
    stale = await play.woke("prop#k1:start:1789902000000")
    assert (stale.changed, stale.status) == (False, "ignored")
    assert line(stale, "stale-wake").key == "prop#k1:start:1789902000000"


# ---- chains ----------------------------------------------------------------------------------------------------------


async def test_b20_hop() -> None:
    """Five hops are the most; a chained run is keyed by the step that chained to it."""
    play = Play(
        Flow("a", steps=[Do("notify", id="n", then=Chain("b"))]), Flow("b", steps=[Do("notify", id="n")])
    )  # fmt: skip
    refused = await play.started("a", key="k", hop=5)
    assert (skips(refused), play.notified) == ([("a", "k", "hop-limit")], [])
    last = await play.started("a", key="k", hop=4)
    assert [key for key, _, _ in play.notified] == ["a#k:n:1"]
    assert ends(last) == [("a#k", "flow")]
    assert skips(last) == [("b", "a#k:n:1", "hop-limit")]
    whole = await play.started("a", key="k2", hop=0)
    assert starts(whole) == ["a#k2", "b#a#k2:n:1"]
    assert [call[:2] for call in play.notified[2:]] == [("b#a#k2:n:1:n:1", "b:s1:a#k2:n:1")]


async def test_b21_clear_on_start() -> None:
    """What a flow clears is gone before what the message said is written."""
    flow = Flow(
        "again", on=[OnMessage("starts over", repeat="always")], clear_on_start=["ok", "name"],
        steps=[Collect("name", id="who"), Talk("Go on.", id="go")],
    )  # fmt: skip
    play = Play(flow, data={"ok": True})
    result = await play.said("Ana again", judge={"fields": {"name": "Ana"}}, speak=[says("Right.")])
    assert starts(result) == ["again#m1"]
    assert play.data == {"name": "Ana"}


async def test_b21_a_reset_keeps_data() -> None:
    """A run that a reset starts clears nothing."""
    seen: list[Json] = []

    def mark(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        seen.append(ctx.data.get("ok"))
        ctx.set({"ok": True})
        return Ok()

    flow = Flow("loop", clear_on_start=["ok"], steps=[Do("mark", id="m")], on_end="reset")
    play = Play(flow, actions=[Tool("mark", mark)], data={"ok": True})
    result = await play.started("loop", key="k")
    assert seen == [None, True, True, True, True]
    assert ends(result)[0] == ("loop#k", "reset")
    assert starts(result)[:2] == ["loop#k", "loop#loop#k:m:1"]
    assert [code for _, _, code in skips(result)] == ["hop-limit"]


# ---- closed hours ----------------------------------------------------------------------------------------------------


def from_nine(at: datetime, context: object) -> datetime:
    """Before nine it is closed."""
    return at if at.hour >= 9 else at.replace(hour=9, minute=0)


async def test_b22_closed_hours_no_after() -> None:
    """An event at night waits for the morning, by day it starts at once, although it has no delay of its own."""
    flow = Flow("day", on=[OnEvent("ping", business_hours=True)], steps=[Do("notify", id="n")])
    night = Play(flow, events=["ping"], business_hours=from_nine, at=after(hours=-7))
    result = await night.happened("ping", key="e1")
    assert wakes(result) == [("day#e1:start:1789894800000", after(hours=-1))]
    assert line(result, "awaiting-trigger").until == after(hours=-1)
    assert night.notified == []
    day = Play(flow, events=["ping"], business_hours=from_nine)
    result = await day.happened("ping", key="e1")
    assert (wakes(result), len(day.notified)) == ([], 1)
