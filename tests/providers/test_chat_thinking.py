"""Chat Completions: how reasoning is asked for, and what is refused where it cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.models.request import Request, Settings
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from tests.models.requests import CARD, projection, request, user

pytestmark = pytest.mark.unit


def body_of(asked: Request, wire: ChatProjection) -> dict[str, Any]:
    """A body as what it means."""
    held: dict[str, Any] = json.loads(wire.wire(asked).body)
    return held


@pytest.mark.parametrize(
    ("style", "wanted", "sent"),
    [
        ("effort", "high", {"reasoning_effort": "high"}),
        ("effort", 2000, {}),
        ("reasoning", "high", {"reasoning": {"effort": "high"}}),
        ("reasoning", 2000, {"reasoning": {"max_tokens": 2000}}),
        ("reasoning", "none", {"reasoning": {"enabled": False}}),
        ("reasoning", 0, {"reasoning": {"enabled": False}}),
        ("switch", "high", {"thinking": {"type": "enabled"}}),
        ("switch", "none", {"thinking": {"type": "disabled"}}),
        (None, "high", {}),
    ],
)
def test_reasoning_is_asked_for_as_the_vendor_has_it(style: Any, wanted: str | int, sent: dict[str, Any]) -> None:
    """What a vendor cannot be told is left out."""
    wire = projection(dialect=Dialect(thinking=style))
    body = body_of(request(user("hi"), settings=Settings(thinking=wanted)), wire)
    assert {name: body[name] for name in ("reasoning_effort", "reasoning", "thinking") if name in body} == sent


@pytest.mark.parametrize(
    ("style", "mode", "wanted", "told"),
    [
        (None, "none", "high", ["thinking: 'acme:m' has none"]),
        (None, "none", 2000, ["thinking: 'acme:m' has none"]),
        (None, "none", "none", []),
        (None, "none", None, []),
        (None, "adaptive", "high", []),  # it thinks in any case
        (None, "adaptive", 2000, []),
        (None, "adaptive", "none", ["thinking turned off: 'acme:m' always thinks"]),
        (None, "adaptive", 0, ["thinking turned off: 'acme:m' always thinks"]),
        ("effort", "none", "high", []),  # a server about which nothing is known: it answers for itself
        ("effort", "adaptive", 2000, []),
    ],
)
def test_thinking_that_cannot_be_asked_for_is_refused_by_name(
    style: Any, mode: Any, wanted: Any, told: list[str]
) -> None:
    """Left out without a word it would be another request than the one that was made."""
    wire = projection(replace(CARD, thinking=mode), Dialect(thinking=style))
    asked = request(user("hi"), settings=Settings(thinking=wanted))
    assert [issue.what for issue in wire.wire(asked).issues] == told


@pytest.mark.parametrize("off", ["none", "off", 0])
def test_each_word_for_no_thinking_is_the_one_that_the_protocol_has(off: str | int) -> None:
    """Where effort is a word."""
    body = body_of(request(user("hi"), settings=Settings(thinking=off)), projection(dialect=Dialect(thinking="effort")))
    assert body["reasoning_effort"] == "none"
