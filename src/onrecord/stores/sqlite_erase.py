"""Erasing in a SQLite file, and making sure that nothing of it is left in the file or beside it.

SQLite overwrites what it deletes (``secure_delete``), but copies stay where it moved cells around, and in its log. So
an erasure ends with a sweep: the file is rewritten without its unused parts, and the log is written back and emptied.
"""

# ruff: noqa: S608  statements are put together from this package's own text, values are always parameters

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Raw, json
from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import RecordInvalid, StoreError
from onrecord.record.entry import Entry, UnknownBody, kind_of
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import encode_message, encode_state
from onrecord.session.eraser import Age, Bare, Cells, erase, expire
from onrecord.session.erasing import ERASURE
from onrecord.session.erasure import Erasure, Remains, Retention
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_file import transaction
from onrecord.stores.sqlite_leases import decode_found, micros, of_session
from onrecord.stores.sqlite_rows import SqliteRows, keeping_rows
from onrecord.stores.sqlite_sessions import ENTRY, decoding, named_owner, read_entry, read_session, span

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SWEPT_AT_ONCE", "SqliteErasing", "sweep")

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


class SqliteCells:
    """`Cells` of a SQLite file, inside a transaction that is open."""

    def __init__(self, connection: sqlite3.Connection, cells: CellCodec, codec: EntryCodec, now: datetime) -> None:
        self._connection, self._cells, self._codec, self.now = connection, cells, codec, now
        self._run = connection.execute

    def fresh_key(self) -> str:
        return secrets.token_hex(16)

    def _no(self, key: SessionKey) -> int:
        (no,) = self._run("select no from sessions where tenant=? and id=?", (key.tenant, key.id)).fetchone()
        return int(no)

    def bare(self, key: SessionKey) -> Bare | None:
        sql = "select version, generation, seq, messages, owner, parent from sessions where tenant=? and id=?"
        found = self._run(sql, (key.tenant, key.id)).fetchone()
        if found is None:
            return None
        version, generation, seq, messages, owner, parent = found
        session = Session(
            key=key, version=version, generation=generation, seq=seq, parent=parent or None,
            owner=json.decode(owner, type=Identity) if owner else None,
        )  # fmt: skip
        return Bare(session, messages)

    def told(self, key: SessionKey) -> tuple[Session, list[Entry]] | None:
        session = read_session(key, self._cells, self._connection)
        if session is None:
            return None
        first, last = span(self._no(key))
        entries = list[Entry]()
        sql = f"select {ENTRY} from entries where place between ? and ? order by place"
        for row in self._run(sql, (first, last)):
            with decoding(self._cells.path, key.id, f"entry {len(entries)}"):
                entries.append(read_entry(row, key, first + len(entries), first, self._cells, self._codec))
        return session, entries

    def left(self, key: SessionKey) -> list[Entry]:
        return list(self._lenient(key, -1, "kind<>'erased'", ()))

    def of_kinds(self, key: SessionKey, before: dict[str, datetime], after: int, limit: int) -> list[Entry]:
        entries = self._lenient(key, after, f"kind in ({','.join('?' * len(before))})", tuple(before))
        old = (entry for entry in entries if entry.at < before[kind_of(entry.body)])
        return list(islice(old, limit))

    def _lenient(self, key: SessionKey, after: int, condition: str, given: tuple[str, ...]) -> Iterator[Entry]:
        """Entries that are to be erased: what does not decode is nothing but its kind."""
        first, last = span(self._no(key))
        sql = f"select {ENTRY}, kind from entries where place between ? and ? and {condition} order by place"
        for *row, kind in self._run(sql, (first + after + 1, last, *given)):
            try:
                yield read_entry(row, key, row[0], first, self._cells, self._codec)
            except (RecordInvalid, StoreError):
                bare = read_entry([*row[:-1], None], key, row[0], first, self._cells, self._codec)
                yield replace(bare, body=UnknownBody(was=kind, raw=Raw(b"null")))

    def owned(self, who: Identity) -> list[SessionKey]:
        sql = "select tenant, id from sessions where owner=? and owner<>''"
        return [SessionKey(id, tenant=tenant) for tenant, id in self._run(sql, (named_owner(who),)).fetchall()]

    def below(self, key: SessionKey) -> list[SessionKey]:
        sql, found, level = "select id from sessions where tenant=? and parent=? and parent<>''", [key.id], [key.id]
        while level:
            children = [id for above in level for (id,) in self._run(sql, (key.tenant, above)).fetchall()]
            level = [id for id in children if id not in found]
            found += level
        return [SessionKey(id, tenant=key.tenant) for id in found[:0:-1]]

    def ages(self, after: SessionKey | None, limit: int) -> list[Age]:
        behind = ("", "") if after is None else (after.tenant, after.id)
        past = "" if after is None else "where (tenant, id) > (?, ?)"
        sql = f"select tenant, id, no, seq from sessions {past} order by tenant, id limit ?"
        given: tuple[Any, ...] = (limit,) if after is None else (*behind, limit)
        return [self._age(*row) for row in self._run(sql, given).fetchall()]

    def _age(self, tenant: str, id: str, no: int, seq: int) -> Age:
        first, last = span(no)
        ended = self._run("select at from entries where place=?", (first + seq - 1,)).fetchone()
        sql = f"""select at from entries where place between ? and ? and kind<>'erased' and path<>'{ERASURE}'
            order by place limit 1"""
        left = self._run(sql, (first, last)).fetchone()
        with decoding(self._cells.path, id, "the time of an entry"):
            first_left = None if left is None else datetime.fromisoformat(left[0])
            return Age(SessionKey(id, tenant=tenant), datetime.fromisoformat(ended[0]), first_left)

    def waits(self, key: SessionKey) -> bool:
        sql = "select 1 from rows where dead='' and tenant=? and session=? limit 1"
        return self._run(sql, (key.tenant, key.id)).fetchone() is not None

    def write(self, session: Session, entries: Sequence[Entry]) -> None:
        key, no = session.key, self._no(session.key)
        messages = [encode_message(message) for message in session.conversation.messages]
        self._write_messages(key, no, messages)
        state = self._cells.seal(encode_state(session), "state", key.tenant, key.id)
        self._run(
            "update sessions set version=?, generation=?, seq=?, messages=?, state=?, owner=?, parent=? where no=?",
            (session.version, session.generation, session.seq, len(messages), state, named_owner(session.owner),
             session.parent or "", no),
        )  # fmt: skip
        self.rewrite(key, entries)

    def _write_messages(self, key: SessionKey, no: int, messages: Sequence[bytes]) -> None:
        """Writes what differs from what is stored, from the first difference on."""
        first, last = span(no)
        kept = 0
        for (body,) in self._run("select body from messages where place between ? and ? order by place", (first, last)):
            if kept == len(messages) or self._opened(body, key, kept) != messages[kept]:
                break
            kept += 1
        self._run("delete from messages where place between ? and ?", (first + kept, last))
        named = (key.tenant, key.id)
        rows = ((first + n, self._cells.seal(messages[n], "message", *named, n)) for n in range(kept, len(messages)))
        self._connection.executemany("insert into messages values(?,?)", rows)

    def _opened(self, body: bytes, key: SessionKey, n: int) -> bytes | None:
        try:
            return self._cells.open(body, "message", key.tenant, key.id, n)
        except StoreError:
            return None

    def rewrite(self, key: SessionKey, entries: Sequence[Entry]) -> None:
        first, _ = span(self._no(key))
        rows = (
            (first + e.seq, e.n, e.turn, e.take, e.where, e.at.isoformat(), e.cause, kind_of(e.body),
             self._cells.seal(self._codec.encode_body(e.body), "entry", key.tenant, key.id, e.seq))
            for e in entries
        )  # fmt: skip
        self._connection.executemany("insert or replace into entries values(?,?,?,?,?,?,?,?,?)", rows)

    def drop(self, key: SessionKey, matches: Callable[[Row], bool] | None) -> int:
        if matches is None:
            return self._run("delete from rows where tenant=? and session=?", (key.tenant, key.id)).rowcount
        found = [decode_found(row, self._cells) for row in of_session(self._connection, key)]
        gone = [(row.n,) for row in found if matches(row)]
        self._connection.executemany("delete from rows where n=?", gone)
        return len(gone)

    def drop_parked(self, before: datetime, limit: int) -> int:
        sql = "delete from rows where n in (select n from rows where dead<>'' and due<? limit ?)"
        return self._run(sql, (micros(before), limit)).rowcount
