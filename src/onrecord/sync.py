"""Turns for code without an event loop: one loop in a background thread, shared by all ``*_sync`` calls."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from onrecord.conversation.outgoing import Delta, TextDelta
from onrecord.errors import UsageError
from onrecord.turn.result import TurnResult
from onrecord.turn.stream import TurnStream

__all__ = ("run", "stream")

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner = 0  # the process that the loop's thread lives in


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop, started on first use and again in a forked child, where the parent's thread does not exist."""
    global _loop, _owner
    import os

    with _lock:
        if _loop is None or _owner != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_serve, args=(loop,), name="onrecord-sync", daemon=True)
            thread.start()
            _loop, _owner = loop, os.getpid()
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


def _running_here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the background loop and waits; an interrupt of the caller cancels it.

    UsageError on that loop itself, where waiting would be for ever.
    """
    loop = background_loop()
    if _running_here() is loop:
        work.close()
        raise UsageError(
            "a *_sync call inside a turn that a *_sync call started would wait for itself",
            code="sync-in-loop",
            hint="await agent.turn(...) there, or make the tool a plain function, which runs in a thread",
        )
    # Not a concurrent Future: an interrupt inside its lock can leave both threads waiting for it.
    ended: SimpleQueue[asyncio.Task[T]] = SimpleQueue()
    tasks: list[asyncio.Task[T]] = []
    left: list[bool] = []

    def start() -> None:
        if left:
            work.close()
            return
        tasks.append(loop.create_task(work))
        tasks[0].add_done_callback(ended.put)

    def stop() -> None:
        for task in tasks:
            task.cancel()
            task.add_done_callback(_seen)

    try:
        loop.call_soon_threadsafe(start)
        return ended.get().result()
    except BaseException:  # an interrupt may come anywhere, also before there is a task to cancel
        left.append(True)
        loop.call_soon_threadsafe(stop)
        raise


def _seen(task: asyncio.Task[Any]) -> None:
    """How a task ends that nobody waits for any more is no news to report."""
    if not task.cancelled():
        task.exception()


def stream(make: Callable[[], TurnStream[T]]) -> Iterator[str | TurnResult[T]]:
    """The text of a turn piece by piece, then its result. Closing the iterator interrupts the turn."""

    async def begin() -> TurnStream[T]:
        return make()

    loop = background_loop()
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
        if not loop.is_closed():  # at the end of the program the loop has ended the turn already
            run(_close(batches, turn))


async def _close(batches: Any, turn: TurnStream[Any]) -> None:
    await turn.leave()
    with suppress(RuntimeError):  # an interrupted read is still on its way out, and closes it
        await batches.aclose()
