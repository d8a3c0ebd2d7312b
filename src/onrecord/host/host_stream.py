"""HostStream: the stream of a turn that belongs to its host."""

from __future__ import annotations

from onrecord.conversation.outgoing import Delta
from onrecord.turn.result import O
from onrecord.turn.stream import TurnStream

__all__ = ("HostStream",)


class HostStream(TurnStream[O]):
    """The deltas of a hosted turn, then its result. Leaving it early lets the turn go on: it is the host's."""

    def _emit(self, delta: Delta) -> None:
        if not self._left:
            super()._emit(delta)

    async def leave(self) -> None:
        """Stops reading. The turn goes on: `result` still waits for it, and its words are in the record."""
        self._left = True
        self._buffer.clear()
