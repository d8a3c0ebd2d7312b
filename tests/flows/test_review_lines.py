"""Outcome lines and results: keys, ways, counts of calls, what is absent, and what a turn says of itself: 25 and 26."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Chain,
    Collect,
    Defer,
    Do,
    Failed,
    Flow,
    Goto,
    If,
    Ok,
    OnMessage,
    Say,
    Skipped,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.flows.flow import Event
from onrecord.testing import call
from onrecord.tools.tool import Tool, ToolResult
from tests.flows.playing import NOTHING, Play, after, ends, line, lines, says, wakes

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
EVENTS = {"ping": Event(), "booked": Event(), "called": Event(direction="inbound")}


def told(result: Any) -> list[tuple[Any, ...]]:
    """Of each line about a step: step, code or status, key, and where it leads."""
    return [(each.about.get("step_id"), each.code or each.status, each.key, each.next) for each in result.outcomes]


def acts(answer: Any) -> Tool:
    """An action that gives this."""
    return Tool("act", lambda *_: answer)


# ---- keys and ways ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (None, None), ("end", "end"), ("z", "z"), (Goto("z"), "z"), (Goto("z", clear=["ok"]), "z"),
        (Chain("next"), "flow:next"), (Chain("{{data.name}}"), "flow:{{data.name}}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["say", "do", "if", "wait", "known"])
async def test_a_line_says_where_its_run_goes(kind: str, target: Any, label: str | None) -> None:
    """By the step's id, as ``end``, or as the flow is written; nothing where it is the next of the list."""
    step: Any = {
        "say": Say("Hi", id="a", then=target),
        "do": Do("notify", id="a", then=target),
        "if": If({"known": []}, id="a", then=target),
        "wait": Wait("1s", id="a", then=target if isinstance(target, (str, Goto)) and target != "end" else "z"),
        "known": Collect("name", id="a", then=target),
    }[kind]
    play = Play(
        Flow("f", steps=[step, Say("Z", id="z")]), Flow("next", steps=[Say("N", id="s")]), data={"name": "next"}
    )
    first = told(await play.started("f"))[0]
    expected = "z" if kind == "wait" else label
    assert (first[0], first[2], first[3]) == ("a", "f#k:a:1", expected)


@pytest.mark.parametrize(
    ("answer", "status", "code", "detail"),
    [
        (Ok("done"), "ok", None, "done"), (Ok(), "ok", None, None), (None, "ok", None, None),
        (Skipped("no need"), "skipped", "action-skipped", "no need"),
        (Failed("no line"), "failed", "action-failed", "no line"),
    ],
)  # fmt: skip
async def test_an_action_s_line_has_its_key_its_words_and_its_way(
    answer: Any, status: str, code: str | None, detail: str | None
) -> None:
    """A failed one leads where failures lead."""
    flow = Flow("f", steps=[Do("act", id="a", then="z", on_fail="y"), Say("Y", id="y", then="end"), Say("Z", id="z")])
    result = await Play(flow, actions=[acts(answer)]).started("f")
    done = result.outcomes[0]
    assert (done.kind, done.status, done.code, done.detail, done.key) == ("do", status, code, detail, "f#k:a:1")
    assert (done.next, result.outcomes[1].about["step_id"]) == (("y", "y") if status == "failed" else ("z", "z"))


async def test_a_failure_without_a_way_of_its_own_goes_on_as_usual() -> None:
    """And its line says so."""
    flow = Flow("f", steps=[Do("act", id="a", then="z"), Say("Y", id="y"), Say("Z", id="z")])
    result = await Play(flow, actions=[acts(Failed("x"))]).started("f")
    assert (line(result, "action-failed").next, [m.text for m in result.messages]) == ("z", ["Z"])


