"""Folds: pure functions from entries to state, and the order in which they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol, TypeVar

from onrecord.record.entry import Entry
from onrecord.record.kinds import ENDS

__all__ = ("Fold", "takes")

S = TypeVar("S")


class Fold(Protocol[S]):
    """Derives one state from the record, live while a turn runs and again at every replay.

    ``apply`` must be pure and O(changes). ``kinds`` are the kinds it reads. Scope ``session`` lives on in the session
    under ``name`` with ``version`` (a changed version is folded again from the store); scope ``turn`` ends with the
    turn. ``unfinished`` folds also read takes that were interrupted or failed.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def state(self) -> type[S]: ...
    @property
    def kinds(self) -> frozenset[str]: ...
    @property
    def scope(self) -> Literal["session", "turn"]: ...
    @property
    def unfinished(self) -> bool: ...
    def start(self) -> S: ...
    def apply(self, state: S, entry: Entry, /) -> S: ...


def takes(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries by whole takes, up to ``turn.closed | paused | interrupted | failed``; last, what has no end yet.

    Only the end says which folds may read a take, so replay gathers first.
    """
    gathered: list[Entry] = []
    for entry in entries:
        gathered.append(entry)
        if isinstance(entry.body, ENDS):
            yield gathered
            gathered = []
    if gathered:
        yield gathered
