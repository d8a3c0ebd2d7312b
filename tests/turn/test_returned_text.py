"""A rule about a result reads its words, and puts others in their place, without knowing of parts."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord import Agent, Allow, Image, Returned, Text, ToolCall, after_tool
from onrecord.testing import ScriptedModel, call
from tests.turn.acting import texts, tool

pytestmark = pytest.mark.unit

PICTURE = Image(url="https://x.y/a.png")
MADE = ToolCall(id="c", wire_id="c", name="find")


def returned(*content: Any) -> Returned:
    """A result of these parts."""
    return Returned(call=MADE, value=None, content=content)


def test_the_words_are_those_of_all_texts() -> None:
    """Without what lies between."""
    assert returned(Text("a"), PICTURE, Text("b")).text == "ab"
    assert returned(PICTURE).text == ""


def test_other_words_leave_pictures_where_they_are() -> None:
    """And nothing else of the result is touched."""
    held = returned(Text("a"), PICTURE, Text("b"))
    assert held.with_text("c") == returned(Text("c"), PICTURE)
    assert held.content == (Text("a"), PICTURE, Text("b"))


def test_a_rule_changes_what_the_model_reads() -> None:
    """The line of the guides."""

    @after_tool
    def no_cards(turn: Any, given: Returned) -> Allow[Returned]:
        return Allow(given.with_text(given.text.split(", card")[0]), "card number left out")

    model = ScriptedModel([call("find")], "done")
    Agent(model, tools=[tool("find", lambda _, __: "a lamp, card 4111")], features=[no_cards]).turn_sync("Which?")
    assert texts(model.requests[1]) == ["a lamp"]
