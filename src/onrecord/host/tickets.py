"""Tickets: who waits for which row, here or taken elsewhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from onrecord.conversation.identity import SessionKey
from onrecord.errors import StoreError, TurnParked, UsageError
from onrecord.host.elsewhere import result_elsewhere
from onrecord.host.hot import HotSessions
from onrecord.host.leased import Name, name_of
from onrecord.host.running import Asked
from onrecord.session.inbox import Row
from onrecord.session.store import Store
from onrecord.turn.result import TurnResult

__all__ = ("Tickets", "row_of")


_NOTHING = Asked()
_PAGE = 1000


class _Waiting:
    __slots__ = ("ended", "row", "since")

    def __init__(self, row: Row, since: int) -> None:
        self.row, self.since = row, since
        self.ended: asyncio.Future[TurnResult[Any]] = asyncio.get_running_loop().create_future()
        self.ended.add_done_callback(_seen)


def _seen(ended: asyncio.Future[TurnResult[Any]]) -> None:
    """A failure that nobody asks about any more is in the record; it is no news for the event loop."""
    if not ended.cancelled():
        ended.exception()


class Tickets:
    """The futures behind tickets, one per row. Rows that run elsewhere are looked for in the store."""

    def __init__(self, store: Store, hot: HotSessions) -> None:
        self._store, self._hot = store, hot
        self._waiting: dict[Name, _Waiting] = {}
        self._asked: dict[Name, Asked] = {}
        self._sessions = Counter[SessionKey]()
        self._left: list[_Waiting] = []
        self._closed = False

    def expect(self, name: Name, asked: Asked) -> None:
        """A row of this name is about to be put: what its sender gives, unless one is waited for already."""
        if name not in self._waiting:
            self._asked[name] = asked

    def withhold(self, name: Name) -> None:
        """No such row was stored. Who waits for one of that name, stored before, still does."""
        if name not in self._waiting:
            self._asked.pop(name, None)

    def asked(self, name: Name) -> Asked:
        """What the sender of a row gave beside it."""
        return self._asked.get(name, _NOTHING)

    def forget(self, name: Name) -> None:
        """Nobody waits for this row any more."""
        self._asked.pop(name, None)
        if self._waiting.pop(name, None) is not None:
            self._sessions[name[0]] -= 1
            if not self._sessions[name[0]]:
                del self._sessions[name[0]]

    def of(self, row: Row, since: int, asked: Asked) -> asyncio.Future[TurnResult[Any]]:
        """What ends with the row's turn. ``since`` is a number of entries that were there before it."""
        waiting = self._waiting.get(name_of(row))
        if waiting is not None and waiting.row.n != row.n:  # that one was taken elsewhere and came again since
            self._left.append(waiting)
            self.forget(name_of(row))
            self._asked[name_of(row)] = asked
            waiting = None
        if waiting is None:
            waiting = self._waiting[name_of(row)] = _Waiting(row, since)
            self._sessions[row.session] += 1
            if self._closed:
                waiting.ended.set_exception(_host_closed())
        return waiting.ended

    def settle(self, row: Row, result: TurnResult[Any]) -> None:
        """The row's turn has ended."""
        waiting = self._waiting.get(name_of(row))
        self.forget(name_of(row))
        if waiting is not None and not waiting.ended.done():
            waiting.ended.set_result(result)

    def fail(self, row: Row, error: Exception | None) -> None:
        """The sender is told of an error; the row may well be tried again."""
        waiting = self._waiting.get(name_of(row))
        self.forget(name_of(row))
        if waiting is not None and not waiting.ended.done() and error is not None:
            waiting.ended.set_exception(error)

    def waits_in(self, session: SessionKey) -> bool:
        """Whether somebody waits for a row of this session."""
        return session in self._sessions

    async def look(self, running: Collection[Name] | Mapping[Name, object]) -> None:
        """Settles what was taken by another process, or was set aside or withdrawn there.

        Raises what the store raises, after all others were looked for: one session that does not decode keeps no one
        else waiting.
        """
        # Before the store is asked: what is put while it answers is not in its answer.
        sessions, failed = dict[SessionKey, list[_Waiting]](), None
        for name, waiting in self._waiting.items():
            if name not in running:
                sessions.setdefault(name[0], []).append(waiting)
        for session in dict.fromkeys((*sessions, *(waiting.row.session for waiting in self._left))):
            try:
                await self._look_in(session, sessions.get(session, []), running)
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed

    async def _look_in(
        self, session: SessionKey, some: list[_Waiting], running: Collection[Name] | Mapping[Name, object]
    ) -> None:
        for waiting in [one for one in self._left if one.row.session == session]:
            result = await self._elsewhere(waiting)
            if not waiting.ended.done():
                waiting.ended.set_result(result)
            self._left.remove(waiting)
        if not some:
            return
        after = min(waiting.row.n for waiting in some) - 1
        stored = {row.key: row async for row in _rows(self._store, session, after)}
        for waiting in some:
            name = name_of(waiting.row)
            if name in running or self._waiting.get(name) is not waiting:
                continue
            row = stored.get(waiting.row.key)
            if row is None or row.n != waiting.row.n:
                self.settle(waiting.row, await self._elsewhere(waiting))
            elif row.dead:
                self.fail(waiting.row, TurnParked(session.id, row.dead))

    async def _elsewhere(self, waiting: _Waiting) -> TurnResult[Any]:
        """What another process made of a row."""
        known = self._hot.get(waiting.row.session)
        result = await result_elsewhere(self._store, waiting.row, waiting.since, known)
        if result.session is not None:  # so that of the next turn only its own entries are read
            self._hot.put(result.session)
        return result

    def close(self) -> None:
        """Tells everybody who still waits, or will, that this host has closed."""
        self._closed = True
        for waiting in (*self._waiting.values(), *self._left):
            if not waiting.ended.done():
                waiting.ended.set_exception(_host_closed())
        self._waiting, self._left = {}, []
        self._sessions.clear()


def _host_closed() -> UsageError:
    return UsageError(
        "the host was closed before this turn ended",
        code="host-closed",
        hint="the input is accepted: the next host on this store takes it",
    )


async def row_of(store: Store, session: SessionKey, key: str) -> Row | None:
    """The row of a session's inbox with this key."""
    async for row in _rows(store, session):
        if row.key == key:
            return row
    return None


async def _rows(store: Store, session: SessionKey, after: int = 0) -> AsyncIterator[Row]:
    """All rows of a session's inbox behind that number, however many."""
    more = True
    while more:
        page = await store.rows("in", session, after=after, limit=_PAGE)
        for row in page:
            yield row
            after = row.n
        more = len(page) == _PAGE
