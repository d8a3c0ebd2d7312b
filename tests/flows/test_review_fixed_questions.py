"""Fixed questions together with tools, failures, retries, rules, and turns in which nobody may speak: 10.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.conversation.inputs import Ask, approved
from onrecord.flows import Branch, Collect, Do, Flow, Goto, If, Ok, OnEvent, OnMention, OnMessage, Say, Talk
from onrecord.governance.rules import on_output
from onrecord.jsonio import Json
from onrecord.testing import call, raises
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.moments import ALLOW, Allow, Answer, Deny
from onrecord.turn.options import Silenced
from onrecord.turn.turn import Turn
from tests.flows.playing import NOTHING, Play, after, ends, keys, line, lines, said_by, says, sections, told, wakes

pytestmark = pytest.mark.unit

ASKS: dict[str, Any] = {"asks": True}
SHOP = Flow("shop", on=[OnMessage()], steps=[Collect("ok", id="q", question="Right?"), Say("Good.", id="s")])


def price(**data: Json) -> Tool:
    """A tool that looks something up, and may write fields."""
    return Tool("price", lambda *_: ToolResult(420, data=data or None))


# ---- tools -----------------------------------------------------------------------------------------------------------


async def test_an_answer_before_the_question_may_call_tools() -> None:
    """Its rounds are those of any answer; the question follows the last one."""
    play = Play(SHOP, tools=[price()])
    result = await play.said("how much?", speak=[[call("price")], says("It is 420.")])
    assert said_by(result) == [("It is 420.", "ai", "shop#m1:q:1"), ("Right?", "verbatim", "shop#m1:q:1/2")]
    assert [(each.code, each.llm_calls) for each in result.outcomes] == [(None, 2), ("asked-fixed", 0)]
    assert [offer.tool.id for offer in play.requests[0].offers] == ["price"]


async def test_a_tool_that_fills_the_field_leaves_nothing_to_ask() -> None:
    """The step is done by its answer."""
    play = Play(SHOP, tools=[price(ok=True)])
    result = await play.said("how much?", speak=[[call("price")], says("It is 420.")])
    assert [m.text for m in result.messages] == ["It is 420.", "Good."]
    assert ends(result) == [("shop#m1", "end")]


async def test_a_tool_that_fills_one_of_two_fields_leaves_the_rest_to_the_model() -> None:
    """The question asks for both, so it is due no more; nothing was asked for by the answer, so nothing is counted."""
    flow = Flow("shop", on=[OnMessage()], steps=[Collect("ok", "name", id="q", question="Right, and who?")])
    play = Play(flow, tools=[price(ok=True)], data={})
    result = await play.said("how much?", judge={**NOTHING, **ASKS}, speak=[[call("price")], says("It is 420.")])
    assert [m.text for m in result.messages] == ["It is 420."]
    assert (play.statuses, dict(play.run("shop").asked)) == ({"shop": "asking"}, {})
    result = await play.said("ok", key="m2", judge={**NOTHING, "asks": False}, speak=[says("And who?")])
    assert (keys(result), dict(play.run("shop").asked)) == (["shop#m1:q:1/2"], {"name": 1})


async def test_the_answer_before_the_question_reads_no_field() -> None:
    """Not even one that the model gives all the same."""
    play = Play(SHOP)
    result = await play.said("yes, how much?", speak=[says("It is 420.", ok=True)])
    assert [m.text for m in result.messages] == ["It is 420.", "Right?"]
    assert play.data == {}
    assert "## Still to collect" not in told(play.requests[0])
    assert sections(play.requests[0]) == {"message": []}


# ---- failures --------------------------------------------------------------------------------------------------------


async def test_an_answer_that_fails_leaves_the_question_unsent() -> None:
    """Nothing is counted; the retry answers first, and then the question goes out."""
    play = Play(SHOP)
    failed = await play.said("how much?", speak=[raises("network")])
    assert (failed.messages, dict(play.run("shop").asked)) == ((), {})
    ((wake, at),) = wakes(failed)
    assert wake == "shop#m1:q:1:retry:1789898460000"
    play.clock.at = at
    result = await play.woke(wake, speak=[says("It is 420.")])
    assert said_by(result) == [("It is 420.", "ai", "shop#m1:q:1"), ("Right?", "verbatim", "shop#m1:q:1/2")]
    assert "no answer yet" in told(play.requests[0])


async def test_a_failed_answer_is_given_before_the_question_whatever_the_next_message_asks() -> None:
    """A customer who writes meanwhile gets it now: that this message asks nothing does not answer the one before."""
    play = Play(SHOP, Flow("other", on=[OnMessage("x")], steps=[Talk("X.", id="t")]), lone_flow="score")
    await play.said("how much?", key="m1", judge={"flows": {"other": 0}, "asks": True}, speak=[raises("network")])
    result = await play.said("hello?", key="m2", judge={"flows": {"other": 0}, "asks": False}, speak=[says("420.")])
    assert said_by(result) == [("420.", "ai", "shop#m1:q:1"), ("Right?", "verbatim", "shop#m1:q:1/2")]


async def test_failures_before_a_question_that_went_out_are_forgotten() -> None:
    """They were in a row; the answer ended it. The next failure waits a minute again."""
    play = Play(SHOP)
    ((first, play.clock.at),) = wakes(await play.said("how much?", speak=[raises("network")]))
    ((second, play.clock.at),) = wakes(await play.woke(first, speak=[raises("network")]))
    assert play.clock.at == after(minutes=6)
    await play.woke(second, speak=[says("It is 420.")])
    assert play.run("shop").failures == 0
    failed = await play.said("hm", key="m2", speak=[raises("network")])
    assert [at - play.clock.at for _, at in wakes(failed)] == [after(minutes=1) - after()]


async def test_after_its_question_a_step_that_fails_on_a_message_is_tried_again_as_any() -> None:
    """The question was asked, so the retry is an ordinary one: it reads fields, and sends no question."""
    play = Play(SHOP)
    await play.started("shop")
    ((wake, at),) = wakes(await play.said("yes", speak=[raises("network")]))
    play.clock.at = at
    result = await play.woke(wake, speak=[says("Fine.", ok=True)])
    assert said_by(result) == [("Fine.", "ai", "shop#k:q:1/2"), ("Good.", "verbatim", "shop#k:s:1")]
    assert play.data == {"ok": True}


# ---- what may stand before it ----------------------------------------------------------------------------------------


async def test_a_question_is_held_back_when_somebody_else_said_something() -> None:
    """It is not asked and not counted; it goes out with the next message."""
    note = Flow("note", on=[OnMention("a", repeat="always")], steps=[Say("Noted.", id="s")])
    play = Play(note, SHOP)
    result = await play.said(key="m1", judge={"mentions": {"note": True}, "asks": False})
    assert [m.text for m in result.messages] == ["Noted."]
    assert (lines(result)[-1], dict(play.run("shop").asked)) == (("q", "collect", "skipped", "another-reply"), {})
    later = await play.said(key="m2", judge={"mentions": {"note": False}, "asks": False})
    assert said_by(later) == [("Right?", "verbatim", "shop#m1:q:1")]


async def test_a_line_of_its_own_run_does_not_hold_a_question_back() -> None:
    """Both go out, with keys of their own steps."""
    flow = Flow("shop", on=[OnMessage()], steps=[Say("Hi!", id="s"), Collect("ok", id="q", question="Right?")])
    play = Play(Flow("m", on=[OnMention("a")], steps=[Do("notify", id="n")]), flow)
    result = await play.said(judge={"mentions": {"m": False}, "asks": False})
    assert keys(result) == ["shop#m1:s:1", "shop#m1:q:1"]


async def test_on_an_event_a_question_goes_out_beside_another_run_s_line() -> None:
    """Only a message is answered once."""
    play = Play(
        Flow("a", on=[OnEvent("ping")], steps=[Say("A", id="s")]),
        Flow("b", on=[OnEvent("ping")], steps=[Collect("ok", id="q", question="Right?")]), events=["ping"],
    )  # fmt: skip
    assert [m.text for m in (await play.happened("ping")).messages] == ["A", "Right?"]


async def test_a_question_waits_for_the_gate_to_open() -> None:
    """An asker whose question was never sent sends it in the first turn in which it may."""
    play = Play(SHOP, Flow("note", on=[OnMention("a")], steps=[Say("Noted.", id="s")]))
    await play.said(key="m1", judge={"mentions": {"note": True}, "asks": False})
    silent = await play.said(key="m2", options=[Silenced("human")])
    assert (silent.messages, silent.outcomes, dict(play.run("shop").asked)) == ((), (), {})
    open_again = await play.said(key="m3", speak=[says("Hello.")])
    assert said_by(open_again) == [("Hello.", "ai", "shop#m1:q:1"), ("Right?", "verbatim", "shop#m1:q:1/2")]


async def test_a_silenced_question_is_not_sent_and_not_counted() -> None:
    """With ``skip`` its step is passed over; without, the run ends."""
    play = Play(Flow("f", steps=[Collect("ok", id="q", question="Right?"), Do("notify", id="n")]))
    skipped = await play.started("f", key="k1", options=[Silenced("human", skip=True)])
    assert lines(skipped) == [("q", "collect", "skipped", "silenced"), ("n", "do", "ok", None)]
    assert (line(skipped, "silenced").key, skipped.messages) == ("f#k1:q:1", ())


async def test_a_question_is_not_due_where_one_of_its_fields_was_asked_for() -> None:
    """A field that an earlier step of the run asked for: the model asks for the rest."""
    flow = Flow("f", steps=[Collect("ok", "name", id="a", max_asks=1), Collect("ok", id="q", question="Right?")])
    play = Play(flow)
    await play.started("f", speak=[says("Right, and who?")])
    result = await play.said(judge={"fields": {"name": "Ana"}, "asks": False}, speak=[says("So is it right?")])
    assert keys(result) == ["f#k:q:1"]
    assert [m.kind for m in result.messages] == ["ai"]


async def test_a_way_back_that_clears_one_of_two_fields_asks_by_the_model() -> None:
    """The other one is known, so the question, which asks for both, is not due."""
    flow = Flow("f", steps=[
        Collect("ok", "name", id="q", question="Right, and who?"),
        If({"equals": {"ok": True}}, id="g", then="s", else_=Goto("q", clear=["ok"])), Say("Good.", id="s"),
    ])  # fmt: skip
    play = Play(flow)
    await play.started("f")
    result = await play.said(judge={"fields": {"name": "Ana"}}, speak=[says("I see.", ok=False)])
    assert (keys(result), dict(play.run("f").asked)) == (["f#k:q:1/2"], {"name": 1})
    again = await play.said(key="m2", speak=[says("Is it right?")])
    assert keys(again) == ["f#k:q:2"]


async def test_a_question_is_a_template() -> None:
    """Of fields, of the context and of the run's input."""
    flow = Flow("f", steps=[Collect("ok", id="q", question="{{data.name}}, {{context.who}}, {{input.n}}?")])
    play = Play(flow, data={"name": "Ana"})
    result = await play.started("f", input={"n": 7}, context={"who": "Bo"})
    assert [m.text for m in result.messages] == ["Ana, Bo, 7?"]


