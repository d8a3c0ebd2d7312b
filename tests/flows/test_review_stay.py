"""Flows that stay, in all their details: 9.1 of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.conversation.inputs import Ask, approved
from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Do,
    Flow,
    Goto,
    If,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
)
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.options import Silenced
from tests.flows.playing import NOTHING, Play, ends, keys, line, lines, said_by, says, starts, wakes

pytestmark = pytest.mark.unit

SURE = [says("Sure.")]
RIGHT = [says("Right?")]


# ---- whose message it is ---------------------------------------------------------------------------------------------


async def test_a_run_that_comes_to_stay_waits_behind_who_the_message_belongs_to() -> None:
    """A mention that stays does not take the message from the flow that asks."""
    faq = Flow("faq", on=[OnMention("a")], steps=[Collect("name", id="r")], on_end="stay")
    play = Play(Flow("other", on=[OnMessage("x")], steps=[Collect("ok", id="q")]), faq, data={"name": "Ana"})
    await play.said(key="m1", judge={"mentions": {"faq": False}}, speak=RIGHT)
    play.clock.advance(minutes=1)
    result = await play.said(key="m2", judge={"mentions": {"faq": True}}, speak=RIGHT)
    assert keys(result) == ["other#m1:q:1/2"]
    assert play.statuses == {"other": "asking", "faq": "suspended"}
    assert play.run("faq").suspended_at == play.clock.at
    assert play.run("faq").staying


async def test_a_run_that_comes_to_stay_answers_a_message_that_is_its_own() -> None:
    """Who asked before is suspended, and loses what it was about to say."""
    faq = Flow("faq", on=[OnMessage("has a question")], steps=[Collect("name", id="r")], on_end="stay")
    play = Play(Flow("other", on=[OnMessage("x")], steps=[Collect("ok", id="q")]), faq, data={"name": "Ana"})
    await play.said(key="m1", judge={"flows": {"other": 90}}, speak=RIGHT)
    result = await play.said(key="m2", judge={"flows": {"faq": 90}}, speak=SURE)
    assert (starts(result), said_by(result)) == (["faq#m2"], [("Sure.", "ai", "faq#m2:r:2")])
    assert play.statuses == {"other": "suspended", "faq": "asking"}


async def test_a_run_that_answers_and_then_stays_has_answered_this_message() -> None:
    """The step it stays on waits for the next one."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Talk("Greet.", id="a"), Talk("Help.", id="b")], on_end="stay"))
    result = await play.said(key="m1", speak=SURE)
    assert (keys(result), play.run("f").staying) == (["f#m1:a:1"], False)
    # The second talk step is for the next message: one answer each.
    result = await play.said(key="m2", speak=SURE)
    assert (keys(result), play.run("f").staying, play.run("f").step_id) == (["f#m1:b:1"], True, "b")


async def test_a_line_of_its_own_is_answer_enough() -> None:
    """A run whose last step said something stays without answering this message again."""
    flow = Flow("f", on=[OnMessage()], steps=[Collect("name", id="q"), Say("Noted.", id="s")], on_end="stay")
    play = Play(flow)
    await play.said(key="m1", speak=[says("Name?")])
    result = await play.said("Ana", key="m2", judge={"fields": {"name": "Ana"}})
    assert said_by(result) == [("Noted.", "verbatim", "f#m1:s:1")]
    run = play.run("f")
    assert (run.step_id, run.staying, run.status, dict(run.visits)) == ("q", True, "asking", {"q": 2, "s": 1})


async def test_somebody_else_s_line_is_answer_enough() -> None:
    """A mention said something before: the run that comes to stay keeps quiet, and asks from the next message on."""
    say = Flow("note", on=[OnMention("a", repeat="always")], steps=[Say("Noted.", id="s")])
    faq = Flow("faq", on=[OnMessage("x")], steps=[Collect("name", id="r")], on_end="stay")
    play = Play(say, faq, data={"name": "Ana"})
    result = await play.said(key="m1", judge={"mentions": {"note": True}})
    assert said_by(result) == [("Noted.", "verbatim", "note#m1:s:1")]
    assert play.statuses == {"faq": "asking"}
    assert keys(await play.said(key="m2", judge={"mentions": {"note": False}}, speak=SURE)) == ["faq#m1:r:2"]


