"""Sessions in a SQLite file: reading one whole, writing one. Everything here is done in the file's thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import Message
from onrecord.errors import RecordInvalid, StoreError
from onrecord.record.entry import Entry, UnknownBody, kind_of
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import decode_message, decode_state
from onrecord.session.session import Session
from onrecord.session.written import NOTHING, Head, Written
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_faults import damaged

if TYPE_CHECKING:
    import sqlite3

__all__ = (
    "ENTRY", "HEAD", "PAGE", "Loading", "begin_reading", "decoding", "is_known", "is_long", "named_owner", "read_entry",
    "read_page", "read_session", "span", "write_session",
)  # fmt: skip

_PLACES = 32
"""Bits of a row's place that say which row of its session it is; the rest says which session."""
PAGE = 1000
"""Messages that are read in one act; others who wait for the file have their turn between two pages."""
_ROWS_AT_ONCE = 100  # 900 parameters: the oldest limit of SQLite is 999

HEAD = "select no, version, generation, seq, messages from sessions where tenant=? and id=?"
_STATE = "select no, version, generation, seq, messages, state from sessions where tenant=? and id=?"
_NEW = """insert into sessions(tenant, id, version, generation, seq, messages, state, owner, parent)
    values(?,?,?,?,?,?,?,?,?)"""
_NEXT = "update sessions set version=?, generation=?, seq=?, messages=?, state=?, owner=?, parent=? where no=?"
ENTRY = "place, n, turn, take, path, at, cause, body"
_MESSAGES = "select body from messages where place between ? and ? order by place"
_FORGET = "delete from messages where place between ? and ?"


@contextmanager
def decoding(path: str, session: str, what: str) -> Iterator[None]:
    """What was read but does not decode is the file's fault; the decoder's own words may quote it."""
    try:
        yield
    except (msgspec.MsgspecError, RecordInvalid, StoreError, TypeError, ValueError, OverflowError):
        raise damaged(path, f"{what} of session {session!r} does not decode") from None


def is_known(key: SessionKey, known: Session | None, connection: sqlite3.Connection) -> bool:
    """Whether a session is stored as it is known, at the price of one row read."""
    if known is None or known.key != key:
        return False
    head = connection.execute(HEAD, (key.tenant, key.id)).fetchone()
    return head is not None and Head(*head[1:]).is_of(known)


def is_long(key: SessionKey, connection: sqlite3.Connection) -> bool:
    """Whether a session has more messages than are read at once."""
    head = connection.execute(HEAD, (key.tenant, key.id)).fetchone()
    return head is not None and head[4] > PAGE


class Loading:
    """A long session that is read in pages. ``session`` is set once it is whole."""

    __slots__ = ("head", "key", "messages", "session", "state")

    def __init__(self, key: SessionKey, head: tuple[int, ...], state: bytes) -> None:
        self.key, self.head, self.state = key, head, state
        self.messages: list[Message] = []
        self.session: Session | None = None


def begin_reading(key: SessionKey, codec: CellCodec, connection: sqlite3.Connection) -> Session | Loading | None:
    """The session, or its beginning where it is long. Whoever asks has a transaction open."""
    row = connection.execute(_STATE, (key.tenant, key.id)).fetchone()
    if row is None or not isinstance(row[4], int) or row[4] <= PAGE:
        return None if row is None else read_session(key, codec, connection)
    return Loading(key, row[:5], row[5])


def read_page(loading: Loading, codec: CellCodec, connection: sqlite3.Connection) -> bool:
    """Reads on. False where the session is not what it was when reading began."""
    key, told = loading.key, loading.messages
    if connection.execute(HEAD, (key.tenant, key.id)).fetchone() != loading.head:
        return False
    first, _ = span(loading.head[0])
    rows = connection.execute(_MESSAGES, (first + len(told), first + len(told) + PAGE - 1))
    with decoding(codec.path, key.id, "a message"):
        told += [decode_message(body) for body in _bodies(key, rows, codec, len(told))]
    if len(told) % PAGE or len(told) >= loading.head[4]:
        loading.session = _whole(key, loading.head, loading.state, told, codec)
    return True


