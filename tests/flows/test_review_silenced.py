"""Turns in which nobody may speak, together with everything else: 16 and 10 of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.inputs import Ask, approved
from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Do,
    Flow,
    If,
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
from onrecord.testing import call, raises
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, after, ends, keys, line, lines, said_by, says, skips, starts, wakes

pytestmark = pytest.mark.unit

HUMAN = [Silenced("human")]
LISTENING = [Silenced("human", understand=True)]
SKIPPING = [Silenced("closed", skip=True)]
RIGHT = [says("Right?")]
EVENTS = {"ping": Event(), "called": Event(direction="inbound")}


# ---- what still happens ----------------------------------------------------------------------------------------------


async def test_a_message_still_ends_a_wait() -> None:
    """Whoever listens for a human's chat keeps calling, so that waits see the reply."""
    play = Play(Flow("w", steps=[Wait("1d", id="p", else_="n"), Say("Late", id="s", then="end"), Do("notify", id="n")]))
    await play.started("w")
    result = await play.said(options=HUMAN)
    assert lines(result) == [("p", "wait", "ok", "replied"), ("n", "do", "ok", None)]


async def test_an_action_is_told_the_reason() -> None:
    """Also a reason without words."""
    told: list[str | None] = []
    action = Tool("act", lambda _, ctx: told.append(ctx.silenced))
    play = Play(Flow("f", steps=[Do("act", id="d")]), actions=[action])
    await play.started("f", key="k1", options=[Silenced("human")])
    await play.started("f", key="k2", options=[Silenced("")])
    await play.started("f", key="k3")
    assert told == ["human", "", None]


async def test_a_reason_without_words_closes_the_gate() -> None:
    """Its presence decides."""
    play = Play(Flow("f", steps=[If({"silenced": True}, id="g", then="n", else_="s"), Do("notify", id="n", then="end"),
                                 Say("Hi", id="s")]))  # fmt: skip
    assert lines(await play.started("f", options=[Silenced("")])) == [("g", "if", "ok", None), ("n", "do", "ok", None)]


async def test_nobody_idle_speaks() -> None:
    """Nor is anything asked of a model."""
    result = await Play().said(options=LISTENING)
    assert (result.messages, result.outcomes, result.status) == ((), (), "silent")


async def test_an_asker_s_known_fields_move_it_without_a_word() -> None:
    """The field is known: the step is done, and the next one that would speak ends the run."""
    flow = Flow("f", on=[OnMessage()], steps=[Collect("name", id="q"), Do("notify", id="n"), Say("Bye", id="s")])
    play = Play(flow)
    await play.said(key="m1", speak=[says("Name?")])
    result = await play.said("Ana", key="m2", judge={"fields": {"name": "Ana"}}, options=LISTENING)
    assert lines(result) == [
        ("q", "collect", "ok", None), ("n", "do", "ok", None), ("s", "say", "skipped", "silenced")
    ]  # fmt: skip
    assert (line(result, "silenced").key, line(result, "silenced").detail) == (None, "human")
    assert ends(result) == [("f#m1", "skipped")]


async def test_branches_of_the_asker_are_judged_by_code_alone() -> None:
    """Without the understand call no question is put to the model."""
    exits = [Branch("asks for a person", then="n"), Branch(only_if=lambda ctx: ctx.context, then="n")]
    flow = Flow("f", on=[OnMessage()], steps=[
        Collect("ok", id="q", branches=exits), Do("notify", id="n", then="end")
    ])  # fmt: skip
    play = Play(flow)
    await play.said(key="m1", context=False, speak=RIGHT)
    assert lines(await play.said(key="m2", context=False, options=HUMAN)) == []
    result = await play.said(key="m3", context=True, options=HUMAN)
    assert lines(result) == [("q", "collect", "ok", "branch"), ("n", "do", "ok", None)]


async def test_a_mention_by_code_starts_without_the_understand_call() -> None:
    """It needs no model."""
    play = Play(Flow("note", on=[OnMention()], steps=[Do("notify", id="n")]),
                Flow("rival", on=[OnMention("a")], steps=[Do("notify", id="n")]))  # fmt: skip
    assert starts(await play.said(key="m1", options=HUMAN)) == ["note#m1"]
    assert starts(await play.said(key="m2", judge={"mentions": {"rival": True}}, options=LISTENING)) == ["rival#m2"]


# ---- nobody's progress is lost ---------------------------------------------------------------------------------------


