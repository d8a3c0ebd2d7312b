"""A request that shows everything as it is takes a short way, to the bytes of the long one."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from onrecord.models.projection import _Assembly
from onrecord.models.request import HeadMarks, Piece, Request, Span, View
from tests.models.merging import MergingWire
from tests.models.requests import call, context, projection, request, said, settled, system, user

pytestmark = pytest.mark.unit

TALK = (
    user("hi"),
    said(settled("r1", "hello", calls=(call("r1", 0),))),
    context("noted", id="c1"),
    user("and?", id="u2"),
)


def both(wires: Any, asked: Request) -> tuple[bool, bytes, bytes]:
    """Whether the short way is taken, what is sent, and what the long way sends."""
    assembly = _Assembly(wires, asked)
    return assembly._whole() is not None, wires.wire(asked).body, assembly._assembled().body


@pytest.mark.parametrize(
    "pieces", [(), (system("Be kind."), system("Be brief.", rank=5)), (system("Be first.", rank=-(2**40)),)]
)
def test_the_short_way_gives_the_bytes_of_the_long_one(pieces: tuple[Piece, ...]) -> None:
    """With instructions or without, for the first message and for many."""
    wires = projection()
    for size in range(1, len(TALK) + 1):
        short, sent, long = both(wires, request(*TALK[:size], pieces=pieces))
        assert short
        assert sent == long


@pytest.mark.parametrize("place", ["system", "turn", "trailing"])
def test_a_blank_piece_says_nothing(place: Literal["system", "turn", "trailing"]) -> None:
    """Whatever its place, the body is that of a request without it."""
    wires, kind = projection(), system("Be kind.")
    blank = request(*TALK, pieces=(kind, Piece(source="b", text=" \n", place=place)))
    assert wires.wire(blank).body == wires.wire(request(*TALK, pieces=(kind,))).body


def test_an_older_view_of_a_longer_talk_takes_it_too() -> None:
    """Units behind what is shown stay out of the body."""
    wires, asked = projection(), request(*TALK)
    wires.wire(asked)
    short, sent, long = both(wires, request(conversation=asked.conversation, view=View(spans=(Span(0, 2),))))
    assert short
    assert sent == long


@pytest.mark.parametrize(
    "fields",
    [
        {"view": View(spans=(Span(0, 1), Span(2, 3)))},
        {"view": View(spans=(Span(0, 0),))},
        {"view": View(spans=(context("now"),))},
        {"pieces": (Piece(source="now", text="It is late.", place="trailing"),)},
        {"pieces": (Piece(source="now", text="It is late.", place="turn"),)},
        {"carries": 0},
    ],
)
def test_everything_else_takes_the_long_way(fields: dict[str, Any]) -> None:
    """Cuts, inserts and texts of the turn are put together piece by piece."""
    wires = projection()
    short, sent, long = both(wires, request(*TALK, **fields))
    assert not short
    assert sent == long
    assert not both(wires, request())[0]
    assert not both(MergingWire(), request(*TALK))[0]


def test_marks_cost_nothing_where_the_wire_has_none() -> None:
    """Chat Completions caches by itself: a marked request is put together like any other, and says the same."""
    wires, asked = projection(), request(*TALK)
    marked = replace(asked, view=replace(asked.view, marks=(1,), head=HeadMarks(system=1, tools=True)))
    short, sent, long = both(wires, marked)
    assert short
    assert sent == long == wires.wire(asked).body


def test_a_view_that_begins_later_than_its_lane_takes_the_long_way() -> None:
    """The lane of all units is there, the request shows its end."""
    wires, asked = projection(), request(*TALK)
    wires.wire(asked)
    short, sent, long = both(wires, request(conversation=asked.conversation, view=View(spans=(Span(1, 3),))))
    assert not short
    assert sent == long