async def test_a_branch_leaves_a_step_whose_question_was_sent() -> None:
    """It is an ordinary asker from then on."""
    flow = Flow("f", steps=[
        Collect("ok", id="q", question="Right?", branches=[Branch("asks for a person", then="p")]),
        Say("Good.", id="s", then="end"), Say("Calling.", id="p"),
    ])  # fmt: skip
    play = Play(flow)
    await play.started("f")
    result = await play.said(judge={"branches": {"q1": True}, "asks": True})
    assert [m.text for m in result.messages] == ["Calling."]


# ---- rules and people ------------------------------------------------------------------------------------------------


def ruled(play: Play, text: str) -> Play:
    """The play with a rule that lets nobody say this."""

    @on_output
    async def rule(turn: Turn, answer: Answer) -> Allow[Answer] | Deny:
        return Deny("no") if answer.text == text else ALLOW

    play.agent = play.agent.with_(features=[rule])
    return play


async def test_a_question_that_a_rule_refuses_is_not_counted_and_moves_nothing() -> None:
    """The run goes on asking, and its line leads nowhere."""
    flow = Flow("shop", steps=[Collect("ok", id="q", question="Right?", then="s"), Say("Good.", id="s")])
    play = ruled(Play(flow), "Right?")
    result = await play.started("shop")
    refused = line(result, "refused")
    assert (refused.status, refused.key, refused.next) == ("failed", "shop#k:q:1", None)
    assert (result.messages, play.statuses, dict(play.run("shop").asked)) == ((), {"shop": "asking"}, {})


