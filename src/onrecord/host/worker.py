"""Worker: leases rows that are due, takes many at once and one per session, keeps the leases, delivers what was said.

One task serves, one keeps the leases; each running take is a task of its own, because a turn belongs to its host and
not to whoever asked for it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime
from typing import Any

from onrecord.conversation.identity import SessionKey
from onrecord.errors import LeaseLost, OnrecordError, StoreError
from onrecord.host.delivery import Delivering, Delivery, ended_by
from onrecord.host.heartbeat import keep_leases
from onrecord.host.hot import HotSessions
from onrecord.host.live import Live
from onrecord.host.running import Name, Running, name_of
from onrecord.host.setup import Setup, code_of, log
from onrecord.host.taking import GivenBack, take_row
from onrecord.host.tickets import Tickets, row_of
from onrecord.session.inbox import Lease, Row
from onrecord.session.session import Session

__all__ = ("Worker",)

_TROUBLE_S = (0.05, 0.2, 1.0, 5.0)
"""Seconds to wait after the store failed, longer each time."""


class Worker:
    """The engine of a host. Everything runs on one event loop."""

    def __init__(self, setup: Setup, hot: HotSessions, live: Live, tickets: Tickets) -> None:
        self.setup, self.hot, self.live, self.tickets = setup, hot, live, tickets
        self.delivery = Delivery(setup)
        self.running: dict[Name, Running] = {}
        self._taken: dict[SessionKey, Running] = {}
        self._news = asyncio.Event()
        self._looks_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._besides = set[asyncio.Task[None]]()
        self._closing = asyncio.Event()

    # ---- running

    def start(self) -> None:
        """Begins to serve; called again it does nothing."""
        if not self._tasks and not self._closing.is_set():

            def held() -> list[Running | Delivering]:
                return [*self.running.values(), *self.delivery.running.values()]

            self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(keep_leases(self.setup, held))]

    def tell(self, *, gone: bool = False) -> None:
        """Something may be due: the worker looks at once, also for rows that are gone if told so."""
        if gone:
            self._looks_at = 0.0
        self._news.set()

    def lease(self, session: Session | None) -> Lease | None:
        """What a put may ask for: to take the row here and now, if there is room for one more."""
        if self._closing.is_set() or len(self.running) >= self.setup.turns:
            return None
        return Lease(owner=self.setup.name, ttl=self.setup.lease_s, known=session)

    def begin(self, row: Row, session: Session | None = None, *, is_loaded: bool = False) -> None:
        """Takes a leased row in a task of its own, over ``session`` where that was read with the lease."""
        if self._closing.is_set():
            self._beside(self._give_back(row))
            return
        before = self._taken.get(row.session)
        if before is not None:  # its lease ended while this process slept, or its row was replaced
            before.lose()
        running = Running(row, session, self.tickets.asked(name_of(row)), is_loaded=is_loaded)
        self.running[name_of(row)] = self._taken[row.session] = running
        self.live.begin(row.session, running.draft)
        running.task = asyncio.create_task(self._take(running))

    def find_left(self, name: Name) -> None:
        """Begins a row of which nobody knows whether it was stored, and leased: its sender left, or the store failed."""
        self._beside(self._begin_left(name))

    async def _begin_left(self, name: Name) -> None:
        session, key = name
        row = None
        with suppress(StoreError):  # if it is there, its lease ends by itself
            row = await row_of(self.setup.store, session, key)
        if row is None:
            self.tickets.withhold(name)
        elif row.owner == self.setup.name and name not in self.running:
            self.begin(row)

    def _beside(self, act: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(act)
        self._besides.add(task)
        task.add_done_callback(self._besides.discard)

    def running_in(self, key: SessionKey) -> Running | None:
        """What is being taken in a session here."""
        return self._taken.get(key)

    async def close(self, drain_s: float) -> None:
        """Takes no more rows; running turns may end within ``drain_s`` seconds, then their rows are given back."""
        self._closing.set()
        self.tell()
        until = asyncio.get_running_loop().time() + drain_s
        await ended_by(until, [*(r.task for r in self.running.values()), *self._tasks[:1]])
        for running in list(self.running.values()):
            running.stop()
        await ended_by(math.inf, [r.task for r in self.running.values()])
        await self.delivery.close(until)
        for task in self._tasks:
            task.cancel()
        await ended_by(math.inf, [*self._tasks, *self._besides])
        self.live.close()
        self.tickets.close()

    # ---- one row

    async def _take(self, running: Running) -> None:
        row, end = running.row, False
        try:
            running.check()
            result = await take_row(self.setup, self.hot, running)
        except GivenBack as back:
            self.tickets.fail(row, back.error)
            self.tell()
        except LeaseLost:
            self.hot.drop(row.session)  # whoever has the row now ends it, and the tickets look for that
        except asyncio.CancelledError:
            await self._left(running)
        except OnrecordError as error:
            end = getattr(error, "result", None) is not None
            self._failed(running, error)
        except Exception as error:  # noqa: BLE001 - the sender is told; one row must not end the others
            self._failed(running, error)
        else:
            end = result.changed
            self.tickets.settle(row, result)
            if result.wakes or (result.messages and self.setup.deliver is not None):
                self.tell()
        finally:
            self._ended(running, is_stored=end)

    def _failed(self, running: Running, error: Exception) -> None:
        if isinstance(error, StoreError):
            log.error("the store failed in a turn: %s", error.code, extra={"row": running.row.n, "code": error.code})
            self.hot.drop(running.row.session)
        self.tickets.fail(running.row, error)
        self.tell()

    def _ended(self, running: Running, *, is_stored: bool) -> None:
        """Looks for more only where there may be some: a put row was alone, a leased one may have others behind it."""
        row = running.row
        # A row that was lost may have come back meanwhile, and run here anew.
        if self.running.get(name_of(row)) is running:
            del self.running[name_of(row)]
        if self._taken.get(row.session) is running:
            del self._taken[row.session]
        self.live.ended(row.session, running.draft, "committed" if is_stored else "gone")
        is_full = len(self.running) >= self.setup.turns - 1
        if is_full or not running.is_loaded or self.tickets.waits_in(row.session):
            self.tell()

    async def _left(self, running: Running) -> None:
        """The take was cancelled from outside: by a lost lease, or because the host closes."""
        if not (running.is_lost or running.is_stopped):
            raise asyncio.CancelledError
        self.hot.drop(running.row.session)
        if running.is_stopped and not running.is_lost:
            await self._give_back(running.row)

    async def _give_back(self, row: Row) -> None:
        with suppress(StoreError):  # then its lease ends by itself
            await self.setup.store.again(row, due=self.setup.effects.now(), rung=row.rung, floor=row.floor)

    # ---- the two loops

    async def _serve(self) -> None:
        trouble = 0
        while not self._closing.is_set():
            self._news.clear()
            try:
                if not await self._round():
                    await self._rest()
                trouble = 0
            except Exception as error:  # noqa: BLE001 - whatever it is, what was accepted has to be served
                wait, code = _TROUBLE_S[min(trouble, len(_TROUBLE_S) - 1)], code_of(error)
                log.error("the store failed: %s; trying again in %.2f s", code, wait, extra={"code": code})
                trouble += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._closing.wait()

    async def _round(self) -> bool:
        """Leases what is due in both boxes. Whether there was anything."""
        store, setup = self.setup.store, self.setup
        room = setup.turns - len(self.running)
        rows = await store.lease("in", setup.name, ttl=setup.lease_s, limit=room) if room > 0 else []
        for row in rows:
            self.begin(row)
        delivered = await self.delivery.lease()
        await self._look()
        return bool(rows or delivered)

    async def _look(self) -> None:
        """What became of rows that others may have taken: once a poll, however busy this host is."""
        now = asyncio.get_running_loop().time()
        if now >= self._looks_at:
            self._looks_at = now + self.setup.poll_s
            await self.tickets.look(self.running)

    async def _rest(self) -> None:
        """Until something is due, or there is news. Meanwhile others may put something: one query a box each poll."""
        # What is due and yet was not leased is due to be leased by somebody else: not worth a busy loop.
        poll_s, least = self.setup.poll_s, self.setup.poll_s / 20
        while not self._closing.is_set():
            wait = max(await self._until_due(), least)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, poll_s)):
                    await self._news.wait()
            if wait < poll_s or self._news.is_set():
                return
            least = 0.0
            await self._look()

    async def _until_due(self) -> float:
        """Seconds."""
        store, due = self.setup.store, list[datetime | None]()
        if len(self.running) < self.setup.turns:
            due.append(await store.next_due("in"))
        if self.setup.deliver is not None:
            due.append(await store.next_due("out"))
        now = self.setup.effects.now()
        return min([(at - now).total_seconds() for at in due if at is not None], default=math.inf)
