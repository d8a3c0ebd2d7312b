"""Who gets the floor, from whom, and what a message does that is not the asker's: 12.2, 17.4 to 17.6 and 18."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Branch,
    Collect,
    Do,
    Flow,
    FlowOptions,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    Say,
    Talk,
    Wait,
)
from onrecord.flows.flow import Event
from onrecord.flows.predicates import PredContext
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, ends, keys, line, lines, says, sections, skips, starts

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
EVENTS = {"ping": Event(), "called": Event(direction="inbound"), "booked": Event()}
SALES = Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q")])
HELP = Flow("help", on=[OnMessage("has a problem", repeat="always")], steps=[Collect("ok", id="q")])
SPOKE = Tool("call", lambda *_: Ok(spoke=True))


def never(ctx: PredContext) -> bool:
    """A condition that does not hold."""
    return ctx is None


def scores(**each: Any) -> dict[str, Any]:
    """An understand reply that scores flows."""
    return {"flows": each}


# ---- routing ---------------------------------------------------------------------------------------------------------


async def test_of_two_that_score_alike_the_earlier_flow_starts() -> None:
    """In the agent's order."""
    assert starts(await Play(SALES, HELP).said(judge=scores(sales=50, help=50), speak=RIGHT)) == ["sales#m1"]
    assert starts(await Play(HELP, SALES).said(judge=scores(sales=50, help=50), speak=RIGHT)) == ["help#m1"]


async def test_the_asker_s_flow_is_put_first_and_once() -> None:
    """Whatever started it, and wherever it stands among the others."""
    play = Play(SALES, HELP)
    await play.said(key="m1", judge=scores(help=90), speak=RIGHT)
    await play.said(key="m2", judge=scores(help=90), speak=RIGHT)
    assert sections(play.requests[0]) == {"flows": ["help", "sales"]}


async def test_an_asker_that_no_message_starts_is_scored_as_well() -> None:
    """It is scored like any other, so its points count."""
    play = Play(SALES, HELP, Flow("intake", steps=[Collect("ok", id="q")]))
    await play.started("intake", speak=RIGHT)
    result = await play.said(judge=scores(intake=80, sales=90), speak=RIGHT)
    assert sections(play.requests[0]) == {"flows": ["intake", "sales", "help"]}
    assert keys(result) == ["intake#k:q:1/2"]


async def test_a_catch_all_takes_nothing_from_who_asks() -> None:
    """However little the message is the asker's."""
    play = Play(SALES, HELP, Flow("open", on=[OnMessage(repeat="always")], steps=[Talk("Hi.", id="t")]))
    await play.said(key="m1", judge=scores(sales=90), speak=RIGHT)
    result = await play.said(key="m2", judge=scores(sales=0, help=0), speak=RIGHT)
    assert (starts(result), keys(result)) == ([], ["sales#m1:q:1/2"])


async def test_the_first_catch_all_that_may_begin_takes_what_nobody_wants() -> None:
    """One whose condition is false, or that has run, lets the next one."""
    no = Flow("no", on=[OnMessage(only_if=never)], steps=[Talk("No.", id="t")])
    one = Flow("one", on=[OnMessage()], steps=[Talk("One.", id="t")])
    two = Flow("two", on=[OnMessage(repeat="always")], steps=[Talk("Two.", id="t")])
    play = Play(no, one, two)
    assert keys(await play.said(key="m1", speak=RIGHT)) == ["one#m1:t:1"]
    assert keys(await play.said(key="m2", speak=RIGHT)) == ["two#m2:t:1"]


async def test_a_condition_of_a_message_sees_a_run_that_has_not_begun() -> None:
    """No step, no counters, no input."""
    seen: list[Any] = []

    def look(ctx: Any) -> bool:
        seen.append((ctx.run.id, ctx.run.step_id, dict(ctx.run.asked), dict(ctx.run.visits), ctx.input))
        return True

    await Play(Flow("f", on=[OnMessage("x", only_if=look)], steps=[Do("notify", id="n")]), idle="silent").said()
    assert seen[0] == ("f#m1", None, {}, {}, None)


async def test_a_flow_that_is_live_and_waits_is_not_begun_again() -> None:
    """It is chosen, and told off; the asker still has the message."""
    waits = Flow("waits", on=[OnMessage("x", repeat="always")], steps=[Wait("1d", id="w"), Say("Hi", id="s")])
    play = Play(SALES, waits)
    await play.started("waits")
    await play.said(key="m1", judge=scores(sales=90), speak=RIGHT)
    result = await play.said(key="m2", judge=scores(sales=0, waits=90), speak=RIGHT)
    assert (skips(result), keys(result)) == ([("waits", "m2", "already-running")], ["sales#m1:q:1/2"])