async def test_a_line_that_a_rule_refuses_leads_to_the_next_step() -> None:
    """Its run goes on, and its line says where."""
    flow = Flow("f", steps=[Say("Buy!", id="s", then="t"), Say("Never.", id="u"), Say("Bye.", id="t")])
    play = ruled(Play(flow), "Buy!")
    result = await play.started("f")
    assert (line(result, "refused").next, [m.text for m in result.messages]) == ("t", ["Bye."])


async def test_a_line_said_once_that_a_rule_refused_was_not_said() -> None:
    """It may be said when the rule allows it."""
    flow = Flow("f", steps=[Say("Buy!", id="s", once=True)])
    play = ruled(Play(flow), "Buy!")
    await play.started("f", key="k1")
    assert "f:s:s1" not in play.claims
    free = Play(flow, session=play.kept)
    assert [m.text for m in (await free.started("f", key="k2")).messages] == ["Buy!"]


async def test_a_person_asked_during_the_answer_comes_before_the_question() -> None:
    """The answer goes on when they have answered, and the question follows it, under the second key."""
    seen: list[str] = []

    async def confirm(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        given = await ctx.ask(Ask("Really?"))
        seen.append(ctx.key)
        return Ok() if given.approved else None

    play = Play(SHOP, tools=[Tool("confirm", confirm)])
    paused = await play.said("how much?", speak=[[call("confirm")]])
    assert (paused.status, paused.messages) == ("paused", ())
    question = play.kept.question
    assert question is not None
    done = await play.took(approved(question, by="bo"), speak=[says("It is 420.")])
    assert said_by(done) == [("It is 420.", "ai", "shop#m1:q:1"), ("Right?", "verbatim", "shop#m1:q:1/2")]
    assert dict(play.run("shop").asked) == {"ok": 1}
