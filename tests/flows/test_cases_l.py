"""Cases L of the specification that need a turn: when the understand call is made, and what it moves."""

from __future__ import annotations

import pytest

from onrecord.flows import Branch, Collect, Flow, OnMessage, Say, Talk
from tests.flows.playing import Play, ends, keys, line, lines, says, sections

pytestmark = pytest.mark.unit


async def test_l5_nothing_to_judge() -> None:
    """Where only the flow that asks could take the message, and reads its field itself, nothing is judged."""
    play = Play(Flow("f", on=[OnMessage("asks")], steps=[Collect("ok", id="q")]))
    await play.said(key="m1", speak=[says("Right?")])
    assert keys(await play.said(key="m2", speak=[says("Right?")])) == ["f#m1:q:1/2"]


async def test_l10_branch_fires() -> None:
    """A branch that the model judged true moves the run in the same turn, and its line says where to."""
    flow = Flow(
        "intake", on=[OnMessage()],
        steps=[
            Collect("size", id="team", branches=[Branch("asks for a person", then="human")]),
            Talk("Thank them.", id="thanks"), Say("Calling someone.", id="human"),
        ],
    )  # fmt: skip
    play = Play(flow)
    await play.said(key="m1", speak=[says("Which size?")])
    result = await play.said(key="m2", judge={"branches": {"q1": True}, "fields": {}})
    assert sections(play.requests[0]) == {"branches": ["q1"], "fields": ["size"]}
    assert lines(result) == [("team", "collect", "ok", "branch"), ("human", "say", "ok", None)]
    fired = line(result, "branch")
    assert (fired.key, fired.next) == ("intake#m1:team:1", "human")
    assert keys(result) == ["intake#m1:human:1"]
    assert ends(result) == [("intake#m1", "end")]


async def test_l10_a_branch_in_code_needs_no_call() -> None:
    """The first branch that holds wins, and one in code is judged without a model."""
    flow = Flow(
        "intake", on=[OnMessage()],
        steps=[
            Collect("ok", id="q", branches=[Branch(only_if=lambda ctx: ctx.context["vip"], then="human")]),
            Talk("Thank them.", id="thanks"), Say("Calling someone.", id="human"),
        ],
    )  # fmt: skip
    play = Play(flow)
    await play.said(key="m1", context={"vip": True}, speak=[says("Right?")])
    result = await play.said(key="m2", context={"vip": True})
    assert lines(result) == [("q", "collect", "ok", "branch"), ("human", "say", "ok", None)]
