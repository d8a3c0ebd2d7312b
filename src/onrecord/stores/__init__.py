"""Stores: where sessions and their records are kept, what is remembered of people, and long results."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from onrecord.session.memory_store import MemoryStore
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_codec import Cipher

if TYPE_CHECKING:
    from onrecord.stores.sqlite_artifacts import SqliteArtifacts
    from onrecord.stores.sqlite_shelf import SqliteShelf

__all__ = ("Cipher", "MemoryStore", "SqliteArtifacts", "SqliteShelf", "SqliteStore")

_WHEN_ASKED = {
    "SqliteArtifacts": "onrecord.stores.sqlite_artifacts",
    "SqliteShelf": "onrecord.stores.sqlite_shelf",
}
"""What brings features with it, and is imported where one is asked for."""


def __getattr__(name: str) -> object:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module 'onrecord.stores' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_WHEN_ASKED[name]), name)
    return found
