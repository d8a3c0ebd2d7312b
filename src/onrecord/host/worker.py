"""Worker: leases rows that are due, takes many at once and one per session, keeps the leases, delivers what was said.

One task serves, one keeps the leases; each running take is a task of its own, because a turn belongs to its host and
not to whoever asked for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from onrecord.errors import LeaseLost, OnrecordError, StoreError
from onrecord.host.delivery import Delivering, Delivery
from onrecord.host.hot import HotSessions
from onrecord.host.live import Live
from onrecord.host.running import Name, Running, name_of
from onrecord.host.setup import Setup, log
from onrecord.host.taking import GivenBack, take_row
from onrecord.host.tickets import Tickets
from onrecord.session.inbox import Lease, Row
from onrecord.session.session import Session
from onrecord.turn.result import TurnResult

__all__ = ("Worker",)

_TROUBLE_S = (0.05, 0.2, 1.0, 5.0)
"""Seconds to wait after the store failed, longer each time."""


class Worker:
    """The engine of a host. Everything runs on one event loop."""

    def __init__(self, setup: Setup, hot: HotSessions, live: Live, tickets: Tickets) -> None:
        self.setup, self.hot, self.live, self.tickets = setup, hot, live, tickets
        self.delivery = Delivery(setup)
        self.running: dict[Name, Running] = {}
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    # ---- running

    def start(self) -> None:
        """Begins to serve; called again it does nothing."""
        if not self._tasks and not self._closing:
            self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(self._keep())]

    def tell(self) -> None:
        """Something may be due: the worker looks at once."""
        self._news.set()

    def lease(self, session: Session | None) -> Lease | None:
        """What a put may ask for: to take the row here and now, if there is room for one more."""
        if self._closing or len(self.running) >= self.setup.turns:
            return None
        return Lease(owner=self.setup.name, ttl=self.setup.lease_s, known=session)

    def begin(self, row: Row, session: Session | None) -> Running:
        """Takes a leased row in a task of its own."""
        running = Running(row, session, self.tickets.asked(name_of(row)))
        self.running[name_of(row)] = running
        self.live.begin(row.session, running.draft)
        running.task = asyncio.create_task(self._take(running))
        return running

    def running_in(self, key: Any) -> Running | None:
        """What is being taken in a session here."""
        return next((r for (session, _), r in self.running.items() if session == key), None)

    async def close(self, drain_s: float) -> None:
        """Takes no more rows; running turns may end within ``drain_s`` seconds, then their rows are given back."""
        self._closing = True
        takes = [r.task for r in self.running.values() if r.task is not None]
        if takes and drain_s > 0:
            await asyncio.wait(takes, timeout=drain_s)
        for running in list(self.running.values()):
            running.stop()
        await asyncio.gather(*(r.task for r in self.running.values() if r.task is not None), return_exceptions=True)
        await self.delivery.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.live.close()
        self.tickets.close()

    # ---- one row

    async def _take(self, running: Running) -> None:
        row, end = running.row, False
        try:
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
            self._follow_up(result)
        finally:
            self.running.pop(name_of(row), None)
            self.live.ended(row.session, running.draft, "committed" if end else "gone")
            if self.tickets.waits_in(row.session) or len(self.running) >= self.setup.turns - 1:
                self.tell()

    def _failed(self, running: Running, error: Exception) -> None:
        if isinstance(error, StoreError):
            log.error("the store failed in a turn: %s", error.code, extra={"row": running.row.n, "code": error.code})
            self.hot.drop(running.row.session)
        self.tickets.fail(running.row, error)
        self.tell()

    def _follow_up(self, result: TurnResult[Any]) -> None:
        if result.wakes or (result.messages and self.setup.deliver is not None):
            self.tell()

    async def _left(self, running: Running) -> None:
        """The take was cancelled from outside: by a lost lease, or because the host closes."""
        if not (running.is_lost or running.is_stopped):
            raise asyncio.CancelledError
        self.hot.drop(running.row.session)
        if running.is_stopped:
            with suppress(StoreError):  # then its lease ends by itself
                row = running.row
                await self.setup.store.again(row, due=self.setup.effects.now(), rung=row.rung, floor=row.floor)

    # ---- the two loops

    async def _serve(self) -> None:
        trouble = 0
        while not self._closing:
            self._news.clear()
            try:
                moved = await self._round()
                trouble = 0
            except StoreError as error:
                wait = _TROUBLE_S[min(trouble, len(_TROUBLE_S) - 1)]
                log.error("the store failed: %s; trying again in %.2f s", error.code, wait, extra={"code": error.code})
                trouble += 1
                await asyncio.sleep(wait)
                continue
            if not moved:
                await self._rest()

    async def _round(self) -> bool:
        """Leases what is due in both boxes. Whether there was anything."""
        store, setup = self.setup.store, self.setup
        room = setup.turns - len(self.running)
        rows = await store.lease("in", setup.name, ttl=setup.lease_s, limit=room) if room > 0 else []
        for row in rows:
            self.begin(row, None)
        delivered = await self.delivery.lease()
        await self.tickets.look(self.running)
        return bool(rows or delivered)

    async def _rest(self) -> None:
        """Until something is due, or there is news, or other processes may have put something."""
        due = [await self.setup.store.next_due("in")] if len(self.running) < self.setup.turns else []
        if self.setup.deliver is not None:
            due.append(await self.setup.store.next_due("out"))
        now = self.setup.effects.now()
        seconds = [(at - now).total_seconds() for at in due if at is not None]
        # What is due and yet was not leased is due to be leased by somebody else: not worth a busy loop.
        wait = max(min([*seconds, self.setup.poll_s]), self.setup.poll_s / 20)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._news.wait()

    async def _keep(self) -> None:
        """The heartbeat of all leases: one query for all of them, three times in a lease."""
        while True:
            await asyncio.sleep(self.setup.lease_s / 3)
            held: list[Running | Delivering] = [*self.running.values(), *self.delivery.running.values()]
            if not held:
                continue
            try:
                rows = await self.setup.store.extend([running.row for running in held], ttl=self.setup.lease_s)
            except StoreError as error:
                log.error("leases could not be kept: %s", error.code, extra={"code": error.code})
                continue
            for running, row in zip(held, rows, strict=True):
                if row is None:
                    running.lose()
                elif row.cancel is not None:
                    running.interrupt(row.cancel)
