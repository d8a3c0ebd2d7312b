"""Rows of a store in memory: the rules of the inbox, as plain as they can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Said
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import LeaseLost
from onrecord.session.inbox import (
    FIRST,
    Box,
    Busy,
    Row,
    comes_first,
    decode_row_body,
    encode_row_body,
    is_message,
    kind_of_row,
    superseded,
)
from onrecord.session.store import Change
from onrecord.timing import Clock

__all__ = ("RowTable",)

Name = tuple[SessionKey, Box, str]


class RowTable:
    """All rows of one store. Not thread-safe: its store holds a lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[Name, Row] = {}
        self._last = 0

    # ---- accepting

    def find(self, row: Row) -> Row | None:
        """The stored row with this one's key."""
        return self._rows.get(_name(row))

    def is_busy(self, session: SessionKey) -> bool:
        """Whether something of the session's inbox is leased or due."""
        now = self._clock()
        return any(_is_leased(row, now) or _due(row) <= now for row in self._living("in", session))

    def put(self, row: Row, busy: Busy) -> Row:
        """Stores a new row."""
        encode_row_body(row)  # before anything changes: what cannot be stored moves nothing
        now = self._clock()
        due = FIRST if comes_first(row.body) else row.due or now
        if is_message(row.body):
            waiting = [r for r in self._living("in", row.session) if is_message(r.body)]
            due = max([now, *(r.floor for r in waiting if r.floor is not None)])
            for other in waiting:
                if not _is_leased(other, now):
                    self._set(replace(other, due=due))
        stored = self._insert(row, due)
        if busy == "supersede":
            mark = superseded(stored)
            for other in list(self._living("in", row.session)):
                if isinstance(other.body, Said) and other.key != row.key and other.cancel is None:
                    self._set(replace(other, cancel=mark))
        return stored

    def _insert(self, row: Row, due: datetime) -> Row:
        self._last += 1
        # As it would come back from a file, and as a stranger's values could not change it.
        body = decode_row_body(kind_of_row(row.body), encode_row_body(row))
        stored = Row(
            session=row.session, box=row.box, key=row.key, body=body, due=due, options=row.options, n=self._last
        )
        self._set(stored)
        return stored

    # ---- leasing

    def lease(
        self, box: Box, owner: str, ttl: float, limit: int, session: SessionKey | None, *, only: int = 0
    ) -> list[Row]:
        """Leases the head rows of up to ``limit`` sessions; with ``only`` no other row than the one of that number."""
        now, leased = self._clock(), list[Row]()
        for row in self._heads(box, session, now):
            if _due(row) > now or len(leased) == limit or (only and row.n != only):
                break
            until = now + timedelta(seconds=ttl)
            leased.append(self._set(replace(row, owner=owner, lease_until=until, attempt=row.attempt + 1)))
        return leased

    def _heads(self, box: Box, session: SessionKey | None, now: datetime) -> list[Row]:
        """The first row of each session that is free, in order."""
        taken, heads = set[SessionKey](), dict[SessionKey, Row]()
        rows = sorted(self._living(box, session), key=lambda row: (_due(row), row.n))
        for row in rows:
            if _is_leased(row, now):
                taken.add(row.session)
            heads.setdefault(row.session, row)
        return [row for row in heads.values() if row.session not in taken]

    def next_due(self, box: Box) -> datetime | None:
        """The earliest head that is free, or the end of a lease."""
        now = self._clock()
        times = [_due(row) for row in self._heads(box, None, now)]
        times += [
            row.lease_until for row in self._living(box, None) if row.lease_until is not None and row.lease_until > now
        ]
        return min(times, default=None)

    def extend(self, rows: Sequence[Row], ttl: float) -> list[Row | None]:
        """Longer leases, where they are still held."""
        until = self._clock() + timedelta(seconds=ttl)
        held = [self._held(row) for row in rows]
        return [None if row is None else self._set(replace(row, lease_until=until)) for row in held]

    def again(self, row: Row, due: datetime, rung: int, floor: datetime | None) -> bool:
        """Gives a row back; those that may not overtake it move with it."""
        held = self._held(row)
        if held is None:
            return False
        self._set(
            replace(
                held, due=due, retry_at=due, floor=floor, rung=rung, clean=held.clean + 1, owner="", lease_until=None
            )
        )
        if is_message(held.body) or held.box == "out":
            for other in list(self._living(held.box, held.session)):
                if other.n > held.n and (is_message(other.body) or other.box == "out") and _due(other) < due:
                    self._set(replace(other, due=due))
        return True

    def done(self, row: Row) -> bool:
        """Deletes a leased row."""
        held = self._held(row)
        return held is not None and self._rows.pop(_name(held), None) is not None

    def park(self, row: Row, why: str) -> bool:
        """Sets a leased row aside."""
        held = self._held(row)
        if held is None:
            return False
        self._set(replace(held, dead=why, owner="", lease_until=None))
        return True

    def revive(self, box: Box, session: SessionKey, keys: Sequence[str] | None) -> int:
        """Makes parked rows due again."""
        now = self._clock()
        dead = [row for row in self._chosen(box, session, keys) if row.dead]
        for row in dead:
            due = FIRST if comes_first(row.body) else now
            self._set(replace(row, dead="", due=due, rung=0, clean=row.attempt, retry_at=None, floor=None, cancel=None))
        return len(dead)

    # ---- what a commit does

    def check_taken(self, taken: Row) -> None:
        """LeaseLost unless the row is still the taker's."""
        if self._held(taken) is None:
            raise LeaseLost(
                f"row {taken.n} of session {taken.session.id!r} is no longer leased to this take",
                hint="nothing of it is stored; whoever has the row now takes it anew",
            )

    def check(self, put: Iterable[Row]) -> None:
        """StoreError for a row that could not be stored."""
        for row in put:
            encode_row_body(row)

    def settle(self, change: Change) -> None:
        """The rows of a commit: the one taken goes, wakes and messages out come."""
        now, session = self._clock(), change.session.key
        if change.taken is not None:
            _ = self.park(change.taken, change.parked) if change.parked else self.done(change.taken)
        for key in change.drop:
            row = self._rows.get((session, "in", key))
            if row is not None and not _is_leased(row, now):
                del self._rows[_name(row)]
        last = max((_due(row) for row in self._living("out", session)), default=now)
        for row in change.put:
            if isinstance(row.body, Outgoing):
                last = max(now, last) + timedelta(milliseconds=row.body.after_ms)
                if self.find(row) is None:
                    self._insert(row, last)
            else:
                self._arm(row, row.due or now)

    def _arm(self, row: Row, due: datetime) -> None:
        held = self.find(row)
        if held is None:
            self._insert(row, due)
            return
        # A take of it that runs at this moment loses its lease: what it was to do has been replaced.
        attempt = held.attempt + 1 if held.lease_until is not None else held.attempt
        self._set(
            replace(
                held, body=row.body, options=row.options, due=due, attempt=attempt, clean=attempt, rung=0,
                owner="", lease_until=None, retry_at=None, floor=None, cancel=None, dead="",
            )
        )  # fmt: skip

    # ---- reading and withdrawing

    def rows(self, box: Box, session: SessionKey | None, after: int, limit: int) -> list[Row]:
        """Rows in order of their numbers."""
        chosen = (r for r in self._rows.values() if r.box == box and r.n > after and session in (None, r.session))
        return sorted(chosen, key=lambda row: row.n)[:limit]

    def cancel(self, box: Box, session: SessionKey, keys: Sequence[str] | None, by: Interruption | None) -> int:
        """Deletes what waits, or marks all of it."""
        now = self._clock()
        chosen = self._chosen(box, session, keys)
        if by is None:
            chosen = [row for row in chosen if not _is_leased(row, now)]
        for row in chosen:
            if by is None:
                del self._rows[_name(row)]
            else:
                self._set(replace(row, cancel=row.cancel or by))
        return len(chosen)

    def forget(self, matches: Callable[[Row], bool]) -> int:
        """Deletes rows, leased or not. How many."""
        names = [name for name, row in self._rows.items() if matches(row)]
        for name in names:
            del self._rows[name]
        return len(names)

    # ---- small

    def _living(self, box: Box, session: SessionKey | None) -> Iterator[Row]:
        return (r for r in list(self._rows.values()) if r.box == box and not r.dead and session in (None, r.session))

    def _chosen(self, box: Box, session: SessionKey, keys: Sequence[str] | None) -> list[Row]:
        rows = (row for row in self._rows.values() if row.box == box and row.session == session)
        return [row for row in rows if keys is None or row.key in keys]

    def _held(self, row: Row) -> Row | None:
        """The stored row, if it is still leased as this one says."""
        found = self._rows.get(_name(row))
        fits = found is not None and (found.n, found.owner, found.attempt) == (row.n, row.owner, row.attempt)
        return found if fits and found is not None and found.owner else None

    def _set(self, row: Row) -> Row:
        self._rows[_name(row)] = row
        return row


def _name(row: Row) -> Name:
    return (row.session, row.box, row.key)


def _due(row: Row) -> datetime:
    return row.due or FIRST


def _is_leased(row: Row, now: datetime) -> bool:
    return row.lease_until is not None and row.lease_until > now
