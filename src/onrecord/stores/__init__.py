"""Stores: where sessions and their records are kept."""

from onrecord.stores.sqlite import SqliteStore

__all__ = ("SqliteStore",)
