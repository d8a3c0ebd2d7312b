"""Cases K of the specification: a first question that goes out word for word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.flows import Collect, Do, Flow, Goto, If, Ok, OnMessage, Say, Talk
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool, ToolContext
from tests.flows.playing import NOTHING, T0, Play, line, lines, said_by, says, sections, told

pytestmark = pytest.mark.unit

ASKS = Collect("name", "company", id="q", question="Who and where?", max_asks=2)
FORM = Flow("form", steps=[ASKS, Talk("Thank them.", id="close")])


async def test_k1_first_ask() -> None:
    """The question goes out with the step's key, counts as an ask of every field, and costs no model call."""
    play = Play(FORM)
    result = await play.started("form", key="k")
    (message,) = result.messages
    assert (message.text, message.kind, message.after_ms, message.key) == (
        "Who and where?", "verbatim", 0, "form#k:q:1"
    )  # fmt: skip
    assert lines(result) == [("q", "collect", "ok", "asked-fixed")]
    assert (dict(play.run("form").asked), play.statuses) == ({"name": 1, "company": 1}, {"form": "asking"})
    assert play.kept.last_assistant_at == T0


async def test_k2_partly_known() -> None:
    """When a part of it is known already, the model asks for the rest."""
    play = Play(FORM, data={"name": "Ana"})
    result = await play.started("form", speak=[says("And where?")])
    assert said_by(result) == [("And where?", "ai", "form#k:q:1")]


async def test_k4_after_speak() -> None:
    """Reached after an answer of the same turn, the question follows it."""
    flow = Flow("form", on=[OnMessage("signs up")], steps=[Talk("Greet.", id="hi"), ASKS])
    play = Play(flow)
    result = await play.said(judge={"fields": {}, "asks": False}, speak=[says("Hi!")])
    assert said_by(result) == [("Hi!", "ai", "form#m1:hi:1"), ("Who and where?", "verbatim", "form#m1:q:1")]
    assert result.llm_calls == 2


SHOP = Flow("shop", steps=[Collect("model", id="m"), Collect("name", id="q", question="Your name?")])


@pytest.mark.parametrize("asks", [{"asks": True}, {}])
async def test_k5_asks_true(asks: dict[str, Any]) -> None:
    """What the customer asked is answered first, without reading fields; then the question goes out.

    So it is too when the understand call did not say whether they asked something (case K7).
    """
    play = Play(SHOP)
    await play.started("shop", speak=[says("Which model?")])
    found = {"fields": {"model": "15"}, **asks}
    result = await play.said("the 15, how much is it?", judge=found, speak=[says("It costs X.")])
    assert said_by(result) == [("It costs X.", "ai", "shop#k:q:1"), ("Your name?", "verbatim", "shop#k:q:1/2")]
    assert [m.about["step_id"] for m in result.messages] == ["q", "q"]
    assert play.run("shop").asked["name"] == 1
    assert sections(play.requests[1]) == {"message": []}
    guideline = told(play.requests[1]).split("## Guideline for your reply")[1].split("\n\n## ")[0]
    assert guideline.rstrip().endswith('"Your name?"')


async def test_k5_asks_false() -> None:
    """When they asked nothing, the question goes out at once and no model speaks."""
    play = Play(SHOP)
    await play.started("shop", speak=[says("Which model?")])
    result = await play.said("the 15", judge={"fields": {"model": "15"}, "asks": False})
    assert said_by(result) == [("Your name?", "verbatim", "shop#k:q:1")]
    assert line(result, "asked-fixed").about["step_id"] == "q"


async def test_k7_unjudged() -> None:
    """A reply that leaves out whether they asked counts as one that asked: see K5, whose test runs both.

    Here the key is there and null.
    """
    play = Play(SHOP)
    await play.started("shop", speak=[says("Which model?")])
    found = {"fields": {"model": "15"}, "asks": None}
    result = await play.said("the 15", judge=found, speak=[says("Good choice.")])
    assert [kind for _, kind, _ in said_by(result)] == ["ai", "verbatim"]


async def test_k8_not_offered() -> None:
    """Where no flow has such a question, the understand call is not asked whether the customer asks something."""
    plain = Play(Flow("shop", steps=[Collect("model", id="m")]))
    await plain.started("shop", speak=[says("Which model?")])
    await plain.said(judge=NOTHING, speak=[says("Which one?")])
    assert [*sections(plain.requests[0])] == ["fields"]
    fixed = Play(SHOP)
    await fixed.started("shop", speak=[says("Which model?")])
    await fixed.said(judge=NOTHING, speak=[says("Which one?")])
    assert [*sections(fixed.requests[0])] == ["fields", "asks"]


async def test_k9_clear_resets() -> None:
    """A way back that clears the field makes its question due again."""
    flow = Flow(
        "f",
        steps=[
            Collect("ok", id="c", question="Right?"),
            If({"equals": {"ok": True}}, id="g", else_=Goto("c", clear=["ok"])),
            Say("Good.", id="s"),
        ],
    )
    play = Play(flow)
    await play.started("f")
    result = await play.said("no", speak=[says("I see.", ok=False)])
    assert said_by(result) == [("I see.", "ai", "f#k:c:1/2"), ("Right?", "verbatim", "f#k:c:2")]
    assert (dict(play.run("f").asked), play.data) == ({"ok": 1}, {})


async def test_k10_staying_run() -> None:
    """A run that stays never sends the question, even where its field is unknown and was never asked for."""

    def forget(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        ctx.set({"name": None})
        return Ok()

    flow = Flow(
        "f", on=[OnMessage()], on_end="stay", steps=[Collect("name", id="q", question="Name?"), Do("forget", id="d")]
    )
    play = Play(flow, actions=[Tool("forget", forget)], data={"name": "Ana"})
    result = await play.said(speak=[says("Hello")])
    assert said_by(result) == [("Hello", "ai", "f#m1:q:2")]
    assert play.run("f").staying
