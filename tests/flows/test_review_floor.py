"""Who gets the floor, from whom, and what a message does that is not the asker's: 12.2, 17.4 to 17.6 and 18."""

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
    Idle,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    Say,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.flows.flow import Event
from onrecord.flows.predicates import PredContext
from onrecord.testing import raises
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, after, ends, keys, line, lines, said_by, says, sections, skips, starts, wakes

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


# ---- floors that were taken while the input was taken in -------------------------------------------------------------

WAITS = Flow("waits", steps=[Wait("1d", id="w", else_="b"), Say("Late", id="s", then="end"), Collect("ok", id="b")])


async def test_a_reply_takes_the_floor_and_nothing_is_routed() -> None:
    """Whatever else the message might call for: no flow is scored."""
    play = Play(WAITS, SALES, HELP)
    await play.started("waits")
    result = await play.said(speak=RIGHT)
    assert (starts(result), keys(result)) == ([], ["waits#k:b:1"])


async def test_what_flows_that_could_be_wanted_collect_is_heard_all_the_same() -> None:
    """A message that a waiting run takes may bring a field of another flow: nobody has to ask for it again."""
    buy = Flow("buy", on=[OnMessage("buys")], steps=[Collect("name", id="q")])
    play = Play(WAITS, buy, HELP)
    await play.started("waits")
    result = await play.said("It's Ana", judge={"fields": {"name": "Ana"}}, speak=RIGHT)
    assert sections(play.requests[0]) == {"fields": ["name"]}
    assert (starts(result), play.data) == ([], {"name": "Ana"})


async def test_a_reply_that_only_ends_its_run_leaves_the_message_to_others() -> None:
    """Nobody took the floor: the message is routed."""
    over = Flow("over", steps=[Wait("1d", id="w", else_="end"), Say("Late", id="s")])
    play = Play(over, SALES, HELP)
    await play.started("over")
    result = await play.said(judge=scores(sales=90), speak=RIGHT)
    assert (ends(result), starts(result)) == ([("over#k", "end")], ["sales#m1"])


async def test_a_chain_from_a_reply_takes_the_floor() -> None:
    """The child is the reply's: nothing is routed, and it answers."""
    over = Flow("over", steps=[Wait("1d", id="w", else_=Chain("next")), Say("Late", id="s")])
    play = Play(over, Flow("next", steps=[Collect("ok", id="q")]), SALES, HELP)
    await play.started("over")
    result = await play.said(speak=RIGHT)
    assert (starts(result), keys(result)) == (["next#over#k:w:1"], ["next#over#k:w:1:q:1"])


async def test_of_two_replies_the_first_takes_the_floor() -> None:
    """The other one moves all the same; what it chains to has no floor to inherit, and waits behind the first."""
    one = Flow("one", steps=[Wait("1d", id="w", else_="b"), Say("x", id="s", then="end"), Collect("ok", id="b")])
    two = Flow("two", steps=[Wait("1d", id="w", else_=Chain("stays")), Say("x", id="s")])
    stays = Flow("stays", steps=[Collect("company", id="r")], on_end="stay")
    play = Play(one, two, stays, SALES, HELP, data={"company": "Zeta"})
    await play.started("one", key="k1")
    await play.started("two", key="k2")
    result = await play.said(speak=RIGHT)
    assert (starts(result), keys(result)) == (["stays#two#k2:w:1"], ["one#k1:b:1"])
    assert play.statuses == {"one": "asking", "stays": "suspended"}


async def test_an_event_that_arrives_gives_its_run_the_floor() -> None:
    """The first of those that waited for it."""
    waits = Flow("waits", steps=[WaitEvent("booked", id="e"), Collect("name", id="r")], on_end="stay")
    play = Play(waits, SALES, events=EVENTS, data={"name": "Ana"})
    await play.started("waits", key="k1")
    await play.started("sales", key="k2", speak=RIGHT)
    await play.happened("booked")
    assert play.statuses == {"waits": "asking", "sales": "suspended"}


