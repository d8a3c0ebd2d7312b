"""Takes: the rows that a host is taking at this moment, each in a task of its own.

A turn belongs to its host and not to whoever asked for it: nobody who leaves stops one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from onrecord.conversation.identity import SessionKey
from onrecord.errors import LeaseLost, OnrecordError, StoreError
from onrecord.host.hot import HotSessions
from onrecord.host.leased import Name, ended_by, name_of, stopped
from onrecord.host.live import Live
from onrecord.host.running import Running
from onrecord.host.setup import Setup, log
from onrecord.host.taking import GivenBack, take_row
from onrecord.host.tickets import Tickets, row_of
from onrecord.session.inbox import Lease, Row
from onrecord.session.session import Session

__all__ = ("Takes",)


class Takes:
    """What runs, by row and by session. ``tell`` is called when more may be due, ``ended`` whenever a take ends."""

    def __init__(
        self, setup: Setup, hot: HotSessions, live: Live, tickets: Tickets, *, tell: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:  # fmt: skip
        self._setup, self._hot, self._live, self._tickets = setup, hot, live, tickets
        self._tell, self._told_end = tell, ended
        self.running: dict[Name, Running] = {}
        self.count = 0
        self._in: dict[SessionKey, Running] = {}
        self._besides = set[asyncio.Task[None]]()
        self._closing = False

    @property
    def room(self) -> int:
        """How many more turns may run here."""
        return 0 if self._closing else self._setup.turns - len(self.running)

    def lease(self, session: Session | None) -> Lease | None:
        """What a put may ask for: to take the row here and now, if there is room for one more."""
        if self.room <= 0:
            return None
        return Lease(owner=self._setup.name, ttl=self._setup.lease_s, known=session)

    def running_in(self, key: SessionKey) -> Running | None:
        """What is being taken in a session here."""
        return self._in.get(key)

    def begin(self, row: Row, session: Session | None = None, *, is_loaded: bool = False) -> None:
        """Takes a leased row, over ``session`` where that was read with the lease."""
        if self._closing:
            self._beside(self._give_back(row))
            return
        before = self._in.get(row.session)
        if before is not None:  # its lease ended while this process slept, or its row was replaced
            before.lose()
        running = Running(row, session, self._tickets.asked(name_of(row)), is_loaded=is_loaded)
        self.running[name_of(row)] = self._in[row.session] = running
        self._live.begin(row.session, running.draft)
        running.task = asyncio.create_task(self._take(running))

    def find_left(self, name: Name) -> None:
        """Begins a row that may be stored and leased, nobody knows: its sender left, or the store failed."""
        self._beside(self._begin_left(name))

    async def _begin_left(self, name: Name) -> None:
        session, key = name
        row = None
        with suppress(StoreError):  # if it is there, its lease ends by itself
            row = await row_of(self._setup.store, session, key)
        if row is None:
            self._tickets.withhold(name)
        elif row.owner == self._setup.name and name not in self.running:
            self.begin(row)

    def _beside(self, act: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(act)
        self._besides.add(task)
        task.add_done_callback(self._besides.discard)

    def shut(self) -> None:
        """Takes no more rows."""
        self._closing = True

    async def close(self, until: float) -> None:
        """Running turns may end until that time of the loop's clock, then their rows are given back."""
        self._closing = True
        await ended_by(until, [running.task for running in self.running.values()])
        for row in await stopped([*self.running.values()]):
            await self._give_back(row)
        await ended_by(math.inf, self._besides)

    # ---- one row

    async def _take(self, running: Running) -> None:
        row, end = running.row, False
        try:
            running.check()
            result = await take_row(self._setup, self._hot, running)
        except GivenBack as back:
            self._tickets.fail(row, back.error)
            self._tell()
        except LeaseLost:
            self._hot.drop(row.session)  # whoever has the row now ends it, and the tickets look for that
        except asyncio.CancelledError:
            await self._left(running)
        except OnrecordError as error:
            end = getattr(error, "result", None) is not None
            self._failed(running, error)
        except Exception as error:  # noqa: BLE001 - the sender is told; one row must not end the others
            self._failed(running, error)
        else:
            end = result.changed
            self._tickets.settle(row, result)
            if result.wakes or (result.messages and self._setup.deliver is not None):
                self._tell()
        finally:
            self._ended(running, is_stored=end)

    def _failed(self, running: Running, error: Exception) -> None:
        if isinstance(error, StoreError):
            log.error("the store failed in a turn: %s", error.code, extra={"row": running.row.n, "code": error.code})
            self._hot.drop(running.row.session)
        self._tickets.fail(running.row, error)
        self._tell()

    def _ended(self, running: Running, *, is_stored: bool) -> None:
        """Looks for more only where there may be some: a put row was alone, a leased one may have others behind it."""
        row = running.row
        self.count += 1
        # A row that was lost may have come back meanwhile, and run here anew.
        if self.running.get(name_of(row)) is running:
            del self.running[name_of(row)]
        if self._in.get(row.session) is running:
            del self._in[row.session]
        self._live.ended(row.session, running.draft, "committed" if is_stored else "gone", is_filed=running.is_filed)
        is_full = len(self.running) >= self._setup.turns - 1
        if is_full or not running.is_loaded or self._tickets.waits_in(row.session):
            self._tell()
        self._told_end()

    async def _left(self, running: Running) -> None:
        """The take was cancelled from outside: its lease was lost, or it was stopped."""
        if not (running.is_lost or running.is_stopped):
            raise asyncio.CancelledError
        self._hot.drop(running.row.session)
        if running.is_stopped and not running.is_lost:
            await self._give_back(running.row)
            self._tell()

    async def _give_back(self, row: Row) -> None:
        with suppress(StoreError):  # then its lease ends by itself
            await self._setup.store.again(row, due=self._setup.effects.now(), rung=row.rung, floor=row.floor)
