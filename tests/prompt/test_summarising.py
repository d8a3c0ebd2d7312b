"""What a model is given to sum up: one line or more per message, each behind who said it."""

from __future__ import annotations

import pytest

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.messages import Authority, ContextMessage, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.render import context_text
from onrecord.models.request import Swap
from onrecord.prompt.window.evicted import Summary
from onrecord.prompt.window.summarising import summary_query

pytestmark = pytest.mark.unit


def lines(*units: Unit, swaps: tuple[Swap, ...] = (), earlier: Summary | None = None) -> list[str]:
    """What is shown of these units."""
    query = summary_query(enumerate(units), swaps, earlier, 10_000)
    assert query.view is not None
    (shown,) = query.view.spans
    assert isinstance(shown, ContextMessage)
    assert shown.authority == "data"
    return context_text(shown).split("\n")


def said(*parts: Part) -> UserMessage:
    """What a person wrote or attached."""
    return UserMessage(id="u", content=parts)


def added(text: str, authority: Authority = "data") -> ContextMessage:
    """Text of the application."""
    return ContextMessage(id="x", content=(Text(text),), authority=authority)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Text("hi"), "hi"),
        (Image(url="http://x/y"), "(a picture)"),
        (Image(url="http://x/y", description="a cat"), "(a picture: a cat)"),
        (Audio(url="http://x/y"), "(a sound)"),
        (Audio(url="http://x/y", transcript="hello"), "hello"),
        (File(url="http://x/y"), "(a file)"),
        (File(url="http://x/y", name="bill.pdf"), "(a file: bill.pdf)"),
    ],
)
def test_what_is_no_text_is_told_in_words(part: Part, told: str) -> None:
    """As far as there are any."""
    assert lines(said(part)) == [f"[user]: {told}"]


def test_text_of_the_application_is_told_with_its_authority() -> None:
    """Rules are another thing than data; blank text says nothing."""
    units = (
        added("Be brief.", "system"),
        added("Be kind.", "developer"),
        added("It rains."),
        added(""),
        said(Text("hi")),
    )
    assert lines(*units) == ["[system]: Be brief.", "[system]: Be kind.", "[context]: It rains.", "[user]: hi"]


def test_a_round_is_told_with_its_calls() -> None:
    """What stood before it, its words, then each call with its result as it was shown; not one that waits."""
    calls = (
        ToolCall(id="a", wire_id="a", name="look", raw_args='{"n":1}', result=(Text("one"),), status="returned"),
        ToolCall(id="b", wire_id="b", name="look", raw_args='{"n":2}', result=(Text("two"),), status="returned"),
        ToolCall(id="c", wire_id="c", name="look"),
    )
    held = Round(id="r", before=(added("It rains."),), content=(Text("So:"),), calls=calls)
    assert lines(held, swaps=(Swap(unit=0, call=1, shows=(Text("2"),)),)) == [
        "[context]: It rains.",
        "[assistant]: So:",
        '[tool]: look({"n":1}) = one',
        '[tool]: look({"n":2}) = 2',
    ]


def test_an_earlier_summary_leads() -> None:
    """It stands for everything before."""
    earlier = Summary(text="They met.", covers=4, last="u4", digest="d")
    assert lines(said(Text("hi")), earlier=earlier) == ["[summary]: They met.", "[user]: hi"]