async def test_without_a_message_a_run_that_comes_to_stay_only_asks() -> None:
    """A start and a wake have nothing to answer."""
    faq = Flow("faq", steps=[Wait("1h", id="w"), Collect("name", id="r")], on_end="stay")
    play = Play(faq, data={"name": "Ana"})
    ((wake, _),) = wakes(await play.started("faq"))
    play.clock.advance(hours=1)
    result = await play.woke(wake)
    assert result.messages == ()
    run = play.run("faq")
    assert (run.step_id, run.staying, run.status) == ("r", True, "asking")


async def test_a_wake_that_comes_to_stay_takes_the_floor() -> None:
    """The wake is that run's: whoever asked waits behind it."""
    faq = Flow("faq", steps=[Wait("1h", id="w"), Collect("name", id="r")], on_end="stay")
    play = Play(Flow("other", steps=[Collect("ok", id="q")]), faq, data={"name": "Ana"})
    ((wake, _),) = wakes(await play.started("faq"))
    await play.started("other", key="k2", speak=RIGHT)
    play.clock.advance(hours=1)
    await play.woke(wake)
    assert play.statuses == {"faq": "asking", "other": "suspended"}


async def test_a_silenced_run_that_comes_to_stay_only_asks() -> None:
    """It answers the first message in which somebody may speak."""
    faq = Flow("faq", on=[OnMessage()], steps=[If({"known": ["name"]}, id="g", then="n", else_="n"),
                                                Do("notify", id="n", then="end"), Talk("Help.", id="r")],
               on_end="stay")  # fmt: skip
    play = Play(faq)
    result = await play.said(key="m1", options=[Silenced("human")])
    assert (result.messages, play.statuses) == ((), {"faq": "asking"})
    assert lines(await play.said(key="m2", options=[Silenced("human")])) == []
    assert keys(await play.said(key="m3", speak=SURE)) == ["faq#m1:r:1"]


async def test_a_reply_that_ends_the_flow_is_answered_by_the_step_it_stays_on() -> None:
    """The wait was over by this message, which took the floor: nothing else may answer it."""
    steps: list[Any] = [Talk("Help.", id="r"), Wait("1d", id="w", else_="end")]
    play = Play(Flow("f", steps=steps, on_end="stay"), Flow("open", on=[OnMessage()], steps=[Talk("Hi.", id="t")]))
    await play.started("f", speak=SURE)
    result = await play.said(key="m1", speak=SURE)
    assert (starts(result), keys(result)) == ([], ["f#k:r:2"])
    assert dict(play.run("f").visits) == {"r": 3, "w": 1}


# ---- where it stays --------------------------------------------------------------------------------------------------


async def test_where_the_step_it_took_is_gone_it_stays_on_the_last_one_of_the_flow() -> None:
    """A flow that was edited under it."""
    before: list[Any] = [Talk("A.", id="a"), Wait("1h", id="w"), Do("notify", id="n")]
    play = Play(Flow("f", steps=before, on_end="stay"))
    ((wake, _),) = wakes(await play.started("f", speak=SURE))
    after: list[Any] = [
        Talk("B.", id="b", then="w"),
        Talk("C.", id="c", then="w"),
        Wait("1h", id="w"),
        Do("notify", id="n"),
    ]
    edited = Play(Flow("f", steps=after, on_end="stay"), session=play.kept)
    edited.clock.advance(hours=1)
    await edited.woke(wake)
    assert (edited.run("f").step_id, edited.run("f").staying) == ("c", True)


async def test_where_the_step_it_took_talks_no_more_it_stays_on_the_last_one_that_does() -> None:
    """The step has become another kind of step."""
    play = Play(Flow("f", steps=[Talk("A.", id="a"), Wait("1h", id="w")], on_end="stay"))
    ((wake, _),) = wakes(await play.started("f", speak=SURE))
    edited = Play(
        Flow("f", steps=[Talk("B.", id="b"), Say("A.", id="a"), Wait("1h", id="w")], on_end="stay"), session=play.kept
    )
    edited.clock.advance(hours=1)
    await edited.woke(wake)
    assert edited.run("f").step_id == "b"


