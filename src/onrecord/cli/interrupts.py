"""Ctrl-C while something runs: once stops the reply, twice the program."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from onrecord.cli.failure import INTERRUPTED
from onrecord.cli.terminal import Screen

__all__ = ("Stopping", "on_interrupt")


class Stopping:
    """What Ctrl-C does while a reply is shown: ``stop`` ends the reply, the second time the program ends."""

    def __init__(self, stop: Callable[[], Awaitable[None]], screen: Screen) -> None:
        self._stop, self.screen = stop, screen
        self.task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """One more Ctrl-C."""
        if self.task is not None:
            self.screen.line()
            os._exit(INTERRUPTED)  # a handler that blocks its own thread would hold up every other way out
        self.task = asyncio.get_running_loop().create_task(self._leave())

    async def _leave(self) -> None:
        waiting = asyncio.get_running_loop().call_later(0.3, self._waits)
        try:
            with suppress(Exception):
                await self._stop()
        finally:
            waiting.cancel()

    def _waits(self) -> None:
        self.screen.line("  waiting for what was started; Ctrl-C again ends the program without it", dim=True)


@contextmanager
def on_interrupt(act: Callable[[], None], number: int = signal.SIGINT) -> Iterator[None]:
    """Inside, Ctrl-C, or another signal, runs ``act`` on the event loop.

    In a thread that no signal reaches it does what it always did.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    give_back = _taken(act, number)
    try:
        yield
    finally:
        give_back()


def _taken(act: Callable[[], None], number: int) -> Callable[[], object]:
    """Takes the signal; what it returns lets go of it again."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:  # on Windows no event loop has signals of its own, so Python's own has to wake it

        def caught(_: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(act)

        before = signal.signal(number, caught)
        return lambda: signal.signal(number, before)
    return lambda: loop.remove_signal_handler(number)
