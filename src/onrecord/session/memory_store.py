"""MemoryStore: the promises of a store, kept in memory and gone with the process. For tests and first steps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey, session_key
from onrecord.conversation.inputs import Interruption
from onrecord.errors import StoreError
from onrecord.record.entry import Body, Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session import memory_accepting, memory_leasing, memory_rows
from onrecord.session.eraser import Cells, erase, expire
from onrecord.session.erasure import Erasure, Retention
from onrecord.session.inbox import Accepted, Box, Busy, Lease, Row, check_lease, check_reason, instant
from onrecord.session.memory_cells import KeptSession, MemoryCells
from onrecord.session.memory_rows import RowTable
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.session.written import NOTHING, Written, write_out
from onrecord.timing import Clock

__all__ = ("MemoryStore",)

T = TypeVar("T")

_system_clock = partial(datetime.now, UTC)  # noqa: TID251 - that of the database it stands for


class _MemoryRows:
    """The rows of a store in memory; see `onrecord.session.inbox` for what each method promises."""

    def __init__(self, clock: Clock) -> None:
        self._table = RowTable(clock)
        self._kept: dict[SessionKey, KeptSession] = {}
        self._lock = Lock()
        self._closed = False

    async def put(self, row: Row, /, *, busy: Busy = "queue", lease: Lease | None = None) -> Accepted:
        """Stores a row unless one with its key is there, and leases it when it is next and the lease is asked for."""
        if lease is not None:
            check_lease(lease.owner, lease.ttl)
        with self._open():
            found = memory_accepting.accept(self._table, row, busy)
            if lease is None or found.row is None or not found.is_new:
                return found
            mine = memory_leasing.lease(
                self._table, row.box, lease.owner, lease.ttl, session=row.session, only=found.row.n
            )
            if not mine:
                return found
            return Accepted(row=mine[0], is_new=True, leased=True, session=self._session(row.session, lease.known))

    async def lease(
        self, box: Box, owner: str, /, *, ttl: float, limit: int = 1, session: SessionKey | None = None
    ) -> list[Row]:
        """Leases the head rows of up to ``limit`` sessions."""
        check_lease(owner, ttl)
        with self._open():
            return memory_leasing.lease(self._table, box, owner, ttl, limit=limit, session=session)

    async def extend(self, rows: Sequence[Row], /, *, ttl: float) -> list[Row | None]:
        """Longer leases; None for those lost."""
        check_lease("any", ttl)
        with self._open():
            return memory_leasing.extend(self._table, rows, ttl)

    async def again(self, row: Row, /, *, due: datetime, rung: int = 0, floor: datetime | None = None) -> bool:
        """Gives a leased row back for later."""
        due, floor = instant(due), None if floor is None else instant(floor)
        with self._open():
            return memory_leasing.again(self._table, row, due, rung, floor)

    async def done(self, row: Row, /) -> bool:
        """Deletes a leased row."""
        with self._open():
            return memory_leasing.done(self._table, row)

    async def park(self, row: Row, /, *, why: str) -> bool:
        """Sets a leased row aside."""
        check_reason(why)
        with self._open():
            return memory_leasing.park(self._table, row, why)

    async def revive(self, box: Box, session: SessionKey | str, /, *, keys: Sequence[str] | None = None) -> int:
        """Makes parked rows due at once."""
        with self._open():
            return memory_leasing.revive(self._table, box, session_key(session), keys)

    async def rows(
        self, box: Box, session: SessionKey | str | None = None, /, *, after: int = 0, limit: int = 1000
    ) -> list[Row]:
        """Rows in order of their numbers, behind ``after``."""
        key = None if session is None else session_key(session)
        with self._open():
            return memory_rows.rows_behind(self._table, box, key, after, limit)

    async def cancel(
        self, box: Box, session: SessionKey | str, /, *, keys: Sequence[str] | None = None,
        by: Interruption | None = None,
    ) -> int:  # fmt: skip
        """Deletes rows that nobody has leased, or marks them."""
        with self._open():
            return memory_rows.cancel(self._table, box, session_key(session), keys, by)

    async def next_due(self, box: Box, /) -> datetime | None:
        """When something may next be leased."""
        with self._open():
            return memory_leasing.next_due(self._table, box)

    def _session(self, key: SessionKey, known: Session | None) -> Session | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if known is not None and known.key == key and kept.head.is_of(known):
            return known
        return kept.session()

    @contextmanager
    def _open(self) -> Iterator[None]:
        """The store for oneself. Asked only then whether it is closed: it may have been while this one waited."""
        with self._lock:
            if self._closed:
                raise StoreError("this store is closed", code="store-closed", hint="make a new one")
            yield


class MemoryStore(_MemoryRows):
    """Keeps everything as the bytes a file would hold, so that what cannot be stored fails here too.

    ``bodies`` are the entry bodies of features to give back typed; others come back as `UnknownBody`. Usable from
    several event loops and threads. ``clock`` decides what is due and whose lease has ended (default: the system's).
    """

    def __init__(self, *, bodies: Iterable[type[Body]] = (), clock: Clock = _system_clock) -> None:
        super().__init__(clock)
        self._codec = EntryCodec(bodies)

    async def load(self, key: SessionKey | str, /, *, known: Session | None = None) -> Session | None:
        """The session, or None; ``known`` itself when it is still what is stored."""
        with self._open():
            return self._session(session_key(key), known)

    async def commit(self, change: Change, /) -> Session:
        """Stores a change whole or not at all. SessionConflict when it is not the next version."""
        written = write_out(change, self._codec)
        lines = [[self._codec.encode(entry) for entry, _ in one.entries] for one in written]
        with self._open():
            if change.taken is not None:
                memory_leasing.check_taken(self._table, change.taken)
            for one in written:
                kept = self._kept.get(one.key)
                one.check(NOTHING if kept is None else kept.head)
            for one, entries in zip(written, lines, strict=True):
                self._write(one, entries)
            memory_accepting.settle(self._table, change)
        return replace(change.session, version=change.session.version + 1) if change.entries else change.session

    def _write(self, one: Written, entries: list[bytes]) -> None:
        kept = self._kept.setdefault(one.key, KeptSession(NOTHING, b"", [], []))
        kept.head, kept.state = one.after, one.state
        kept.messages[one.kept :] = one.messages
        kept.entries.extend(entries)

    async def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        """The record of a session in order, from behind ``after``, as it is when reading begins."""
        with self._open():
            kept = self._kept.get(session_key(key))
            lines = [] if kept is None else kept.entries[max(after + 1, 0) :]
        for line in lines:
            yield self._codec.decode(line)

    async def sessions(self, *, tenant: str = "") -> list[SessionKey]:
        """The keys of all sessions of a tenant, in order of their ids."""
        with self._open():
            return sorted((key for key in self._kept if key.tenant == tenant), key=lambda key: key.id)

    async def erase(
        self, what: SessionKey | Identity | str, /, *, messages: Sequence[str] | None = None, why: str
    ) -> Erasure:
        """Erases a person, a session, or the turns of some of its messages."""
        return await erase(self._step, what, messages, why)

    async def expire(self, policy: Retention, /) -> Erasure:
        """Erases what is older than the policy says."""
        return await expire(self._step, policy)

    async def _step(self, act: Callable[[Cells], T], /, *, writes: bool = True) -> T:
        with self._open():
            return act(MemoryCells(self._kept, self._table, self._codec))

    async def close(self) -> None:
        """Forgets everything; safe to call twice."""
        with self._lock:
            self._closed = True
            self._kept = {}
            self._table.shelves.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
