"""TurnStream: a turn read while it runs. One reader, a list and a future; the model never waits for the reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self

from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import Delta, TextDelta
from onrecord.errors import UsageError
from onrecord.turn.result import O, TurnResult
from onrecord.turn.turn import Turn

__all__ = ("TurnStream",)

Run = Callable[[Callable[[Delta], None], Callable[[Turn], None]], Awaitable[TurnResult[O]]]


class TurnStream(Generic[O]):
    """The deltas of a turn, then its result.

    The turn starts when the stream is first read. Iterate it for all deltas, or `text` for the words alone; `result`
    reads to the end. Leaving early (a break, the end of ``async with``, a dropped iterator) stops the provider call;
    what was shown is kept, marked interrupted, and `result` returns it.
    """

    def __init__(self, run: Run[O]) -> None:
        self._run = run
        self._task: asyncio.Task[TurnResult[O]] | None = None
        self._turn: Turn | None = None
        self._buffer: list[Delta] = []
        self._waiter: asyncio.Future[None] | None = None
        self._reading = False
        self._left = False

    # ---- the writing side

    def _emit(self, delta: Delta) -> None:
        self._buffer.append(delta)
        self._wake()

    def _began(self, turn: Turn) -> None:
        self._turn = turn
        if self._left:
            _interrupt(turn)

    def _ended(self, task: asyncio.Task[TurnResult[O]]) -> None:
        if not task.cancelled():
            task.exception()  # seen: the failure of a turn that nobody reads any more is in its entries
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _start(self) -> asyncio.Task[TurnResult[O]]:
        if self._task is None:
            # The one task of the library's loop: the turn runs on while its reader does something else.
            self._task = asyncio.create_task(self._go())
            self._task.add_done_callback(self._ended)
        return self._task

    async def _go(self) -> TurnResult[O]:
        return await self._run(self._emit, self._began)

    # ---- the reading side

    async def batches(self) -> AsyncGenerator[list[Delta], None]:
        """Deltas in the groups in which they arrived: one wake-up each, for readers that draw or send in bulk."""
        if self._reading:
            raise UsageError("a stream has one reader", hint="collect its deltas once and share them")
        self._reading = True
        task = self._start()
        try:
            while True:
                if self._buffer:
                    batch, self._buffer = self._buffer, []
                    yield batch
                elif task.done():
                    break
                else:
                    self._waiter = asyncio.get_running_loop().create_future()
                    await self._waiter
            self._raise_early(task)
        finally:
            if not task.done():
                await self.leave()

    def _raise_early(self, task: asyncio.Task[TurnResult[O]]) -> None:
        """The reader learns of a failure where the deltas end."""
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def __aiter__(self) -> AsyncGenerator[Delta, None]:
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for delta in batch:
                    yield delta

    @property
    async def text(self) -> AsyncGenerator[str, None]:
        """The words alone, as they arrive."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for delta in batch:
                    if type(delta) is TextDelta:
                        yield delta.text

    async def result(self) -> TurnResult[O]:
        """The turn's result; deltas that nobody reads are dropped. Raises what `take` raises.

        Where nobody else reads, cancelling this leaves the stream.
        """
        try:
            return await asyncio.shield(self._start())
        except asyncio.CancelledError:
            if not self._reading:
                await self.leave()
            raise

    async def leave(self) -> None:
        """Stops the turn, if it still runs, and waits until what was shown is kept."""
        self._left = True
        task = self._task
        if task is None or task.done():
            return
        if self._turn is not None:
            _interrupt(self._turn)
        await asyncio.wait([task])

    async def __aenter__(self) -> Self:
        _ = self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()


def _interrupt(turn: Turn) -> None:
    turn.interrupt(Interruption(id=f"{turn.id}/left", turn=turn.id, cause="left"))
