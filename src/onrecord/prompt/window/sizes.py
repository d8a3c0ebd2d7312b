"""How large a conversation is for a model: a running estimate beside its log of units, never a walk per request.

An *item* is a message, what a model wrote in one round, or one tool result. An item counts its characters, those of
its tool's name, and four; four characters are a token. Parts that are no text count `MEDIA_CHARS` each, and the
arguments of calls count as what the model wrote.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from threading import Lock

from onrecord.conversation.content import Part, Text, plain_text
from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.render import context_text, user_parts
from onrecord.models.request import Swap
from onrecord.models.unit_bytes import result_parts

__all__ = ("CHARS_PER_TOKEN", "ITEM_CHARS", "MEDIA_CHARS", "Sizes", "estimate", "outweighs", "sizes_of", "tokens")

CHARS_PER_TOKEN = 4
ITEM_CHARS = 4
"""What every item costs besides its words."""

MEDIA_CHARS = 4_000
"""What a picture, a sound or a file counts: about a thousand tokens."""


def tokens(chars: int) -> int:
    """The estimate for so many characters, rounded up."""
    return -(-chars // CHARS_PER_TOKEN)


def estimate(units: Iterable[Unit]) -> int:
    """About how many tokens these units are; 0 for none."""
    return tokens(sum(_weight(unit)[0] for unit in units))


def outweighs(units: Iterable[Unit], chars: int) -> bool:
    """Whether these units are longer than so many characters; looks at no more of them than it takes."""
    for unit in units:
        if chars < 0:
            break
        chars -= _weight(unit)[0]
    return chars < 0


def _weight(unit: Unit) -> tuple[int, int]:
    """Characters and items of a unit."""
    if isinstance(unit, UserMessage):
        return _length(user_parts(unit)) + ITEM_CHARS, 1
    if isinstance(unit, ContextMessage):
        return len(context_text(unit)) + ITEM_CHARS, 1
    chars, items = len(unit.text) + ITEM_CHARS, 1
    for call in unit.calls:
        if call.status != "asked":  # a call that nobody answered is not shown
            chars += len(call.raw_args) + _length(result_parts(call)) + len(call.name) + ITEM_CHARS
            items += 1
    for around in (*unit.before, *unit.revised):
        chars += len(context_text(around)) + ITEM_CHARS
    return chars, items


def _length(parts: tuple[Part, ...]) -> int:
    return sum(len(part.text) if isinstance(part, Text) else MEDIA_CHARS for part in parts)


Short = tuple[tuple[Swap, ...], int]
"""Results of one unit in shorter forms, and how many characters that saves."""

_Sums = tuple["array[int]", "array[int]", "array[int]", dict[tuple[int, bool], Short]]


class Sizes:
    """Sums over a log's units from unit ``start`` on, and tool results in their shorter forms once somebody asked.

    Kept parallel to the log, like wire bytes: extended by what is new, never invalidated.
    """

    __slots__ = ("_chars", "_items", "_lock", "_short", "_with_results", "limit", "start")

    def __init__(self, start: int, limit: int, held: _Sums | None = None) -> None:
        self.start, self.limit = start, limit
        chars, items, with_results, short = held or (array("q", (0,)), array("q", (0,)), array("q"), {})
        self._chars, self._items, self._with_results, self._short = chars, items, with_results, short
        self._lock = Lock()  # a session may take turns in several threads at once

    @property
    def stop(self) -> int:
        """The first unit that is not measured."""
        return self.start + len(self._items) - 1

    def cut(self, size: int) -> Sizes:
        """See `Beside`: sums over the first ``size`` units of the log."""
        with self._lock:
            some = max(0, size - self.start) + 1
            with_results = self._with_results[: bisect_right(self._with_results, size - 1)]
            short = {key: held for key, held in list(self._short.items()) if key[0] < size}
            return Sizes(
                min(self.start, size), self.limit, (self._chars[:some], self._items[:some], with_results, short)
            )  # fmt: skip

    def extend(self, units: Log[Unit], stop: int) -> None:
        """Measures what is new up to before unit ``stop``."""
        with self._lock:
            at = self.stop
            for place, unit in enumerate(units.since(at)[: max(0, stop - at)], at):
                chars, items = _weight(unit)
                if items > 1:
                    self._with_results.append(place)
                self._chars.append(self._chars[-1] + chars)
                self._items.append(self._items[-1] + items)

    def chars(self, start: int, stop: int) -> int:
        """The characters of units ``start`` up to before ``stop``."""
        return self._chars[stop - self.start] - self._chars[start - self.start]

    def newest(self, stop: int, items: int) -> int:
        """The unit with which at least so many items before ``stop`` begin; calls stay with their results."""
        held = self._items
        # A unit is never divided, so a window that would open on a result opens on the round that asked for it.
        place = bisect_right(held, held[stop - self.start] - items, hi=stop - self.start + 1) - 1
        return self.start + max(place, 0)

    def short(self, units: Log[Unit], start: int, stop: int, *, tight: bool) -> Iterator[Short]:
        """Tool results in shorter forms and the characters this saves, for each unit from ``start`` that has any.

        Results longer than ``limit`` are cut; ``tight`` ones have their white space collapsed as well.
        """
        held = self._with_results
        for place in held[bisect_right(held, start - 1) : bisect_right(held, stop - 1)]:
            shown = self._short.get((place, tight))
            if shown is None:
                shown = self._short[place, tight] = _shortened(place, units[place], self.limit, tight=tight)
            if shown[0]:
                yield shown


def sizes_of(units: Log[Unit], limit: int, lowest: int) -> Sizes:
    """The sizes beside this log that begin at unit ``lowest`` or before; new ones where there are none."""
    held = units.beside.get(("sizes", limit))
    if not isinstance(held, Sizes) or held.start > lowest:
        held = units.beside[("sizes", limit)] = Sizes(lowest, limit)
    return held


def _shortened(place: int, unit: Unit, limit: int, *, tight: bool) -> Short:
    swaps: list[Swap] = []
    saved = 0
    for index, call in enumerate(unit.calls if isinstance(unit, Round) else ()):
        if call.status == "asked":
            continue
        text, media = _result(call)
        shown = f"{text[:limit]}\n\n[Truncated: {len(text)} chars total, showing first {limit}]"
        if len(text) <= limit:
            shown = text
        if tight:
            shown = " ".join(shown.split())
        if shown != text:
            swaps.append(Swap(unit=place, call=index, shows=(Text(shown), *media)))
            saved += len(text) - len(shown)
    return tuple(swaps), saved


def _result(call: ToolCall) -> tuple[str, tuple[Part, ...]]:
    """The words of a result, notes of the library included, and what of it is no text."""
    parts = result_parts(call)
    return plain_text(parts), tuple(part for part in parts if not isinstance(part, Text))
