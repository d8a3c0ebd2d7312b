"""Rows in a SQLite file: the rules of the inbox (`onrecord.session.inbox`) as SQL, few statements an act.

Each statement gives the interpreter away and has to get it back, so what belongs together is one statement; one that
stands alone is a transaction by itself. Everything here is done in the file's thread.
"""

# ruff: noqa: S608  statements are put together from this package's own text, values are always parameters

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Interruption, Said
from onrecord.conversation.outgoing import Outgoing
from onrecord.record.kinds import HistoryChanged
from onrecord.session.inbox import (
    FIRST,
    Box,
    Row,
    comes_first,
    decode_mark,
    decode_row_body,
    encode_row_body,
    instant,
    is_message,
    kind_of_row,
)
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_sessions import decoding

if TYPE_CHECKING:
    import sqlite3

__all__ = (
    "IS_MESSAGE", "OF", "Encoded", "Found", "again", "cancel", "decode_found", "decode_row", "encode_row", "extend",
    "find", "kinds", "lease", "mark", "micros", "next_due", "of_session", "release", "revive", "rows", "settle",
    "share_due", "take_away", "until",
)  # fmt: skip

Found = tuple[Any, ...]
"""A row as it is read, in the order of `_COLUMNS`."""

_AT_ONCE = 100
"""Rows or keys a statement: 800 parameters, below the oldest limit of SQLite."""
_MICROSECOND = timedelta(microseconds=1)


def kinds(*of: type[msgspec.Struct]) -> str:
    """A condition: the row is of one of these kinds."""
    return "kind in (" + ",".join(f"'{kind.__struct_config__.tag}'" for kind in of) + ")"


IS_MESSAGE = kinds(Said, Answered)
_COMES_FIRST = kinds(Interruption, HistoryChanged)
_IS_OUT = kinds(Outgoing)

_COLUMNS = """n, tenant, session, box, key, kind, body, options, due, owner, lease_until, attempt, clean, rung,
    retry_at, floor, cancel, dead"""
OF = "tenant=? and session=? and box=?"
_FENCE = "n=? and owner=? and attempt=? and owner<>''"
_LEASED = """exists(select 1 from rows l where l.tenant=r.tenant and l.session=r.session and l.box=r.box
    and l.lease_until>:now)"""
_IS_HEAD = """{r}.n=(select e.n from rows e where e.dead='' and e.tenant={r}.tenant and e.session={r}.session
    and e.box={r}.box order by e.due, e.n limit 1)"""
_IS_HEAD_R, _IS_HEAD_ROWS = _IS_HEAD.format(r="r"), _IS_HEAD.format(r="rows")

# A lease that ran out is lost to whoever takes the session next, though it be for another row. `in` and `cross join`
# leave SQLite no choice: the few rows that are picked are looked up by their numbers.
_LEASE = f"""
    with head(n, tenant, session) as materialized (
        select r.n, r.tenant, r.session from rows r
        where r.dead='' and r.box=:box and r.due<=:now {{of}} and not {_LEASED} and {_IS_HEAD_R}
        order by r.due, r.n limit :limit)
    update rows set owner=case when {_IS_HEAD_ROWS} then :owner else '' end,
        lease_until=case when {_IS_HEAD_ROWS} then :until end, attempt=attempt+({_IS_HEAD_ROWS})
    where n in (
        select n from head union all
        select o.n from head cross join rows o on o.tenant=head.tenant and o.session=head.session and o.box=:box
            and o.lease_until is not null)
    returning {_COLUMNS}"""
_LEASE_ANY = _LEASE.format(of="")
_LEASE_ONE = _LEASE.format(of="and r.tenant=:tenant and r.session=:session")

_NEXT_DUE = f"""
    select (select r.due from rows r where r.dead='' and r.box=:box and not {_LEASED} order by r.due, r.n limit 1),
        (select min(lease_until) from rows where lease_until>:now and box=:box)"""

