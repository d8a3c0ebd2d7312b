"""Results: counts of calls, what it cost, status, what changed, and in which order lines stand: 25 and 26."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.inputs import Happened, Said
from onrecord.conversation.usage import Usage
from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Do,
    Flow,
    OnEvent,
    OnMessage,
    OnSilence,
    Say,
    Talk,
)
from onrecord.flows.flow import Event
from onrecord.jsonio import dumps
from onrecord.testing import call, raises, reply
from onrecord.tools.tool import Tool
from tests.flows.playing import NOTHING, T0, Play, says, starts

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
EVENTS = {"ping": Event(), "booked": Event(), "called": Event(direction="inbound")}


def told(result: Any) -> list[tuple[Any, ...]]:
    """Of each line about a step: step, code or status, key, and where it leads."""
    return [(each.about.get("step_id"), each.code or each.status, each.key, each.next) for each in result.outcomes]


def acts(answer: Any) -> Tool:
    """An action that gives this."""
    return Tool("act", lambda *_: answer)


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
