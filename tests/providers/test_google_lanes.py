"""generateContent: whatever happens to a conversation, its bytes are those of a fresh projection and keep the rules."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from onrecord.models.projection import Projection
from onrecord.providers.google.cards import google_card
from onrecord.providers.google.project import GoogleProjection
from tests.models.requests import projection
from tests.models.test_lane_bytes import Story, check_rules, tell

pytestmark = pytest.mark.unit


class Tight(GoogleProjection):
    """Almost every unit is too large for its slot."""

    keep = 60


def wires_of(model: str) -> list[Projection]:
    """As it is, and with tight slots, which are lanes of their own."""
    card, dialect = google_card(model)
    tight = Tight(replace(card, base_url="https://e.test/v1beta"), dialect)
    return [GoogleProjection(card, dialect), tight]


WIRES: list[Projection] = [
    *wires_of("gemini-3.8-flash"),
    *wires_of("gemini-2.5-pro"),
    GoogleProjection(*google_card("gemini-2.0-flash")),  # takes no addresses
    GoogleProjection(*google_card("gemma-3-27b-it")),
    projection(),
]


@settings(max_examples=50, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_lane_bytes_equal_fresh_bytes(data: st.DataObject) -> None:
    """Over conversations that grow, close, fork, are edited, windowed and switched between models and wires."""
    tell(Story(data.draw, WIRES), check)


def check(wire: Projection, body: bytes) -> None:
    """What Google demands of any body."""
    if not isinstance(wire, GoogleProjection):
        check_rules(wire, body)
        return
    contents: list[Any] = json.loads(body)["contents"]
    roles = [entry["role"] for entry in contents]
    assert roles[0] == roles[-1] == "user"
    assert all(entry["parts"] for entry in contents)
    before: list[Any] = []
    for entry in contents:
        parts = entry["parts"]
        asked = [part["functionCall"]["id"] for part in before if "functionCall" in part]
        answered = [part["functionResponse"]["id"] for part in parts if "functionResponse" in part]
        assert asked == answered
        assert not answered or len(answered) == len(parts)
        if before and entry["role"] == "model":
            assert not any("functionCall" in part for part in before)
        calls = [part for part in parts if "functionCall" in part]
        if wire.dialect.signs and calls and not calls[0]["functionCall"]["id"].startswith("w-"):  # a story's own parts
            assert "thoughtSignature" in calls[0]
        before = parts
    assert not any(one["role"] == other["role"] == "model" for one, other in pairwise(contents))
