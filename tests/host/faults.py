"""Stores whose file fails when a test says so: at a call, at a statement, before it is done or after."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from onrecord.stores import SqliteStore
from onrecord.testing import FakeEffects

__all__ = ("CODES", "WRITES", "FaultyStore", "broken", "is_write")

T = TypeVar("T")

CODES = {
    "SQLITE_FULL": "store-full",
    "SQLITE_READONLY": "store-readonly",
    "SQLITE_BUSY": "store-busy",
    "SQLITE_IOERR_WRITE": "store-io",
}
"""What SQLite says, and what whoever asked is told."""

WRITES = ("put", "lease", "extend", "commit", "again", "park", "done")
"""The calls of a store that write while turns are taken."""

_call = ContextVar("_call", default="")


def broken(name: str) -> sqlite3.OperationalError:
    """The driver's error of that name."""
    error = sqlite3.OperationalError("told by a test")
    error.sqlite_errorname, error.sqlite_errorcode = name, 1
    return error


def is_write(sql: str) -> bool:
    """Whether a statement changes the file, or ends what does."""
    words = sql.split()
    return words[0] in {"insert", "update", "delete", "commit"} or "update rows" in sql


class _Failing:
    """A connection whose statements pass a test first."""

    def __init__(self, connection: sqlite3.Connection, before: Callable[[str], None]) -> None:
        self._connection, self._before = connection, before

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        """Runs it, if nothing is in the way."""
        self._before(sql)
        return self._connection.execute(sql, *given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class FaultyStore(SqliteStore):
    """A file on a fake clock. ``faults`` names, by call, the error that its first write meets, until it is taken out.

    ``before`` sees every statement first, with the call it belongs to.
    """

    def __init__(self, path: Path, effects: FakeEffects) -> None:
        super().__init__(path, clock=effects.now)
        self.faults: dict[str, str] = {}
        self.met: list[str] = []
        self.before: Callable[[str, str], None] = self._meet
        run = self._file.run

        async def failing(act: Callable[[Any], T], *, shares: bool = False) -> T:
            call = _call.get()

            def failed(connection: Any) -> T:
                return act(_Failing(connection, lambda sql: self.before(call, sql)))

            return await run(failed, shares=shares)

        self._file.run = failing  # type: ignore[method-assign]  # the place where every statement goes through

    def _meet(self, call: str, sql: str) -> None:
        if call in self.faults and is_write(sql):
            self.met.append(call)
            raise broken(self.faults[call])


def _named(name: str) -> Any:
    async def call(self: FaultyStore, *given: Any, **more: Any) -> Any:
        before = _call.set(name)
        try:
            return await getattr(SqliteStore, name)(self, *given, **more)
        finally:
            _call.reset(before)

    return call


for _name in WRITES:
    setattr(FaultyStore, _name, _named(_name))


@asynccontextmanager
async def faulty(path: Path, effects: FakeEffects) -> AsyncIterator[FaultyStore]:
    """Such a store, closed at the end."""
    store = FaultyStore(path, effects)
    try:
        yield store
    finally:
        await store.close()
