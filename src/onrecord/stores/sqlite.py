"""SqliteStore: sessions and their records in one file, with nothing to install."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.errors import ConfigurationError, StoreError
from onrecord.record.entry import Body, Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session.inbox import lease_lost
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.session.written import Written, write_out
from onrecord.stores.sqlite_codec import CellCodec, Cipher
from onrecord.stores.sqlite_erase import SqliteErasing
from onrecord.stores.sqlite_faults import damaged
from onrecord.stores.sqlite_file import absolute_path, transaction
from onrecord.stores.sqlite_leases import Encoded, encode_row, micros, settle, take_away
from onrecord.stores.sqlite_rows import keeping_rows
from onrecord.stores.sqlite_sessions import (
    ENTRY,
    HEAD,
    Loading,
    begin_reading,
    decoding,
    is_known,
    read_entry,
    read_page,
    read_session,
    span,
    write_session,
)
from onrecord.timing import Clock

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SqliteStore",)

_PAGE_ROWS = 500
_PAGE_BYTES = 1 << 20

_Rows = tuple[SessionKey, Sequence[str], Sequence[Encoded]]
"""What a change and each of its children drops and puts."""

_system_clock = partial(datetime.now, UTC)
_ENTRIES = f"select {ENTRY} from entries where place between ? and ? order by place"  # noqa: S608 - our own text


_TRIES = 3
"""How often a long session is read in pages that changes meanwhile, before it is read in one piece."""


class SqliteStore(SqliteErasing):
    """Keeps sessions in the SQLite file at ``path``, opened on first use and made when there is none.

    ``synchronous``: ``normal`` survives a killed process, ``full`` a power cut too. ``bodies`` are the entry bodies of
    features to give back typed; others come back as `UnknownBody`. Where nothing may be written, a file is only read.
    Usable from several event loops, threads and processes at once; a store that is in use does not survive a fork.
    ``clock`` decides what is due and whose lease has ended (default: the system's); all who share a file need the same
    time. ``cipher`` seals messages, entries, states and rows; names, kinds and times stay readable. StoreError
    (``store-key``) for a file that is sealed otherwise.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["normal", "full"] = "normal",
        bodies: Iterable[type[Body]] = (),
        clock: Clock = _system_clock,
        cipher: Cipher | None = None,
    ) -> None:
        file = absolute_path(path, instead="MemoryStore()")
        if synchronous not in {"normal", "full"}:
            raise ConfigurationError(f"synchronous={synchronous!r} is unknown", hint="use 'normal' or 'full'")
        super().__init__(CellCodec(file, cipher), synchronous, clock)
        self._codec = EntryCodec(bodies)

    async def load(self, key: SessionKey | str, /, *, known: Session | None = None) -> Session | None:
        """The session, or None; ``known`` itself when it is still what is stored, at the price of one row read."""
        key = session_key(key)
        for _ in range(_TRIES):
            found = await self._file.run(partial(self._load, key, known))
            if not isinstance(found, Loading):
                return found
            while await self._file.run(partial(self._read_on, found)):
                if found.session is not None:
                    return found.session
        return await self._file.run(partial(self._load_whole, key))

    async def commit(self, change: Change, /) -> Session:
        """Stores a change in one transaction. LeaseLost, or SessionConflict when it is not the next version."""
        # Encoded before the first await: what the caller does to its values afterwards is not part of this change.
        written = write_out(change, self._codec)
        rows = [_rows_of(one, self._file.codec) for one in _all(change) if one.drop or one.put]
        if written or rows or change.taken is not None:
            await self._file.run(partial(self._commit, change, written, rows), shares=True)
            await self._sweep_what_was_left()
        return replace(change.session, version=change.session.version + 1) if change.entries else change.session

    async def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        """The record of a session in order, from behind ``after``, read in pages."""
        key, start, more = session_key(key), max(after + 1, 0), True
        while more:
            page, more = await self._file.run(partial(self._page, key, start))
            for entry in page:
                yield entry
            start += len(page)

    async def sessions(self, *, tenant: str = "") -> list[SessionKey]:
        """The keys of all sessions of a tenant, in order of their ids."""
        sql = "select id from sessions where tenant=? order by id"
        rows = await self._file.run(lambda connection: connection.execute(sql, (tenant,)).fetchall())
        return [SessionKey(id, tenant=tenant) for (id,) in rows]

    async def close(self) -> None:
        """Finishes what was asked before and closes the file; safe to call twice."""
        await self._sweep_what_was_left()
        await self._file.close()

    async def _sweep_what_was_left(self) -> None:
        if self._unswept:
            with suppress(StoreError):  # what was asked is done; the log has to wait once more
                await self._file.run(self._sweep_log)

    async def __aenter__(self) -> Self:
        """Opens the file at once, so that a wrong path is told here."""
        await self._file.run(lambda _: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"SqliteStore({self._file.path!r})"

    # ---- in the file's thread ----------------------------------------------------------------------------------------

    def _load(self, key: SessionKey, known: Session | None, connection: sqlite3.Connection) -> Session | Loading | None:
        if is_known(key, known, connection):
            return known
        with transaction(connection, "deferred"):  # one moment in time, though others may commit meanwhile
            return begin_reading(key, self._file.codec, connection)

    def _read_on(self, loading: Loading, connection: sqlite3.Connection) -> bool:
        with transaction(connection, "deferred"):
            return read_page(loading, self._file.codec, connection)

    def _load_whole(self, key: SessionKey, connection: sqlite3.Connection) -> Session | None:
        with transaction(connection, "deferred"):
            return read_session(key, self._file.codec, connection)

    def _commit(
        self, change: Change, written: Sequence[Written], rows: Sequence[_Rows], connection: sqlite3.Connection
    ) -> None:
        with keeping_rows(self._file.path, connection), transaction(connection):
            if change.taken is not None and not take_away(connection, change.taken, change.parked):
                raise lease_lost(change.taken)
            for one in written:
                write_session(one, self._file.codec, connection)
            now = micros(self._clock())
            for session, drop, put in rows:
                settle(connection, session, drop, put, now)

    def _page(self, key: SessionKey, start: int, connection: sqlite3.Connection) -> tuple[list[Entry], bool]:
        """Entries from number ``start`` on, and whether there may be more."""
        page, size, more = list[Entry](), 0, False
        with transaction(connection, "deferred"):
            head = connection.execute(HEAD, (key.tenant, key.id)).fetchone()
            if head is None or start >= head[3]:
                return [], False
            first, last = span(head[0])
            cursor = connection.execute(_ENTRIES, (first + start, last))
            for row in cursor:
                with decoding(self._file.path, key.id, f"entry {start + len(page)}"):
                    place = first + start + len(page)
                    page.append(read_entry(row, key, place, first, self._file.codec, self._codec))
                size += len(row[-1])
                if more := size > _PAGE_BYTES or len(page) == _PAGE_ROWS:
                    break
            cursor.close()
        if not more and start + len(page) != head[3]:
            raise damaged(self._file.path, f"the record of session {key.id!r} ends too early")
        return page, more


def _all(change: Change) -> Iterator[Change]:
    yield change
    for child in change.children:
        yield from _all(child)


def _rows_of(change: Change, codec: CellCodec) -> _Rows:
    return change.session.key, change.drop, [encode_row(row, codec) for row in change.put]
