"""How many steps a run may take, and how its waits, delays and deferred actions go on: 10.3 to 10.5, 10.8 and 19."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Anchor,
    Branch,
    Chain,
    Collect,
    Defer,
    Do,
    Flow,
    FlowOptions,
    Goto,
    If,
    OnEvent,
    OnMessage,
    Say,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.flows.flow import Event
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, after, ends, keys, line, lines, said_by, says, wakes

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
NOTIFY = Do("notify", id="n")
EVENTS = {"ping": Event(), "pong": Event(), "sent": Event(direction="outbound"), "called": Event(direction="inbound")}


# ---- caps ------------------------------------------------------------------------------------------------------------


async def test_fifty_steps_at_once_are_not_too_many() -> None:
    """The fifty-first is."""
    play = Play(Flow("f", steps=[Do("notify", id=f"n{number}") for number in range(50)]))
    assert ends(await play.started("f")) == [("f#k", "end")]
    assert len(play.notified) == 50
    more = Play(Flow("f", steps=[Do("notify", id=f"n{number}") for number in range(51)]))
    result = await more.started("f")
    assert (ends(result), len(more.notified), len(result.outcomes)) == ([("f#k", "failed")], 50, 51)
    assert line(result, "step-loop").about["step_id"] == "n50"


async def test_steps_are_counted_from_anew_when_a_run_moves_again() -> None:
    """What it did before it waited, or before it spoke, is not counted."""
    many = [Do("notify", id=f"a{number}") for number in range(49)]
    play = Play(Flow("f", steps=[*many, Talk("Hi.", id="t"), *(Do("notify", id=f"b{n}") for n in range(50))]))
    assert ends(await play.started("f", speak=RIGHT)) == [("f#k", "end")]
    assert len(play.notified) == 99


async def test_a_way_back_makes_new_visits_with_new_keys() -> None:
    """And forgets how often was asked for what it clears."""
    back = Goto("q", clear=["ok"])
    flow = Flow("f", steps=[Collect("ok", id="q", max_asks=1), If({"equals": {"ok": True}}, id="g", else_=back)])
    play = Play(flow)
    await play.started("f", speak=RIGHT)
    result = await play.said(key="m1", judge={"fields": {}}, speak=RIGHT)
    assert lines(result)[:2] == [("q", "collect", "skipped", "max-asks"), ("q", "collect", "ok", None)]
    assert (keys(result), dict(play.run("f").asked)) == (["f#k:q:2"], {"ok": 1})
    assert dict(play.run("f").visits) == {"q": 2, "g": 1}


# ---- waits -----------------------------------------------------------------------------------------------------------


async def test_a_short_wait_before_anything_but_a_message_parks() -> None:
    """An if is not looked through; the end and another flow are no messages."""
    for then in ("g", "end", Chain("x"), None):
        flow = Flow("f", steps=[Wait("5s", id="w", then=then), If({"known": []}, id="g"), Say("Hi", id="s")])
        play = Play(flow, Flow("x", steps=[Say("X", id="s")]))
        assert [key for key, _ in wakes(await play.started("f"))] == ["f#k:w:1789898405000"]


async def test_a_short_wait_rides_where_its_way_leads_to_a_message() -> None:
    """By name, by a way that forgets, or as the next of the list."""
    for then in ("s", Goto("s", clear=["ok"]), None):
        flow = Flow("f", steps=[Wait("5s", id="w", then=then), Say("Hi", id="s" if then is None else "x"),
                                Say("There", id="s" if then is not None else "y")])  # fmt: skip
        result = await Play(flow).started("f")
        assert (result.messages[0].after_ms, wakes(result)) == (5000, [])
        assert line(result, "inline-delay").detail == "5000ms"


async def test_delays_ride_once_and_add_to_the_line_s_own() -> None:
    """The message behind has none; a reply and a fixed question carry theirs too."""
    steps: list[Any] = [
        Wait("3s", id="a"),
        Say("A", id="b", after_ms=500),
        Say("B", id="c"),
        Wait("2s", id="d"),
        Talk("Hi.", id="e"),
    ]
    result = await Play(Flow("f", steps=steps)).started("f", speak=RIGHT)
    assert [m.after_ms for m in result.messages] == [3500, 0, 2000]
    flow = Flow("g", steps=[Wait("2s", id="w"), Collect("ok", id="q", question="Right?")])
    assert [m.after_ms for m in (await Play(flow).started("g")).messages] == [2000]


async def test_a_delay_is_its_own_run_s() -> None:
    """Nobody else's message waits for it."""
    one = Flow("one", on=[OnEvent("ping")], steps=[Wait("5s", id="w"), Talk("A.", id="t")])
    two = Flow("two", on=[OnEvent("ping")], steps=[Say("B", id="s")])
    play = Play(one, two, events=EVENTS)
    result = await play.happened("ping", speak=[says("A")])
    assert [(m.text, m.after_ms) for m in result.messages] == [("B", 0), ("A", 5000)]


async def test_an_inbound_event_is_a_reply() -> None:
    """To whoever waits for one; a wait for an event is none."""
    flow = Flow("f", steps=[Wait("1d", id="w", else_="b"), Say("Late", id="s", then="end"), Say("You called", id="b")])
    play = Play(flow, Flow("e", steps=[WaitEvent("ping", id="w", else_="end")]), events=EVENTS)
    await play.started("e", key="a")
    await play.started("f", key="b")
    result = await play.happened("called")
    assert said_by(result) == [("You called", "verbatim", "f#b:b:1")]
    assert play.statuses == {"e": "waiting"}