async def test_a_step_that_was_passed_over_counts_as_taken() -> None:
    """Everything it collects was known: it is the last talk step all the same."""
    steps: list[Any] = [
        Talk("A.", id="a"),
        Collect("name", id="b"),
        If({"known": ["name"]}, id="g"),
        Do("notify", id="n"),
    ]
    play = Play(Flow("f", steps=steps, on_end="stay"), data={"name": "Ana"})
    await play.started("f", speak=SURE)
    assert play.run("f").step_id == "b"


async def test_a_flow_edited_to_begin_anew_begins_anew() -> None:
    """The new ``on_end`` stands for runs that stay already, the next time they move."""
    steps: list[Any] = [Talk("Answer.", id="r")]
    play = Play(Flow("faq", on=[OnMessage()], steps=steps, on_end="stay"))
    await play.said(key="m1", speak=SURE)
    edited = Play(Flow("faq", on=[OnMessage()], steps=steps, on_end="reset"), session=play.kept)
    result = await edited.said(key="m2", speak=SURE)
    assert ends(result)[0] == ("faq#m1", "reset")
    assert starts(result)[0] == "faq#faq#m1:r:2"
    assert keys(result) == ["faq#faq#m1:r:2:r:1"]


async def test_a_premise_ends_a_run_that_stays() -> None:
    """It moves like any other."""
    play = Play(Flow("f", on=[OnMessage()], while_=lambda ctx: ctx.context, steps=[Talk("A.", id="a")], on_end="stay"))
    await play.said(key="m1", context=True, speak=SURE)
    result = await play.said(key="m2", context=False, speak=SURE)
    assert (ends(result), keys(result)) == ([("f#m1", "skipped")], ["idle:m2"])


# ---- its branches ----------------------------------------------------------------------------------------------------


def branching(*branches: Branch) -> Flow:
    """A flow that stays on a step with these exits, and has not been to its other steps."""
    steps: list[Any] = [
        Do("notify", id="n"), Talk("Help.", id="q", then="end", branches=branches),
        Say("New.", id="new", then="end"), Say("Other.", id="other", then="end"),
    ]  # fmt: skip
    return Flow("f", on=[OnMessage()], on_end="stay", steps=steps)


KNOWN = {"known": ["name"]}


@pytest.mark.parametrize("target", ["end", "n", "q", Goto("n"), Goto("n", clear=["ok"])])
async def test_an_exit_by_code_to_where_it_was_or_to_the_end_fires_no_more(target: Any) -> None:
    """It would hold for ever, and nobody would be answered."""
    play = Play(branching(Branch(only_if=KNOWN, then=target)), data={"name": "Ana"})
    await play.said(key="m1", speak=SURE)
    result = await play.said(key="m2", speak=SURE)
    assert (keys(result), [each.code for each in result.outcomes]) == (["f#m1:q:2"], [None])


@pytest.mark.parametrize("target", ["new", Goto("new"), Chain("next")])
async def test_an_exit_by_code_to_somewhere_new_fires(target: Any) -> None:
    """It was not there yet."""
    play = Play(
        branching(Branch(only_if=lambda ctx: ctx.context, then=target)), Flow("next", steps=[Say("New.", id="s")])
    )
    await play.said(key="m1", context=False, speak=SURE)
    result = await play.said(key="m2", context=True)
    assert (line(result, "branch").key, [m.text for m in result.messages]) == ("f#m1:q:2", ["New."])


async def test_an_exit_that_is_passed_over_lets_the_next_one_be_judged() -> None:
    """The first that may still fire does."""
    exits = [Branch(only_if=KNOWN, then="n"), Branch(only_if=KNOWN, then="new"), Branch(only_if=KNOWN, then="other")]
    play = Play(branching(*exits), data={"name": "Ana"})
    await play.said(key="m1", speak=SURE)
    result = await play.said(key="m2")
    assert (line(result, "branch").next, [m.text for m in result.messages]) == ("new", ["New."])


