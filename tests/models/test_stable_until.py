"""`Wire.stable_until`: how many units kept the bytes that the last request sent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.models.projection import Projection
from onrecord.models.request import Piece, Span, Swap, View
from tests.models.requests import context, projection, request, talk, user

pytestmark = pytest.mark.unit


def stable(wire: Projection, conversation: Conversation, **fields: object) -> int | None:
    """What a request says is stable; then it is sent."""
    asked = request(conversation=conversation, **fields)
    told = wire.wire(asked).stable_until
    assert wire.wire(asked).stable_until == told  # looking is not sending
    wire.sent(asked)
    return told


def test_stable_until_counts_the_units_that_kept_their_bytes() -> None:
    """Against the last request sent, whatever changed since."""
    wire, held = projection(), talk(2)
    assert stable(wire, held) is None  # nothing is known to have been sent
    assert stable(wire, held) == 6
    longer = held.add(user("more", id="m"))
    assert stable(wire, longer) == 6
    swapped = View(spans=(Span(0, 7),), swaps=(Swap(unit=4, call=0, shows=(Text("[x]"),)),))
    assert stable(wire, longer, view=swapped) == 4
    assert stable(wire, longer, view=swapped) == 7
    assert stable(wire, longer) == 4
    assert stable(wire, longer, view=View(spans=(Span(1, 7),))) == 0
    assert stable(wire, longer, view=View(spans=(Span(1, 3), Span(4, 7)))) == 3
    assert stable(wire, longer, view=View(spans=(Span(1, 3), Span(4, 6)))) == 6


def test_stable_until_ends_where_the_turn_text_moved_or_a_unit_was_carried() -> None:
    """Both change what stands between units."""
    wire, held = projection(), talk(2)
    turn = (Piece(source="t", text="say it", place="turn"),)
    assert stable(wire, held, own=3, pieces=turn) is None
    assert stable(wire, held, own=3, pieces=turn) == 6
    assert stable(wire, held, own=3, pieces=(*turn, *turn)) == 3
    assert stable(wire, held, own=5, pieces=turn) == 3
    assert stable(wire, held, own=5, pieces=turn, carries=0) == 0
    assert stable(wire, held, own=5) == 0


def test_stable_until_ends_where_another_message_was_inserted() -> None:
    """An insert stands in front of the units behind it; an equal one changes nothing."""
    wire, held = projection(), talk(2)
    first, second = (View(spans=(Span(0, 2), context(text), Span(2, 6))) for text in ("news", "other news"))
    assert stable(wire, held, view=first) is None
    assert stable(wire, held, view=first) == 6
    assert stable(wire, held, view=second) == 2


@pytest.mark.parametrize("other", [{"scope": "elsewhere"}, {"view": View(spans=())}])
def test_stable_until_counts_from_what_was_sent_whatever_was_looked_at_since(other: dict[str, Any]) -> None:
    """A request may be projected and never go out."""
    wire, sent = projection(), request(conversation=talk(2), scope="here")
    looked = replace(sent, **other)
    wire.wire(sent)
    wire.wire(looked)
    wire.sent(sent)
    assert (wire.wire(sent).stable_until, wire.wire(looked).stable_until) == (6, None)


def test_stable_until_survives_a_cut_up_to_the_cut() -> None:
    """Units behind the cut are others."""
    wire, held = projection(), talk(2)
    stable(wire, held)
    shorter = Conversation(held.messages.cut(2), held.units.cut(3)).add(user("again", id="n"))
    assert stable(wire, shorter) == 3
