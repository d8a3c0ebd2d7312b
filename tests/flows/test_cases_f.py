"""Cases F of the specification: actions, conditions, where a step leads, and what ends a run on the way."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import Chain, Collect, Do, Flow, Goto, If, Ok, OnMention, OnMessage, Say, Wait
from onrecord.tools.tool import Tool
from tests.flows.playing import NOTHING, Play, after, ends, keys, line, lines, says

pytestmark = pytest.mark.unit


async def test_f5_deep_with() -> None:
    """Templates are filled in at any depth of what an action is given; other values stay as they are."""
    flow = Flow("f", steps=[Do("notify", id="n", args={"list": ["{{data.name}}"], "n": 1})])
    play = Play(flow, data={"name": "Ana"})
    await play.started("f")
    assert [args for _, _, args in play.notified] == [{"list": ["Ana"], "n": 1}]


async def test_f6_unknown_path_in_with() -> None:
    """A path that leads nowhere reaches the action as it was written."""
    play = Play(Flow("f", steps=[Do("notify", id="n", args={"text": "{{data.name}} spoke"})]))
    await play.started("f")
    assert [args for _, _, args in play.notified] == [{"text": "{{data.name}} spoke"}]


async def test_f7_if() -> None:
    """A condition that does not hold, with no other way given, ends the flow."""
    play = Play(Flow("f", steps=[If({"known": ["name"]}, id="g"), Do("notify", id="n")]))
    result = await play.started("f")
    assert lines(result) == [("g", "if", "ok", None)]
    assert [each.next for each in result.outcomes] == ["end"]
    assert ends(result) == [("f#k", "end")]
    assert play.notified == []


async def test_f7_else_clears() -> None:
    """What the other way clears is unknown and unasked again, and the step it leads to is visited once more."""
    flow = Flow(
        "f",
        steps=[
            Collect("name", id="who"),
            If({"equals": {"name": "Ana"}}, id="g", else_=Goto("who", clear=["name"])),
            Say("Bye", id="bye"),
        ],
    )
    play = Play(flow)
    await play.started("f", speak=[says("Name?")])
    result = await play.said(judge={"fields": {"name": "Bo"}}, speak=[says("Really?")])
    assert lines(result) == [("who", "collect", "ok", None), ("g", "if", "ok", None), ("who", "collect", "ok", None)]
    assert keys(result) == ["f#k:who:2"]
    run = play.run("f")
    assert (play.data, dict(run.asked), run.visits["who"]) == ({}, {"name": 1}, 2)


# ---- chains ----------------------------------------------------------------------------------------------------------

CHILD = Flow("b", steps=[Wait("1d", id="w"), Do("notify", id="n")])


async def test_f9_chain_input() -> None:
    """A chained run takes over its parent's input, one hop further on, under the key of the step that chained."""
    play = Play(Flow("a", steps=[Do("notify", id="n", then=Chain("b"))]), CHILD)
    result = await play.started("a", key="k", input={"x": 7})
    child = play.run("b")
    assert (child.input, child.payload, child.hop) == ({"x": 7}, {"x": 7}, 1)
    assert (child.trigger_kind, child.trigger_key) == ("flow", "a#k:n:1")
    assert result.outcomes[0].next == "flow:b"


async def test_f9_chain_input_of_its_own() -> None:
    """An input given with the chain is the child's, as it is written."""
    play = Play(Flow("a", steps=[Do("notify", id="n", then=Chain("b", input={"y": "{{data.name}}"}))]), CHILD)
    await play.started("a", key="k", input={"x": 7})
    assert play.run("b").input == {"y": "{{data.name}}"}


async def test_f9_chain_by_template() -> None:
    """The flow to go on with may be named by a template, which the line shows as it was written."""
    play = Play(Flow("a", steps=[Do("notify", id="n", then=Chain("{{data.name}}"))]), CHILD, data={"name": "b"})
    result = await play.started("a", key="k")
    assert play.statuses == {"b": "waiting"}
    assert result.outcomes[0].next == "flow:{{data.name}}"


# ---- what must keep holding ------------------------------------------------------------------------------------------


def vip(ctx: Any) -> bool:
    """Whether the host says that this customer matters."""
    return bool(ctx.context["vip"])


def always(ctx: Any) -> bool:
    """A premise that always holds."""
    return True


async def test_f11_premise() -> None:
    """A run whose trigger's condition holds no longer ends before its step, and somebody else answers."""
    play = Play(Flow("f", on=[OnMessage("x", only_if=vip)], steps=[Collect("ok", id="q")]))
    await play.said(key="m1", context={"vip": True}, speak=[says("Right?")])
    result = await play.said(key="m2", context={"vip": False}, speak=[says("Hello")])
    assert ends(result) == [("f#m1", "skipped")]
    assert lines(result) == [("q", "collect", "skipped", "premise-changed"), (None, "idle", "ok", None)]


async def test_f11_while_alone_decides() -> None:
    """A flow with a premise of its own does not ask its trigger's condition."""
    play = Play(Flow("f", on=[OnMessage("x", only_if=vip)], while_=always, steps=[Collect("ok", id="q")]))
    await play.said(key="m1", context={"vip": True}, speak=[says("Right?")])
    result = await play.said(key="m2", context={"vip": False}, speak=[says("Right?")])
    assert (ends(result), keys(result)) == ([], ["f#m1:q:1/2"])


# ---- an action that spoke --------------------------------------------------------------------------------------------


async def test_f12_spoke() -> None:
    """An action that says something counts as the assistant speaking: nobody else does in this turn."""
    play = Play(
        Flow("intake", on=[OnMessage("asks")], steps=[Collect("name", id="who")]),
        Flow("human", on=[OnMention("asks for a person")], steps=[Do("call", id="c")]),
        actions=[Tool("call", lambda *_: Ok(spoke=True))],
    )
    await play.said(key="m1", judge=NOTHING, speak=[says("Name?")])
    play.clock.advance(minutes=10)
    result = await play.said(key="m2", judge={"mentions": {"human": True}})
    assert lines(result) == [("c", "do", "ok", None), ("who", "collect", "skipped", "another-reply")]
    assert line(result, "another-reply").about["run_id"] == "intake#m1"
    assert result.messages == ()
    assert play.kept.last_assistant_at == after(minutes=10)