_PUT = "insert into rows(tenant, session, box, key, kind, body, options, due) values"
# A take of it that runs at this moment loses its lease, for the row has no owner now. The count goes on, as the fence
# of takes to come.
_ARM = f"""on conflict(tenant, session, box, key) do update set kind=excluded.kind, body=excluded.body,
    options=excluded.options, due=excluded.due, clean=attempt, rung=0, owner='', lease_until=null, retry_at=null,
    floor=null, cancel=null, dead='' where not excluded.{_IS_OUT}"""


# ---- values ----------------------------------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """A row ready to be stored: who and what it is, and the instant it asks for (None: the store says)."""

    named: tuple[str, str, str, str]
    kind: str
    body: bytes
    options: bytes
    due: int | None
    is_message: bool
    after_ms: int | None

    def values(self, due: int) -> tuple[Any, ...]:
        """The columns of a new row."""
        return (*self.named, self.kind, self.body, self.options, due)


def encode_row(row: Row, codec: CellCodec) -> Encoded:
    """The row as it is stored. StoreError for one that cannot be."""
    named = (row.session.tenant, row.session.id, row.box, row.key)
    body = codec.seal(encode_row_body(row), "row", *named)
    due = FIRST if comes_first(row.body) else row.due
    return Encoded(
        named=named, kind=kind_of_row(row.body), body=body, options=codec.seal(bytes(row.options), "options", *named),
         due=None if due is None else micros(due), is_message=is_message(row.body),
        after_ms=row.body.after_ms if isinstance(row.body, Outgoing) else None,
    )  # fmt: skip


def decode_row(found: Found, codec: CellCodec) -> Row:
    """A row as it was read. Raises what decoding raises for one that no store wrote."""
    (n, tenant, session, box, key, kind, body, options, due, owner, lease_until, attempt, clean, rung, retry_at, floor,
     cancel, dead) = found  # fmt: skip
    named = (tenant, session, box, key)
    return Row(
        session=SessionKey(session, tenant=tenant), box=box, key=key, due=_instant(due),
        body=decode_row_body(kind, codec.open(body, "row", *named)),
        options=Raw(codec.open(options, "options", *named)), n=n, owner=owner, lease_until=_maybe(lease_until),
        attempt=attempt, clean=clean, rung=rung, retry_at=_maybe(retry_at), floor=_maybe(floor),
        cancel=None if cancel is None else decode_mark(codec.open(cancel, "mark", tenant, session)), dead=dead,
    )  # fmt: skip


def decode_found(found: Found, codec: CellCodec) -> Row:
    """A row of that file. StoreError, without its content, for one that no store wrote."""
    with decoding(codec.path, str(found[2]), f"row {found[0]}"):
        return decode_row(found, codec)


def micros(at: datetime) -> int:
    """Microseconds since 1970. StoreError for a time of no place."""
    return (instant(at) - FIRST) // _MICROSECOND


def until(now: int, ttl: float) -> int:
    """When a lease of ``ttl`` seconds ends."""
    return now + round(ttl * 1_000_000)


def _instant(value: int) -> datetime:
    return FIRST + timedelta(microseconds=value)


def _maybe(value: int | None) -> datetime | None:
    return None if value is None else _instant(value)


# ---- leasing ---------------------------------------------------------------------------------------------------------


def lease(
    connection: sqlite3.Connection, box: Box, owner: str, limit: int, session: SessionKey | None, now: int, end: int
) -> list[Found]:
    """Leases the heads of free sessions, earliest first."""
    given = {"box": box, "owner": owner, "limit": max(limit, 0), "now": now, "until": end}
    if session is None:
        found = connection.execute(_LEASE_ANY, given).fetchall()
    else:
        found = connection.execute(_LEASE_ONE, {**given, "tenant": session.tenant, "session": session.id}).fetchall()
    return sorted((row for row in found if row[10] is not None), key=lambda row: (row[8], row[0]))


def release(connection: sqlite3.Connection, leased: Sequence[Found]) -> None:
    """Undoes leases that nobody has heard of."""
    for row in leased:
        connection.execute(
            "update rows set owner='', lease_until=null, attempt=attempt-1 where n=? and attempt=?", (row[0], row[11])
        )


