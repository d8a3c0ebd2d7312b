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
