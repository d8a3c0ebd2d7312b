"""Sessions in a SQLite file: reading one whole, writing one. Everything here is done in the file's thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey
from onrecord.errors import RecordInvalid, StoreError
from onrecord.record.entry import kind_of
from onrecord.session.codec import decode_message, decode_state
from onrecord.session.session import Session
from onrecord.session.written import NOTHING, Head, Written
from onrecord.stores.sqlite_faults import damaged

if TYPE_CHECKING:
    import sqlite3

__all__ = ("HEAD", "decoding", "is_known", "read_session", "span", "write_session")

_PLACES = 32
"""Bits of a row's place that say which row of its session it is; the rest says which session."""
_ROWS_AT_ONCE = 100  # 900 parameters: the oldest limit of SQLite is 999

HEAD = "select no, version, generation, seq, messages from sessions where tenant=? and id=?"
_STATE = "select no, version, generation, seq, messages, state from sessions where tenant=? and id=?"
_NEW = "insert into sessions(tenant, id, version, generation, seq, messages, state) values(?,?,?,?,?,?,?)"
_NEXT = "update sessions set version=?, generation=?, seq=?, messages=?, state=? where no=?"
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


def read_session(key: SessionKey, path: str, connection: sqlite3.Connection) -> Session | None:
    """The session as it is stored. Whoever asks has a transaction open, so that it is of one moment."""
    row = connection.execute(_STATE, (key.tenant, key.id)).fetchone()
    if row is None:
        return None
    rows = connection.execute(_MESSAGES, span(row[0]))
    with decoding(path, key.id, "a message"):
        conversation = Conversation.of([decode_message(body) for (body,) in rows])
    with decoding(path, key.id, "the state"):
        session = decode_state(row[5], conversation)
    if not Head(*row[1:5]).is_of(session):
        raise damaged(path, f"the rows of session {key.id!r} are not of one version")
    return session


def span(no: int) -> tuple[int, int]:
    """The first and the last place that rows of session number ``no`` can have."""
    return no << _PLACES, ((no + 1) << _PLACES) - 1


def write_session(one: Written, connection: sqlite3.Connection) -> None:
    """Stores one session of a change. SessionConflict or StoreError when it does not fit what is stored."""
    row = connection.execute(HEAD, (one.key.tenant, one.key.id)).fetchone()
    stored = NOTHING if row is None else Head(*row[1:])
    one.check(stored)
    after = (one.after.version, one.after.generation, one.after.seq, one.after.messages, one.state)
    if row is None:
        no = connection.execute(_NEW, (one.key.tenant, one.key.id, *after)).lastrowid or 0
    else:
        no = row[0]
        connection.execute(_NEXT, (*after, no))
    first, last = span(no)
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