async def test_a_deferred_action_says_until_when_and_leads_nowhere() -> None:
    """Its timer is armed, under the step's own name."""
    flow = Flow("f", steps=[Do("act", id="a", then="z"), Say("Z", id="z")])
    result = await Play(flow, actions=[acts(Defer("1h", "busy"))]).started("f")
    (deferred,) = result.outcomes
    assert (deferred.status, deferred.code, deferred.detail) == ("deferred", "action-deferred", "busy")
    assert (deferred.key, deferred.next, deferred.until) == ("f#k:a:1", None, after(hours=1))
    assert wakes(result) == [("f#k:a:1789902000000", after(hours=1))]
    assert result.status == "deferred"


async def test_waits_that_park_have_a_key_and_lead_nowhere() -> None:
    """A wait for a time has no code."""
    play = Play(
        Flow("t", steps=[Wait("1h", id="w", then="z", else_="z"), Say("Z", id="z")]),
        Flow("e", steps=[WaitEvent("booked", id="w", then="z", else_="z"), Say("Z", id="z")]), events=EVENTS,
    )  # fmt: skip
    assert told(await play.started("t")) == [("w", "waiting", "t#k:w:1", None)]
    assert told(await play.started("e", key="k2")) == [("w", "awaiting-event", "e#k2:w:1", None)]


async def test_what_ends_a_wait_has_no_key() -> None:
    """A reply, an event, a wake that comes, and an event that does not."""
    timer = Flow("t", steps=[Wait("1h", id="w", then="z", else_="y"), Say("Z", id="z", then="end"), Say("Y", id="y")])
    event = Flow("e", steps=[WaitEvent("booked", id="w", then="z"), Say("Z", id="z")])
    play = Play(timer, event, events=EVENTS, idle="silent")
    ((wake, _),) = wakes(await play.started("t", key="a"))
    assert told(await play.said())[0] == ("w", "replied", None, "y")
    ((wake, play.clock.at),) = wakes(await play.started("t", key="c"))
    assert told(await play.woke(wake))[0] == ("w", "no-reply", None, "z")
    await play.started("e", key="d")
    assert told(await play.happened("booked", key="e1"))[0] == ("w", "event-arrived", None, "z")
    ((wake, play.clock.at),) = wakes(await play.started("e", key="f"))
    assert told(await play.woke(wake))[0] == ("w", "no-event", None, "end")


async def test_a_wait_that_goes_on_in_the_order_of_the_list_says_nothing_of_it() -> None:
    """Neither when nobody replied nor when the event came."""
    play = Play(
        Flow("t", steps=[Wait("1h", id="w"), Do("notify", id="n")]),
        Flow("e", steps=[WaitEvent("booked", id="w"), Do("notify", id="n")]), events=EVENTS,
    )  # fmt: skip
    await play.started("e", key="d")
    assert told(await play.happened("booked", key="e1"))[0] == ("w", "event-arrived", None, None)
    ((wake, play.clock.at),) = wakes(await play.started("t"))
    assert told(await play.woke(wake))[0] == ("w", "no-reply", None, None)


async def test_an_if_says_which_way_it_took() -> None:
    """Without another way a closed gate leads to the end."""
    play = Play(Flow("f", steps=[If({"known": ["name"]}, id="g"), Say("Hi", id="s")]))
    assert told(await play.started("f")) == [("g", "ok", "f#k:g:1", "end")]


async def test_lines_that_end_a_run_have_no_key() -> None:
    """Too many steps, a premise that is gone, nobody may speak."""
    loop = Flow("loop", steps=[If({"known": []}, id="a", then="a", else_="end")])
    result = await Play(loop).started("loop")
    assert len(result.outcomes) == 51
    assert (result.outcomes[-1].status, result.outcomes[-1].code, result.outcomes[-1].key) == (
        "failed",
        "step-loop",
        None,
    )
    assert (result.outcomes[-1].kind, result.outcomes[-1].about["step_id"]) == ("if", "a")
    assert ends(result) == [("loop#k", "failed")]


async def test_what_a_model_told_and_nobody_takes_is_about_no_run() -> None:
    """Neither key nor flow: only the field."""
    play = Play(Flow("f", on=[OnMessage()], collect=["budget"], steps=[Talk("Hi.", id="t")]))
    result = await play.said(judge={"fields": {"budget": "lots"}}, speak=RIGHT)
    dropped = line(result, "bad-value")
    assert (dropped.kind, dropped.status, dropped.detail, dropped.key, dropped.about) == (
        "collect", "skipped", "budget", None, {}
    )  # fmt: skip