async def test_an_event_moves_those_that_wait_before_it_starts_anybody() -> None:
    """Direction first, then waits, then triggers: each line stands in that order."""
    one = Flow("one", steps=[Wait("1d", id="w", else_="n"), Say("Late", id="s", then="end"), Do("notify", id="n")])
    two = Flow("two", steps=[WaitEvent("called", id="e"), Do("notify", id="n")])
    three = Flow("three", on=[OnEvent("called")], steps=[Do("notify", id="n")])
    play = Play(three, two, one, events=EVENTS)
    await play.started("one", key="k1")
    await play.started("two", key="k2")
    result = await play.happened("called")
    assert [(each.about["flow_id"], each.code or each.status) for each in result.lines][:3] == [
        ("one", "replied"), ("two", "event-arrived"), ("three", "started")
    ]  # fmt: skip
    assert [key for key, _, _ in play.notified] == ["one#k1:n:1", "two#k2:n:1", "three#e1:n:1"]


async def test_several_triggers_of_one_event_start_a_flow_once() -> None:
    """By the first that lets it begin."""
    flow = Flow("f", on=[OnEvent("ping", only_if=never), OnEvent("ping", after="1h"), OnEvent("ping")],
                steps=[Do("notify", id="n")])  # fmt: skip
    play = Play(flow, events=EVENTS)
    result = await play.happened("ping")
    assert (starts(result), [code for _, _, _, code in lines(result)]) == (["f#e1"], ["awaiting-trigger"])


async def test_a_flow_may_have_two_triggers_that_both_match_a_message() -> None:
    """It starts by its mention; the routed start finds it live."""
    flow = Flow("f", on=[OnMention("a"), OnMessage("b", repeat="always")], steps=[Collect("ok", id="q")])
    play = Play(flow, HELP)
    result = await play.said(judge=scores(f=90) | {"mentions": {"f": True}}, speak=RIGHT)
    assert (starts(result), skips(result)) == (["f#m1"], [("f", "m1", "already-running")])


# ---- what failed and is owed -----------------------------------------------------------------------------------------


async def test_an_answer_that_is_owed_is_given_by_its_own_run() -> None:
    """Whoever asked meanwhile waits behind it."""
    play = Play(SALES, HELP)
    await play.said(key="m1", judge=scores(sales=90), speak=RIGHT)
    failed = await play.said(key="m2", judge=scores(help=90), speak=[raises("network")])
    assert play.statuses == {"sales": "asking", "help": "waiting"}
    ((wake, _),) = wakes(failed)
    result = await play.said(key="m3", judge=scores(help=50), speak=RIGHT)
    assert (keys(result), result.disarmed) == (["help#m2:q:1"], (wake,))
    assert play.statuses == {"sales": "suspended", "help": "asking"}


async def test_what_is_owed_waits_behind_a_reply() -> None:
    """The message ended a wait, whose run has it; nobody is lost."""
    play = Play(WAITS, SALES)
    await play.started("waits", key="k1")
    await play.started("sales", key="k2", speak=[raises("network")])
    result = await play.said(speak=RIGHT)
    assert len(result.messages) == 1
    assert sorted(play.statuses.values()) == ["asking", "suspended"]


async def test_failures_are_in_a_row_only_without_another_reply_between() -> None:
    """Somebody else answered; the next failure waits a minute again."""
    note = Flow("note", on=[OnMention("a", repeat="always")], steps=[Say("Noted.", id="s")])
    play = Play(note, SALES)
    await play.said(key="m1", judge={"mentions": {"note": False}}, speak=[raises("network")])
    await play.said(key="m2", judge={"mentions": {"note": True}})
    result = await play.said(key="m3", judge={"mentions": {"note": False}}, speak=[raises("network")])
    assert [at for _, at in wakes(result)] == [after(minutes=1)]


async def test_idle_instructions_and_prompt_are_its_own() -> None:
    """It has no flow, and is told so by nothing."""
    play = Play(idle=Idle("Help them."))
    result = await play.said(speak=RIGHT)
    assert (said_by(result), dict(result.messages[0].about)) == ([("Right?", "ai", "idle:m1")], {})
