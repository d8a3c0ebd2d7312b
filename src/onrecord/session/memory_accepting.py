"""How rows come into a table in memory: put one by one, or with a commit. Rules 1, 4, 5 and 6 of `inbox`."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.conversation.outgoing import Outgoing
from onrecord.session.inbox import (
    FIRST,
    Accepted,
    Busy,
    Row,
    RowBody,
    comes_first,
    decode_row_body,
    encode_row_body,
    instant,
    is_message,
    kind_of_row,
    superseded,
)
from onrecord.session.memory_leasing import done, park, share_due
from onrecord.session.memory_rows import RowTable, due_of, is_leased
from onrecord.session.store import Change

__all__ = ("accept", "settle")


def accept(table: RowTable, row: Row, busy: Busy) -> Accepted:
    """Stores a row unless one with its key is there."""
    encode_row_body(row)  # before anything changes: what cannot be stored moves nothing
    held = table.find(row)
    if held is not None:
        return Accepted(row=held)
    if busy == "reject" and _is_busy(table, row.session):
        return Accepted(row=None)
    stored = _insert(table, row)
    if busy == "supersede":
        for other in table.living("in", row.session):
            if isinstance(other.body, Said) and other.n != stored.n and other.cancel is None:
                table.keep(replace(other, cancel=superseded(stored)))
    return Accepted(row=stored, is_new=True)


def settle(table: RowTable, change: Change) -> None:
    """The rows of a commit: the one taken goes, wakes are withdrawn, wakes and messages out come."""
    if change.taken is not None:
        _ = park(table, change.taken, change.parked) if change.parked else done(table, change.taken)
    now = table.clock()
    for key in change.drop:
        row = table.shelves.get((change.session.key, "in"), {}).get(key)
        if row is not None and not is_leased(row, now):
            table.remove(row)
    for row in change.put:
        held = table.find(row)
        if held is None:
            _insert(table, row)
        elif not isinstance(row.body, Outgoing):
            _replace(table, held, row)
    for child in change.children:
        settle(table, child)


def _is_busy(table: RowTable, session: SessionKey) -> bool:
    now = table.clock()
    return any(is_leased(row, now) or due_of(row) <= now for row in table.living("in", session))


def _insert(table: RowTable, row: Row) -> Row:
    now = table.clock()
    due = _due_of_new(table, row, now)
    table.last += 1
    stored = Row(
        session=row.session, box=row.box, key=row.key, body=_as_read(row), due=due, options=row.options, n=table.last
    )
    table.keep(stored)
    if is_message(row.body):
        share_due(table, row.session, now)
    return table.find(stored) or stored


def _replace(table: RowTable, held: Row, row: Row) -> None:
    # A take of it that runs at this moment loses its lease, for the row has no owner now: what it was to do has been
    # replaced. The count goes on, as the fence of takes to come.
    due = _due_of_new(table, row, table.clock())
    fresh = Row(session=held.session, box=held.box, key=held.key, body=_as_read(row), due=due, options=row.options)
    table.keep(replace(fresh, n=held.n, attempt=held.attempt, clean=held.attempt))


def _due_of_new(table: RowTable, row: Row, now: datetime) -> datetime:
    if isinstance(row.body, Outgoing):
        last = max((due_of(other) for other in table.living("out", row.session)), default=now)
        return max(now, last) + timedelta(milliseconds=row.body.after_ms)
    if comes_first(row.body):
        return FIRST
    return now if row.due is None else instant(row.due)


def _as_read(row: Row) -> RowBody:
    # As it would come back from a file, and as a stranger's values could not change it.
    return decode_row_body(kind_of_row(row.body), encode_row_body(row))
