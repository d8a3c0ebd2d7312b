"""Stores: where sessions and their records are kept."""

from onrecord.session.memory_store import MemoryStore
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_codec import Cipher

__all__ = ("Cipher", "MemoryStore", "SqliteStore")