async def two() -> Play:
    """A play in which help asks, and sales waits behind it."""
    play = Play(
        Flow("sales", on=[OnMessage("wants to buy")], steps=[Collect("ok", id="q")]),
        Flow("help", on=[OnMessage("has a problem")], steps=[Collect("ok", id="q")]),
    )
    await play.said(key="m1", judge={"flows": {"sales": 90, "help": 0}}, speak=RIGHT)
    await play.said(key="m2", judge={"flows": {"sales": 0, "help": 90}}, speak=RIGHT)
    assert play.statuses == {"sales": "suspended", "help": "asking"}
    return play


async def test_a_suspended_run_that_is_routed_back_to_asks_without_a_word() -> None:
    """It had asked before, so it is no fresh step that could not be taken: it lives, and has the floor again."""
    play = await two()
    result = await play.said(key="m3", judge={"flows": {"sales": 90, "help": 0}}, options=LISTENING)
    assert (ends(result), lines(result), play.statuses) == ([], [], {"sales": "asking", "help": "suspended"})
    again = await play.said(key="m4", judge={"flows": {"sales": 90, "help": 0}}, speak=RIGHT)
    assert keys(again) == ["sales#m1:q:1/2"]


async def test_an_answer_that_failed_waits_for_the_gate() -> None:
    """A run that had spoken at this step goes on asking; its retry had come while nobody might speak."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q")]))
    await play.said(key="m1", speak=RIGHT)
    ((wake, at),) = wakes(await play.said("hm", key="m2", speak=[raises("network")]))
    play.clock.at = at
    result = await play.woke(wake, options=HUMAN)
    assert (ends(result), play.statuses) == ([], {"f": "asking"})
    assert keys(await play.said(key="m3", speak=RIGHT)) == ["f#m1:q:1/2"]


async def test_a_first_word_that_failed_ends_where_it_may_not_be_said() -> None:
    """Nothing of the run happened: it ends, and its claim is free again."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q")]))
    ((wake, at),) = wakes(await play.said(key="m1", speak=[raises("network")]))
    play.clock.at = at
    result = await play.woke(wake, options=HUMAN)
    assert (ends(result), play.claims) == ([("f#m1", "skipped")], {})
    assert starts(await play.said(key="m2", speak=RIGHT)) == ["f#m2"]


async def test_a_message_while_silenced_leaves_a_parked_retry_alone() -> None:
    """The answer is still owed, and its timer still armed."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q")]))
    ((wake, at),) = wakes(await play.said(key="m1", speak=[raises("network")]))
    result = await play.said(key="m2", options=HUMAN)
    assert (result.disarmed, play.statuses) == ((), {"f": "waiting"})
    play.clock.at = at
    assert keys(await play.woke(wake, speak=RIGHT)) == ["f#m1:q:1"]


async def test_a_person_s_answer_in_a_silenced_turn_leaves_the_run_asking() -> None:
    """It was in the middle of its answer; it asks on when somebody may speak."""

    async def confirm(args: Any, ctx: ToolContext[Any]) -> Any:
        return (await ctx.ask(Ask("Really?"))).approved

    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q")]), tools=[Tool("confirm", confirm)])
    await play.said(key="m1", speak=[[call("confirm")]])
    question = play.kept.question
    assert question is not None
    result = await play.took(approved(question, by="bo"), options=HUMAN)
    assert (ends(result), result.messages, play.statuses) == ([], (), {"f": "asking"})


async def test_a_silenced_turn_gives_nobody_the_floor_that_only_speaks() -> None:
    """The flow that the message calls for is not begun, and whoever asked still asks."""
    play = await two()
    await play.said(key="m3", speak=[says("Good.", ok=True)], judge={"flows": {"sales": 0}})
    assert play.statuses == {"sales": "asking"}


async def test_routing_is_judged_in_a_turn_that_understands() -> None:
    """A flow that can do something is begun; one that could only speak is not, and says so."""
    book = Flow("book", on=[OnMessage("books")], steps=[Do("notify", id="n"), Say("Done", id="s")])
    talk = Flow("talk", on=[OnMessage("talks")], steps=[Talk("Talk.", id="t")])
    play = Play(book, talk)
    result = await play.said(key="m1", judge={"flows": {"book": 90, "talk": 0}}, options=LISTENING)
    assert (starts(result), len(play.notified)) == (["book#m1"], 1)
    result = await play.said(key="m2", options=LISTENING)
    assert (starts(result), skips(result)) == ([], [("talk", "m2", "silenced")])
    assert "talk:s1:" not in play.claims


# ---- claims ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [Talk("Hi.", id="t"), Say("Hi", id="t"), Collect("ok", id="t")])
async def test_a_flow_that_was_passed_over_spends_no_claim(step: Any) -> None:
    """With ``skip`` its only steps were passed over: nothing was done, so it may begin when the gate is open."""
    play = Play(Flow("f", on=[OnMessage()], steps=[step]), idle="silent")
    result = await play.said(key="m1", options=SKIPPING)
    assert (lines(result), ends(result)) == ([("t", step.kind, "skipped", "silenced")], [("f#m1", "end")])
    assert (play.claims, play.state.runs) == ({}, ())
    assert starts(await play.said(key="m2", speak=[] if isinstance(step, Say) else RIGHT)) == ["f#m2"]


async def test_a_flow_that_did_something_behind_what_was_passed_over_spends_it() -> None:
    """The alert was sent, and is sent once."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t"), Do("notify", id="n")]), idle="silent")
    await play.said(key="m1", options=SKIPPING)
    assert [*play.claims] == ["f:s1:"]
    await play.said(key="m2", options=SKIPPING)
    assert len(play.notified) == 1


