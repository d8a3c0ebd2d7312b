"""Lines that are said word for word, and what actions are told: 10.2 and 10.3 of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.inputs import Ask, approved
from onrecord.flows import Claims, Collect, Do, Flow, FlowOptions, Ok, OnMention, OnMessage, Say, Talk
from onrecord.tools.tool import Tool, ToolContext
from tests.flows.playing import T0, Play, ends, keys, line, lines, said_by, says, told

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]


def asking(seen: list[str]) -> Tool:
    """An action that asks a person."""

    async def confirm(args: Any, ctx: ToolContext[Any]) -> Any:
        given = await ctx.ask(Ask("Really?"))
        seen.append(ctx.key)
        return Ok() if given.approved else None

    return Tool("confirm", confirm)


async def test_a_line_goes_out_with_its_media_and_fields_filled_in() -> None:
    """Also media without a word."""
    steps = [Say("Hi {{data.name}}", id="a", media="logo"), Say("{{context.x}}", id="b", media="map")]
    play = Play(Flow("f", steps=steps), data={"name": "Ana"})
    result = await play.started("f", context={"x": ""})
    assert [(m.text, m.media, m.kind, m.key) for m in result.messages] == [
        ("Hi Ana", "logo", "verbatim", "f#k:a:1"), ("", "map", "verbatim", "f#k:b:1")
    ]  # fmt: skip
    assert lines(result) == [("a", "say", "ok", None), ("b", "say", "ok", None)]


async def test_lines_that_are_not_said_have_their_key_and_their_way() -> None:
    """One that was said before, and one that nothing is left of."""
    steps = [
        Say("Once", id="a", once=True, then="b"), Say("x", id="x"), Say("{{context.lead.name}}", id="b", then="c"),
        Say("y", id="y"), Say("Bye", id="c"),
    ]  # fmt: skip
    play = Play(Flow("f", steps=steps))
    await play.started("f", key="k1", context={"lead": None})
    result = await play.started("f", key="k2", context={"lead": None})
    assert [(each.code, each.key, each.next) for each in result.outcomes] == [
        ("already-sent", "f#k2:a:1", "b"), ("blank", "f#k2:b:1", "c"), (None, "f#k2:c:1", None)
    ]  # fmt: skip
    assert keys(result) == ["f#k2:c:1"]


async def test_a_line_that_the_host_says_was_sent_is_not_said_again() -> None:
    """Whatever this session remembers."""
    play = Play(Flow("f", steps=[Say("Once", id="a", once=True)]))
    result = await play.started("f", options=[FlowOptions(claims=Claims(held={"f:a:s1": T0}))])
    assert (result.messages, line(result, "already-sent").kind) == ((), "say")


async def test_an_action_knows_its_run_and_the_run_s_input() -> None:
    """And both its keys."""
    seen: list[Any] = []
    look = Tool("look", lambda _, ctx: seen.append((ctx.run.id, ctx.input, ctx.key, ctx.dedupe_key, ctx.silenced)))
    play = Play(Flow("f", steps=[Do("look", id="d")]), actions=[look])
    await play.started("f", input={"x": 7})
    assert seen == [("f#k", {"x": 7}, "f#k:d:1", "f:s1:k", None)]


async def test_what_an_action_writes_is_there_at_the_next_step() -> None:
    """As it is given: nothing is converted."""

    def write(args: Any, ctx: ToolContext[Any]) -> Ok:
        ctx.set({"budget": "much", "ok": True})
        return Ok()

    flow = Flow("f", steps=[Do("write", id="w"), Collect("budget", id="q"), Say("{{data.budget}} {{data.ok}}", id="s")])
    play = Play(flow, actions=[Tool("write", write)])
    result = await play.started("f")
    assert lines(result)[1] == ("q", "collect", "skipped", "already-known")
    assert [m.text for m in result.messages] == ["much true"]


async def test_a_flow_without_steps_ends_at_once() -> None:
    """Nothing of it can be taken."""
    result = await Play(Flow("f")).started("f")
    assert (ends(result), result.outcomes) == ([("f#k", "end")], ())


async def test_a_run_that_waits_for_a_person_says_so_under_its_key() -> None:
    """Who was about to answer the message does when they have answered."""
    seen: list[str] = []
    pay = Flow("pay", on=[OnMention("pays")], steps=[Do("confirm", id="c"), Do("notify", id="n")])
    play = Play(pay, Flow("asks", on=[OnMessage("x")], steps=[Collect("ok", id="q")]), actions=[asking(seen)])
    await play.said(key="m1", judge={"mentions": {"pay": False}}, speak=RIGHT)
    paused = await play.said(key="m2", judge={"mentions": {"pay": True}})
    waiting = line(paused, "awaiting-answer")
    assert (waiting.key, waiting.kind, waiting.status, waiting.next) == ("pay#m2:c:1", "do", "waiting", None)
    question = play.kept.question
    assert question is not None
    done = await play.took(approved(question, by="bo"), speak=RIGHT)
    assert (keys(done), seen, len(play.notified)) == (["asks#m1:q:1/2"], ["pay#m2:c:1"], 1)
    assert play.statuses == {"asks": "asking"}


async def test_descriptions_are_filled_in_where_a_message_is_judged() -> None:
    """From fields and from the context of this turn."""
    flow = Flow("f", on=[OnMessage("asks {{context.what}}")], description="About {{context.what}} for {{data.name}}",
                steps=[Talk("Hi.", id="t")])  # fmt: skip
    other = Flow("g", on=[OnMessage("x")], steps=[Talk("Hi.", id="t")])
    play = Play(flow, other, data={"name": "Ana"})
    result = await play.said(context={"what": "rooms"}, judge={"flows": {"f": 90}}, speak=RIGHT)
    prompt = told(play.requests[0])
    assert "1. f — f: About rooms for Ana\n   The customer: asks rooms" in prompt
    assert said_by(result) == [("Right?", "ai", "f#m1:t:1")]
