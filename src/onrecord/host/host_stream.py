"""HostStream: the stream of a turn that belongs to its host."""

from __future__ import annotations

import asyncio

from onrecord.turn.result import O
from onrecord.turn.stream import TurnStream

__all__ = ("HostStream",)


class HostStream(TurnStream[O]):
    """The deltas of a hosted turn, then its result. Leaving it early lets the turn go on: it is the host's."""

    async def leave(self) -> None:
        """Stops reading. The turn goes on, and its result is in the record."""
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])
