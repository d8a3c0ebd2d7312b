"""Lanes: what is cached, when it is shared, and what `Wire` says about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Image, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.log import Log
from onrecord.conversation.messages import Unit
from onrecord.models.lanes import Entries, Lane, lane_for, portable_id
from onrecord.models.model import extend, preset
from onrecord.models.request import Piece, Request, Span, Swap, View
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from tests.models.fresh import fresh_body
from tests.models.merging import MergingWire
from tests.models.requests import (
    CARD,
    call,
    context,
    native,
    projection,
    request,
    said,
    settled,
    system,
    talk,
    user,
)

pytestmark = pytest.mark.unit


def lanes_of(units: Log[Unit]) -> list[Lane]:
    """The lanes beside a log."""
    return [kept for kept in units.beside.values() if isinstance(kept, Lane)]


class Counting(MergingWire):
    """Says how many units it encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded = 0

    def runs(self, unit: Unit, scope: str, /) -> object:  # type: ignore[override]  # a sequence, as above
        """Counts."""
        self.encoded += 1
        return super().runs(unit, scope)


# ---- glue -----------------------------------------------------------------------------------------------


def test_glue_depends_on_two_kinds_only() -> None:
    """A comma inside an entry; the end of one and the start of the next between entries."""
    merging, plain = MergingWire.entries, Entries()
    assert merging.glue("", "user") == b'{"role":"user","parts":['
    assert merging.glue("user", "user") == b","
    assert merging.glue("user", "model") == b']},{"role":"model","parts":['
    assert (plain.glue("", "item"), plain.glue("item", "item")) == (b"", b",")


# ---- what is encoded, and when --------------------------------------------------------------------------------------


def test_each_unit_is_encoded_once_however_long_the_talk() -> None:
    """Thirty turns of two units are sixty encodings."""
    wire, held = Counting(), Conversation()
    for n in range(30):
        held = held.add(user(f"q{n}", id=f"u{n}"))
        wire.wire(request(conversation=held))
        held = held.grow(settled(f"r{n}", "yes"))
        wire.wire(request(conversation=held, own=len(held.units) - 1))
    assert wire.encoded == len(held.units) == 60


def test_the_body_of_one_request_begins_the_next_one() -> None:
    """So that caches of prefixes hit: nothing before the new unit changes."""
    wire, held = projection(), talk(2)
    pieces = (system("be good"),)
    before = wire.wire(request(conversation=held, pieces=pieces)).body
    end = before.index(b'],"stream"')
    for more in (user("and now?", id="n1"), said(settled("n2", "now"), id="n3"), context("news", "system", "n4")):
        held = held.add(more)
        now = wire.wire(request(conversation=held, pieces=pieces)).body
        assert now.startswith(before[:end] + b",")
        before, end = now, now.index(b'],"stream"')


def test_a_lane_begins_at_the_lowest_unit_ever_shown() -> None:
    """A window encodes its own units only; showing more later begins a new lane."""
    wire, held = Counting(), talk(10)
    size = len(held.units)
    last = request(conversation=held, view=View(spans=(Span(size - 4, size),)))
    wire.wire(last)
    assert wire.encoded == 4
    whole = request(conversation=held)
    assert wire.wire(whole).body == fresh_body(MergingWire(), whole)
    wire.encoded = 0
    assert wire.wire(last).body == fresh_body(MergingWire(), last)
    assert wire.encoded == 0


def test_a_view_that_shows_nothing_leaves_lanes_alone() -> None:
    """Only pieces are sent then."""
    wire, held = projection(), talk(2)
    wire.wire(request(conversation=held))
    nothing = request(conversation=held, view=View(spans=()), pieces=(Piece(source="t", text="say it", place="turn"),))
    assert b'"messages":[{"role":"user","content":"say it"}]' in wire.wire(nothing).body
    assert [lane.stop for lane in lanes_of(held.units)] == [len(held.units)]


def test_extend_works_in_slices_and_says_how_many_are_left() -> None:
    """So that a long history does not hold up the event loop."""
    wire, held = Counting(), talk(4)
    asked = request(conversation=held)
    assert [wire.extend(asked, 5), wire.extend(asked, 5), wire.extend(asked, 5)] == [7, 2, 0]
    assert wire.encoded == 12
    wire.wire(asked)
    assert wire.encoded == 12


def test_extend_reaches_through_wrappers_and_leaves_other_models_alone() -> None:
    """A model without a cache has nothing left to do."""

    class Cached:
        card = CARD

        def extend(self, asked: object, limit: int) -> int:
            return 3 * limit

    asked = request(user("hi"))
    assert extend(preset(Cached(), temperature=0.2), asked, 2) == 6  # type: ignore[arg-type]  # no more than extend needs
    assert extend(asked.model, asked, 2) == 0