async def test_a_run_routed_back_to_takes_an_exit_that_code_lets_through() -> None:
    """It resumes on a message, so its branches by code are judged; those for the model were not put."""
    exits = [Branch(only_if=lambda ctx: ctx.context, then="p")]
    sales = Flow("sales", on=[OnMessage("buys")], steps=[
        Collect("ok", id="q", branches=exits), Say("Never", id="n"), Say("Calling.", id="p")
    ])  # fmt: skip
    play = Play(sales, HELP)
    await play.said(key="m1", judge=scores(sales=90), context=False, speak=RIGHT)
    await play.said(key="m2", judge=scores(help=90), context=False, speak=RIGHT)
    result = await play.said(key="m3", judge=scores(sales=90), context=True)
    assert (line(result, "branch").key, [m.text for m in result.messages]) == ("sales#m1:q:1", ["Calling."])


async def test_a_run_routed_back_to_goes_on_with_what_the_message_brought() -> None:
    """Its fields are known now: its step is done, as that of one who asked."""
    buy = Flow("buy", on=[OnMessage("buys")], steps=[Collect("name", id="q"), Say("Thanks", id="s")])
    play = Play(buy, HELP)
    await play.said(key="m1", judge=scores(buy=90), speak=[says("Name?")])
    await play.said(key="m2", judge=scores(help=90), speak=RIGHT)
    result = await play.said(key="m3", judge=scores(buy=90) | {"fields": {"name": "Ana"}})
    assert lines(result) == [
        ("q", "collect", "ok", None), ("s", "say", "ok", None), ("q", "collect", "skipped", "another-reply")
    ]  # fmt: skip
    assert play.statuses == {"help": "asking"}


async def test_of_several_suspended_runs_of_a_flow_the_last_goes_on() -> None:
    """Two anchors, so two live runs of one flow."""
    buy = Flow("buy", on=[OnMessage("buys")], anchor="lead", steps=[Collect("ok", id="q")])
    play = Play(buy, HELP)
    for number, lead in enumerate(("a", "b")):
        options = [FlowOptions(anchors={"lead": lead})]
        await play.started("buy", key=f"k{lead}", options=options, speak=RIGHT)
        play.clock.advance(minutes=1)
        await play.said(key=f"h{number}", judge=scores(help=90), speak=[says("Right?", ok=None)])
        play.clock.advance(minutes=1)
    assert [run.status for run in play.state.runs if run.flow_id == "buy"] == ["suspended", "suspended"]
    result = await play.said(key="m9", judge=scores(buy=90), speak=RIGHT)
    assert keys(result) == ["buy#kb:q:1/2"]


# ---- one answer per message ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [Say("Noted.", id="s"), Do("call", id="s")], ids=["say", "spoke"])
async def test_a_held_back_step_is_told_with_its_key_and_asks_on(step: Any) -> None:
    """Nobody speaks besides; no ask is counted, and the next message is answered under the first key."""
    note = Flow("note", on=[OnMention("a", repeat="always")], steps=[step])
    play = Play(note, SALES, actions=[SPOKE])
    result = await play.said(key="m1", judge={"mentions": {"note": True}})
    held = line(result, "another-reply")
    assert (held.key, held.kind, held.status, held.next, held.llm_calls) == (
        "sales#m1:q:1", "collect", "skipped", None, 0
    )  # fmt: skip
    assert dict(play.run("sales").asked) == {}
    later = await play.said(key="m2", judge={"mentions": {"note": False}}, speak=RIGHT)
    assert keys(later) == ["sales#m1:q:1"]


