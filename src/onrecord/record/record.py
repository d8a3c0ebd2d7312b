"""Record: reading what happened. One turn's `note` writes; everything else here only reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from onrecord.conversation.identity import SessionKey
from onrecord.errors import UsageError
from onrecord.record.entry import Entry

__all__ = ("Entries", "Record")

S = TypeVar("S")


class Entries(Protocol):
    """Reads a session's stored entries in order, from behind ``after``; a store's ``entries`` is one."""

    def __call__(self, key: SessionKey, /, *, after: int = -1) -> AsyncGenerator[Entry, None]: ...


class Record(Generic[S]):
    """The entries of one session in order, with the function that folds a prefix of them into a state."""

    def __init__(self, entries: Iterable[Entry], replay: Callable[[Sequence[Entry]], S]) -> None:
        self.entries = tuple(entries)
        self._replay = replay
        self._by_seq = {entry.seq: index for index, entry in enumerate(self.entries)}
        self._by_place = {(entry.turn, entry.n): entry for entry in self.entries}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def entry(self, seq: int) -> Entry:
        """The entry with this sequence number. UsageError when the record has none."""
        if seq not in self._by_seq:
            span = f"{self.entries[0].seq} to {self.entries[-1].seq}" if self.entries else "nothing"
            raise UsageError(f"there is no entry {seq} in this record", hint=f"it holds {span}")
        return self.entries[self._by_seq[seq]]

    def why(self, seq: int) -> tuple[Entry, ...]:
        """The causal slice of an entry, first cause first, the entry itself last."""
        slice_ = [self.entry(seq)]
        while (cause := slice_[-1].cause) is not None:
            before = self._by_place.get((slice_[-1].turn, cause))
            if before is None or before in slice_:
                break
            slice_.append(before)
        return tuple(reversed(slice_))

    def state_at(self, seq: int) -> S:
        """What the folds make of the record up to and including this entry: time travel."""
        self.entry(seq)
        return self._replay(self.entries[: self._by_seq[seq] + 1])

    def turns(self) -> dict[str, tuple[Entry, ...]]:
        """Entries by turn, in order of first appearance."""
        grouped: dict[str, list[Entry]] = {}
        for entry in self.entries:
            grouped.setdefault(entry.turn, []).append(entry)
        return {turn: tuple(entries) for turn, entries in grouped.items()}