def read_session(key: SessionKey, codec: CellCodec, connection: sqlite3.Connection) -> Session | None:
    """The session as it is stored. Whoever asks has a transaction open, so that it is of one moment."""
    row = connection.execute(_STATE, (key.tenant, key.id)).fetchone()
    if row is None:
        return None
    rows = connection.execute(_MESSAGES, span(row[0]))
    with decoding(codec.path, key.id, "a message"):
        messages = [decode_message(body) for body in _bodies(key, rows, codec)]
    return _whole(key, row[:5], row[5], messages, codec)


def _whole(key: SessionKey, head: tuple[int, ...], state: bytes, messages: list[Message], codec: CellCodec) -> Session:
    with decoding(codec.path, key.id, "the state"):
        session = decode_state(codec.open(state, "state", key.tenant, key.id), Conversation.of(messages))
    if not Head(*head[1:5]).is_of(session):
        raise damaged(codec.path, f"the rows of session {key.id!r} are not of one version")
    return session


def _bodies(key: SessionKey, rows: Iterable[tuple[bytes]], codec: CellCodec, start: int = 0) -> Iterator[bytes]:
    if codec.cipher is None:
        return (body for (body,) in rows)
    return (codec.open(body, "message", key.tenant, key.id, n) for n, (body,) in enumerate(rows, start))


def read_entry(
    row: Sequence[Any], key: SessionKey, place: int, first: int, cells: CellCodec, codec: EntryCodec
) -> Entry:
    """An entry from the columns of `ENTRY`, where the session's places begin at ``first``. A body of None is left out.

    Raises what decoding raises, ValueError for an entry that stands at another place.
    """
    found, n, turn, take, path, at, cause, body = row
    if found != place:
        raise ValueError(found)
    seq = place - first
    return Entry(
        seq=seq, n=n, turn=turn, take=take, where=path, at=datetime.fromisoformat(at), cause=cause,
        body=_NOTHING if body is None else codec.decode_body(cells.open(body, "entry", key.tenant, key.id, seq)),
    )  # fmt: skip


_NOTHING = UnknownBody(was="", raw=Raw(b"null"))


def named_owner(owner: Identity | None) -> str:
    """Who a session belongs to, as it is looked for."""
    return "" if owner is None else msgspec.json.encode(owner).decode()


def span(no: int) -> tuple[int, int]:
    """The first and the last place that rows of session number ``no`` can have."""
    return no << _PLACES, ((no + 1) << _PLACES) - 1


def write_session(one: Written, cells: CellCodec, connection: sqlite3.Connection) -> None:
    """Stores one session of a change. SessionConflict or StoreError when it does not fit what is stored."""
    row = connection.execute(HEAD, (one.key.tenant, one.key.id)).fetchone()
    stored = NOTHING if row is None else Head(*row[1:])
    one.check(stored)
    named = (one.key.tenant, one.key.id)
    after = (
        one.after.version, one.after.generation, one.after.seq, one.after.messages,
        cells.seal(one.state, "state", *named), named_owner(one.owner), one.parent or "",
    )  # fmt: skip
    if row is None:
        no = connection.execute(_NEW, (one.key.tenant, one.key.id, *after)).lastrowid or 0
    else:
        no = row[0]
        connection.execute(_NEXT, (*after, no))
    first, last = span(no)
    if one.kept < stored.messages:
        connection.execute(_FORGET, (first + one.kept, last))
    messages = [(first + n, cells.seal(body, "message", *named, n)) for n, body in enumerate(one.messages, one.kept)]
    _insert(connection, "messages", messages)
    entries = [
        (first + e.seq, e.n, e.turn, e.take, e.where, e.at.isoformat(), e.cause, kind_of(e.body),
         cells.seal(body, "entry", *named, e.seq))
        for e, body in one.entries
    ]  # fmt: skip
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