async def test_a_prompt_held_back_is_a_line_of_its_kind() -> None:
    """And its run goes on asking."""
    note = Flow("note", on=[OnMention("a")], steps=[Say("Noted.", id="s")])
    play = Play(note, Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t")]))
    result = await play.said(judge={"mentions": {"note": True}})
    assert (lines(result)[-1], play.statuses) == (("t", "prompt", "skipped", "another-reply"), {"f": "asking"})


async def test_a_line_of_the_speaker_s_own_run_does_not_hold_it_back() -> None:
    """It says something, and then talks; the reply is told what was sent."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Say("A", id="s"), Talk("Hi.", id="t")]))
    result = await play.said(speak=RIGHT)
    assert keys(result) == ["f#m1:s:1", "f#m1:t:1"]


async def test_without_a_message_a_line_of_another_run_holds_nobody_back() -> None:
    """Each says what it has to say."""
    play = Play(
        Flow("a", on=[OnEvent("ping")], steps=[Say("A", id="s")]),
        Flow("b", on=[OnEvent("ping")], steps=[Talk("B.", id="t")]), events=EVENTS,
    )  # fmt: skip
    result = await play.happened("ping", speak=[says("B")])
    assert [m.text for m in result.messages] == ["A", "B"]


async def test_of_two_that_come_to_talk_the_later_one_does() -> None:
    """The other waits behind it, and speaks when it is done."""
    play = Play(
        Flow("a", on=[OnEvent("ping")], steps=[Talk("A.", id="t")]),
        Flow("b", on=[OnEvent("ping")], steps=[Collect("ok", id="t")]), events=EVENTS,
    )  # fmt: skip
    result = await play.happened("ping", speak=RIGHT)
    assert (keys(result), play.statuses) == (["b#e1:t:1"], {"a": "suspended", "b": "asking"})


async def test_an_action_that_spoke_keeps_the_idle_speaker_quiet() -> None:
    """The message was answered."""
    play = Play(Flow("a", on=[OnMention("x")], steps=[Do("call", id="c")]), actions=[SPOKE])
    assert (await play.said(judge={"mentions": {"a": True}})).messages == ()


async def test_the_idle_speaker_answers_a_message_whose_runs_only_did_something() -> None:
    """Nobody has spoken, and nobody asks."""
    play = Play(Flow("a", on=[OnMention("x")], steps=[Do("notify", id="n")]))
    assert keys(await play.said(judge={"mentions": {"a": True}}, speak=RIGHT)) == ["idle:m1"]


async def test_the_idle_speaker_says_nothing_without_a_message() -> None:
    """Nor while somebody asks."""
    play = Play(Flow("a", on=[OnEvent("ping")], steps=[Do("notify", id="n")]), events=EVENTS)
    assert (await play.happened("ping")).messages == ()


async def test_suspended_runs_answer_in_turn_until_one_speaks() -> None:
    """Each that is done without a word lets the next one, in this same message."""
    one = Flow("one", steps=[Collect("name", id="q")])
    two = Flow("two", steps=[Collect("name", id="q")])
    three = Flow("three", steps=[Collect("name", "ok", id="q")])
    play = Play(three, two, one)
    for flow in ("three", "two", "one"):
        await play.started(flow, key=flow, speak=[says("Name?")])
        play.clock.advance(minutes=1)
    assert play.statuses == {"three": "suspended", "two": "suspended", "one": "asking"}
    result = await play.said("Ana", judge={"fields": {"name": "Ana"}}, speak=RIGHT)
    assert ends(result) == [("one#one", "end"), ("two#two", "end")]
    assert keys(result) == ["three#three:q:1/2"]


async def test_a_suspended_run_that_comes_back_takes_an_exit_by_code() -> None:
    """Those for the model were judged of nobody."""
    exits = [Branch("x", then="p"), Branch(only_if={"known": ["name"]}, then="p")]
    back = Flow("back", steps=[Collect("ok", id="q", branches=exits), Say("Never", id="n"), Say("Hello Ana", id="p")])
    play = Play(back, Flow("one", steps=[Collect("name", id="q")]))
    await play.started("back", key="k1", speak=RIGHT)
    await play.started("one", key="k2", speak=[says("Name?")])
    result = await play.said("Ana", judge={"fields": {"name": "Ana"}})
    assert lines(result) == [
        ("q", "collect", "ok", None), ("q", "collect", "ok", "branch"), ("p", "say", "ok", None)
    ]  # fmt: skip


async def test_a_suspended_run_comes_back_silently_without_a_message() -> None:
    """It has the floor again, and speaks when somebody writes."""
    play = Play(
        Flow("one", steps=[Collect("ok", id="q")]), Flow("two", steps=[Say("Hi", id="s"), Collect("name", id="q")])
    )
    await play.started("one", key="k1", speak=RIGHT)
    await play.started("two", key="k2", speak=[says("Name?", name="Ana")])
    assert play.statuses == {"one": "asking"}


async def test_of_two_that_were_suspended_at_once_the_later_one_comes_back_first() -> None:
    """In the order in which they started."""
    talks = [Flow(name, on=[OnEvent("ping")], steps=[Collect("ok", id="q")]) for name in ("a", "b", "c")]
    play = Play(*talks, events=EVENTS)
    await play.happened("ping", speak=RIGHT)
    assert play.statuses == {"a": "suspended", "b": "suspended", "c": "asking"}
    await play.said(speak=[says("Good.", ok=True)])
    assert play.statuses == {"a": "suspended", "b": "asking"}


async def test_a_run_routed_back_to_that_comes_to_stay_answers_the_message() -> None:
    """It is its own: who asked meanwhile waits behind it."""
    buy = Flow("buy", on=[OnMessage("buys")], steps=[Collect("name", id="q")], on_end="stay")
    play = Play(buy, HELP)
    await play.said(key="m1", judge=scores(buy=90), speak=[says("Name?")])
    await play.said(key="m2", judge=scores(help=90), speak=RIGHT)
    result = await play.said(key="m3", judge=scores(buy=90) | {"fields": {"name": "Ana"}}, speak=[says("Hi Ana")])
    assert (keys(result), play.statuses) == (["buy#m1:q:2"], {"buy": "asking", "help": "suspended"})


async def test_only_the_chosen_flow_s_suspended_run_goes_on() -> None:
    """Another one, suspended later, waits on."""
    play = Play(SALES, HELP, Flow("info", on=[OnMessage("asks", repeat="always")], steps=[Collect("ok", id="q")]))
    for key, chosen in (("m1", "sales"), ("m2", "help"), ("m3", "info")):
        await play.said(key=key, judge=scores(**{chosen: 90}), speak=RIGHT)
        play.clock.advance(minutes=1)
    assert play.statuses == {"sales": "suspended", "help": "suspended", "info": "asking"}
    result = await play.said(key="m4", judge=scores(sales=90), speak=RIGHT)
    assert keys(result) == ["sales#m1:q:1/2"]
    assert play.statuses == {"sales": "asking", "help": "suspended", "info": "suspended"}