# ---- what it collects ------------------------------------------------------------------------------------------------


def forget(*slugs: str) -> Tool:
    """An action that makes these fields unknown."""

    def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        ctx.set(dict.fromkeys(slugs))
        return Ok()

    return Tool("forget", handler)


async def test_a_run_that_stays_still_collects() -> None:
    """What is unknown again is asked for, counted, and told once when it was asked for the last time."""
    flow = Flow("f", on=[OnMessage()], on_end="stay", steps=[Collect("ok", id="q", max_asks=2), Do("forget", id="n")])
    play = Play(flow, actions=[forget("ok")])
    await play.said(key="m1", speak=[says("Good.", ok=True)])
    assert (play.run("f").staying, play.data, dict(play.run("f").asked)) == (True, {}, {})
    second = await play.said(key="m2", speak=RIGHT)
    assert (lines(second), dict(play.run("f").asked)) == ([("q", "collect", "ok", None)], {"ok": 1})
    third = await play.said(key="m3", speak=RIGHT)
    assert lines(third) == [("q", "collect", "ok", None), ("q", "collect", "skipped", "max-asks")]
    used_up = line(third, "max-asks")
    assert (used_up.detail, used_up.next) == ("ok", None)
    fourth = await play.said(key="m4", speak=SURE)
    assert (lines(fourth), dict(play.run("f").asked)) == ([("q", "collect", "ok", None)], {"ok": 2})
    assert keys(fourth) == ["f#m1:q:4"]


async def test_a_run_that_stays_keeps_what_it_hears() -> None:
    """A field that it was told is written, and is pending no more."""
    flow = Flow("f", on=[OnMessage()], on_end="stay", steps=[Collect("ok", id="q"), Do("forget", id="n")])
    play = Play(flow, actions=[forget("ok")])
    await play.said(key="m1", speak=[says("Good.", ok=True)])
    await play.said(key="m2", speak=[says("Noted.", ok=False)])
    assert (play.data, play.run("f").staying) == ({"ok": False}, True)


async def test_a_run_that_stays_leaves_by_an_exit_and_may_stay_elsewhere() -> None:
    """It is not staying while it takes steps, and stays on the talk step that it took last."""
    play = Play(Flow(
        "f", on=[OnMessage()], on_end="stay", collect=["size"],
        steps=[Talk("A.", id="a", then="end", branches=[Branch("wants b", then="b")]), Talk("B.", id="b")],
    ))  # fmt: skip
    await play.said(key="m1", judge=NOTHING, speak=SURE)
    result = await play.said(key="m2", judge={"branches": {"q1": True}}, speak=SURE)
    assert keys(result) == ["f#m1:b:1"]
    run = play.run("f")
    assert (run.step_id, run.staying, dict(run.visits)) == ("b", True, {"a": 2, "b": 2})


async def test_a_run_that_stays_gives_way_and_takes_over_again() -> None:
    """It is suspended like any asker, and goes on staying."""
    faq = Flow("faq", on=[OnMessage()], steps=[Talk("Help.", id="r")], on_end="stay")
    play = Play(faq, Flow("book", on=[OnMessage("books")], steps=[Collect("ok", id="q")]),
                lone_flow="score")  # fmt: skip
    await play.said(key="m1", judge={"flows": {"book": 0}}, speak=SURE)
    await play.said(key="m2", judge={"flows": {"faq": 0, "book": 90}}, speak=RIGHT)
    assert (play.statuses, play.run("faq").staying) == ({"faq": "suspended", "book": "asking"}, True)
    done = await play.said(key="m3", speak=[says("Good.", ok=True)])
    assert (ends(done), play.statuses) == ([("book#m2", "end")], {"faq": "asking"})
    assert keys(await play.said(key="m4", speak=SURE)) == ["faq#m1:r:2"]


