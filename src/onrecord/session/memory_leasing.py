"""How rows of a table in memory are leased, given back, deleted and parked. Rules 2, 3, 4 and 7 of `inbox`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.session.inbox import FIRST, Box, Row, comes_first, is_message, lease_lost
from onrecord.session.memory_rows import RowTable, chosen, due_of, is_leased

__all__ = ("again", "check_taken", "done", "extend", "lease", "next_due", "park", "revive", "share_due")


def lease(
    table: RowTable,
    box: Box,
    owner: str,
    ttl: float,
    *,
    limit: int = 1,
    session: SessionKey | None = None,
    only: int = 0,
) -> list[Row]:  # fmt: skip
    """Leases the head rows of up to ``limit`` sessions; with ``only`` no other row than the one of that number."""
    now = table.clock()
    sessions = table.sessions(box) if session is None else [session]
    heads = [head for one in sessions if (head := _free_head(table, box, one, now)) is not None]
    due = sorted((head for head in heads if due_of(head) <= now), key=_place)
    wanted = [head for head in due if only in {0, head.n}][: max(limit, 0)]
    return [_lease(table, head, owner, now + timedelta(seconds=ttl)) for head in wanted]


def next_due(table: RowTable, box: Box) -> datetime | None:
    """The earliest due time of a head that is free, or the end of a lease."""
    now, times = table.clock(), list[datetime]()
    for session in table.sessions(box):
        head = _free_head(table, box, session, now)
        times += [due_of(head)] if head is not None else []
        times += [row.lease_until for row in table.living(box, session) if row.lease_until and is_leased(row, now)]
    return min(times, default=None)


def extend(table: RowTable, rows: Sequence[Row], ttl: float) -> list[Row | None]:
    """Longer leases, where they are still held."""
    until = table.clock() + timedelta(seconds=ttl)
    held = [_held(table, row) for row in rows]
    return [None if row is None else table.keep(replace(row, lease_until=until)) for row in held]


def again(table: RowTable, row: Row, due: datetime, rung: int, floor: datetime | None) -> bool:
    """Gives a row back; those that may not overtake it move with it."""
    held = _held(table, row)
    if held is None:
        return False
    given = replace(held, due=due, retry_at=due, floor=floor, rung=rung, clean=held.clean + 1)
    table.keep(_freed(given))
    if is_message(held.body) or held.box == "out":
        _line_up(table, held.box, held.session)
    return True


def done(table: RowTable, row: Row) -> bool:
    """Deletes a leased row."""
    held = _held(table, row)
    if held is None:
        return False
    table.remove(held)
    return True


def park(table: RowTable, row: Row, why: str) -> bool:
    """Sets a leased row aside."""
    held = _held(table, row)
    if held is None:
        return False
    table.keep(_freed(replace(held, dead=why)))
    return True


def revive(table: RowTable, box: Box, session: SessionKey, keys: Sequence[str] | None) -> int:
    """Makes parked rows due again."""
    now = table.clock()
    dead = [row for row in chosen(table, box, session, keys) if row.dead]
    for row in dead:
        due = FIRST if comes_first(row.body) else now
        fresh = replace(row, dead="", due=due, rung=0, clean=row.attempt, retry_at=None, floor=None, cancel=None)
        table.keep(fresh)
    if any(is_message(row.body) for row in dead):
        share_due(table, session, now)
    if box == "out":
        _line_up(table, box, session)
    return len(dead)


def share_due(table: RowTable, session: SessionKey, now: datetime) -> None:
    """Gives all messages of a session one due time, so that their numbers alone order them."""
    messages = [row for row in table.living("in", session) if is_message(row.body)]
    due = max([now, *(row.floor for row in messages if row.floor is not None)])
    for row in messages:
        table.keep(replace(row, due=due))


def _line_up(table: RowTable, box: Box, session: SessionKey) -> None:
    """Makes every message due no earlier than those of lower numbers."""
    due = FIRST
    for row in sorted(table.living(box, session), key=lambda row: row.n):
        if is_message(row.body) or box == "out":
            due = max(due, due_of(row))
            table.keep(replace(row, due=due))


def check_taken(table: RowTable, taken: Row) -> None:
    """LeaseLost unless the row is still the taker's."""
    if _held(table, taken) is None:
        raise lease_lost(taken)


def _free_head(table: RowTable, box: Box, session: SessionKey, now: datetime) -> Row | None:
    living = table.living(box, session)
    if any(is_leased(row, now) for row in living):
        return None
    return min(living, key=_place, default=None)


def _lease(table: RowTable, head: Row, owner: str, until: datetime) -> Row:
    for other in table.living(head.box, head.session):
        if other.owner and other.n != head.n:
            table.keep(_freed(other))  # its lease has ended: whoever had it must not go on beside the new taker
    return table.keep(replace(head, owner=owner, lease_until=until, attempt=head.attempt + 1))


def _held(table: RowTable, row: Row) -> Row | None:
    """The stored row, if it is still leased as this one says."""
    found = table.find(row)
    if found is None or not found.owner:
        return None
    return found if (found.n, found.owner, found.attempt) == (row.n, row.owner, row.attempt) else None


def _freed(row: Row) -> Row:
    return replace(row, owner="", lease_until=None)


def _place(row: Row) -> tuple[datetime, int]:
    return (due_of(row), row.n)
