"""Leased: a row that this host has leased, the task it is in, and how that is brought to an end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption
from onrecord.host.setup import log
from onrecord.session.inbox import Row

__all__ = ("STOPPING_S", "Leased", "Name", "ended_by", "name_of", "stopped", "tell_stuck")

Name = tuple[SessionKey, str]
"""What a row of the inbox is known by: its session and its key."""


def name_of(row: Row) -> Name:
    """The row's name in its box."""
    return (row.session, row.key)


STOPPING_S = 10.0
"""How long something may take to end that was told to, until it is said that it does not. Clean-up takes a while."""


def tell_stuck(row: Row, why: str) -> None:
    """Says that what takes a row does not end. Python cannot end a task that does not want to."""
    log.error(
        "what takes a row %s and does not end: a rule, a tool, a model or `deliver` swallows its cancellation", why,
        extra={"row": row.n, "code": "does-not-end"},
    )  # fmt: skip


class Leased:
    """A row that this host has leased, and the task it is in."""

    __slots__ = ("has_begun", "has_ended", "is_lost", "is_stopped", "row", "task")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.task: asyncio.Task[None] | None = None
        self.has_begun = self.has_ended = self.is_lost = self.is_stopped = False

    def check(self) -> None:
        """Begins, unless it is to be left already: a task that is cancelled before its first step tidies nothing up."""
        self.has_begun = True
        if self.is_lost or self.is_stopped:
            raise asyncio.CancelledError

    def interrupt(self, by: Interruption) -> bool:
        """Stops what can be stopped. Whether it could."""
        return False

    def lose(self) -> None:
        """Somebody else has the row now: it is left, and nothing of it is stored."""
        self.is_lost = True
        self._leave()

    def stop(self) -> None:
        """The host closes: it is left, and its row given back."""
        self.is_stopped = True
        self._leave()

    @property
    def is_stuck(self) -> bool:
        """Whether it still runs, and not because it is being stored."""
        return self.task is not None and not self.task.done() and self.has_begun and not self.has_ended

    def _leave(self) -> None:
        # Once it is being stored, the store decides: it compares leases, and finishes what it began.
        if self.task is not None and self.has_begun and not self.has_ended:
            self.task.cancel()


async def stopped(leased: Sequence[Leased]) -> list[Row]:
    """Stops what runs and waits for its end. The rows of what does not end, which others have to take."""
    for one in leased:
        one.stop()
    await ended_by(asyncio.get_running_loop().time() + STOPPING_S, [one.task for one in leased])
    stuck = [one for one in leased if one.is_stuck]
    await ended_by(math.inf, [one.task for one in leased if one not in stuck])
    for one in stuck:
        tell_stuck(one.row, "was stopped with its host")
    return [one.row for one in stuck]


async def ended_by(until: float, tasks: Iterable[asyncio.Task[None] | None]) -> None:
    """Waits for tasks until the loop's clock says so (``inf``: as long as it takes); what goes on is left alone."""
    waiting = [task for task in tasks if task is not None and not task.done()]
    seconds = until - asyncio.get_running_loop().time()
    if waiting and seconds > 0:
        await asyncio.wait(waiting, timeout=None if seconds == math.inf else seconds)
