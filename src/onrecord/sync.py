"""Turns for code without an event loop: one loop in a background thread, shared by all ``*_sync`` calls."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from onrecord.conversation.outgoing import Delta, TextDelta
from onrecord.turn.result import TurnResult
from onrecord.turn.stream import TurnStream

__all__ = ("run", "stream")

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid_loop: list[int] = []


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop, started on first use and again in a forked child, where the parent's thread does not exist."""
    global _loop
    import os

    with _lock:
        if _loop is None or _pid_loop != [os.getpid()]:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_serve, args=(loop,), name="onrecord-sync", daemon=True)
            thread.start()
            _loop, _pid_loop[:] = loop, [os.getpid()]
            atexit.register(_stop, loop, thread)
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if not thread.is_alive():
        return

    async def wind_down() -> None:
        running = [t for t in asyncio.all_tasks(loop) if t is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    asyncio.run_coroutine_threadsafe(wind_down(), loop).result(timeout=5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)
    loop.close()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the background loop and waits; an interrupt of the caller cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def stream(make: Callable[[], TurnStream[T]]) -> Iterator[str | TurnResult[T]]:
    """The text of a turn piece by piece, then its result. Closing the iterator interrupts the turn."""

    async def begin() -> TurnStream[T]:
        return make()

    turn = run(begin())
    batches = turn.batches()

    async def following() -> list[Delta] | None:
        try:
            return await anext(batches)
        except StopAsyncIteration:
            return None

    try:
        while (batch := run(following())) is not None:
            for delta in batch:
                if isinstance(delta, TextDelta):
                    yield delta.text
        yield run(turn.result())
    finally:
        run(_close(batches, turn))


async def _close(batches: Any, turn: TurnStream[Any]) -> None:
    await batches.aclose()
    await turn.leave()
