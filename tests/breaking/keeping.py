"""What a turn leaves can be kept: stored, loaded again, and equal."""

from __future__ import annotations

from typing import Any

from onrecord.session.memory_store import MemoryStore
from onrecord.turn.result import TurnResult

__all__ = ("kept",)


async def kept(result: TurnResult[Any]) -> None:
    """A store takes the result and gives the session back equal."""
    async with MemoryStore() as store:
        stored = await store.commit(result.change())
        assert await store.load(stored.key) == stored
