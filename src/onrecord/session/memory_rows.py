"""All rows of a store in memory, as one table. What may be done with them: `memory_accepting`, `memory_leasing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption
from onrecord.session.inbox import FIRST, Box, Row, encode_mark
from onrecord.timing import Clock

__all__ = ("RowTable", "cancel", "chosen", "due_of", "forget", "is_leased", "rows_behind")


class RowTable(Struct):
    """Rows by session and box, then by key; ``last`` is the highest number given so far. Not thread-safe."""

    clock: Clock
    shelves: dict[tuple[SessionKey, Box], dict[str, Row]] = field(default_factory=dict)
    last: int = 0

    def find(self, row: Row) -> Row | None:
        """The stored row with this one's key."""
        return self.shelves.get((row.session, row.box), {}).get(row.key)

    def keep(self, row: Row) -> Row:
        """Stores a row in place of the one with its key."""
        self.shelves.setdefault((row.session, row.box), {})[row.key] = row
        return row

    def remove(self, row: Row) -> None:
        """Deletes the row with this one's key."""
        shelf = self.shelves[row.session, row.box]
        del shelf[row.key]
        if not shelf:
            del self.shelves[row.session, row.box]

    def living(self, box: Box, session: SessionKey) -> list[Row]:
        """Rows of a session that are not parked."""
        return [row for row in self.shelves.get((session, box), {}).values() if not row.dead]

    def sessions(self, box: Box) -> list[SessionKey]:
        """Sessions with rows in a box."""
        return [session for session, one in self.shelves if one == box]


def due_of(row: Row) -> datetime:
    """When a stored row is due."""
    return row.due or FIRST


def is_leased(row: Row, now: datetime) -> bool:
    """Whether somebody's lease of it still runs."""
    return row.lease_until is not None and row.lease_until > now


def chosen(table: RowTable, box: Box, session: SessionKey, keys: Sequence[str] | None) -> list[Row]:
    """Rows of a session, parked or not: all of them, or those with these keys."""
    shelf = table.shelves.get((session, box), {})
    return [row for key, row in shelf.items() if keys is None or key in keys]


def rows_behind(table: RowTable, box: Box, session: SessionKey | None, after: int, limit: int) -> list[Row]:
    """Rows in order of their numbers, behind ``after``."""
    found = [row for row in _all(table) if row.box == box and row.n > after and session in {None, row.session}]
    return sorted(found, key=lambda row: row.n)[:limit]


def cancel(table: RowTable, box: Box, session: SessionKey, keys: Sequence[str] | None, by: Interruption | None) -> int:
    """Deletes what nobody has leased, or marks what is not parked."""
    rows = chosen(table, box, session, keys)
    if by is not None:
        encode_mark(session, by)
        rows = [row for row in rows if not row.dead]
        for row in rows:
            table.keep(replace(row, cancel=row.cancel or by))
        return len(rows)
    now = table.clock()
    rows = [row for row in rows if not is_leased(row, now)]
    for row in rows:
        table.remove(row)
    return len(rows)


def forget(table: RowTable, matches: Callable[[Row], bool]) -> int:
    """Deletes rows, leased or not. How many."""
    rows = [row for row in _all(table) if matches(row)]
    for row in rows:
        table.remove(row)
    return len(rows)


def _all(table: RowTable) -> Iterator[Row]:
    return (row for shelf in table.shelves.values() for row in shelf.values())
