"""Projection: a request as the bytes of one wire, joined from lanes. Pure, and the same for every protocol.

A wire supplies how it writes units (`UnitBytes`) and what surrounds them (`Projection.frame`); everything that depends
on the request is decided here: spans and inserts, leading instructions, the place of turn text, swapped results,
cache marks, pieces last, and what cannot be carried.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from onrecord.conversation.content import Part, Text
from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Round, Unit, UserMessage
from onrecord.conversation.render import context_text, request_text, unframed
from onrecord.models.lanes import SLICE, Joiner, Lane, Run, Sent, UnitEncoder, lane_for
from onrecord.models.request import Piece, ProjectionIssue, Request, Span, Swap, View, Wire
from onrecord.models.unit_bytes import InWords, UnitBytes

__all__ = ("Projection",)

_rank = attrgetter("rank")


class Projection(UnitBytes):
    """One wire for one model; ``hoists``: leading system and developer text goes where it keeps instructions."""

    hoists: bool = False
    _latest: _Assembly | None = None
    """The request that was projected last, until it goes out."""
    _in_words: InWords | None = None

    @abstractmethod
    def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
        """What stands before and after the entries; ``empty`` when there are none."""

    def refusals(self, request: Request, /) -> Iterable[str]:
        """What of the request apart from its units this wire cannot carry."""
        return ()

    def thinking_refusals(self, request: Request, /) -> Iterable[str]:
        """Why the model cannot be asked to think in the way of this request."""
        return ()

    def mark(self, body: bytes, /) -> bytes:
        """The last object of a unit with a cache mark; unchanged where the wire has none."""
        return body

    # ---- requests

    def wire(self, request: Request, /) -> Wire:
        """The exact bytes of a request. Pure: only lanes are filled."""
        self._latest = latest = _Assembly(self, request)
        return latest.wire()

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        """Encodes up to ``limit`` units that the request shows and no lane has yet; returns how many are left."""
        lane, stop = _lane_of(self, request)
        until = min(stop, lane.stop + limit)
        lane.extend(request.conversation.units, until, self.encoder(request.view), request.scope)
        return stop - until

    def encoder(self, view: View, /) -> UnitEncoder:
        """Who writes the units of a view: this wire, or this wire with words in the place of media."""
        if not view.stand_ins:
            return self
        if self._in_words is None:
            self._in_words = InWords(self)
        return self._in_words

    def sent(self, request: Request, /) -> None:
        """Notes that the request went out, so that the next `Wire.stable_until` is counted from it."""
        latest, self._latest = self._latest, None
        if latest is not None and _is_same(latest.request, request):  # what was projected goes out, as nearly always
            lane, placed = latest.lane, latest.turn
        else:
            (lane, _), placed = _lane_of(self, request), _placed(request.pieces)[1]
        turn = "\n\n".join(placed)
        lane.sent = Sent(request.view, request.own, request.carries, turn, len(request.conversation.units))


def _lane_of(wires: Projection, request: Request) -> tuple[Lane, int]:
    units = request.conversation.units
    size, low, high = len(units), -1, 0
    for span in request.view.spans:
        if isinstance(span, Span) and span.stop > span.start:
            low = span.start if low < 0 or span.start < low else low
            high = max(high, span.stop)
    if low < 0:
        return Lane(), 0
    key = (wires.protocol, wires.version, wires.profile, request.scope, request.view.stand_ins)
    return lane_for(units, key, low), min(high, size)


class _Assembly:
    """One request on its way to bytes."""

    __slots__ = (
        "encoder", "issues", "joiner", "lane", "leading", "marks", "problems", "replaced", "request", "split", "system",
        "trailing", "turn", "wires",
    )  # fmt: skip

    def __init__(self, wires: Projection, request: Request) -> None:
        self.wires, self.request, self.encoder = wires, request, wires.encoder(request.view)
        self.lane, stop = _lane_of(wires, request)
        if self.lane.stop < stop:
            self.lane.extend(request.conversation.units, stop, self.encoder, request.scope)
        # A wire without marks has nothing to splice, and may show its lane as it is.
        self.marks = request.view.marks if type(wires).mark is not Projection.mark else ()
        self.joiner: Joiner
        self.issues: list[ProjectionIssue] = []
        self.leading = wires.hoists
        self.replaced: dict[int, bytes] = {}  # units shown otherwise, in their slots
        self.split: dict[int, Sequence[Run]] = {}  # units that no longer fit their slots
        self.problems: dict[int, tuple[str, ...]] = {}  # of swapped units, in place of those that their slots had
        self.system, self.turn, self.trailing = _placed(request.pieces)

    def wire(self) -> Wire:
        if (shown := self._whole()) is not None:
            wires, request = self.wires, self.request
            issues = tuple(_refused(wires, request))
            head, tail = wires.frame(request, self.system, empty=False)
            out = [head, *self.lane.slots]
            del out[shown + 1 :]  # units behind the view; in another thread, a longer talk may add some at any time
            out += (wires.entries.end, tail)
            return Wire(body=b"".join(out), issues=issues, stable_until=self._stable())
        return self._assembled()

    def _whole(self) -> int | None:
        """How many slots a request shows that shows its lane from the start, as it is: most requests there are."""
        request, lane, view = self.request, self.lane, self.request.view
        if len(view.spans) != 1 or view.swaps or self.marks or request.carries is not None:
            return None
        if self.turn or self.trailing or self.leading or lane.large or lane.issues:
            return None
        span, entries, seams = view.spans[0], self.wires.entries, lane.seams
        if not isinstance(span, Span) or entries.first or entries.last or not seams or not seams[0][0]:
            return None
        stop = min(span.stop, len(request.conversation.units)) - lane.start
        return stop if span.start == lane.start and stop >= 1 else None

    def _assembled(self) -> Wire:
        request, view, joiner = self.request, self.request.view, Joiner(self.wires)
        self.joiner = joiner
        units = request.conversation.units
        self._exceptions(units)
        size, own, placed = len(units), request.own, False
        for span in view.spans:
            if isinstance(span, ContextMessage):
                self._insert(span)
                continue
            start, stop = span.start, min(span.stop, size)
            if not placed and stop > own and stop > start:
                if own > start:
                    self._units(units, start, own)
                    start = own
                self._turn_text(units)
                placed = True
            if start < stop:
                self._units(units, start, stop)
        if not placed:
            self._turn_text(units)
        for text in self.trailing:
            joiner.put((self.wires.context("data", unframed(text)),))
        self.issues += _refused(self.wires, request)
        head, tail = self.wires.frame(request, self.system, empty=not joiner.last)
        body = joiner.body(head, tail)
        return Wire(body=body, issues=tuple(self.issues), stable_until=self._stable())

    def _exceptions(self, units: Log[Unit]) -> None:
        """Units that are not shown from their slots as they are."""
        request, lane, wires = self.request, self.lane, self.wires
        if request.view.swaps:
            self._swaps(units)
        if request.carries is not None:
            self.replaced.pop(request.carries, None)
            self.split[request.carries] = ()
        # Behind swaps, which are mostly there to hide what is large: hidden, it need not be encoded.
        for i in tuple(lane.large) if lane.large else ():
            if i not in self.replaced and i not in self.split and _shows(request.view, i):
                self.replaced[i] = lane.refit(i, self.encoder.runs(units[i], request.scope), wires.entries) or b""
        for i in self.marks:
            self._mark(i)

    def _swaps(self, units: Log[Unit]) -> None:
        by_unit: dict[int, list[Swap]] = {}
        for swap in self.request.view.swaps:
            if self.lane.start <= swap.unit < self.lane.stop:
                by_unit.setdefault(swap.unit, []).append(swap)
        lane, wires, encoder, scope = self.lane, self.wires, self.encoder, self.request.scope
        for i, swaps in by_unit.items():
            seen = lane.swapped.get(i)
            if seen is None or seen[0] != swaps:
                unit = _swapped(units[i], swaps)
                runs = encoder.runs(unit, scope)
                seen = (swaps, runs, lane.refit(i, runs, wires.entries), encoder.problems(unit, scope))
                if sum(len(body) for _, body in runs) <= wires.keep:
                    lane.swapped[i] = seen
            self.problems[i] = seen[3]
            if seen[2] is None:
                self.split[i] = seen[1]
            else:
                self.replaced[i] = seen[2]

    def _mark(self, i: int) -> None:
        lane, wires = self.lane, self.wires
        if (runs := self.split.get(i)) is not None:
            if runs and runs[-1][0] != wires.model_kind:
                self.split[i] = [*runs[:-1], (runs[-1][0], wires.mark(runs[-1][1]))]
        elif lane.start <= i < lane.stop:
            head, tail, _ = lane.seams[i - lane.start]
            if head and tail != wires.model_kind:
                self.replaced[i] = wires.mark(self.replaced.get(i, lane.slots[i - lane.start]))

    def _insert(self, message: ContextMessage) -> None:
        text = request_text(message)
        if not text:
            return
        if self.leading and message.authority != "data":
            self.system.append(text)
            return
        self.leading = False
        self.joiner.put((self.wires.context(message.authority, text),))

    def _turn_text(self, units: Log[Unit]) -> None:
        request = self.request
        parts: list[Part] = [Text(unframed("\n\n".join(self.turn)))] if self.turn else []
        if request.carries is not None and isinstance(carried := units[request.carries], UserMessage):
            parts += [part for part in carried.content if not isinstance(part, Text)]
            if isinstance(self.encoder, InWords):
                parts = list(self.encoder.parts(parts))
            self._found(request.carries, self.encoder.problems(carried, request.scope))
        if parts:
            self.leading = False
            self.joiner.put(self.wires.user(parts))

    def _units(self, units: Log[Unit], start: int, stop: int) -> None:
        while self.leading and start < stop:
            unit = units[start]
            if not isinstance(unit, ContextMessage) or unit.authority == "data":
                self.leading = False
                break
            if text := context_text(unit):
                self.system.append(text)
            start += 1
        lane, joiner = self.lane, self.joiner
        found = lane.issues | self.problems if self.problems else lane.issues
        for i in sorted(found) if found else ():
            if start <= i < stop and i != self.request.carries:
                self._found(i, found[i])
        if self.split:
            for i in sorted(i for i in self.split if start <= i < stop):
                joiner.slice(lane, start, i, self.replaced)
                joiner.put(self.split[i])
                start = i + 1
        joiner.slice(lane, start, stop, self.replaced)

    def _found(self, unit: int, problems: Iterable[str]) -> None:
        self.issues.extend(ProjectionIssue(unit=unit, what=what) for what in problems)

    def _stable(self) -> int | None:
        """Up to which unit this request shows what the last one sent did, byte for byte; None: no such one is known."""
        sent, request = self.lane.sent, self.request
        if sent is None:
            return None
        limits = [sent.size, _agreeing(sent.view, request.view)]
        turn = "\n\n".join(self.turn)
        if (sent.own, sent.turn) != (request.own, turn) and (sent.turn or turn):
            limits += (sent.own, request.own)
        if sent.carries != request.carries:
            limits += (at for at in (sent.carries, request.carries) if at is not None)
        if sent.view.swaps != request.view.swaps:
            limits += (swap.unit for swap in sent.view.swaps if swap not in request.view.swaps)
            limits += (swap.unit for swap in request.view.swaps if swap not in sent.view.swaps)
        return min(limits)


def _refused(wires: Projection, request: Request) -> Iterator[ProjectionIssue]:
    """What of the request apart from its units is in the way."""
    for what in wires.refusals(request):
        yield ProjectionIssue(unit=-1, what=what)
    if request.settings.thinking is not None:
        for what in wires.thinking_refusals(request):
            yield ProjectionIssue(unit=-1, what=what, about="thinking")


def _is_same(one: Request, other: Request) -> bool:
    """Whether two requests show the same units and texts, by identity: one is the other with its wire."""
    same = one.view is other.view and one.conversation is other.conversation and one.pieces is other.pieces
    return same and one.scope == other.scope


def _placed(pieces: Sequence[Piece]) -> tuple[list[str], list[str], list[str]]:
    """The texts of pieces by place, in order of rank and arrival; blank ones say nothing and are left out."""
    system: list[str] = []
    turn: list[str] = []
    trailing: list[str] = []
    for piece in sorted(pieces, key=_rank):
        text = piece.text
        if text and not text.isspace():
            place = piece.place
            (system if place == "system" else turn if place == "turn" else trailing).append(text)
    return system, turn, trailing


def _shows(view: View, unit: int) -> bool:
    return any(isinstance(span, Span) and span.start <= unit < span.stop for span in view.spans)


def _swapped(unit: Unit, swaps: Iterable[Swap]) -> Unit:
    if not isinstance(unit, Round):
        return unit
    calls = list(unit.calls)
    for swap in swaps:
        if swap.call < len(calls) and calls[swap.call].status != "asked":
            calls[swap.call] = replace(calls[swap.call], result=swap.shows, notes=())
    return replace(unit, calls=tuple(calls))


def _agreeing(was: View, now: View) -> int:
    """The index before which two views show the same units in the same order."""
    limit = 0
    for old, new in zip(was.spans, now.spans, strict=False):
        if isinstance(old, Span) and isinstance(new, Span):
            if old.start != new.start:
                break
            limit = min(old.stop, new.stop)
            if old.stop != new.stop:
                break
        elif old != new:
            break
    return limit
