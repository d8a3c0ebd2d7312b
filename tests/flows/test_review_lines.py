"""Outcome lines and results: keys, ways, counts of calls, what is absent, and what a turn says of itself: 25 and 26."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.inputs import Happened, Said
from onrecord.conversation.usage import Usage
from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Defer,
    Do,
    Failed,
    Flow,
    Goto,
    If,
    Ok,
    OnEvent,
    OnMessage,
    OnSilence,
    Say,
    Skipped,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.flows.flow import Event
from onrecord.jsonio import dumps
from onrecord.testing import call, raises, reply
from onrecord.tools.tool import Tool, ToolResult
from tests.flows.playing import NOTHING, T0, Play, after, ends, line, lines, says, starts, wakes

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


async def test_a_known_field_is_not_told_as_used_up() -> None:
    """Only the one that nobody gave."""
    flow = Flow("f", steps=[Collect("ok", "name", id="q", max_asks=1)])
    play = Play(flow)
    await play.started("f", speak=[says("Right?", ok=True)])
    result = await play.said(judge=NOTHING, speak=[says("Hello")])
    assert [each.detail for each in result.outcomes if each.code == "max-asks"] == ["name"]


# ---- counts of calls, usage ------------------------------------------------------------------------------------------


async def test_lines_count_the_calls_of_their_own_answer() -> None:
    """The understand call is not among them; lines that cost nothing say 0."""
    price = Tool("price", lambda *_: 1)
    flow = Flow("f", on=[OnMessage()], steps=[Say("Hi", id="s"), Collect("name", "ok", id="q")])
    play = Play(flow, tools=[price])
    result = await play.said(judge=NOTHING, speak=[[call("price")], [call("price")], says("Right?")])
    assert [(each.kind, each.llm_calls) for each in result.outcomes] == [("say", 0), ("collect", 3)]
    assert result.llm_calls == 4


async def test_a_deferred_answer_s_line_counts_no_calls_and_the_turn_does() -> None:
    """Those of the idle speaker count theirs either way."""
    price = Tool("price", lambda *_: 1)
    play = Play(Flow("f", steps=[Collect("ok", id="q")]), tools=[price])
    result = await play.started("f", speak=[[call("price")], raises("network")])
    assert [(each.code, each.llm_calls) for each in result.outcomes] == [("provider-unavailable", 0)]
    assert result.llm_calls == 2
    idle = await Play(tools=[price]).said(speak=[[call("price")], raises("auth")])
    (deferred,) = idle.outcomes
    assert (deferred.kind, deferred.status, deferred.code, deferred.key, deferred.llm_calls) == (
        "idle", "deferred", "provider-auth", None, 2
    )  # fmt: skip
    assert (idle.schedule, idle.messages) == ((), ())


def counted(text: str, prompt: int, out: int) -> Any:
    """A reply that says what it cost."""
    return reply(text, usage=Usage(input_tokens=prompt, output_tokens=out))


async def test_usage_is_that_of_every_call_of_the_turn() -> None:
    """Understanding and each round; none where nobody counted, or nothing was asked."""
    price = Tool("price", lambda *_: 1)
    flow = Flow("f", on=[OnMessage()], steps=[Say("x", id="s"), Collect("name", id="q")])
    play = Play(flow, tools=[price])
    play.script(None, [])
    envelope = dumps({"message": "Well?"}).decode()
    play.model.queue([counted('{"fields":{}}', 10, 1)], [counted(envelope, 20, 2)])
    result = await play.agent.turn(Said("hi", key="m1"), session=play.id, effects=play.clock)
    assert result.usage == Usage(input_tokens=30, output_tokens=3)
    assert (await Play(flow).said(judge=NOTHING, speak=RIGHT)).usage is None
    assert (await Play(Flow("g", steps=[Say("x", id="s")])).started("g")).usage is None


# ---- status and changed ----------------------------------------------------------------------------------------------


async def test_a_turn_says_what_became_of_it() -> None:
    """Answered with any message, deferred when something comes later, silent with none."""
    play = Play(
        Flow("says", steps=[Say("Hi", id="s")]), Flow("does", steps=[Do("notify", id="n")]),
        Flow("asks", steps=[Say("Hi", id="s"), Collect("ok", id="q")]),
    )  # fmt: skip
    assert (await play.started("says", key="a")).status == "answered"
    assert (await play.started("does", key="b")).status == "silent"
    assert (await play.started("asks", key="c", speak=[raises("network")])).status == "deferred"


async def test_an_event_that_moves_nobody_changes_nothing() -> None:
    """Unless it is the first thing that ever happened, or counts as somebody writing."""
    play = Play(Flow("f", on=[OnEvent("ping", only_if=lambda ctx: ctx.context)], steps=[Do("notify", id="n")]),
                events=EVENTS)  # fmt: skip
    first = await play.happened("ping", key="e1")
    assert (first.changed, first.session is not None) == (True, True)
    before = play.kept
    second = await play.happened("ping", key="e2")
    assert (second.changed, second.session, second.entries, second.status) == (False, before, (), "silent")
    assert (await play.happened("called", key="e3")).changed


async def test_a_message_always_changes_something() -> None:
    """It is remembered, so that its repeat is known."""
    play = Play(idle="silent")
    result = await play.said(key="m1")
    assert (result.changed, result.status) == (True, "silent")
    again = await play.said(key="m1")
    (ignored,) = again.lines
    assert (again.changed, again.status, again.session) == (False, "ignored", play.kept)
    assert (ignored.kind, ignored.status, ignored.code, ignored.key) == ("input", "ignored", "duplicate-input", "m1")


async def test_something_that_was_not_begun_changes_the_session() -> None:
    """So that the host may log it."""
    play = Play()
    await play.said(speak=RIGHT)
    result = await play.started("gone")
    (skipped,) = result.skipped
    assert (result.changed, skipped.code, skipped.at) == (True, "flow-gone", T0)
    assert skipped.about == {"flow_id": "gone", "anchor": "s1", "trigger_key": "k"}


@pytest.mark.parametrize("code", ["no-session", "stale-wake", "silence-broken", "unknown-event"])
async def test_an_input_that_nobody_waits_for_is_ignored(code: str) -> None:
    """One line under its key, nothing changed, and nothing else of it."""
    play = Play(Flow("f", on=[OnSilence("1h")], steps=[Talk("Hi.", id="t")]), events=EVENTS)
    if code != "no-session":
        await play.said(speak=RIGHT)
    before = play.session
    if code == "unknown-event":
        result = await play.took(Happened("pong", key="e1"))
    else:
        result = await play.woke("silence:f:s1:1" if code == "silence-broken" else "f#k:w:1")
    (ignored,) = result.lines
    assert (ignored.kind, ignored.status, ignored.code, ignored.at) == ("wait", "skipped", code, T0)
    assert ignored.key == {"silence-broken": "silence:f:s1:1", "unknown-event": "e1"}.get(code, "f#k:w:1")
    assert (result.changed, result.status, result.session, result.entries, result.messages) == (
        False, "ignored", before, (), ()
    )  # fmt: skip


async def test_a_run_that_starts_says_what_its_host_must_know() -> None:
    """Run, flow, anchor and dedupe key; one that ends also where it was."""
    play = Play(Flow("f", steps=[Talk("Hi.", id="t"), Do("notify", id="n")]))
    result = await play.started("f", speak=RIGHT)
    assert [each.about for each in result.started] == [
        {"run_id": "f#k", "flow_id": "f", "anchor": "s1", "dedupe_key": "f:s1:k"}
    ]
    assert [(each.code, each.about) for each in result.ended] == [
        ("end", {"run_id": "f#k", "flow_id": "f", "anchor": "s1", "step_id": "n"})
    ]
    replaced = Play(Flow("p", on=[OnEvent("ping", after="1h")], steps=[Do("notify", id="n")]), events=EVENTS)
    await replaced.happened("ping", key="e1")
    (ended,) = (await replaced.happened("ping", key="e2")).ended
    assert (ended.code, ended.about) == ("replaced", {"run_id": "p#e1", "flow_id": "p", "anchor": "s1"})


async def test_lines_stand_in_the_order_in_which_things_happened() -> None:
    """What started, what it did, and what ended."""
    play = Play(Flow("f", steps=[Say("Hi", id="s"), Do("notify", id="n", then=Chain("g"))]),
                Flow("g", steps=[Talk("Hi.", id="t")]))  # fmt: skip
    result = await play.started("f", speak=RIGHT)
    assert [(each.kind, each.status, each.code) for each in result.lines] == [
        ("run", "started", None), ("say", "ok", None), ("do", "ok", None), ("run", "ended", "flow"),
        ("run", "started", None), ("prompt", "ok", None), ("run", "ended", "end"),
    ]  # fmt: skip
    assert starts(result) == ["f#k", "g#f#k:n:1"]


async def test_a_branch_line_has_the_key_of_the_visit_that_it_leaves() -> None:
    """And its step's kind."""
    flow = Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t", branches=[Branch(only_if={"known": []}, then="z")],
                                                   then="t"), Say("Z", id="z")])  # fmt: skip
    play = Play(flow)
    await play.said(key="m1", speak=RIGHT)
    assert told(await play.said(key="m2"))[0] == ("t", "branch", "f#m1:t:2", "z")
