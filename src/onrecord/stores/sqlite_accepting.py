"""How a row is accepted in a SQLite file: stored once, in its place, and leased at once where its taker waits."""

# ruff: noqa: S608  statements are put together from this package's own text, values are always parameters

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.session.inbox import Accepted, Box, Busy, Lease, Row, encode_mark, superseded
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_leases import (
    IS_MESSAGE,
    OF,
    Encoded,
    decode_found,
    decode_row,
    find,
    kinds,
    share_due,
    until,
)
from onrecord.stores.sqlite_sessions import is_known, is_long, read_session

if TYPE_CHECKING:
    import sqlite3

__all__ = ("Standing", "accept")

_BOX = "tenant=:tenant and session=:session and box=:box"
_STANDING = f"""
        (select n from rows where {_BOX} and key=:key),
        (select max(lease_until) from rows where {_BOX} and lease_until is not null),
        (select due from rows where dead='' and {_BOX} order by due limit 1),
        (select max(due) from rows where dead='' and {_BOX})"""
_STANDING_OF_ONE = f"select 0, null, {_STANDING}"
_STANDING_OF_A_MESSAGE = f"select count(*), max(floor), {_STANDING} from rows where dead='' and {_BOX} and {IS_MESSAGE}"

_NEW = "insert into rows(tenant, session, box, key, kind, body, options, due, owner, lease_until, attempt)"


def accept(
    row: Encoded, busy: Busy, asked: Lease | None, now: int, codec: CellCodec, connection: sqlite3.Connection
) -> Accepted:
    """Stores a row, in the transaction that the caller has open."""
    before = _standing(connection, row)
    if before.n is not None:
        return Accepted(row=decode_found(find(connection, before.n), codec))
    if busy == "reject" and _standing(connection, row, "in").is_busy(now):
        return Accepted(row=None)
    due = _due(row, before, now)
    if before.messages:
        share_due(connection, row.named[:3], due)
    mine = asked if asked is not None and before.is_next(row, due, now) else None
    session = None
    if mine is not None:
        key = SessionKey(row.named[1], tenant=row.named[0])
        if is_known(key, mine.known, connection):
            session = mine.known
        elif is_long(key, connection):
            mine = None  # whoever leases it reads it in pages
        else:
            session = read_session(key, codec, connection)
    owner, end = ("", None) if mine is None else (mine.owner, until(now, mine.ttl))
    n = _insert(connection, row, due, owner, end)
    attempt = 0 if mine is None else 1
    stored = decode_row((n, *row.values(due), owner, end, attempt, 0, 0, None, None, None, ""), codec)
    if busy == "supersede":
        _supersede(connection, stored, codec)
    if mine is None:
        return Accepted(row=stored, is_new=True)
    if before.leased is not None:
        _clear(connection, row, n)
    return Accepted(row=stored, is_new=True, leased=True, session=session)


def _due(row: Encoded, before: Standing, now: int) -> int:
    if row.after_ms is not None:
        return max(now, before.last or now) + 1000 * row.after_ms
    if row.is_message:
        return max(now, before.floor or now)
    return now if row.due is None else row.due


class Standing(NamedTuple):
    """How a session's box stands before a row comes: its waiting messages, the row of that key, leases, what is due.

    ``leased`` is the latest end of a lease, also of one that ran out; ``first`` and ``last`` are when the first and the
    last row are due. ``messages`` and ``floor`` are only asked for when the row is a message.
    """

    messages: int
    floor: int | None
    n: int | None
    leased: int | None
    first: int | None
    last: int | None

    def is_busy(self, now: int) -> bool:
        """Whether something is leased or due."""
        return self.is_leased(now) or (self.first is not None and self.first <= now)

    def is_leased(self, now: int) -> bool:
        """Whether somebody takes the session at this moment."""
        return self.leased is not None and self.leased > now

    def is_next(self, row: Encoded, due: int, now: int) -> bool:
        """Whether the row, new and due then, is the one that may be leased next, and now."""
        behind = self.messages > 0 if row.is_message else False
        return due <= now and not behind and not self.is_leased(now) and (self.first is None or self.first > due)


def _standing(connection: sqlite3.Connection, row: Encoded, box: Box | None = None) -> Standing:
    """How the box of a row's session stands (``box``: another one)."""
    tenant, session, own, key = row.named
    sql = _STANDING_OF_A_MESSAGE if row.is_message else _STANDING_OF_ONE
    given = {"tenant": tenant, "session": session, "box": box or own, "key": key}
    return Standing(*connection.execute(sql, given).fetchone())


def _insert(connection: sqlite3.Connection, row: Encoded, due: int, owner: str, until: int | None) -> int:
    """Stores a new row, leased if ``until`` is given. Its number."""
    values = (*row.values(due), owner, until, 0 if until is None else 1)
    return connection.execute(f"{_NEW} values({','.join('?' * len(values))})", values).lastrowid or 0


def _supersede(connection: sqlite3.Connection, by: Row, codec: CellCodec) -> None:
    """Marks all other messages of people."""
    sql = f"update rows set cancel=? where dead='' and {OF} and {kinds(Said)} and n<>? and cancel is null"
    of = (by.session.tenant, by.session.id)
    mark = codec.seal(encode_mark(by.session, superseded(by)), "mark", *of)
    connection.execute(sql, (mark, *of, "in", by.n))


def _clear(connection: sqlite3.Connection, row: Encoded, n: int) -> None:
    """Ends the leases on other rows of the session, which ran out: row ``n`` has been leased now."""
    sql = f"update rows set owner='', lease_until=null where {OF} and lease_until is not null and n<>?"
    connection.execute(sql, (*row.named[:3], n))