async def test_what_a_speaker_heard_is_judged_alike() -> None:
    """Before the line of its step, which goes on asking."""
    play = Play(Flow("f", steps=[Collect("budget", "size", id="q")]))
    result = await play.started("f", speak=[says("Well?", budget="lots", size="7")])
    assert [(each.code, each.detail) for each in result.outcomes] == [
        ("bad-value", "budget"), ("not-in-enum", "size"), (None, None)
    ]  # fmt: skip
    assert (play.data, dict(play.run("f").asked)) == ({}, {"budget": 1, "size": 1})


# ---- fields of one reply ---------------------------------------------------------------------------------------------


async def test_what_a_tool_writes_stands_over_what_the_model_heard() -> None:
    """Its data are written last, as they are given."""
    price = Tool("price", lambda *_: ToolResult(1, data={"size": "any"}))
    play = Play(Flow("f", steps=[Collect("size", "ok", id="q")]), tools=[price])
    result = await play.started("f", speak=[[call("price")], says("Well?", size="1-10")])
    assert (play.data, lines(result)) == ({"size": "any"}, [("q", "collect", "ok", None)])


async def test_a_used_up_field_is_told_before_its_step_is_done() -> None:
    """With the step's key; the line of the step says where the run goes."""
    flow = Flow("f", steps=[Collect("ok", "name", id="q", max_asks=1, then="z"), Say("x", id="x"), Say("Z", id="z")])
    play = Play(flow)
    await play.started("f", speak=RIGHT)
    result = await play.said(judge=NOTHING)
    assert told(result) == [
        ("q", "max-asks", "f#k:q:1", None), ("q", "max-asks", "f#k:q:1", None), ("q", "ok", "f#k:q:1", "z"),
        ("z", "ok", "f#k:z:1", None),
    ]  # fmt: skip
    assert [each.detail for each in result.outcomes[:2]] == ["ok", "name"]


async def test_a_field_is_asked_for_three_times() -> None:
    """Where the step says nothing else. The answer to the last one is heard before it is given up."""
    play = Play(Flow("f", steps=[Collect("ok", id="q"), Say("Bye", id="s")]))
    await play.started("f", speak=RIGHT)
    for key in ("m1", "m2"):
        await play.said(key=key, speak=RIGHT)
    assert dict(play.run("f").asked) == {"ok": 3}
    result = await play.said(key="m3", judge=NOTHING)
    assert lines(result) == [
        ("q", "collect", "skipped", "max-asks"), ("q", "collect", "ok", None), ("s", "say", "ok", None)
    ]  # fmt: skip


async def test_a_field_that_was_asked_for_the_last_time_and_told_is_not_used_up() -> None:
    """Its step is done, and says nothing else."""
    play = Play(Flow("f", steps=[Collect("name", id="q", max_asks=1), Say("Bye", id="s")]))
    await play.started("f", speak=RIGHT)
    result = await play.said(judge={"fields": {"name": "Ana"}})
    assert lines(result) == [("q", "collect", "ok", None), ("s", "say", "ok", None)]


async def test_a_fixed_question_s_line_has_its_step_s_key_and_leads_nowhere() -> None:
    """It costs no call."""
    result = await Play(Flow("f", steps=[Collect("ok", id="q", question="Right?", then="end")])).started("f")
    asked = line(result, "asked-fixed")
    assert (asked.key, asked.next, asked.llm_calls, asked.kind) == ("f#k:q:1", None, 0, "collect")


async def test_a_known_field_is_not_told_as_used_up() -> None:
    """Only the one that nobody gave."""
    flow = Flow("f", steps=[Collect("ok", "name", id="q", max_asks=1)])
    play = Play(flow)
    await play.started("f", speak=[says("Right?", ok=True)])
    result = await play.said(judge=NOTHING, speak=[says("Hello")])
    assert [each.detail for each in result.outcomes if each.code == "max-asks"] == ["name"]
