"""Branches of the asker: what is put to the model, which one is taken, and where it leads: 11 of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Flow,
    Goto,
    OnMessage,
    Say,
    Wait,
)
from tests.flows.playing import (
    NOTHING,
    Play,
    ends,
    keys,
    line,
    said_by,
    says,
    sections,
    told,
)

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
SALES = Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q")])
HELP = Flow("help", on=[OnMessage("has a problem", repeat="always")], steps=[Collect("ok", id="q")])


def scores(**each: Any) -> dict[str, Any]:
    """An understand reply that scores flows."""
    return {"flows": each}


# ---- branches --------------------------------------------------------------------------------------------------------


def branching(*branches: Branch) -> Play:
    """A play whose one flow has these exits, of which each may lead to a line of its own."""
    says_ = [Say(name.upper(), id=name, then="end") for name in ("a", "b", "c", "d")]
    flow = Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q", branches=branches, then="end"), *says_])
    return Play(flow)


ORDER = (
    Branch(only_if=lambda ctx: ctx.context == "a", then="a"), Branch("wants b", then="b"),
    Branch(only_if=lambda ctx: ctx.context in {"a", "c"}, then="c"), Branch("wants d", then="d"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("context", "judged", "taken"),
    [
        ("a", {"q1": True, "q2": True}, "A"), ("c", {"q1": True, "q2": True}, "B"),
        ("c", {"q1": False, "q2": True}, "C"),
        ("", {"q1": False, "q2": True}, "D"), ("", {"q1": "no", "q2": "sim"}, "D"), ("c", {}, "C"),
    ],
)  # fmt: skip
async def test_the_first_exit_that_holds_is_taken(context: str, judged: Any, taken: str) -> None:
    """Code and model alternate; questions are numbered among those for the model alone."""
    play = branching(*ORDER)
    await play.said(key="m1", context="", speak=RIGHT)
    result = await play.said(key="m2", context=context, judge={"branches": judged})
    assert sections(play.requests[0]) == {"branches": ["q1", "q2"]}
    assert "- q1: wants b\n- q2: wants d" in told(play.requests[0])
    assert [m.text for m in result.messages] == [taken]
    assert line(result, "branch").next == taken.lower()


async def test_where_no_exit_holds_the_step_asks_on() -> None:
    """An address that is nobody's is nothing."""
    play = branching(*ORDER)
    await play.said(key="m1", context="", speak=RIGHT)
    judged = {"branches": {"q1": False, "q3": True, "f#m1/q/3": None}}
    assert keys(await play.said(key="m2", context="", judge=judged, speak=RIGHT)) == ["f#m1:q:1/2"]


async def test_an_exit_may_be_named_by_its_address() -> None:
    """Run, step and its place among all the exits."""
    play = branching(*ORDER)
    await play.said(key="m1", context="", speak=RIGHT)
    result = await play.said(key="m2", context="", judge={"branches": {"f#m1/q/3": True}})
    assert [m.text for m in result.messages] == ["D"]


async def test_a_run_that_comes_to_its_step_is_not_judged_by_the_same_message() -> None:
    """Fresh text is needed."""
    play = branching(Branch(only_if={"known": []}, then="a"))
    assert keys(await play.said(key="m1", speak=RIGHT)) == ["f#m1:q:1"]
    assert keys(await play.said(key="m2")) == ["f#m1:a:1"]


async def test_an_exit_sees_what_the_message_brought() -> None:
    """Fields are written before branches are judged."""
    flow = Flow("f", on=[OnMessage()], steps=[
        Collect("ok", "name", id="q", branches=[Branch(only_if={"known": ["name"]}, then="a")]), Say("No", id="n"),
        Say("Ana!", id="a"),
    ])  # fmt: skip
    play = Play(flow)
    await play.said(key="m1", speak=[says("Name?")])
    assert keys(await play.said(key="m2", judge={"fields": {"name": "Ana"}})) == ["f#m1:a:1"]


async def test_an_exit_may_forget_fields_and_may_lead_to_a_flow() -> None:
    """Like every other way."""
    flow = Flow("f", on=[OnMessage()], steps=[
        Collect("ok", "name", id="q",
                branches=[Branch("again", then=Goto("q", clear=["name"])), Branch("help", then=Chain("h"))]),
    ])  # fmt: skip
    play = Play(flow, Flow("h", steps=[Say("Help for {{input.x}}", id="s")]), data={"name": "Ana"})
    await play.started("f", input={"x": 7}, speak=RIGHT)
    again = await play.said(key="m2", judge={"branches": {"q1": True}}, speak=[says("Who?")])
    assert (line(again, "branch").next, keys(again), play.data) == ("q", ["f#k:q:2"], {})
    assert dict(play.run("f").asked) == {"ok": 2, "name": 1}
    left = await play.said(key="m3", judge={"branches": {"q2": True}})
    assert (line(left, "branch").next, ends(left)[0]) == ("flow:h", ("f#k", "flow"))
    assert said_by(left) == [("Help for 7", "verbatim", "h#f#k:q:2:s:1")]


async def test_what_the_model_is_asked_is_rendered() -> None:
    """With fields, the context, and the input of the run that it is a branch of."""
    flow = Flow(
        "f", steps=[Collect("ok", id="q", branches=[Branch("{{data.name}}, {{context}}, {{input.x}}?", then="end")])]
    )
    play = Play(flow, data={"name": "Ana"})
    await play.started("f", input={"x": 7}, context="vip", speak=RIGHT)
    await play.said(context="vip", judge=NOTHING, speak=RIGHT)
    assert "- q1: Ana, vip, 7?" in told(play.requests[0])


async def test_the_current_step_is_told_with_its_run_s_input() -> None:
    """No braces where the run knows better."""
    flow = Flow("f", steps=[Collect("name", id="q", prompt="Ask about {{input.x}}.")])
    play = Play(flow)
    await play.started("f", input={"x": "the room"}, speak=RIGHT)
    await play.said(judge=NOTHING, speak=RIGHT)
    assert "Current step: q — Ask about the room." in told(play.requests[0])


async def test_of_a_floor_that_was_taken_by_a_reply_no_exit_is_judged() -> None:
    """Its step is still to come."""
    flow = Flow("w", steps=[
        Wait("1d", id="w", else_="q"), Say("Late", id="s", then="end"),
        Collect("name", id="q",
                branches=[Branch("asks for a person", then="end"), Branch(only_if={"known": []}, then="end")]),
    ])  # fmt: skip
    play = Play(flow)
    await play.started("w")
    result = await play.said(judge=NOTHING, speak=[says("Name?")])
    assert sections(play.requests[0]) == {"fields": ["name"]}
    assert keys(result) == ["w#k:q:1"]
