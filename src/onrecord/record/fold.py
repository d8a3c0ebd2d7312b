"""Folds: pure functions from entries to state, and the order in which they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol, TypeVar

from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ENDS, Erased

__all__ = ("Fold", "ended_by", "takes")

S = TypeVar("S")


class Fold(Protocol[S]):
    """Derives one state from the record, live while a turn runs and again at every replay.

    ``apply`` must be pure and O(changes). ``kinds`` are the kinds it reads. Scope ``session`` lives on in the session
    under ``name`` with ``version`` (a changed version is folded again from the store); scope ``turn`` ends with the
    turn. ``unfinished`` folds also read takes that were interrupted or failed.

    A fold whose state repeats what was said, a summary say, has ``quotes = True`` beside these: then its state begins
    anew when turns are erased by age. States of other folds outlive that.
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


_ENDS: dict[str, type[Body]] = {str(end.__struct_config__.tag): end for end in ENDS}


def ended_by(body: Body) -> type[Body] | None:
    """The kind of end that this body is for its take, or was before it was erased; None for any other body."""
    if isinstance(body, ENDS):
        return type(body)
    return _ENDS.get(body.was) if isinstance(body, Erased) else None


def takes(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries by whole takes, up to ``turn.closed | paused | interrupted | failed``; last, what has no end yet.

    Only the end says which folds may read a take, so replay gathers first.
    """
    gathered: list[Entry] = []
    for entry in entries:
        gathered.append(entry)
        if ended_by(entry.body) is not None:
            yield gathered
            gathered = []
    if gathered:
        yield gathered
