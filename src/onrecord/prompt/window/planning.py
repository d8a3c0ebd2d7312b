"""Which units may leave a window, and why the others stay. Pure.

A unit is a message, or a round with all its results: what is planned here can never part a call from its result.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from onrecord.conversation.log import Log
from onrecord.conversation.messages import Round, Unit
from onrecord.prompt.window.evicted import Kept
from onrecord.prompt.window.gaps import Gap
from onrecord.prompt.window.outline import Outline, reason_to_stay

__all__ = ("MOST_STRETCHES", "MOST_TOLD", "Planned", "Space", "pinned_results", "plan_removal", "why_it_stays")

MOST_STRETCHES = 50
"""How many stretches one request may remove: what stays may lie between very many of them."""

MOST_TOLD = 20
"""How many refusals one entry tells; a conversation may hold very many units that stay."""


class Space(Struct, frozen=True):
    """What is shown of the first ``size`` units: all but the ``gaps``, in order and apart."""

    size: int
    gaps: Sequence[tuple[int, int]] = ()

    @classmethod
    def of(cls, size: int, gaps: Sequence[Gap]) -> Space:
        """So many units with these gaps."""
        return cls(size, tuple((gap.start, gap.stop) for gap in gaps))

    @property
    def count(self) -> int:
        """How many units are shown."""
        return self.size - sum(stop - start for start, stop in self.gaps)

    def newest(self, count: int) -> int:
        """The first of the newest ``count`` units that are shown; ``size`` for none of them."""
        stop = self.size
        for start, end in reversed(self.gaps):
            if stop - end >= count:
                break
            count -= stop - end
            stop = start
        return max(stop - count, 0)

    def from_(self, place: int) -> int:
        """The first shown unit from this one on."""
        at = bisect_right(self.gaps, place, key=lambda gap: gap[0]) - 1
        while 0 <= at < len(self.gaps) and self.gaps[at][0] <= place < self.gaps[at][1]:
            place, at = self.gaps[at][1], at + 1
        return place

    def shows(self, place: int) -> bool:
        """Whether this unit is shown."""
        return self.from_(place) == place


class Planned(Struct, frozen=True):
    """The stretch that may leave (an empty one: nothing may), and who refused, in order."""

    start: int
    stop: int
    refusals: tuple[Kept, ...]


def why_it_stays(units: Log[Unit], place: int, request: int, held: Mapping[int, str]) -> str:
    """The first reason for which this unit may not leave, or none; whatever its place among the newest."""
    return "current-request" if place == request else reason_to_stay(units[place]) or held.get(place, "")


def plan_removal(
    units: Log[Unit], outline: Outline, space: Space, keep: int, request: int, held: Mapping[int, str],
    since: int = 0,
) -> Planned:  # fmt: skip
    """The oldest stretch from unit ``since`` on that may leave, so that the newest ``keep`` units stay.

    From there on, what must stay is passed by; then the stretch reaches up to the next unit that must: the
    current ``request`` (-1: none), what stays by itself (`reason_to_stay`), and the places in ``held``, which says why.
    The first of these reasons is the one that is told.
    """
    window, refusals = space.newest(keep), list[Kept]()

    def refused(place: int) -> bool:
        why = why_it_stays(units, place, request, held)
        if why and len(refusals) < MOST_TOLD:
            refusals.append(Kept(why=why, unit=units[place].id))
        return bool(why)

    start = space.from_(since)
    while start < window and refused(start):
        start = space.from_(start + 1)
    stop = start
    if start < window:
        ends = [place for place in (request, *held) if place > start and space.shows(place)]
        stop = min((window, *ends, *_next(outline.stay, start, space)))
        if stop < window:
            refused(stop)
    else:
        start = stop = window
    if (inside := space.from_(window)) < space.size and len(refusals) < MOST_TOLD:
        refusals.append(Kept(why="inside-keep-window", unit=units[inside].id))
    return Planned(start, stop, tuple(refusals))


def _next(places: Sequence[int], start: int, space: Space) -> Iterator[int]:
    """The first of these places from ``start`` on that is shown, if there is one."""
    for at in range(bisect_left(places, start), len(places)):
        if space.shows(places[at]):
            yield places[at]
            return


def pinned_results(
    units: Log[Unit], outline: Outline, space: Space, keep: int, limit: int, request: int
) -> dict[int, str]:
    """Units that hold the newest result of a tool, by place, with that tool's name: at most ``limit`` of them.

    Only results behind the current ``request`` count, newest first, one unit per tool and one tool per unit; what is
    among the newest ``keep`` units stays anyway and uses nothing up.
    """
    window, pins, seen = space.newest(keep), dict[int, str](), set[str]()
    for place, held in _backwards(units, outline, space, request):
        if len(pins) >= limit:
            break
        for call in held.calls:
            if call.status == "asked" or call.name in seen:
                continue
            seen.add(call.name)
            if place < window:
                pins.setdefault(place, call.name)
    return pins


def _backwards(units: Log[Unit], outline: Outline, space: Space, request: int) -> Iterator[tuple[int, Round]]:
    """Shown rounds with calls behind the request, the newest first; what has left is leapt over."""
    places, stop = outline.results, space.size
    for gap in (*reversed(space.gaps), (-1, request + 1)):
        start = max(gap[1], request + 1)
        for at in range(bisect_left(places, stop) - 1, bisect_left(places, start) - 1, -1):
            unit = units[places[at]]
            if isinstance(unit, Round):
                yield places[at], unit
        stop = min(stop, gap[0])
        if stop <= request:
            return
