"""Delivery: messages leave through the outbox, after the commit that said them, in order within a session.

A message is delivered at least once, always under the same key: a channel that drops keys it has seen makes that
exactly once.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.host.leased import Leased, Name, ended_by, name_of, stopped
from onrecord.host.setup import CRASHES, Setup, log
from onrecord.session.inbox import Row

__all__ = ("AT_ONCE", "Delivery")

AT_ONCE = 32
"""How many messages a host delivers at once, each of another session."""


class Delivery:
    """The outbox side of a worker."""

    def __init__(self, setup: Setup, tell: Callable[[], None]) -> None:
        self._setup, self._tell = setup, tell
        self.delivered = 0
        self.running: dict[Name, Leased] = {}

    async def lease(self) -> bool:
        """Begins to deliver what is due. Whether there was anything."""
        setup, room = self._setup, AT_ONCE - len(self.running)
        if setup.deliver is None or room <= 0:
            return False
        rows = await setup.store.lease("out", setup.name, ttl=setup.lease_s, limit=room, session=setup.only)
        for row in rows:
            before = self.running.get(name_of(row))
            delivering = self.running[name_of(row)] = Leased(row)
            delivering.task = asyncio.create_task(self._deliver(delivering, before))
        return bool(rows)

    async def _deliver(self, delivering: Leased, before: Leased | None) -> None:
        row, setup = delivering.row, self._setup
        try:
            delivering.check()
            if before is not None:  # its lease ended while this process slept
                before.lose()
                await ended_by(math.inf, [before.task])
            if row.attempt - row.clean > CRASHES:
                await self._park(row, "out-of-attempts")
                return
            if setup.deliver is not None and isinstance(row.body, Outgoing):
                await setup.deliver(row.session, row.body)
            try:
                await setup.store.done(row)
                self.delivered += 1
            except StoreError as error:
                log.error("a delivered message could not be crossed off: %s", error.code, extra={"row": row.n})
        except asyncio.CancelledError:
            if delivering.is_lost or not delivering.is_stopped:
                raise
            with suppress(StoreError):
                await setup.store.again(row, due=setup.effects.now(), rung=row.rung)
        except Exception as error:  # noqa: BLE001 - a channel may fail in any way; the message is tried again
            await self._later(row, error)
        finally:
            if self.running.get(name_of(row)) is delivering:
                del self.running[name_of(row)]
            self._tell()  # the next message of its session can go

    async def _park(self, row: Row, why: str) -> None:
        log.warning("a message was set aside: %s", why, extra={"row": row.n, "code": why})
        with suppress(StoreError):  # then its lease ends by itself
            await self._setup.store.park(row, why=why)

    async def _later(self, row: Row, error: Exception) -> None:
        setup = self._setup
        told = {"row": row.n, "error": type(error).__name__}
        if row.rung >= len(setup.retry):
            await self._park(row, f"undelivered: {type(error).__name__}")
            return
        with suppress(StoreError):  # then its lease ends by itself, and it is delivered again
            due = setup.effects.now() + timedelta(seconds=setup.retry[row.rung])
            log.warning("a message could not be delivered: %s", type(error).__name__, extra=told)
            await setup.store.again(row, due=due, rung=row.rung + 1)

    async def close(self, until: float) -> None:
        """Waits for what is being sent until the loop's clock says so; the rest is given back."""
        await ended_by(until, [sending.task for sending in self.running.values()])
        for row in await stopped([*self.running.values()]):
            with suppress(StoreError):  # then its lease ends by itself
                await self._setup.store.again(row, due=self._setup.effects.now(), rung=row.rung)
