"""Lanes: cached wire bytes beside a log of units, and joining them into one body.

A lane runs parallel to the unit log: its slot for unit *i* holds ``glue + bytes`` of that unit as it stands after
unit *i-1*. Glue depends on two kinds only: a comma inside an entry, the end of one entry and the start of the next
between entries, always a comma on wires that never merge entries. A body is slices of lanes and one ``join``; only
the first slot of a slice, and units shown otherwise than they are, get new glue. Slots are never rewritten, so a lane
is valid for every view of its log, comes along when the log is cut, and never has to be invalidated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from threading import Lock
from typing import NamedTuple, Protocol

from msgspec import Struct

from onrecord.conversation.log import Log
from onrecord.conversation.messages import Unit
from onrecord.models.request import View

__all__ = ("SLICE", "Entries", "Joiner", "Lane", "Run", "Sent", "UnitEncoder", "lane_for", "portable_id")

Run = tuple[str, bytes]
"""A kind of entry, and comma-joined JSON objects that belong into one entry of that kind."""

Seam = tuple[str, str, int]
"""Of one slot: the kind it begins with (empty: it shows nothing), the kind after it, and the length of its glue."""

SLICE = 500
"""Units encoded before the event loop gets its turn: at most 5 ms."""

LANES_PER_LOG = 2
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = tuple(low + high for high in _DIGITS for low in _DIGITS)
_uses = count()
_choosing = Lock()


class Entries(Struct, frozen=True, kw_only=True):
    """How a wire's entries look from outside.

    ``opening`` says how an entry of each kind starts and ``end`` how all end; both are empty where entries are never
    merged, and then every unit is a list of whole entries of one kind. ``first`` is the kind that a body must start
    with and ``last`` the kinds it may end with; empty means any.
    """

    opening: Mapping[str, bytes] = {}
    end: bytes = b""
    first: str = ""
    last: frozenset[str] = frozenset()

    def glue(self, last: str, kind: str) -> bytes:
        """What goes between an entry of kind ``last`` (empty: the start of the body) and what comes next."""
        if not last:
            return self.opening.get(kind, b"")
        if last == kind:
            return b","
        return self.end + b"," + self.opening.get(kind, b"")

    def join(self, runs: Sequence[Run]) -> bytes:
        """Runs that follow each other, without the glue in front of the first."""
        if len(runs) == 1:
            return runs[0][1]
        out, last = [], ""
        for kind, body in runs:
            if last:
                out.append(self.glue(last, kind))
            out.append(body)
            last = kind
        return b"".join(out)


class UnitEncoder(Protocol):
    """One wire for one model, as lanes see it."""

    entries: Entries
    keep: int
    """The largest unit, in bytes, that a slot keeps; a larger one is encoded at each use."""

    def runs(self, unit: Unit, scope: str, /) -> Sequence[Run]:
        """The unit on this wire; no run is empty. Pure: equal units in equal scopes give equal bytes."""
        ...

    def problems(self, unit: Unit, scope: str, /) -> tuple[str, ...]:
        """What of the unit this wire cannot carry."""
        ...

    def filler(self, *, leads: bool) -> Run:
        """The fixed entry in front of, or behind, a body that must not begin or end as it does."""
        ...


class Sent(NamedTuple):
    """What the last request sent from a lane showed; ``size`` bounds it after the log was cut."""

    view: View
    own: int
    carries: int | None
    turn: str
    size: int


class Lane:
    """Slots of one log, from unit ``start`` on. Extended under a lock, read without one."""

    __slots__ = ("_lock", "issues", "large", "seams", "sent", "slots", "start", "swapped", "used")

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.slots: list[bytes] = []
        self.seams: list[Seam] = []
        self.issues: dict[int, tuple[str, ...]] = {}
        self.large: set[int] = set()
        self.swapped: dict[int, tuple[object, Sequence[Run], bytes | None, tuple[str, ...]]] = {}
        self.sent: Sent | None = None
        self.used = 0
        self._lock = Lock()

    @property
    def stop(self) -> int:
        """The first unit without a slot."""
        return self.start + len(self.slots)

    def cut(self, size: int) -> Lane:
        """An independent lane over the first ``size`` units of the log."""
        with self._lock:
            lane = Lane(min(self.start, size))
            kept = max(0, size - self.start)
            lane.slots, lane.seams = self.slots[:kept], self.seams[:kept]
            lane.issues = {i: v for i, v in self.issues.items() if i < size}
            lane.large = {i for i in self.large if i < size}
            lane.swapped = {i: v for i, v in list(self.swapped.items()) if i < size}
            lane.used = self.used
            if self.sent is not None:
                lane.sent = self.sent._replace(size=min(self.sent.size, size))
            return lane

    def extend(self, units: Log[Unit], stop: int, encoder: UnitEncoder, scope: str) -> None:
        """Fills the slots up to before unit ``stop``."""
        with self._lock:
            at = self.stop
            if at >= stop:
                return
            seams, slots, entries = self.seams, self.slots, encoder.entries
            runs_of, problems_of = encoder.runs, encoder.problems
            last = seams[-1][1] if seams else ""
            for i, unit in enumerate(units.since(at)[: stop - at], at):
                if problems := problems_of(unit, scope):
                    self.issues[i] = problems
                runs = runs_of(unit, scope)
                if not runs:
                    slot, seam = b"", ("", last, 0)
                else:
                    head = runs[0][0]
                    glue = entries.glue(last, head)
                    body = entries.join(runs)
                    last = runs[-1][0]
                    seam = (head, last, len(glue))
                    slot = glue + body
                    if len(body) > encoder.keep:
                        self.large.add(i)
                        slot = b""
                # The seam first: whoever sees the slot finds its seam.
                seams.append(_seams.setdefault(seam, seam))
                slots.append(slot)

    def refit(self, unit: int, runs: Sequence[Run], entries: Entries) -> bytes | None:
        """Other bytes for a slot; None when the first or last kind is not the cached one, so that glue would change."""
        at = unit - self.start
        head, tail, _ = self.seams[at]
        if not runs or (head, tail) != (runs[0][0], runs[-1][0]):
            return None
        return entries.glue(self.seams[at - 1][1] if at else "", head) + entries.join(runs)


_seams: dict[Seam, Seam] = {}  # a wire has a handful of seams: slots share them


def lane_for(units: Log[Unit], key: Hashable, lowest: int) -> Lane:
    """The lane under ``key`` beside this log, which begins at ``lowest`` or before; a new one where there is none.

    Of more than two the least recently used goes.
    """
    beside = units.beside
    lane = beside.get(key)
    if not isinstance(lane, Lane) or lane.start > lowest:
        with _choosing:
            lane = beside.get(key)
            if not isinstance(lane, Lane) or lane.start > lowest:
                beside.pop(key, None)
                held = [(kept.used, name) for name, kept in list(beside.items()) if isinstance(kept, Lane)]
                if len(held) >= LANES_PER_LOG:
                    beside.pop(min(held, key=lambda one: one[0])[1], None)
                lane = beside[key] = Lane(lowest)
    lane.used = next(_uses)
    return lane


class Joiner:
    """Collects the bytes of a body, opening and closing entries where the kind changes."""

    __slots__ = ("_encoder", "_entries", "last", "out")

    def __init__(self, encoder: UnitEncoder) -> None:
        self._encoder, self._entries = encoder, encoder.entries
        self.out: list[bytes] = [b""]  # the first becomes the head
        self.last = ""

    def put(self, runs: Iterable[Run]) -> None:
        """Runs encoded for this request alone."""
        entries = self._entries
        for kind, body in runs:
            if not self.last and entries.first and kind != entries.first:
                self.put((self._encoder.filler(leads=True),))
            self.out += (entries.glue(self.last, kind), body)
            self.last = kind

    def slice(self, lane: Lane, start: int, stop: int, replaced: Mapping[int, bytes]) -> None:
        """The units from ``start`` up to before ``stop`` from their slots, or as ``replaced`` has them."""
        seams, slots, base = lane.seams, lane.slots, lane.start
        a, b = start - base, stop - base
        while a < b and not seams[a][0]:  # units that show nothing
            a += 1
        if a >= b:
            return
        out = self.out
        if self.last == (seams[a - 1][1] if a else "") and (self.last or not self._entries.first):
            at = len(out) - a
            out += slots[a:b]
        else:
            head, _, glue = seams[a]
            self.put(((head, replaced.get(a + base, slots[a])[glue:]),))
            at = len(out) - a - 1
            out += slots[a + 1 : b]
            replaced = {i: body for i, body in replaced.items() if i - base != a} if replaced else replaced
        for i in replaced:
            if a <= i - base < b:
                out[at + i - base] = replaced[i]
        self.last = seams[b - 1][1]

    def body(self, head: bytes, tail: bytes) -> bytes:
        """The finished body: the only copy of its bytes."""
        entries = self._entries
        if self.last and entries.last and self.last not in entries.last:
            self.put((self._encoder.filler(leads=False),))
        self.out[0] = head
        if self.last:
            self.out.append(entries.end)
        self.out.append(tail)
        return b"".join(self.out)


def portable_id(round_id: str, index: int) -> str:
    """Nine letters and digits for a call outside its native scope: unique, and of a form that every vendor takes."""
    number = int.from_bytes(blake2b(f"{round_id}/{index}".encode(), digest_size=8).digest())
    digits = ""
    for _ in range(4):
        number, pair = divmod(number, 62 * 62)
        digits += _PAIRS[pair]
    return digits + _DIGITS[number % 62]
