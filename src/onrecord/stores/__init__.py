"""Stores: where sessions and their records are kept, what is remembered of people, and long results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.lazy_names import lazy_names
from onrecord.session.memory_store import MemoryStore
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_codec import Cipher

if TYPE_CHECKING:
    from onrecord.stores.sqlite_artifacts import SqliteArtifacts
    from onrecord.stores.sqlite_shelf import SqliteShelf

__all__ = ("Cipher", "MemoryStore", "SqliteArtifacts", "SqliteShelf", "SqliteStore")

_HOMES = {"SqliteArtifacts": "sqlite_artifacts", "SqliteShelf": "sqlite_shelf"}
"""What brings features with it, and is imported where one is asked for."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
