"""A text that comes out empty is not said: it counts as no answer, spends nothing, and the customer hears somebody."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import Collect, Flow, OnMessage, Say
from tests.flows.playing import Play, keys, lines, said_by, says

pytestmark = pytest.mark.unit

EMPTY: Any = {"note": "", "lead": None}
FULL: Any = {"note": "Bring a towel.", "lead": None}
BLANK = ("say", "skipped", "blank")


def noting(**how: Any) -> Flow:
    """A flow that says what its host has to say, which may be nothing."""
    return Flow("note", on=[OnMessage(repeat="always")], steps=[Say("{{context.note}}", id="s", **how)])


@pytest.mark.parametrize("text", ["{{context.note}}", " {{context.note}} ", "{{context.lead.name}}"])
async def test_an_empty_line_is_no_answer(text: str) -> None:
    """Nothing goes out for it, so the idle speaker answers the message."""
    play = Play(Flow("note", on=[OnMessage()], steps=[Say(text, id="s", then="end")]))
    result = await play.said(context=EMPTY, speak=[says("Hello.")])
    assert said_by(result) == [("Hello.", "ai", "idle:m1")]
    assert lines(result) == [("s", *BLANK), (None, "idle", "ok", None)]
    assert [each.next for each in result.outcomes] == ["end", None]


async def test_an_empty_line_leaves_the_message_to_another_run() -> None:
    """A run that has something to say is not held back by one that had nothing."""
    play = Play(noting(), Flow("ask", steps=[Collect("name", id="q")]))
    await play.started("ask", speak=[says("Your name?")])
    await play.started("note", key="k2", context=EMPTY)
    assert keys(await play.said(context=EMPTY, speak=[says("Well?")], judge={"fields": {}})) == ["ask#k:q:1/2"]


async def test_what_is_said_once_is_said_when_there_is_something_to_say() -> None:
    """Saying nothing has not spent it."""
    play = Play(noting(once=True), idle="silent")
    assert lines(await play.said(key="m1", context=EMPTY)) == [("s", *BLANK)]
    assert (await play.said(key="m2", context=FULL)).text == "Bring a towel."
    assert [code for *_, code in lines(await play.said(key="m3", context=FULL))] == ["already-sent"]


async def test_an_empty_line_with_a_picture_is_sent() -> None:
    """There is something to see."""
    play = Play(noting(media="map"), idle="silent")
    (message,) = (await play.said(context=EMPTY)).messages
    assert (message.text, message.media, message.key) == ("", "map", "note#m1:s:1")


async def test_an_empty_question_is_asked_by_the_model() -> None:
    """The field is asked for all the same, and counted."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q", question="{{context.note}}")]))
    result = await play.said(context=EMPTY, speak=[says("Is it right?")])
    assert (keys(result), lines(result)) == (["f#m1:q:1"], [("q", "collect", "ok", None)])
    assert dict(play.run("f").asked) == {"ok": 1}
