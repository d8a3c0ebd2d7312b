"""Tickets: who waits for which row, here or taken elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from onrecord.conversation.identity import SessionKey
from onrecord.errors import TurnParked, UsageError
from onrecord.host.elsewhere import result_elsewhere
from onrecord.host.running import Asked, Name, name_of
from onrecord.session.inbox import Row
from onrecord.session.store import Store
from onrecord.turn.result import TurnResult

__all__ = ("Tickets",)


_NOTHING = Asked()


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

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[Name, _Waiting] = {}
        self._asked: dict[Name, Asked] = {}

    def expect(self, name: Name, asked: Asked) -> None:
        """A row of this name is about to be put: what its sender gives, unless one is waited for already."""
        if name not in self._waiting:
            self._asked[name] = asked

    def asked(self, name: Name) -> Asked:
        """What the sender of a row gave beside it."""
        return self._asked.get(name, _NOTHING)

    def forget(self, name: Name) -> None:
        """Nobody waits for this row any more."""
        self._waiting.pop(name, None)
        self._asked.pop(name, None)

    def of(self, row: Row, since: int) -> asyncio.Future[TurnResult[Any]]:
        """What ends with the row's turn. ``since`` is a number of entries that were there before it."""
        waiting = self._waiting.get(name_of(row))
        if waiting is None:
            waiting = self._waiting[name_of(row)] = _Waiting(row, since)
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
        return any(name[0] == session for name in self._waiting)

    async def look(self, running: Collection[Name] | Mapping[Name, object]) -> None:
        """Settles what was taken by another process, or was set aside or withdrawn there."""
        sessions = {name[0] for name in self._waiting if name not in running}
        for session in sessions:
            stored = {row.key: row for row in await self._store.rows("in", session)}
            for name, waiting in list(self._waiting.items()):
                if name[0] != session or name in running:
                    continue
                row = stored.get(name[1])
                if row is None or row.n != waiting.row.n:
                    self.settle(waiting.row, await result_elsewhere(self._store, waiting.row, waiting.since))
                elif row.dead:
                    self.fail(waiting.row, TurnParked(session.id, row.dead))

    def close(self) -> None:
        """Tells everybody who still waits that this host has closed."""
        for waiting in self._waiting.values():
            if not waiting.ended.done():
                waiting.ended.set_exception(
                    UsageError(
                        "the host was closed before this turn ended",
                        code="host-closed",
                        hint="the input is accepted: the next host on this store takes it",
                    )
                )
        self._waiting = {}