async def test_a_flow_that_ended_by_its_own_condition_spends_its_claim() -> None:
    """No gate stopped it."""
    play = Play(
        Flow("f", on=[OnMessage()], steps=[If({"known": ["name"]}, id="g"), Talk("Hi.", id="t")]), idle="silent"
    )
    await play.said(key="m1", options=HUMAN)
    assert [*play.claims] == ["f:s1:"]


async def test_a_chain_to_a_flow_that_could_only_speak_spends_no_claim() -> None:
    """Neither of the two did anything."""
    play = Play(
        Flow("f", on=[OnMessage()], steps=[If({"known": ["name"]}, id="g", else_=Chain("hi"))]),
        Flow("hi", steps=[Talk("Hi.", id="t")]),
    )
    result = await play.said(key="m1", options=HUMAN)
    assert (ends(result), skips(result)) == ([("f#m1", "flow")], [("hi", "f#m1:g:1", "silenced")])
    assert play.claims == {}
    assert starts(await play.said(key="m2", speak=RIGHT)) == ["f#m2", "hi#f#m2:g:1"]


async def test_a_chain_whose_flow_comes_to_nothing_spends_no_claim() -> None:
    """However deep."""
    asks = If({"known": ["name"]}, id="g", then="t", else_="t")
    play = Play(
        Flow("f", on=[OnMessage()], steps=[If({"known": ["name"]}, id="g", else_=Chain("g2"))]),
        Flow("g2", steps=[If({"known": ["name"]}, id="g", else_=Chain("hi"))]),
        Flow("hi", steps=[asks, Talk("Hi.", id="t")]),
    )
    await play.said(key="m1", options=HUMAN)
    assert play.claims == {}


async def test_a_chain_to_nowhere_behind_what_was_passed_over_spends_no_claim() -> None:
    """The flow is gone, and nothing was done."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t", then=Chain("{{context.x}}"))]), idle="silent")
    result = await play.said(key="m1", context={"x": "gone"}, options=SKIPPING)
    assert (skips(result), play.claims) == ([("gone", "f#m1:t:1", "flow-gone")], {})


async def test_a_flow_that_begins_anew_and_never_speaks_spends_no_claim() -> None:
    """Each run of it was passed over, up to the last that may begin."""
    play = Play(Flow("f", on=[OnMessage()], on_end="reset", steps=[Talk("Hi.", id="t")]), idle="silent")
    result = await play.said(key="m1", options=SKIPPING)
    assert (len(result.started), play.claims) == (5, {})


async def test_a_chain_behind_something_done_spends_its_claim() -> None:
    """What was done is not done again."""
    play = Play(
        Flow("f", on=[OnMessage()], steps=[Do("notify", id="n", then=Chain("hi"))]),
        Flow("hi", steps=[Talk("Hi.", id="t")]),
    )
    await play.said(key="m1", options=HUMAN)
    assert [*play.claims] == ["f:s1:"]


async def test_a_flow_that_has_spoken_has_done_something() -> None:
    """Whatever becomes of it while nobody may speak."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("name", id="q"), Say("Bye", id="s")]))
    await play.said(key="m1", speak=RIGHT)
    result = await play.said("Ana", key="m2", judge={"fields": {"name": "Ana"}}, options=LISTENING)
    assert (ends(result), [*play.claims]) == ([("f#m1", "skipped")], ["f:s1:"])


