"""A plan of the application for its window: what it is shown, and what becomes of what it names."""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, overload

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.messages import Unit
from onrecord.models.request import Request, Span
from onrecord.prompt.window.evicted import Evicted, Kept
from onrecord.prompt.window.gaps import WINDOW_PLACE, WINDOWED, Gap, about
from onrecord.prompt.window.planning import MOST_STRETCHES, MOST_TOLD, Planned, Space, why_it_stays
from onrecord.prompt.window.removing import Asked, Visit, dropped, held_in, standing, visit_of
from onrecord.prompt.window.sizes import estimate
from onrecord.turn.contained import ends_take, raised
from onrecord.turn.turn import Turn

__all__ = ("WindowLook", "WindowPlan", "WindowUnit", "by_plan")


class WindowUnit(Struct, frozen=True):
    """A message, or a round with all its results, as a plan sees it.

    ``tokens`` is an estimate, four characters a token. ``stays`` is why the unit may not leave (see `Kept`), or empty.
    """

    unit: Unit
    tokens: int
    stays: str


class WindowLook(Struct, frozen=True):
    """What a plan goes by: ``units`` are those that are shown, oldest first; what has left already is not among them.

    ``measured`` is how many input tokens the provider counted for the request before; None where it counted none, and
    after a removal. ``too_long``: the model has just refused this request as too long. ``round`` is the number of the
    request in its turn, from 0.
    """

    units: Sequence[WindowUnit]
    measured: int | None
    too_long: bool
    round: int


Leaving: TypeAlias = Iterable[int] | None
WindowPlan: TypeAlias = Callable[[WindowLook], Leaving | Awaitable[Leaving]]
"""Says which units leave, by their places in `WindowLook.units`: a range, a list, or None for none."""


class _Shown(Sequence[WindowUnit]):
    """The units of a look, made as they are asked for: a plan that reads the newest few costs no walk of the rest."""

    def __init__(self, visit: Visit, held: Mapping[int, str]) -> None:
        self._visit, self._held = visit, held
        self._newest = visit.space.newest(visit.asked.keep)
        self._firsts, self._places, place, count = list[int](), list[int](), 0, 0
        for start, stop in (*visit.space.gaps, (visit.space.size, 0)):
            self._firsts.append(count)
            self._places.append(place)
            count, place = count + start - place, stop
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> WindowUnit: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[WindowUnit]: ...
    def __getitem__(self, at: int | slice) -> WindowUnit | Sequence[WindowUnit]:
        places = range(self._count)[at]
        return self._at(places) if isinstance(places, int) else [self._at(each) for each in places]

    def _at(self, at: int) -> WindowUnit:
        unit = self._visit.units[self.place(at)]
        return WindowUnit(unit, estimate((unit,)), self.why(self.place(at)))

    def place(self, at: int) -> int:
        """Where a shown unit stands in the conversation."""
        stretch = bisect_right(self._firsts, at) - 1
        return self._places[stretch] + at - self._firsts[stretch]

    def why(self, place: int) -> str:
        """Why this unit stays; empty where it may leave."""
        why = why_it_stays(self._visit.units, place, self._visit.request, self._held)
        return why or ("inside-keep-window" if place >= self._newest else "")


async def by_plan(
    turn: Turn, request: Request, gaps: tuple[Gap, ...], asked: Asked, plan: WindowPlan
) -> tuple[Gap, ...]:
    """Asks the plan, once for each request, removes what it names and may leave, and gives the gaps that then stand.

    What may not leave is told with the reason. A plan that raises, or names no places, removes nothing: that is told,
    and it is not asked again in this turn.
    """
    state, about_this = turn.state(WINDOWED), _about(turn)
    if state.failed == turn.id or state.asked == about(turn.id, about_this):
        return gaps
    visit = replace(await visit_of(turn, request, gaps, asked), about=about_this)
    shown = _Shown(visit, await held_in(visit, request))
    measured = state.measured.input_tokens if state.measured is not None and state.measured.counted else None
    try:
        wanted = plan(WindowLook(shown, measured, turn.refused is not None, turn.number))
        places = _places(await wanted if inspect.isawaitable(wanted) else wanted)
    except BaseException as error:
        if ends_take(error):
            raise
        turn.note(replace(visit.stayed((Kept(why="plan-failed"),)), error=raised(error)), where=WINDOW_PLACE)
        return gaps
    stretches, kept = _stretches(visit, shown, places)
    for start, stop in stretches:
        body = dropped(visit, Planned(start, stop, kept))
        kept = () if isinstance(body, Evicted) else body.kept[:MOST_TOLD]
        if isinstance(body, Evicted):
            turn.note(body, where=WINDOW_PLACE)
            gaps = await standing(turn, request, turn.state(WINDOWED).gaps)
            visit = replace(visit, gaps=gaps, space=Space.of(len(visit.units), gaps))
    if kept:
        turn.note(visit.stayed(kept), where=WINDOW_PLACE)
    return gaps


def _about(turn: Turn) -> str:
    """Names a request in its turn; one that was refused as too long, with how much it showed."""
    if turn.refused is None:
        return str(turn.number)
    return f"{turn.number}/{sum(each.stop - each.start for each in turn.refused[0].spans if isinstance(each, Span))}"


def _places(wanted: object) -> list[int]:
    """What a plan named, in order and once each. TypeError where that is no places."""
    if wanted is None:
        return []
    if not isinstance(wanted, Iterable) or isinstance(wanted, (str, bytes, Mapping)):
        raise TypeError("a plan gives places")
    places = set(wanted)
    if any(isinstance(place, bool) or not isinstance(place, int) for place in places):
        raise TypeError("a place is a number")
    return sorted(places)


def _stretches(
    visit: Visit, shown: _Shown, wanted: Iterable[int]
) -> tuple[list[tuple[int, int]], tuple[Kept, ...]]:  # fmt: skip
    """What leaves of what is wanted, in stretches of units that are shown beside each other; and what does not."""
    stretches, kept = list[tuple[int, int]](), list[Kept]()
    for at in wanted:
        is_shown = 0 <= at < len(shown)
        place = shown.place(at) if is_shown else -1
        why = shown.why(place) if is_shown else "not-shown"
        if not why and stretches and visit.space.from_(stretches[-1][1]) == place:
            stretches[-1] = stretches[-1][0], place + 1
        elif not why and len(stretches) < MOST_STRETCHES:
            stretches.append((place, place + 1))
        elif len(kept) < MOST_TOLD:
            kept.append(Kept(why=why or "too-many-stretches", unit=visit.units[place].id if is_shown else ""))
    return stretches, tuple(kept)
