"""Stores with something in them, and what is asked of them when they are broken."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

from onrecord.errors import StoreError
from onrecord.session.session import Session
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import turn

CANARY = "canary-51c9"
"""Stands for what people said: no error may hold it."""


TO_FIRST_SCHEMA = """
    drop index sessions_of; drop index sessions_below;
    alter table sessions drop column owner; alter table sessions drop column parent;
    drop table rows; delete from sqlite_sequence where name='rows'; pragma user_version=1; vacuum"""
"""Makes of a store's file what the first schema was: no rows, and nothing to find owners and sub-turns by."""


async def filled(path: Path, turns: int = 20) -> Session:
    """A store with one session, closed again, so that everything is in the one file."""
    async with SqliteStore(path) as store:
        session = await store.commit(turn("s", CANARY))
        for n in range(turns - 1):
            session = await store.commit(turn(session, f"{CANARY} {n}"))
    return session


async def outcome(call: Callable[[], Awaitable[object]]) -> object:
    """What a call returns, or the StoreError that it raises."""
    try:
        return await call()
    except StoreError as error:
        return error


def intact(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with the whole file."""
    db = sqlite3.connect(path)
    try:
        return bool(db.execute("pragma integrity_check").fetchone() == ("ok",))
    finally:
        db.close()
