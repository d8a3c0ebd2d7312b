"""Worker: leases rows that are due, takes many at once and one per session, keeps the leases, delivers what was said.

One task serves, one keeps the leases. Everything runs on one event loop.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from datetime import datetime

from onrecord.host.delivery import Delivery
from onrecord.host.heartbeat import keep_leases
from onrecord.host.hot import HotSessions
from onrecord.host.leased import Leased, ended_by
from onrecord.host.live import Live
from onrecord.host.setup import Setup, code_of, log
from onrecord.host.takes import Takes
from onrecord.host.tickets import Tickets
from onrecord.session.inbox import Row

__all__ = ("Worker",)

_TROUBLE_S = (0.05, 0.2, 1.0, 5.0)
"""Seconds to wait after the store failed, longer each time."""


class Worker:
    """The engine of a host: ``takes`` are its turns, ``delivery`` its messages out."""

    def __init__(self, setup: Setup, hot: HotSessions, live: Live, tickets: Tickets) -> None:
        self.setup, self._live, self._tickets = setup, live, tickets
        self.takes = Takes(setup, hot, live, tickets, tell=self.tell, ended=self._take_ended)
        self.delivery = Delivery(setup, self.tell)
        self._news = asyncio.Event()
        self._looks_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._settling: list[asyncio.Future[None]] = []
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Begins to serve; called again it does nothing."""
        if not self._tasks and not self._closing.is_set():

            def held() -> list[Leased]:
                return [*self.takes.running.values(), *self.delivery.running.values()]

            self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(keep_leases(self.setup, held))]

    def tell(self, *, gone: bool = False) -> None:
        """Something may be due: the worker looks at once, also for rows that are gone if told so."""
        if gone:
            self._looks_at = 0.0
        self._news.set()

    def _take_ended(self) -> None:
        if self._settling:
            self.tell()

    async def close(self, drain_s: float) -> None:
        """Takes no more rows; running turns may end within ``drain_s`` seconds, then their rows are given back."""
        self._closing.set()
        self.takes.shut()
        self.tell()
        until = asyncio.get_running_loop().time() + drain_s
        await ended_by(until, self._tasks[:1])
        await self.takes.close(until)
        await self.delivery.close(until)
        for task in self._tasks:
            task.cancel()
        await ended_by(math.inf, self._tasks)
        self._live.close()
        self._tickets.close()
        self._settle([*self._settling], None)

    # ---- until all is done

    async def settled(self) -> None:
        """Until nothing runs here and nothing is due. Raises what the store raises meanwhile."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settling.append(settled)
        self.tell()
        await settled

    @property
    def _is_quiet(self) -> bool:
        return not self.takes.running and not self.delivery.running

    def _settle(self, asked: list[asyncio.Future[None]], error: Exception | None) -> None:
        """Tells who waits for it that all is done, or that it cannot be."""
        self._settling = [one for one in self._settling if one not in asked]
        for settled in asked:
            if settled.done():
                continue
            if error is None:
                settled.set_result(None)
            else:
                settled.set_exception(error)

    # ---- serving

    async def _serve(self) -> None:
        trouble = 0
        while not self._closing.is_set():
            self._news.clear()
            asked, quiet = [*self._settling], self._is_quiet
            try:
                if not await self._round():
                    if quiet and self._is_quiet:  # from before this round until after it
                        self._settle(asked, None)
                    await self._rest()
                trouble = 0
            except Exception as error:  # noqa: BLE001 - whatever it is, what was accepted has to be served
                wait, code = _TROUBLE_S[min(trouble, len(_TROUBLE_S) - 1)], code_of(error)
                log.error("the store failed: %s; trying again in %.2f s", code, wait, extra={"code": code})
                trouble += 1
                self._settle(asked, error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._closing.wait()

    async def _round(self) -> bool:
        """Leases what is due in both boxes. Whether there was anything."""
        setup, room, rows = self.setup, self.takes.room, list[Row]()
        if room > 0:
            rows = await setup.store.lease("in", setup.name, ttl=setup.lease_s, limit=room, session=setup.only)
        for row in rows:
            self.takes.begin(row)
        delivered = await self.delivery.lease()
        await self._look()
        return bool(rows or delivered)

    async def _look(self) -> None:
        """What became of rows that others may have taken: once a poll, however busy this host is."""
        now = asyncio.get_running_loop().time()
        if now >= self._looks_at:
            self._looks_at = now + self.setup.poll_s
            await self._tickets.look(self.takes.running)

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
        if self.takes.room > 0:
            due.append(await store.next_due("in"))
        if self.setup.deliver is not None:
            due.append(await store.next_due("out"))
        now = self.setup.effects.now()
        return min([(at - now).total_seconds() for at in due if at is not None], default=math.inf)