async def test_a_flow_that_has_waited_has_done_something() -> None:
    """Its claim was spent in a turn in which anybody might speak."""
    play = Play(Flow("f", on=[OnMention()], steps=[Wait("1h", id="w"), Talk("Hi.", id="t")]), idle="silent")
    ((wake, play.clock.at),) = wakes(await play.said())
    assert (ends(await play.woke(wake, options=HUMAN)), [*play.claims]) == ([("f#m1", "skipped")], ["f:s1:"])


async def test_a_delayed_flow_that_could_not_speak_at_its_time_may_begin_again() -> None:
    """It had waited for its delay, and nothing else."""
    play = Play(Flow("f", on=[OnEvent("ping", after="1h", repeat="once")], steps=[Talk("Hi.", id="t")]), events=EVENTS)
    ((wake, at),) = wakes(await play.happened("ping", key="e1"))
    play.clock.at = at
    result = await play.woke(wake, options=HUMAN)
    assert (ends(result), play.claims) == ([("f#e1", "skipped")], {})


async def test_a_silence_that_may_not_speak_spends_no_claim() -> None:
    """It is armed again when the assistant speaks next."""
    play = Play(Flow("nudge", on=[OnSilence("1h")], steps=[Talk("There?", id="t")]))
    ((wake, at),) = wakes(await play.said(key="m1", speak=RIGHT))
    play.clock.at = at
    result = await play.woke(wake, options=HUMAN)
    assert (starts(result), skips(result), play.claims) == ([], [("nudge", "1789898400000", "silenced")], {})
    play.clock.advance(minutes=1)
    assert [key for key, _ in wakes(await play.said(key="m2", speak=RIGHT))] == ["silence:nudge:s1:1789902060000"]


# ---- skip ------------------------------------------------------------------------------------------------------------


async def test_passing_over_tells_step_reason_and_way() -> None:
    """Of a talk step and of a line alike; a line said once is not spent."""
    steps: list[Any] = [
        Collect("ok", id="q", then="s"),
        Do("notify", id="x"),
        Say("Hi", id="s", once=True, then="n"),
        Do("notify", id="n"),
    ]
    play = Play(Flow("f", steps=steps))
    result = await play.started("f", options=SKIPPING)
    told = [(each.key, each.kind, each.next, each.detail) for each in result.outcomes if each.code == "silenced"]
    assert told == [("f#k:q:1", "collect", "s", "closed"), ("f#k:s:1", "say", "n", "closed")]
    assert "f:s:s1" not in play.claims
    assert dict(play.kept.data) == {}


async def test_an_asker_is_not_passed_over() -> None:
    """It has asked: the answer is still to come."""
    play = Play(Flow("f", steps=[Collect("ok", id="q"), Do("notify", id="n")]))
    await play.started("f", speak=RIGHT)
    result = await play.said(options=SKIPPING)
    assert (lines(result), play.statuses, play.notified) == ([], {"f": "asking"}, [])


async def test_a_follow_up_goes_on_behind_what_was_passed_over() -> None:
    """The window is closed at its first word and open at its second."""
    flow = Flow("nudge", on=[OnSilence("1h")], steps=[
        Talk("There?", id="a"), Wait("1d", id="w", else_="end"), Talk("Last.", id="b")
    ])  # fmt: skip
    play = Play(flow)
    ((silence, at),) = wakes(await play.said(speak=RIGHT))
    play.clock.at = at
    ((wake, at),) = wakes(await play.woke(silence, options=SKIPPING))
    play.clock.at = at
    result = await play.woke(wake, speak=[says("Last try")])
    assert said_by(result) == [("Last try", "ai", "nudge#1789898400000:b:1")]


async def test_events_move_runs_while_nobody_may_speak() -> None:
    """Waits for events end, and what code does is done."""
    play = Play(Flow("w", steps=[WaitEvent("ping", id="e"), Do("notify", id="n")]), events=EVENTS)
    await play.started("w", options=HUMAN)
    assert lines(await play.happened("ping", options=HUMAN))[-1] == ("n", "do", "ok", None)


async def test_a_silenced_turn_still_says_when_the_customer_wrote() -> None:
    """Silences are counted from what they wrote to a person, too."""
    play = Play()
    play.clock.advance(minutes=5)
    await play.said(options=HUMAN)
    assert (play.kept.last_user_at, play.kept.last_assistant_at) == (after(minutes=5), None)
