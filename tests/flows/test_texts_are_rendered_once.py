"""What a customer says is data: braces in it are never taken for a template."""

from __future__ import annotations

import pytest

from onrecord.flows import Branch, Chain, Collect, Do, Flow, FlowInstruction, Idle, OnMessage, Say, Talk
from onrecord.testing import shown
from tests.flows.playing import FIELDS, Play, says, told

pytestmark = pytest.mark.unit

HOSTILE = "{{context.secret}}"
CONTEXT = {"secret": "s3cret", "name": HOSTILE}


async def test_no_text_reaches_what_the_context_holds_by_way_of_a_field() -> None:
    """In prompts, questions, lines, arguments, chains and instructions."""
    spread = "{{data.name}} and {{input}} and {{context.name}}"
    flow = Flow(
        "f", name="F", description=spread, on=[OnMessage(spread)],
        instructions=[FlowInstruction(spread)],
        steps=[
            Do("notify", id="n", args={"text": spread}), Say(spread, id="s"),
            Collect(
                "company", "size", id="c", prompt=spread, ask={"company": spread}, branches=[Branch(spread, then="t")]
            ),
            Collect("model", id="q", question=spread),
            Talk(spread, id="t", then=Chain(spread)),
        ],
    )  # fmt: skip
    play = Play(flow, data={"name": HOSTILE}, fields=FIELDS, persona=spread, goal=spread, idle=Idle(spread))
    seen: list[str] = []
    result = await play.started("f", input=HOSTILE, speak=[says("Which?")], context=CONTEXT)
    seen += [told(request) for request in play.requests] + [m.text for m in result.messages]
    asked = {"branches": {"q1": False}}
    for judge, reply in (
        (asked, says("Well.", company="A", size="1-10")), ({"fields": {}}, says("Then.", model="x")),
        (None, says("Bye.")),
    ):  # fmt: skip
        result = await play.said("hm", key=None, judge=judge, speak=[reply], context=CONTEXT)
        play.clock.advance(seconds=1)
        seen += [told(request) for request in play.requests] + [m.text for m in result.messages]
        seen += [str(shown(request)["system"]) for request in play.requests]
        seen += [str(each.about) for each in result.lines]
    assert any(HOSTILE in text for text in seen)
    assert not any("s3cret" in text for text in seen)
    assert all("s3cret" not in str(args) for _, _, args in play.notified)


async def test_every_wording_of_a_step_is_rendered_for_the_model() -> None:
    """Guidelines, wordings, questions about a message, and what guides the idle speaker."""
    flow = Flow(
        "f", name="F",
        steps=[
            Collect(
                "company", id="c", prompt="Sell {{context.secret}}.", ask={"company": "Ask {{context.secret}}."},
                branches=[Branch("buys {{context.secret}}", then="end")],
            )
        ],
    )  # fmt: skip
    play = Play(flow, fields=FIELDS, idle=Idle("Praise {{context.secret}}."))
    await play.started("f", speak=[says("Which?")], context=CONTEXT)
    prompt = told(play.requests[0])
    assert "Sell s3cret." in prompt
    assert "How to ask: Ask s3cret." in prompt
    asked = {"branches": {"q1": True}, "fields": {"company": None}}
    await play.said(key="m1", judge=asked, speak=[says("Well.")], context=CONTEXT)
    assert "- q1: buys s3cret" in told(play.requests[0])
    assert "Praise s3cret." in told(play.requests[1])


async def test_a_step_without_a_prompt_has_a_guideline_of_its_own() -> None:
    """It collects what is missing; where a run stays with nothing missing, it answers."""
    flow = Flow("f", name="F", on_end="stay", steps=[Collect("company", id="c")])
    play = Play(flow, fields=FIELDS)
    await play.started("f", speak=[says("Which?")])
    assert (
        "\nCollect what is still missing below, in the flow of the conversation, one or two things per message.\n"
        in (told(play.requests[0]))
    )
    await play.said(key="m1", judge={"fields": {"company": "A"}}, speak=[says("Well.")])
    assert "\nAnswer the customer's message, in the flow of the conversation.\n" in told(play.requests[1])