def extend(connection: sqlite3.Connection, held: Sequence[Row], end: int) -> list[Found]:
    """The leases that are still held, longer now."""
    kept: list[Found] = []
    for some in _portions(held):
        sql = f"""update rows set lease_until=? from (values{",".join(["(?,?,?)"] * len(some))}) h
            where n=+h.column1 and owner=h.column2 and attempt=h.column3 and owner<>'' returning {_COLUMNS}"""
        fences = [value for row in some for value in _fence(row)]
        kept += connection.execute(sql, (end, *fences)).fetchall()
    return kept


def take_away(connection: sqlite3.Connection, row: Row, why: str) -> bool:
    """Deletes a leased row, or sets it aside if there is a reason. False where the lease was lost."""
    if not why:
        return connection.execute(f"delete from rows where {_FENCE}", _fence(row)).rowcount == 1
    sql = f"update rows set dead=?, owner='', lease_until=null where {_FENCE}"
    return connection.execute(sql, (why, *_fence(row))).rowcount == 1


def again(connection: sqlite3.Connection, row: Row, due: int, rung: int, floor: int | None) -> bool:
    """Gives a leased row back, and moves what may not overtake it. False where the lease was lost."""
    sql = f"""update rows set due=?, retry_at=?, floor=?, rung=?, clean=clean+1, owner='', lease_until=null
        where {_FENCE}"""
    if connection.execute(sql, (due, due, floor, rung, *_fence(row))).rowcount != 1:
        return False
    if is_message(row.body) or row.box == "out":
        _line_up(connection, (row.session.tenant, row.session.id, row.box))
    return True


def revive(connection: sqlite3.Connection, box: Box, session: SessionKey, keys: Sequence[str] | None, now: int) -> int:
    """Makes parked rows due. How many."""
    sql = f"""update rows set dead='', due=case when {_COMES_FIRST} then 0 else ? end, rung=0, clean=attempt,
        retry_at=null, floor=null, cancel=null where {OF} and dead<>'' {{chosen}} returning {IS_MESSAGE}"""
    of = (session.tenant, session.id, box)
    revived = [row for one in _chosen(sql, (now, *of), keys) for row in connection.execute(*one).fetchall()]
    if any(is_message for (is_message,) in revived):
        floor = f"select max(floor) from rows where dead='' and {OF} and {IS_MESSAGE}"
        share_due(connection, of, max(now, connection.execute(floor, of).fetchone()[0] or now))
    if revived and box == "out":
        _line_up(connection, of)
    return len(revived)


def share_due(connection: sqlite3.Connection, of: Sequence[str], due: int) -> None:
    """Gives all messages of a session one due time, so that their numbers alone order them."""
    sql = f"update rows set due=? where dead='' and {OF} and {IS_MESSAGE} and due<>?"
    connection.execute(sql, (due, *of, due))


def _line_up(connection: sqlite3.Connection, of: Sequence[str]) -> None:
    """Makes every message of a session's box due no earlier than those of lower numbers."""
    sql = f"""update rows set due=top from (select n as place, max(due) over (order by n) as top from rows
        where dead='' and {OF} and (box='out' or {IS_MESSAGE})) where n=+place and due<top"""
    connection.execute(sql, of)


def cancel(
    connection: sqlite3.Connection, box: Box, session: SessionKey, keys: Sequence[str] | None, now: int
) -> int:  # fmt: skip
    """Deletes rows that nobody has leased. How many."""
    sql = f"delete from rows where {OF} and (lease_until is null or lease_until<=?) {{chosen}}"
    given = (session.tenant, session.id, box, now)
    return sum(connection.execute(*one).rowcount for one in _chosen(sql, given, keys))


def mark(
    connection: sqlite3.Connection, box: Box, session: SessionKey, keys: Sequence[str] | None, by: bytes
) -> int:  # fmt: skip
    """Marks rows that are not parked; the first mark stays. How many."""
    sql = f"update rows set cancel=coalesce(cancel, ?) where dead='' and {OF} {{chosen}}"
    given = (by, session.tenant, session.id, box)
    return sum(connection.execute(*one).rowcount for one in _chosen(sql, given, keys))


