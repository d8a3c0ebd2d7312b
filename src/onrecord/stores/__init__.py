"""Stores: where sessions and their records are kept, and what is remembered of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.session.memory_store import MemoryStore
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_codec import Cipher

if TYPE_CHECKING:
    from onrecord.stores.sqlite_shelf import SqliteShelf

__all__ = ("Cipher", "MemoryStore", "SqliteShelf", "SqliteStore")


def __getattr__(name: str) -> object:
    """A shelf is imported where one is asked for: it brings what memories are made of."""
    if name != "SqliteShelf":
        raise AttributeError(f"module 'onrecord.stores' has no attribute {name!r}")
    from onrecord.stores.sqlite_shelf import SqliteShelf as Shelf

    globals()[name] = Shelf
    return Shelf
