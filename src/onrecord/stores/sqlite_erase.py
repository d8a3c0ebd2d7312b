"""Erasing in a SQLite file, and making sure that nothing of it is left in the file or beside it.

SQLite overwrites what it deletes (``secure_delete``), but copies stay where it moved cells around, and in its log. So
an erasure ends with a sweep: the file is rewritten without its unused parts, and the log is written back and emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import StoreError
from onrecord.record.jsonl import EntryCodec
from onrecord.session.eraser import Cells, erase, expire
from onrecord.session.erasure import Erasure, Remains, Retention
from onrecord.stores.sqlite_cells import SqliteCells
from onrecord.stores.sqlite_file import transaction
from onrecord.stores.sqlite_rows import SqliteRows, keeping_rows

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SWEPT_AT_ONCE", "SqliteErasing", "sweep", "unswept")

T = TypeVar("T")

SWEPT_AT_ONCE = 64 << 20
"""Bytes up to which a file is rewritten by the erasure itself: some tenths of a second, in which nobody can write."""

_PATIENCE_MS = 1000
"""How long a sweep waits for others that read."""


class SqliteErasing(SqliteRows):
    """Erases in a SQLite file; see `onrecord.session.store` for what is promised."""

    _codec: EntryCodec
    _unswept = False

    async def erase(
        self, what: SessionKey | Identity | str, /, *, messages: Sequence[str] | None = None, why: str
    ) -> Erasure:
        """Erases a person, a session, or the turns of some of its messages; then sweeps the file.

        ``remains`` of what comes back says when somebody who was reading kept the log in use (it is emptied as soon as
        something is stored, erased, or the store is closed), or the file was too large (`sweep` rewrites it).
        """
        done = await erase(self._step, what, messages, why)
        return done + await self._file.run(partial(self._sweep, SWEPT_AT_ONCE))

    async def expire(self, policy: Retention, /) -> Erasure:
        """Erases what is older than the policy says, in short transactions; then sweeps the file as `erase` does."""
        done = await expire(self._step, policy)
        if done == Erasure():
            return done
        return done + await self._file.run(partial(self._sweep, SWEPT_AT_ONCE))

    async def sweep(self) -> Erasure:
        """Rewrites the file, however large, without anything of what was deleted in it. Others wait meanwhile."""
        return await self._file.run(partial(self._sweep, None))

    async def _step(self, act: Callable[[Cells], T], /, *, writes: bool = True) -> T:
        def whole(connection: sqlite3.Connection) -> T:
            with (
                keeping_rows(self._file.path, connection),
                transaction(connection, "immediate" if writes else "deferred"),
            ):
                return act(SqliteCells(connection, self._file.codec, self._codec, self._clock()))

        return await self._file.run(whole)

    def _sweep(self, limit: int | None, connection: sqlite3.Connection) -> Erasure:
        remains = sweep(connection, limit)
        self._unswept = "log" in remains
        return Erasure(remains=remains)

    def _sweep_log(self, connection: sqlite3.Connection) -> None:
        """Empties the log where an erasure could not, if nobody reads now."""
        if self._unswept:
            self._unswept = not _emptied(connection, 0)


def sweep(connection: sqlite3.Connection, limit: int | None) -> tuple[Remains, ...]:
    """Rewrites a file of up to ``limit`` bytes (None: any) and empties its log. What could not be done."""
    import sqlite3

    (pages,), (size,) = (connection.execute(f"pragma {what}").fetchone() for what in ("page_count", "page_size"))
    remains: list[Remains] = []
    if limit is not None and pages * size > limit:
        remains.append("pages")
    else:
        try:
            with _waiting(connection, _PATIENCE_MS):
                connection.execute("vacuum")
        except sqlite3.OperationalError:
            remains.append("pages")  # locked, or no room for a copy: what was erased is erased all the same
    if not _emptied(connection, _PATIENCE_MS):
        remains.append("log")
    return tuple(remains)


def unswept(path: str, limit: int) -> StoreError:
    """The error of a file that could not be swept, where that was promised; ``limit`` is the one of its sweeps."""
    return StoreError(
        f"the file {path!r} has let go of what was asked, and traces of it are left in it", code="store-unswept",
        hint=f"call this once more when nobody else uses the file; `sweep` rewrites one over {limit >> 20} MB",
    )  # fmt: skip


def _emptied(connection: sqlite3.Connection, patience_ms: int) -> bool:
    """Whether the log is written back and empty now."""
    import sqlite3

    try:
        with _waiting(connection, patience_ms):
            (busy, _, _) = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    except sqlite3.OperationalError:
        return False
    return not busy


@contextmanager
def _waiting(connection: sqlite3.Connection, patience_ms: int) -> Iterator[None]:
    """SQLite itself waits for others: what it would have to do again takes too long for that."""
    (before,) = connection.execute("pragma busy_timeout").fetchone()
    connection.execute(f"pragma busy_timeout={patience_ms}")
    try:
        yield
    finally:
        connection.execute(f"pragma busy_timeout={before}")