def test_large_units_are_encoded_at_each_use_and_not_kept() -> None:
    """Above 64 KB the slot stays empty."""
    wire, long = projection(), "x" * 70_000
    asked = request(user("a", id="u0"), user(long, id="u1"), user("b", id="u2"))
    assert wire.wire(asked).body == fresh_body(wire, asked)
    (lane,) = lanes_of(asked.conversation.units)
    assert (lane.large, lane.slots[1]) == ({1}, b"")
    apart = replace(asked, view=View(spans=(Span(0, 1), Span(2, 3))))
    assert len(wire.wire(apart).body) < 1000


# ---- sharing and forking --------------------------------------------------------------------------------------------


def test_at_most_two_lanes_and_the_least_recently_used_goes() -> None:
    """The one in use stays."""
    units = talk(1).units
    first, second = lane_for(units, "a", 0), lane_for(units, "b", 0)
    assert lane_for(units, "a", 0) is first
    lane_for(units, "c", 0)
    assert lane_for(units, "a", 0) is first
    assert lane_for(units, "b", 0) is not second


def test_what_else_is_kept_beside_a_log_is_left_alone() -> None:
    """Only lanes are counted and dropped."""

    class Digests:
        def cut(self, size: int) -> Digests:
            return self

    units = talk(1).units
    units.beside["digests"] = Digests()
    for key in ("a", "b", "c"):
        lane_for(units, key, 0)
    assert set(units.beside) == {"digests", "b", "c"}


def test_cutting_a_log_takes_its_lanes_along_up_to_the_cut() -> None:
    """Also where the lane begins behind the cut."""
    wire, held = projection(), talk(3)
    wire.wire(request(conversation=held))
    (lane,) = lanes_of(held.units.cut(4))
    assert (lane.stop, lanes_of(held.units)[0].stop) == (4, 9)
    windowed = talk(3)
    wire.wire(request(conversation=windowed, view=View(spans=(Span(6, 9),))))
    (short,) = lanes_of(windowed.units.cut(4))
    assert (short.start, short.stop) == (4, 4)


def test_a_fork_keeps_what_is_known_of_its_lanes() -> None:
    """Large units are still encoded at each use, and the lane used last is still the last to go."""
    wire, other = projection(), MergingWire()
    held = request(user("x" * 70_000), user("b", id="u1"), user("c", id="u2")).conversation
    for one in (wire, other, wire):
        one.wire(request(conversation=held))
    forked = request(conversation=Conversation(held.messages.cut(2), held.units.cut(2)))
    kept, _ = lanes_of(forked.conversation.units)
    assert wire.wire(forked).body == fresh_body(wire, forked)
    again = held.units.cut(2)
    lane_for(again, "another", 0)
    assert [lane.slots for lane in lanes_of(again)] == [kept.slots, []]


def test_a_swap_after_an_edit_shows_the_edited_unit() -> None:
    """A swap kept for the old unit is not used for the one that took its place."""
    wire, held = projection(), talk(1)
    swapped = View(spans=(Span(0, 3),), swaps=(Swap(unit=1, call=0, shows=(Text("[gone]"),)),))
    wire.wire(request(conversation=held, view=swapped))
    other = Conversation(held.messages.cut(1), held.units.cut(1)).add(said(settled("z", calls=[call("z", 0)]), id="b"))
    asked = request(conversation=other, view=replace(swapped, spans=(Span(0, 2),)))
    assert wire.wire(asked).body == fresh_body(wire, asked)


def test_swaps_are_kept_while_what_they_show_is_equal() -> None:
    """Encoded once; another text is another encoding; the conversation is untouched."""
    wire, held = Counting(), talk(1)
    view = View(spans=(Span(0, 3),), swaps=(Swap(unit=1, call=0, shows=(Text("[1]"),)),))
    asked = request(conversation=held, view=view)
    wire.wire(asked)
    wire.encoded = 0
    assert b"[1]" in wire.wire(asked).body
    assert wire.encoded == 0
    other = replace(asked, view=replace(view, swaps=(Swap(unit=1, call=0, shows=(Text("[2]"),)),)))
    assert b"[2]" in wire.wire(other).body
    assert b"sunny" in wire.wire(request(conversation=held)).body


def test_a_swap_that_changes_the_kind_of_a_unit_opens_and_closes_entries_anew() -> None:
    """Such a unit does not fit its slot."""
    wire = MergingWire()
    seen = settled("r", calls=[call("r", 0, result=(Text("t"), Image(url="https://h/i")))])
    held = request(user("q"), said(seen), user("w", id="u1"))
    swapped = View(spans=(Span(0, 3),), swaps=(Swap(unit=1, call=0, shows=(Text("t"),)),))
    for view in (held.view, swapped, held.view):
        asked = replace(held, view=view)
        assert wire.wire(asked).body == fresh_body(wire, asked)


def test_a_marked_unit_that_no_longer_fits_its_slot_is_marked_all_the_same() -> None:
    """A swap changed its kind; a swap for something that is no round changes nothing."""
    wire = MergingWire()
    seen = settled("r", calls=[call("r", 0, result=(Text("t"), Image(url="https://h/i")))])
    swaps = (Swap(unit=1, call=0, shows=(Text("t"),)), Swap(unit=0, call=0, shows=(Text("x"),)))
    held = request(user("q"), said(seen), user("w", id="u1"))
    asked = replace(held, view=View(spans=(Span(0, 3),), swaps=swaps, marks=(1,)))
    body = wire.wire(asked).body
    assert body.count(b'"mark":true') == 1
    assert b'"text":"t"},"mark":true}' in body


