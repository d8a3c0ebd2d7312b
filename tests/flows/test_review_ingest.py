"""Floors that are taken before anything is judged: replies, events, and answers that are owed: 17.2."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Chain,
    Collect,
    Do,
    Flow,
    Idle,
    Ok,
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
from onrecord.flows.predicates import PredContext
from onrecord.testing import raises
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, after, ends, keys, lines, said_by, says, sections, skips, starts, wakes

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
    assert (skips(result), ends(result)) == ([], [])


async def test_a_trigger_of_another_event_does_not_start_the_flow() -> None:
    """Though the flow listens to this one as well."""
    flow = Flow("f", on=[OnEvent("ping", after="1h"), OnEvent("booked")], steps=[Do("notify", id="n")])
    result = await Play(flow, events=EVENTS).happened("booked")
    assert (wakes(result), ends(result)) == ([], [("f#e1", "end")])


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


async def test_a_reply_and_an_event_take_the_timers_away_that_they_end() -> None:
    """Nobody waits for them any more."""
    play = Play(WAITS, Flow("e", steps=[WaitEvent("booked", id="w")]), events=EVENTS, idle="silent")
    ((reply, _),) = wakes(await play.started("waits", key="a"))
    ((event, _),) = wakes(await play.started("e", key="b"))
    assert (await play.said(speak=RIGHT)).disarmed == (reply,)
    assert (await play.happened("booked")).disarmed == (event,)


async def test_of_several_answers_that_are_owed_the_latest_is_given() -> None:
    """One answer for one message; the others come at their own time."""
    play = Play(Flow("a", steps=[Collect("ok", id="q")]), Flow("b", steps=[Collect("ok", id="q")]))
    ((first, _),) = wakes(await play.started("a", key="k1", speak=[raises("network")]))
    play.clock.advance(seconds=10)
    ((second, _),) = wakes(await play.started("b", key="k2", speak=[raises("network")]))
    result = await play.said(speak=RIGHT)
    assert (keys(result), result.disarmed) == (["b#k2:q:1"], (second,))
    assert play.statuses == {"a": "waiting", "b": "asking"}
    play.clock.at = after(minutes=1)
    assert keys(await play.woke(first, speak=RIGHT)) == ["a#k1:q:1"]


async def test_a_follow_up_that_could_not_be_said_is_dropped_when_the_customer_writes() -> None:
    """They are not silent any more; somebody else answers."""
    nudge = Flow("nudge", on=[OnSilence("1h")], steps=[Talk("There?", id="t")])
    play = Play(nudge)
    ((silence, play.clock.at),) = wakes(await play.said(key="m1", speak=RIGHT))
    ((retry, _),) = wakes(await play.woke(silence, speak=[raises("network")]))
    result = await play.said(key="m2", speak=RIGHT)
    assert ends(result) == [("nudge#1789898400000", "skipped")]
    assert lines(result)[0] == ("t", "prompt", "skipped", "customer-replied")
    assert (keys(result), retry in result.disarmed) == (["idle:m2"], True)
