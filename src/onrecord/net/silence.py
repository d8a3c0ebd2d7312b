"""Noticing silence: one timer for all the waits of a loop."""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ("Alarm", "Silence", "Watch")


class Silence(Exception):
    """Nothing came for too long: ``seconds`` is how long, ``nothing`` what came all the same."""

    def __init__(self, seconds: float, *, nothing: str = "nothing") -> None:
        super().__init__(seconds)
        self.seconds, self.nothing = seconds, nothing


class Waited(Protocol):
    """What is waited for once the head of an answer is here."""

    def set_exception(self, exc: BaseException, /) -> None: ...


class Alarm:
    """Looks at the watches of one loop when the first of them may be due.

    Nearly every wait ends long before it is due, and a timer of its own for each would be made, sorted and thrown away.
    """

    __slots__ = ("_loop", "_timer", "_watches", "clock")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.clock = loop.time
        self._watches: set[Watch] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watch: Watch, due: float) -> None:
        """Looks at this watch at ``due``, or before."""
        self._watches.add(watch)
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._look)
        elif due < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(due, self._look)

    def hasten(self, watch: Watch, due: float) -> None:
        """Looks at a watch that it looks at already sooner than it was told."""
        if watch in self._watches:
            self.add(watch, due)

    def drop(self, watch: Watch) -> None:
        """Looks at this watch no more."""
        self._watches.discard(watch)

    def stop(self) -> None:
        """Looks at nothing any more."""
        self._watches.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self.clock()
        for watch in list(self._watches):
            if (due := watch.due(now)) > now:
                self.add(watch, due)
            else:
                self._watches.discard(watch)
                watch.expire()


class Watch:
    """Notices that one exchange is silent: it holds a time stamp, so that a read costs an assignment and no timer.

    Before the answer it cancels the waiting task, as `asyncio.timeout` does; then it fails the body's stream.
    """

    __slots__ = ("_alarm", "_cancelling", "_stream", "_task", "clock", "expired", "limit", "since")

    def __init__(self, alarm: Alarm, limit: float) -> None:
        self._alarm = alarm
        self.clock = alarm.clock
        self.limit = limit
        self.since = alarm.clock()  # when the present wait began; 0 while nobody waits
        self.expired = False
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        self._stream: Waited | None = None
        alarm.add(self, self.since + limit)

    def touch(self) -> None:
        """The wait begins again, because something moved."""
        self.since = self.clock()

    def answered(self, stream: Waited) -> None:
        """The head of the answer is here."""
        self._stream = stream
        self._task = None
        self.since = 0.0

    def took_over(self) -> bool:
        """Whether a cancellation just received is this watch's own and nobody else's. Takes it back if it is."""
        return self.expired and self._task is not None and self._task.uncancel() <= self._cancelling

    def lower(self, limit: float) -> None:
        """Another limit from here on."""
        if limit < self.limit:
            self._alarm.hasten(self, self.clock() + limit)
        self.limit = limit

    def stop(self) -> None:
        """The exchange is over."""
        self._alarm.drop(self)

    def due(self, now: float) -> float:
        """When the silence will have lasted too long; while nobody waits, as if the wait began now."""
        return (self.since or now) + self.limit

    def expire(self) -> None:
        """The silence has lasted too long."""
        self.expired = True
        if self._stream is not None:
            self._stream.set_exception(Silence(self.limit))
        elif self._task is not None:
            self._task.cancel()
