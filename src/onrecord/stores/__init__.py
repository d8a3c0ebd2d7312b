"""Stores: where sessions and their records are kept."""

from onrecord.session.memory import MemoryStore
from onrecord.stores.sqlite import SqliteStore

__all__ = ("MemoryStore", "SqliteStore")
