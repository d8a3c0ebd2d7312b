"""What a wire cannot carry is named, and named again however the same units are shown."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import File, Text
from onrecord.conversation.conversation import Conversation
from onrecord.models.request import Piece, Request, Span, Swap, View
from tests.models.merging import MergingWire
from tests.models.requests import call, projection, request, said, settled, user

pytestmark = pytest.mark.unit

FILE = File(url="https://h/a")


def test_what_a_swap_shows_decides_what_the_wire_cannot_carry() -> None:
    """It hides a part that the wire refuses, or brings one; a request that shows the unit itself is told again."""
    wire = projection()
    hidden, seen = settled("r", calls=[call("r", 0, result=(FILE,))]), settled("s", calls=[call("s", 0)])
    held = request(user("q"), said(hidden, seen))
    hiding, bringing = (Swap(unit=1, call=0, shows=(Text("[a]"),)), Swap(unit=2, call=0, shows=(FILE,)))
    for swaps, units in (((), [1]), ((hiding,), []), ((bringing,), [1, 2]), ((hiding, bringing), [2]), ((), [1])):
        for marks in ((), (1, 2)):
            asked = replace(held, view=View(spans=(Span(0, 3),), swaps=swaps, marks=marks))
            assert [issue.unit for issue in wire.wire(asked).issues] == units


def test_a_swap_of_a_call_that_nobody_answered_changes_nothing() -> None:
    """Such a call is not shown, so nothing of it can be refused."""
    wire, asked = projection(), settled("r", "hm", calls=[call("r", 0, result=None, status="asked")])
    held = request(user("q"), said(asked), view=View(spans=(Span(0, 2),), swaps=(Swap(unit=1, call=0, shows=(FILE,)),)))
    assert wire.wire(held).issues == ()


def test_an_older_conversation_that_goes_on_elsewhere_keeps_its_issues() -> None:
    """Its lane is a copy up to the fork, and what is behind the fork is not told of it."""
    wire = projection()
    held = request(user(FILE), user("b", id="u1"), user(FILE, id="u2")).conversation
    assert [issue.unit for issue in wire.wire(request(conversation=held)).issues] == [0, 2]
    forked = Conversation(held.messages.cut(2), held.units.cut(2)).add(user("c", id="u3"))
    assert [issue.unit for issue in wire.wire(request(conversation=forked)).issues] == [0]


def test_a_carried_unit_is_told_once() -> None:
    """Where the turn's text carries its parts, and not where it would have stood."""
    wire, asked = projection(), request(user("q", FILE), own=1, carries=0)
    assert [issue.unit for issue in wire.wire(asked).issues] == [0]


@pytest.mark.parametrize("pieces", [(), (Piece(source="t", text="late", place="trailing"),)])
def test_what_no_unit_is_to_blame_for_is_told_of_the_whole(pieces: tuple[Piece, ...]) -> None:
    """By the short way and by the long one."""

    class Refusing(MergingWire):
        entries = projection().entries

        def refusals(self, request: Request, /) -> tuple[str, ...]:
            return ("a choice",)

    wire = Refusing()
    wire.hoists = False
    assert [(issue.unit, issue.what) for issue in wire.wire(request(user("q"), pieces=pieces)).issues] == [
        (-1, "a choice")
    ]