def test_a_swap_too_large_to_keep_is_judged_by_what_it_shows() -> None:
    """What is not kept is made, and looked at, for each request."""
    wire = MergingWire(keep=60)
    held = request(user("q"), said(settled("r", calls=[call("r", 0)])))
    for text in ("x" * 90, "y"):
        asked = replace(held, view=View(spans=(Span(0, 2),), swaps=(Swap(unit=1, call=0, shows=(Text(text),)),)))
        assert wire.wire(asked).body == fresh_body(wire, asked)
    (lane,) = lanes_of(held.conversation.units)
    assert lane.swapped == {}


def test_a_large_unit_that_is_not_shown_is_not_encoded() -> None:
    """Swapped for a line, carried by the turn's text or outside the view, it costs nothing."""
    wire, long = Counting(), "x" * 70_000
    held = request(user(long), said(settled("r", calls=[call("r", 0, result=(Text(long),))])))
    small = Swap(unit=1, call=0, shows=(Text("[long]"),))
    hiding = replace(held, view=View(spans=(Span(0, 2),), swaps=(small,)), carries=0)
    wire.wire(hiding)
    wire.encoded = 0
    assert wire.wire(hiding).body == fresh_body(MergingWire(), hiding)
    wire.wire(replace(held, view=View(spans=(Span(0, 0),))))
    assert wire.encoded == 0
    wire.wire(held)
    assert wire.encoded == 2


def test_turn_text_ends_the_leading_instructions() -> None:
    """What comes after it stays in its place."""
    wire = MergingWire()
    asked = request(
        context("first", "system"), context("second", "system", "c1"), own=1,
        pieces=(Piece(source="t", text="now", place="turn"),),
    )  # fmt: skip
    assert wire.wire(asked).body.startswith(b'{"system":"first","entries":[')
    assert wire.wire(asked).body == fresh_body(wire, asked)


def test_an_inserted_message_leads_only_with_authority() -> None:
    """Data never becomes an instruction by standing first."""
    wire = MergingWire()
    for authority, head in (("system", b'{"system":"now","entries"'), ("data", b'{"entries":[{"role":"user"')):
        asked = request(user("q"), view=View(spans=(context("now", authority), Span(0, 1))))
        assert wire.wire(asked).body.startswith(head)


def test_scopes_and_profiles_have_lanes_of_their_own() -> None:
    """Bytes depend on both."""
    item = b'{"role":"assistant","content":"hi","x":1}'
    held = talk(1).add(said(settled("n", "hi", continuation=native(item)), id="b"))
    wire, textual = projection(), projection(replace(CARD, arrays=False))
    bodies = {
        wire.wire(request(conversation=held, scope="s")).body: "native",
        wire.wire(request(conversation=held, scope="other")).body: "portable",
    }
    assert len(bodies) == 2
    textual.wire(request(conversation=held, scope="s"))
    assert len(lanes_of(held.units)) == 2


def test_lanes_are_filled_from_several_threads_at_once() -> None:
    """A log may be used from several threads."""
    held = talk(300)
    wire = projection()
    views = [View(spans=(Span(0, n),)) for n in range(1, len(held.units), 7)] * 2
    with ThreadPoolExecutor(8) as pool:
        bodies = list(pool.map(lambda view: wire.wire(request(conversation=held, view=view)).body, views))
    fresh = projection()
    for view, body in zip(views[:20] + views[-20:], bodies[:20] + bodies[-20:], strict=True):
        assert body == fresh_body(fresh, request(conversation=held, view=view))


def test_a_longer_talk_in_another_thread_adds_nothing_to_a_request() -> None:
    """Whatever is put behind the lane while a body is being made stays out of it."""

    class Overtaken(ChatProjection):
        longer: Conversation | None = None

        def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
            if self.longer is not None:
                longer, self.longer = self.longer, None
                self.wire(replace(request, conversation=longer, view=View(spans=(Span(0, len(longer.units)),))))
            return super().frame(request, system, empty=empty)

    wire, held = Overtaken(CARD, Dialect()), talk(2)
    for carries in (None, 0):
        asked, wire.longer = request(conversation=held, carries=carries), held.add(user("much later", id=f"l{carries}"))
        assert wire.wire(asked).body == fresh_body(projection(), asked)


# ---- ids -----------------------------------------------------------------------------------------------


def test_portable_ids_are_nine_letters_and_digits_and_differ() -> None:
    """Over as many calls as a long life has."""
    ids = {portable_id(f"t/a/r{n}", i) for n in range(5_000) for i in range(2)}
    assert len(ids) == 10_000
    assert all(re.fullmatch(r"[0-9A-Za-z]{9}", one) for one in ids)
    assert portable_id("t/a/r0", 0) == portable_id("t/a/r0", 0)
