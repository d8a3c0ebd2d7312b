"""What came before a turn, as one of its requests finds it: how large it is, and what of it may be shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Round, Unit
from onrecord.conversation.render import context_text
from onrecord.models.request import Request, Span, Swap, View
from onrecord.prompt.window.evicted import COMPACTED, Summary
from onrecord.prompt.window.sizes import ITEM_CHARS, Sizes, sizes_of
from onrecord.prompt.window.summarising import HEADING, shown_summary
from onrecord.session.chain import chain_of
from onrecord.turn.turn import Turn
from onrecord.turn.warm import SLICE

__all__ = ("Past", "Shown", "digest_at", "past_of")


class Shown(Struct, frozen=True):
    """Everything from unit ``start`` on, with results in shorter forms: so many characters."""

    start: int
    swaps: tuple[Swap, ...]
    chars: int


class Past(Struct, frozen=True, kw_only=True):
    """The units before ``stop``, of which ``head`` stands for the first ``base`` where there is a summary.

    The newest ones, from ``window`` on, are left as they are. ``pinned`` are places of units that are shown whatever
    else is.
    """

    units: Log[Unit]
    sizes: Sizes
    stop: int
    base: int
    window: int
    summary: Summary | None
    head: ContextMessage | None
    pinned: tuple[int, ...]

    def whole(self) -> Shown:
        """All of it, behind the summary."""
        return Shown(self.base, (), self._chars(self.base))

    def short(self, *, tight: bool) -> Shown:
        """All of it with shorter results before the window: long ones cut and, if ``tight``, white space collapsed."""
        swaps, saved = list[Swap](), 0
        for some, chars in self.sizes.short(self.units, self.base, self.window, tight=tight):
            swaps += some
            saved += chars
        return Shown(self.base, tuple(swaps), self._chars(self.base) - saved)

    def newest(self, short: Shown, fits: Callable[[Shown], bool]) -> Shown:
        """The window, and as many units before it, the newest first, as fit with shorter results."""
        shown = Shown(self.window, (), self._chars(self.window))
        saved = 0
        for start in range(self.window - 1, self.base - 1, -1):
            saved += sum(chars for _, chars in self.sizes.short(self.units, start, start + 1, tight=True))
            more = Shown(start, (), self._chars(start) - saved)
            if not fits(more):
                break
            shown = more
        return replace(shown, swaps=tuple(swap for swap in short.swaps if swap.unit >= shown.start))

    def chars_behind(self, summary: str) -> int:
        """How much is shown of it once this is the summary of all before the window."""
        return self.sizes.chars(self.window, self.stop) + len(f"{HEADING}\n{summary}") + ITEM_CHARS

    def call(self, swap: Swap) -> str:
        """The id of the call whose result is swapped."""
        unit = self.units[swap.unit]
        return unit.calls[swap.call].id if isinstance(unit, Round) else ""

    def view(self, of: View, shown: Shown) -> View:
        """A view of the summary, what is pinned, and what is to be shown."""
        spans: list[Span | ContextMessage] = [] if self.head is None else [self.head]
        spans += (Span(place, place + 1) for place in self.pinned if place < shown.start)
        spans.append(Span(shown.start, len(self.units)))
        return replace(of, spans=tuple(spans), swaps=(*of.swaps, *shown.swaps))

    def _chars(self, start: int) -> int:
        shown = self.sizes.chars(start, self.stop)
        if self.head is not None:
            shown += len(context_text(self.head)) + ITEM_CHARS
        return shown + sum(self.sizes.chars(p, p + 1) for p in self.pinned if self.base <= p < start)


async def past_of(turn: Turn, request: Request, keep: int, limit: int) -> Past:
    """Measures what is new since the last request. ``keep`` items are left as they are, results cut at ``limit``."""
    units = request.conversation.units
    stop = _before(turn, units)
    summary = _valid(turn, units, stop)
    base = 0 if summary is None else summary.covers
    sizes = sizes_of(units, limit, base)
    while stop - sizes.stop > SLICE:  # a long history that was just loaded: other turns run in between
        sizes.extend(units, sizes.stop + SLICE)
        await asyncio.sleep(0)
    sizes.extend(units, stop)
    return Past(
        units=units, sizes=sizes, stop=stop, base=base, window=max(base, sizes.newest(stop, keep)), summary=summary,
        head=None if summary is None else shown_summary(summary), pinned=_pinned(turn, request),
    )  # fmt: skip


def _before(turn: Turn, units: Log[Unit]) -> int:
    """How many units came before this turn."""
    stop, own = len(units), f"{turn.id}/"
    while stop and _is_own(units[stop - 1], turn.id, own):
        stop -= 1
    return stop


def _is_own(unit: Unit, turn: str, own: str) -> bool:
    return unit.id.startswith(own) if isinstance(unit, Round) else unit.turn == turn


def _valid(turn: Turn, units: Log[Unit], stop: int) -> Summary | None:
    """The summary that the session keeps, if what it covers is what these units begin with."""
    summary = turn.state(COMPACTED).summary
    if summary is None or not 0 < summary.covers <= stop or units[summary.covers - 1].id != summary.last:
        return None
    return summary if digest_at(turn, units, summary.covers) == summary.digest else None


def digest_at(turn: Turn, units: Log[Unit], size: int) -> str:
    """What vouches for the first ``size`` units."""
    return chain_of(units, turn.session.digest_key).upto(units, size)


def _pinned(turn: Turn, request: Request) -> tuple[int, ...]:
    """Places of pinned units, and of the message that the turn began with: a resumed turn may have it far back."""
    pins, units = request.view.pins, request.conversation.units
    places = {place for place in range(len(units)) if units[place].id in pins} if pins else set[int]()
    if turn.admitted is not None:
        places.add(turn.admitted)
    return tuple(sorted(places))
