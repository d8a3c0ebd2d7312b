"""The half of a SqliteStore that keeps rows: each method is one act of the file's thread, and one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.inputs import Interruption
from onrecord.errors import StoreError
from onrecord.session.inbox import Accepted, Box, Busy, Lease, Row, check_lease, check_reason, encode_mark
from onrecord.stores import sqlite_leases as leases
from onrecord.stores.sqlite_accepting import accept
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_faults import unmigrated
from onrecord.stores.sqlite_file import SqliteFile, transaction
from onrecord.stores.sqlite_leases import Encoded, Found, decode_found, micros, until
from onrecord.stores.sqlite_schema import ROWS_SINCE
from onrecord.timing import Clock

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SqliteRows", "keeping_rows")

T = TypeVar("T")


class SqliteRows:
    """Rows in a SQLite file; see `onrecord.session.inbox` for what each method promises."""

    def __init__(self, codec: CellCodec, synchronous: str, clock: Clock) -> None:
        self._file = SqliteFile(codec, synchronous)
        self._clock = clock

    async def put(self, row: Row, /, *, busy: Busy = "queue", lease: Lease | None = None) -> Accepted:
        """Stores a row unless one with its key is there, and leases it when it is next and the lease is asked for."""
        if lease is not None:
            check_lease(lease.owner, lease.ttl)
        encoded = leases.encode_row(row, self._file.codec)  # before the first await, as a change is
        return await self._file.run(partial(self._put, encoded, busy, lease), shares=True)

    async def lease(
        self, box: Box, owner: str, /, *, ttl: float, limit: int = 1, session: SessionKey | None = None
    ) -> list[Row]:
        """Leases the head rows of up to ``limit`` sessions."""
        check_lease(owner, ttl)

        def act(connection: sqlite3.Connection, now: int) -> list[Row]:
            found = leases.lease(connection, box, owner, limit, session, now, until(now, ttl))
            try:
                return self._decoded(found)
            except StoreError:
                # The damaged row stays leased, so that others have their turn before it is met again.
                leases.release(connection, [row for row in found if self._is_sound(row)])
                raise

        return await self._act(act)

    async def extend(self, rows: Sequence[Row], /, *, ttl: float) -> list[Row | None]:
        """Longer leases; None for those lost."""
        check_lease("any", ttl)
        held = tuple(rows)

        def act(connection: sqlite3.Connection, now: int) -> list[Row | None]:
            kept = {row.n: row for row in self._decoded(leases.extend(connection, held, until(now, ttl)))}
            return [kept.get(row.n) if _same(row, kept.get(row.n)) else None for row in held]

        return await self._act(act)

    async def again(self, row: Row, /, *, due: datetime, rung: int = 0, floor: datetime | None = None) -> bool:
        """Gives a leased row back for later."""
        at, lowest = micros(due), None if floor is None else micros(floor)

        def act(connection: sqlite3.Connection, _: int) -> bool:
            with transaction(connection):
                return leases.again(connection, row, at, rung, lowest)

        return await self._act(act)

    async def done(self, row: Row, /) -> bool:
        """Deletes a leased row."""
        return await self._act(lambda connection, _: leases.take_away(connection, row, ""))

    async def park(self, row: Row, /, *, why: str) -> bool:
        """Sets a leased row aside."""
        check_reason(why)
        return await self._act(lambda connection, _: leases.take_away(connection, row, why))

    async def revive(self, box: Box, session: SessionKey | str, /, *, keys: Sequence[str] | None = None) -> int:
        """Makes parked rows due at once."""
        key = session_key(session)
        chosen = None if keys is None else tuple(keys)

        def act(connection: sqlite3.Connection, now: int) -> int:
            with transaction(connection):
                return leases.revive(connection, box, key, chosen, now)

        return await self._act(act)

    async def rows(
        self, box: Box, session: SessionKey | str | None = None, /, *, after: int = 0, limit: int = 1000
    ) -> list[Row]:
        """Rows in order of their numbers, behind ``after``."""
        key = None if session is None else session_key(session)
        return await self._act(lambda connection, _: self._decoded(leases.rows(connection, box, key, after, limit)))

    async def cancel(
        self, box: Box, session: SessionKey | str, /, *, keys: Sequence[str] | None = None,
        by: Interruption | None = None,
    ) -> int:  # fmt: skip
        """Deletes rows that nobody has leased, or marks them."""
        key = session_key(session)
        chosen = None if keys is None else tuple(keys)
        mark = None if by is None else self._mark(key, by)

        def act(connection: sqlite3.Connection, now: int) -> int:
            with transaction(connection):
                if mark is not None:
                    return leases.mark(connection, box, key, chosen, mark)
                return leases.cancel(connection, box, key, chosen, now)

        return await self._act(act)

    async def next_due(self, box: Box, /) -> datetime | None:
        """When something may next be leased."""
        return await self._act(lambda connection, now: leases.next_due(connection, box, now))

    # ---- in the file's thread ----------------------------------------------------------------------------------------

    async def _act(self, act: Callable[[sqlite3.Connection, int], T]) -> T:
        """Does something with rows at the instant it is done. StoreError where the file keeps none yet."""

        def dated(connection: sqlite3.Connection) -> T:
            with keeping_rows(self._file.path, connection):
                return act(connection, micros(self._clock()))

        return await self._file.run(dated)

    def _put(self, row: Encoded, busy: Busy, lease: Lease | None, connection: sqlite3.Connection) -> Accepted:
        with keeping_rows(self._file.path, connection), transaction(connection):
            return accept(row, busy, lease, micros(self._clock()), self._file.codec, connection)

    def _mark(self, session: SessionKey, by: Interruption) -> bytes:
        return self._file.codec.seal(encode_mark(session, by), "mark", session.tenant, session.id)

    def _decoded(self, found: Iterable[Found]) -> list[Row]:
        return [decode_found(row, self._file.codec) for row in found]

    def _is_sound(self, found: Found) -> bool:
        try:
            return bool(self._decoded([found]))
        except StoreError:
            return False


@contextmanager
def keeping_rows(path: str, connection: sqlite3.Connection) -> Iterator[None]:
    """Tells apart a file of a schema that keeps no rows, which could not be brought up to date."""
    import sqlite3

    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR":
            (version,) = connection.execute("pragma user_version").fetchone()
            if version < ROWS_SINCE:
                raise unmigrated(path, version) from None
        raise


def _same(row: Row, held: Row | None) -> bool:
    return held is not None and (row.owner, row.attempt) == (held.owner, held.attempt)
