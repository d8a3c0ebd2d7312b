"""Folds of features, as tests of sessions mount them."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from onrecord.conversation.log import Log
from onrecord.record.entry import Body, Entry, kind_of
from onrecord.turn.moments import Hooks
from tests.turn.acting import Named

__all__ = ("Listing", "Seen", "mounted")


class Seen(Struct, frozen=True):
    """One thing that a fold kept."""

    kind: str
    n: int


class Listing:
    """Keeps entries of some kinds, in a log that grows in O(1)."""

    state = Log[Seen]

    def __init__(
        self, *kinds: str, name: str = "listing", version: int = 1, scope: Literal["session", "turn"] = "session",
        unfinished: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.version, self.unfinished = name, version, unfinished
        self.kinds = frozenset(kinds)
        self.scope: Literal["session", "turn"] = scope

    def start(self) -> Log[Seen]:
        return Log()

    def apply(self, state: Log[Seen], entry: Entry, /) -> Log[Seen]:
        return state.append(Seen(kind_of(entry.body), entry.n))


def mounted(*folds: Listing, bodies: tuple[type[Body], ...] = (), **hooks: Any) -> Named:
    """A feature that has these folds."""
    return Named("listing", Hooks(folds=folds, bodies=bodies, **hooks))
