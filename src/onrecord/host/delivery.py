"""Delivery: messages leave through the outbox, after the commit that said them, in order within a session.

A message is delivered at least once, always under the same key: a channel that drops keys it has seen makes that
exactly once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.host.running import Name, name_of
from onrecord.host.setup import Setup, log
from onrecord.session.inbox import Row

__all__ = ("AT_ONCE", "Delivering", "Delivery")

AT_ONCE = 32
"""How many messages a host delivers at once, each of another session."""


class Delivering:
    """A message that is being sent at this moment."""

    __slots__ = ("row", "task")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.task: asyncio.Task[None] | None = None

    def interrupt(self, by: Interruption) -> bool:
        """What is being sent cannot be called back."""
        return False

    def lose(self) -> None:
        """Somebody else delivers it now."""
        if self.task is not None:
            self.task.cancel()


class Delivery:
    """The outbox side of a worker."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.running: dict[Name, Delivering] = {}

    async def lease(self) -> bool:
        """Begins to deliver what is due. Whether there was anything."""
        setup, room = self._setup, AT_ONCE - len(self.running)
        if setup.deliver is None or room <= 0:
            return False
        rows = await setup.store.lease("out", setup.name, ttl=setup.lease_s, limit=room)
        for row in rows:
            delivering = Delivering(row)
            self.running[name_of(row)] = delivering
            delivering.task = asyncio.create_task(self._deliver(delivering))
        return bool(rows)

    async def _deliver(self, delivering: Delivering) -> None:
        row, setup = delivering.row, self._setup
        try:
            if setup.deliver is not None and isinstance(row.body, Outgoing):
                await setup.deliver(row.session, row.body)
            await setup.store.done(row)
        except StoreError as error:
            log.error("a delivered message could not be crossed off: %s", error.code, extra={"row": row.n})
        except Exception as error:  # noqa: BLE001 - a channel may fail in any way; the message is tried again
            await self._later(row, error)
        finally:
            self.running.pop(name_of(row), None)

    async def _later(self, row: Row, error: Exception) -> None:
        setup = self._setup
        told = {"row": row.n, "error": type(error).__name__}
        with suppress(StoreError):  # then its lease ends by itself, and it is delivered again
            if row.rung >= len(setup.retry):
                log.warning("a message could not be delivered and was set aside: %s", type(error).__name__, extra=told)
                await setup.store.park(row, why=f"undelivered: {type(error).__name__}")
                return
            due = setup.effects.now() + timedelta(seconds=setup.retry[row.rung])
            log.warning("a message could not be delivered: %s", type(error).__name__, extra=told)
            await setup.store.again(row, due=due, rung=row.rung + 1)

    async def close(self) -> None:
        """Waits for what is being sent."""
        await asyncio.gather(*(d.task for d in self.running.values() if d.task is not None), return_exceptions=True)
