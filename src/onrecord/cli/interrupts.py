"""Ctrl-C while something runs: the reply stops, not the program."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ("on_interrupt",)


@contextmanager
def on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Inside, Ctrl-C runs ``act`` on the event loop. In a thread that no signal reaches it does what it always did."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    give_back = _taken(act)
    try:
        yield
    finally:
        give_back()


def _taken(act: Callable[[], None]) -> Callable[[], object]:
    """Takes the signal; what it returns lets go of it again."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except NotImplementedError:  # on Windows no event loop has signals of its own, so Python's own has to wake it

        def caught(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(act)

        before = signal.signal(signal.SIGINT, caught)
        return lambda: signal.signal(signal.SIGINT, before)
    return lambda: loop.remove_signal_handler(signal.SIGINT)