async def test_a_deferred_action_and_a_delayed_start_are_not_ended_by_a_reply() -> None:
    """Only a wait with another way is."""
    act = Tool("act", lambda *_: Defer("1h"))
    play = Play(
        Flow("d", steps=[Do("act", id="a", on_fail="end")]),
        Flow("l", on=[OnEvent("ping", after="1h")], steps=[NOTIFY]),
        actions=[act], events=EVENTS, idle="silent",
    )  # fmt: skip
    await play.started("d")
    await play.happened("ping")
    result = await play.said()
    assert (lines(result), play.statuses) == ([], {"d": "waiting", "l": "waiting"})


async def test_a_deferred_action_runs_again_as_the_same_visit() -> None:
    """Under the same key, as often as it likes."""
    answers: list[Any] = [Defer("1h"), Defer("1h"), None]
    act = Tool("act", lambda *_: answers.pop(0))
    play = Play(Flow("d", steps=[Do("act", id="a"), Say("Done", id="s")]), actions=[act])
    ((wake, play.clock.at),) = wakes(await play.started("d"))
    ((wake, play.clock.at),) = wakes(await play.woke(wake))
    result = await play.woke(wake)
    assert [each.key for each in result.outcomes] == ["d#k:a:1", "d#k:s:1"]
    assert keys(result) == ["d#k:s:1"]


async def test_exits_of_a_wait_without_another_way_are_not_looked_at() -> None:
    """A message does not end it, and its wake goes on as usual."""
    exits = [Branch(only_if={"known": []}, then="x")]
    flow = Flow("f", steps=[Wait("1h", id="w", branches=exits), Say("On", id="s", then="end"), Say("X", id="x")])
    play = Play(flow, idle="silent")
    ((wake, at),) = wakes(await play.started("f"))
    assert lines(await play.said()) == []
    play.clock.at = at
    assert [m.text for m in (await play.woke(wake)).messages] == ["On"]


async def test_a_wake_after_a_reply_takes_the_other_way_and_no_exit() -> None:
    """Exits are for replies that come while it waits."""
    flow = Flow("f", anchor="lead", steps=[
        Wait("1h", id="w", else_="y", branches=[Branch(only_if={"known": []}, then="x")]),
        Say("On", id="s", then="end"), Say("X", id="x", then="end"), Say("Y", id="y"),
    ])  # fmt: skip
    play = Play(flow)
    ((wake, at),) = wakes(await play.started("f"))
    play.clock.at = at
    options = [FlowOptions(anchors={"lead": Anchor("s1", last_inbound_at=after(minutes=30))})]
    assert [m.text for m in (await play.woke(wake, options=options)).messages] == ["Y"]


async def test_what_was_written_as_the_wait_began_is_no_reply() -> None:
    """Nor is what came before it."""
    flow = Flow(
        "f", on=[OnMessage()], steps=[Wait("1h", id="w", else_="y"), Say("On", id="s", then="end"), Say("Y", id="y")]
    )
    play = Play(flow, idle="silent")
    ((wake, at),) = wakes(await play.said())
    play.clock.at = at
    assert [m.text for m in (await play.woke(wake)).messages] == ["On"]


async def test_what_was_written_elsewhere_as_the_wait_began_is_no_reply() -> None:
    """Only what comes after it."""
    flow = Flow(
        "f", anchor="lead", steps=[Wait("1h", id="w", else_="y"), Say("On", id="s", then="end"), Say("Y", id="y")]
    )
    play = Play(flow)
    ((wake, at),) = wakes(await play.started("f"))
    play.clock.at = at
    options = [FlowOptions(anchors={"lead": Anchor("s1", last_inbound_at=after())})]
    assert [m.text for m in (await play.woke(wake, options=options)).messages] == ["On"]


async def test_a_short_wait_at_the_end_parks() -> None:
    """There is no message behind it."""
    assert len(wakes(await Play(Flow("f", steps=[Wait("5s", id="w")])).started("f"))) == 1


async def test_what_was_written_before_the_wait_began_is_no_reply() -> None:
    """Though the run had begun by then."""
    steps: list[Any] = [
        WaitEvent("ping", id="e"), Wait("1h", id="w", else_="y"), Say("On", id="s", then="end"), Say("Y", id="y")
    ]  # fmt: skip
    play = Play(Flow("f", steps=steps), events=EVENTS, idle="silent")
    await play.started("f")
    play.clock.advance(minutes=10)
    await play.said()
    play.clock.advance(minutes=10)
    ((wake, play.clock.at),) = wakes(await play.happened("ping"))
    assert [m.text for m in (await play.woke(wake)).messages] == ["On"]


async def test_an_event_that_does_not_come_leads_the_other_way() -> None:
    """Where there is one; its line says so."""
    steps: list[Any] = [
        WaitEvent("ping", id="e", up_to="1h", else_="y"),
        Say("On", id="s", then="end"),
        Say("Y", id="y"),
    ]
    play = Play(Flow("f", steps=steps), events=EVENTS)
    ((wake, play.clock.at),) = wakes(await play.started("f"))
    result = await play.woke(wake)
    assert (line(result, "no-event").next, [m.text for m in result.messages]) == ("y", ["Y"])
