"""What a SQLite file holds, as erasing sees it. Everything here is done in the file's thread."""

# ruff: noqa: S608  statements are put together from this package's own text, values are always parameters

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError, Raw, json

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import RecordInvalid, StoreError
from onrecord.record.entry import Entry, UnknownBody, kind_of
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import encode_message, encode_state
from onrecord.session.eraser import Age, Bare
from onrecord.session.erasing import ERASURE
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_leases import decode_found, encode_row, micros, of_session
from onrecord.stores.sqlite_sessions import ENTRY, decoding, named_owner, read_entry, read_session, span

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SqliteCells",)


class _ReadCells:
    """What is read of a file, inside a transaction that is open."""

    def __init__(self, connection: sqlite3.Connection, cells: CellCodec, codec: EntryCodec, now: datetime) -> None:
        self._connection, self._cells, self._codec, self.now = connection, cells, codec, now
        self._run = connection.execute

    def fresh_key(self) -> str:
        return secrets.token_hex(16)

    def _no(self, key: SessionKey) -> int:
        (no,) = self._run("select no from sessions where tenant=? and id=?", (key.tenant, key.id)).fetchone()
        return int(no)

    def bare(self, key: SessionKey) -> Bare | None:
        sql = "select version, generation, messages, owner, parent from sessions where tenant=? and id=?"
        found = self._run(sql, (key.tenant, key.id)).fetchone()
        if found is None:
            return None
        version, generation, messages = (one if isinstance(one, int) else 0 for one in found[:3])
        owner, parent = (one if isinstance(one, str) else "" for one in found[3:])
        try:
            whose = json.decode(owner, type=Identity) if owner else None
        except DecodeError:
            whose = None
        first, last = span(self._no(key))  # the entries say how many they are: a wrong number leads to places of others
        (end,) = self._run("select max(place) from entries where place between ? and ?", (first, last)).fetchone()
        seq = 0 if end is None else int(end) + 1 - first
        session = Session(
            key=key, version=version, generation=generation, seq=seq, parent=parent or None, owner=whose
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
            except (RecordInvalid, StoreError, ValueError, TypeError):
                yield self._damaged(row, first, kind)

    def _damaged(self, row: Sequence[Any], first: int, kind: object) -> Entry:
        """What can be said of an entry that does not decode. One of no known time is of now, so no age takes it."""
        place, n, turn, take, path, at, cause, _ = row
        try:
            when = datetime.fromisoformat(at)
        except (ValueError, TypeError):
            when = self.now
        return Entry(
            seq=place - first, n=n if isinstance(n, int) else 0, turn=turn if isinstance(turn, str) else "",
            take=take if isinstance(take, int) else 0, where=path if isinstance(path, str) else "", at=when,
            cause=cause if isinstance(cause, int) else None,
            body=UnknownBody(was=kind if isinstance(kind, str) else "", raw=Raw(b"null")),
        )  # fmt: skip

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


class SqliteCells(_ReadCells):
    """`Cells` of a SQLite file, inside a transaction that is open."""

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

    def put_back(self, key: SessionKey, change: Callable[[Row], Row]) -> None:
        for row in [decode_found(found, self._cells) for found in of_session(self._connection, key)]:
            changed = change(row)
            if changed is not row:
                sql = "update rows set body=?, owner=?, lease_until=null where n=?"
                self._run(sql, (encode_row(changed, self._cells).body, changed.owner, row.n))

    def drop_parked(self, before: datetime, limit: int) -> int:
        sql = "delete from rows where n in (select n from rows where dead<>'' and due<? limit ?)"
        return self._run(sql, (micros(before), limit)).rowcount
