"""Ctrl-C while something runs: the reply stops, not the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ("on_interrupt",)


@contextmanager
def on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Inside, Ctrl-C runs ``act`` on the event loop. Where signals cannot be caught it does what it always did."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except NotImplementedError:
        pass  # Windows: below
    except (RuntimeError, ValueError):
        yield  # not the main thread
        return
    else:
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return

    def caught(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    before = signal.signal(signal.SIGINT, caught)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
