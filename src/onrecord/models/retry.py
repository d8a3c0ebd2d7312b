"""Reliable: a model that waits and asks again when the provider is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from onrecord.errors import ModelError
from onrecord.models.chunks import Attempted, Chunk
from onrecord.models.lanes import SLICE
from onrecord.models.model import Model, ModelCard, extend
from onrecord.models.request import Request, Wire

__all__ = ("LONGEST_WAIT_S", "WAITS_S", "Reliable", "is_worth_waiting")

WAITS_S = (3.0, 6.0, 12.0)
LONGEST_WAIT_S = 30.0


def is_worth_waiting(error: ModelError) -> bool:
    """Whether the same request may succeed soon: status 408, 429 or 5xx, and the provider does not say otherwise."""
    status = error.status
    return status is not None and (status in {408, 429} or 500 <= status < 600) and error.should_retry is not False


class Reliable:
    """A model that tries again, after a wait, what failed before anything of the reply reached the caller.

    Each failed attempt that is followed by another yields an `Attempted`. ``waits_s`` holds one wait for each further
    attempt; a wait that the provider states takes its place, and one over ``longest_s`` ends the attempts at once.
    Network failures and other statuses are never retried here: nobody knows what they cost. ``sleep`` waits.
    """

    def __init__(
        self,
        model: Model,
        /,
        *,
        waits_s: tuple[float, ...] = WAITS_S,
        longest_s: float = LONGEST_WAIT_S,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.model = model
        self.waits_s, self.longest_s = waits_s, longest_s
        self._sleep = sleep

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def wire(self, request: Request, /) -> Wire:
        return self.model.wire(request)

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        return extend(self.model, request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        failed = 0
        while True:
            reached = False
            chunks = self.model.stream(request)
            try:
                async for chunk in chunks:
                    reached = reached or not isinstance(chunk, Attempted)
                    yield chunk
                return
            except ModelError as error:
                if reached or error.started or (wait := self.wait_after(error, failed)) is None:
                    raise
                failed += 1
                attempted = Attempted(
                    attempt=failed, error=error.kind, status=error.status, wait_s=wait, model=self.card.name
                )
            finally:
                await chunks.aclose()
            yield attempted
            await self._sleep(wait)

    def wait_after(self, error: ModelError, failed: int) -> float | None:
        """Seconds to wait after this error, with ``failed`` waits behind us; None to give up."""
        if failed >= len(self.waits_s) or not is_worth_waiting(error):
            return None
        if error.retry_after is None:
            return self.waits_s[failed]
        wait = max(0.0, error.retry_after)
        return None if wait > self.longest_s else wait

    def __repr__(self) -> str:
        return f"Reliable({self.model!r})"
