"""SqliteStore: sessions and their records in one file, with nothing to install."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey, session_key
from onrecord.errors import ConfigurationError, RecordInvalid, StoreError
from onrecord.record.entry import Body, Entry, kind_of
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import decode_message, decode_state
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.session.written import NOTHING, Head, Written, write_out
from onrecord.stores.sqlite_faults import damaged
from onrecord.stores.sqlite_file import SqliteFile, transaction

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SqliteStore",)

_PLACES = 32
"""Bits of a row's place that say which row of its session it is; the rest says which session."""
_PAGE_ROWS = 500
_PAGE_BYTES = 1 << 20
_ROWS_AT_ONCE = 100  # 900 parameters: the oldest limit of SQLite is 999

_HEAD = "select no, version, generation, seq, messages from sessions where tenant=? and id=?"
_STATE = "select no, version, generation, seq, messages, state from sessions where tenant=? and id=?"
_NEW = "insert into sessions(tenant, id, version, generation, seq, messages, state) values(?,?,?,?,?,?,?)"
_NEXT = "update sessions set version=?, generation=?, seq=?, messages=?, state=? where no=?"
_MESSAGES = "select body from messages where place between ? and ? order by place"
_FORGET = "delete from messages where place between ? and ?"
_ENTRIES = "select place, n, turn, take, path, at, cause, body from entries where place between ? and ? order by place"


class SqliteStore:
    """Keeps sessions in the SQLite file at ``path``, opened on first use and made when there is none.

    ``synchronous``: ``normal`` survives a killed process, ``full`` a power cut too. ``bodies`` are the entry bodies of
    features to give back typed; others come back as `UnknownBody`. Where nothing may be written, a file is only read.
    Usable from several event loops, threads and processes at once; a store that is in use does not survive a fork.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["normal", "full"] = "normal",
        bodies: Iterable[type[Body]] = (),
    ) -> None:
        name = os.fspath(path)
        if not name or name == ":memory:" or name.startswith("file:") or "\0" in name:
            raise ConfigurationError(
                f"{name!r} does not name a file", hint="give a path; for a store in memory use MemoryStore()"
            )
        if synchronous not in {"normal", "full"}:
            raise ConfigurationError(f"synchronous={synchronous!r} is unknown", hint="use 'normal' or 'full'")
        self._codec = EntryCodec(bodies)
        # Absolute: a later change of the working folder must not change which file this is.
        self._file = SqliteFile(os.path.abspath(name), synchronous)  # noqa: PTH100 - keeps symbolic links as they are

    async def load(self, key: SessionKey | str, /, *, known: Session | None = None) -> Session | None:
        """The session, or None; ``known`` itself when it is still what is stored, at the price of one row read."""
        key = session_key(key)
        mine = known if known is not None and known.key == key else None
        return await self._file.run(partial(self._load, key, mine))

    async def commit(self, change: Change, /) -> Session:
        """Stores a change in one transaction. SessionConflict when it is not the next version."""
        # Encoded before the first await: what the caller does to its values afterwards is not part of this change.
        written = write_out(change, self._codec)
        if written:
            await self._file.run(partial(_commit, written))
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
        await self._file.close()

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

    def _load(self, key: SessionKey, known: Session | None, connection: sqlite3.Connection) -> Session | None:
        named = (key.tenant, key.id)
        if known is not None:
            head = connection.execute(_HEAD, named).fetchone()
            if head is None or Head(*head[1:]).is_of(known):
                return None if head is None else known
        with transaction(connection, "deferred"):  # one moment in time, though others may commit meanwhile
            row = connection.execute(_STATE, named).fetchone()
            if row is None:
                return None
            rows = connection.execute(_MESSAGES, _span(row[0]))
            with self._reading(key, "a message"):
                conversation = Conversation.of([decode_message(body) for (body,) in rows])
        with self._reading(key, "the state"):
            session = decode_state(row[5], conversation)
        if not Head(*row[1:5]).is_of(session):
            raise damaged(self._file.path, f"the rows of session {key.id!r} are not of one version")
        return session

    def _page(self, key: SessionKey, start: int, connection: sqlite3.Connection) -> tuple[list[Entry], bool]:
        """Entries from number ``start`` on, and whether there may be more."""
        page, size, more = list[Entry](), 0, False
        with transaction(connection, "deferred"):
            head = connection.execute(_HEAD, (key.tenant, key.id)).fetchone()
            if head is None or start >= head[3]:
                return [], False
            first, last = _span(head[0])
            cursor = connection.execute(_ENTRIES, (first + start, last))
            for row in cursor:
                with self._reading(key, f"entry {start + len(page)}"):
                    page.append(_entry(row, first + start + len(page), start + len(page), self._codec))
                size += len(row[-1])
                if more := size > _PAGE_BYTES or len(page) == _PAGE_ROWS:
                    break
            cursor.close()
        if not more and start + len(page) != head[3]:
            raise damaged(self._file.path, f"the record of session {key.id!r} ends too early")
        return page, more

    @contextmanager
    def _reading(self, key: SessionKey, what: str) -> Iterator[None]:
        """What was read but does not decode is the file's fault; the decoder's own words may quote it."""
        try:
            yield
        except (msgspec.MsgspecError, RecordInvalid, StoreError, TypeError, ValueError):
            raise damaged(self._file.path, f"{what} of session {key.id!r} does not decode") from None


def _entry(row: Sequence[Any], place: int, seq: int, codec: EntryCodec) -> Entry:
    found, n, turn, take, path, at, cause, body = row
    if found != place:
        raise ValueError(found)
    return Entry(
        seq=seq, n=n, turn=turn, take=take, where=path, at=datetime.fromisoformat(at), cause=cause,
        body=codec.decode_body(body),
    )  # fmt: skip


def _commit(written: Sequence[Written], connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for one in written:
            _write(one, connection)


def _write(one: Written, connection: sqlite3.Connection) -> None:
    row = connection.execute(_HEAD, (one.key.tenant, one.key.id)).fetchone()
    stored = NOTHING if row is None else Head(*row[1:])
    one.check(stored)
    after = (one.after.version, one.after.generation, one.after.seq, one.after.messages, one.state)
    if row is None:
        no = connection.execute(_NEW, (one.key.tenant, one.key.id, *after)).lastrowid or 0
    else:
        no = row[0]
        connection.execute(_NEXT, (*after, no))
    first, last = _span(no)
    if one.kept < stored.messages:
        connection.execute(_FORGET, (first + one.kept, last))
    _insert(connection, "messages", [(first + one.kept + n, body) for n, body in enumerate(one.messages)])
    entries = [
        (first + e.seq, e.n, e.turn, e.take, e.where, e.at.isoformat(), e.cause, kind_of(e.body), body)
        for e, body in one.entries
    ]
    _insert(connection, "entries", entries)


def _insert(
    connection: sqlite3.Connection, table: Literal["messages", "entries"], rows: Sequence[Sequence[Any]]
) -> None:
    """Many rows a statement: each statement gives the interpreter away and has to get it back."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        row = f"({','.join('?' * len(some[0]))})"
        values = [value for one in some for value in one]
        connection.execute(f"insert into {table} values{','.join([row] * len(some))}", values)


def _span(no: int) -> tuple[int, int]:
    """The first and the last place that rows of session number ``no`` can have."""
    return no << _PLACES, ((no + 1) << _PLACES) - 1