async def test_an_event_leaves_a_run_that_stays_alone() -> None:
    """Only a message is answered."""
    ping = Flow("ping", on=[OnEvent("ping")], steps=[Do("notify", id="n")])
    play = Play(Flow("faq", on=[OnMessage()], steps=[Talk("Help.", id="r")], on_end="stay"), ping, events=["ping"])
    await play.said(key="m1", speak=SURE)
    result = await play.happened("ping")
    assert (result.messages, play.statuses, dict(play.run("faq").visits)) == ((), {"faq": "asking"}, {"r": 2})


async def test_a_run_that_left_asks_like_any_other() -> None:
    """Its fixed question goes out, and a step whose fields are known is passed."""
    flow = Flow("f", on=[OnMessage()], on_end="stay", steps=[
        Talk("A.", id="a", then="end", branches=[Branch("goes on", then="b")]),
        Collect("name", id="b"), Collect("ok", id="c", question="Right?"),
    ])  # fmt: skip
    play = Play(flow)
    await play.said(key="m1", judge={**NOTHING, "asks": False}, speak=SURE)
    told: dict[str, Any] = {"branches": {"q1": True}, "fields": {"name": "Ana"}, "asks": False}
    result = await play.said(key="m2", judge=told)
    assert said_by(result) == [("Right?", "verbatim", "f#m1:c:1")]
    assert (play.run("f").staying, dict(play.run("f").asked)) == (False, {"ok": 1})


async def test_an_action_that_spoke_is_answer_enough() -> None:
    """The run that comes to stay keeps quiet until the next message."""
    flow = Flow("f", on=[OnMessage()], on_end="stay", steps=[Collect("name", id="q"), Do("call", id="c")])
    play = Play(flow, data={"name": "Ana"}, actions=[Tool("call", lambda *_: Ok(spoke=True))])
    result = await play.said(key="m1")
    assert (result.messages, play.statuses) == ((), {"f": "asking"})


async def test_a_reply_that_comes_to_stay_is_judged_by_the_exits_of_that_step() -> None:
    """It is the asker of this message."""
    flow = Flow("f", on_end="stay", steps=[
        Talk("Help.", id="r", branches=[Branch("asks for a person", then="p")]), Wait("1d", id="w", else_="end"),
        Say("Late", id="s", then="end"), Say("Calling.", id="p"),
    ])  # fmt: skip
    play = Play(flow)
    await play.started("f", speak=SURE)
    result = await play.said(key="m1", judge={"branches": {"q1": True}})
    assert [m.text for m in result.messages] == ["Calling."]


async def test_a_run_that_comes_to_stay_after_a_person_s_answer_only_asks() -> None:
    """The turn goes on as a timer's would: nobody has written just now."""

    async def confirm(args: Any, ctx: ToolContext[Any]) -> Any:
        return (await ctx.ask(Ask("Really?"))).approved

    flow = Flow("f", on=[OnMessage()], on_end="stay", steps=[Collect("name", id="q"), Do("confirm", id="c")])
    play = Play(flow, data={"name": "Ana"}, actions=[Tool("confirm", confirm)])
    await play.said(key="m1")
    question = play.kept.question
    assert question is not None
    result = await play.took(approved(question, by="bo"))
    assert (result.messages, play.statuses) == ((), {"f": "asking"})


async def test_lines_said_on_the_way_do_not_change_where_it_stays() -> None:
    """The talk step of the way that was taken, whatever was said behind it."""
    steps: list[Any] = [
        Talk("X.", id="x", then="s"), Talk("Y.", id="y"), Say("Bye", id="s", then="end"), Talk("Z.", id="z")
    ]  # fmt: skip
    play = Play(Flow("f", steps=steps, on_end="stay"))
    await play.started("f", speak=SURE)
    assert play.run("f").step_id == "x"


async def test_a_silence_that_comes_to_stay_takes_the_floor() -> None:
    """The wake is its own."""
    nudge = Flow("nudge", on=[OnSilence("1h")], steps=[Collect("name", id="r")], on_end="stay")
    play = Play(nudge, Flow("other", on=[OnMessage()], steps=[Collect("ok", id="q")]), data={"name": "Ana"})
    ((wake, play.clock.at),) = wakes(await play.said(key="m1", speak=RIGHT))
    await play.woke(wake)
    assert play.statuses == {"other": "suspended", "nudge": "asking"}