def _chosen(
    sql: str, given: tuple[Any, ...], keys: Sequence[str] | None
) -> Iterator[tuple[str, tuple[Any, ...]]]:  # fmt: skip
    """A statement for all rows of a session, or as many as it takes for those with one of the keys."""
    if keys is None:
        yield sql.format(chosen=""), given
    for some in _portions(list(dict.fromkeys(keys or ()))):
        yield sql.format(chosen=f"and key in ({','.join('?' * len(some))})"), (*given, *some)


# ---- what a commit does ----------------------------------------------------------------------------------------------


def settle(
    connection: sqlite3.Connection, session: SessionKey, drop: Sequence[str], put: Sequence[Encoded], now: int
) -> None:
    """Wakes that are not to come go; wakes and messages out come."""
    if drop:
        _ = cancel(connection, "in", session, drop, now)
    values = [row.values(due) for row, due in zip(put, _dues(connection, put, now), strict=True)]
    for some in _portions(values):
        rows_of = ",".join(["(?,?,?,?,?,?,?,?)"] * len(some))
        connection.execute(f"{_PUT}{rows_of}{_ARM}", [value for row in some for value in row])


def _dues(connection: sqlite3.Connection, put: Sequence[Encoded], now: int) -> list[int]:
    """When each row is due; a message out no earlier than the last one of its session, plus its own delay."""
    outbox: dict[tuple[str, ...], _Outbox] = {}
    for row in put:
        if row.after_ms is not None:
            outbox.setdefault(row.named[:3], _Outbox([], now)).keys.append(row.named[3])
    for of, box in outbox.items():
        box.look(connection, of)
    dues = []
    for row in put:
        due = now if row.due is None else row.due
        dues.append(due if row.after_ms is None else outbox[row.named[:3]].place(row.named[3], row.after_ms))
    return dues


class _Outbox(Struct):
    """What of a session waits to be delivered: when the last message is due, and which of some keys are there."""

    keys: list[str]
    last: int
    there: set[str] = field(default_factory=set)

    def look(self, connection: sqlite3.Connection, of: tuple[str, ...]) -> None:
        """One query: a message that is there keeps its place, and later ones do not wait for its delay again."""
        for some in _portions(self.keys):
            sql = f"""select (select max(due) from rows where dead='' and {OF}), null union all
                select null, key from rows where {OF} and key in ({",".join("?" * len(some))})"""
            for due, key in connection.execute(sql, (*of, *of, *some)):
                self.last = max(self.last, due or 0)
                self.there.update(() if key is None else (key,))

    def place(self, key: str, after_ms: int) -> int:
        """When the next message is due."""
        if key not in self.there:
            self.there.add(key)
            self.last += 1000 * after_ms
        return self.last


# ---- reading ---------------------------------------------------------------------------------------------------------


def find(connection: sqlite3.Connection, n: int) -> Found:
    """The row of that number."""
    found: Found = connection.execute(f"select {_COLUMNS} from rows where n=?", (n,)).fetchone()
    return found


def rows(connection: sqlite3.Connection, box: Box, session: SessionKey | None, after: int, limit: int) -> list[Found]:
    """Rows in order of their numbers."""
    of, given = "", list[Any]()
    if session is not None:
        of, given = "and tenant=? and session=?", [session.tenant, session.id]
    sql = f"select {_COLUMNS} from rows where box=? {of} and n>? order by n limit ?"
    return connection.execute(sql, (box, *given, after, max(limit, 0))).fetchall()


def of_session(connection: sqlite3.Connection, session: SessionKey) -> list[Found]:
    """Rows of a session, in both boxes."""
    sql = f"select {_COLUMNS} from rows where tenant=? and session=?"
    return connection.execute(sql, (session.tenant, session.id)).fetchall()


def next_due(connection: sqlite3.Connection, box: Box, now: int) -> datetime | None:
    """The earliest head that is free, or the end of a lease."""
    times = connection.execute(_NEXT_DUE, {"box": box, "now": now}).fetchone()
    return min((_instant(time) for time in times if time is not None), default=None)


def _fence(row: Row) -> tuple[int, str, int]:
    return row.n, row.owner, row.attempt


def _portions(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))
