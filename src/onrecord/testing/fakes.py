"""Time and names under a test's control."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

__all__ = ("FakeEffects",)

T = TypeVar("T")


class FakeEffects:
    """Effects with a clock that moves only when told, names that count, and outside calls remembered by key.

    ``at`` is the present instant (default noon on 20 September 2026 UTC); `advance` moves it. ``made`` lists the keys
    of outside calls in order. Pass it as ``effects=`` to `Agent.turn`.
    """

    def __init__(self, at: datetime = datetime(2026, 9, 20, 12, tzinfo=UTC)) -> None:
        self.at = at
        self.names = 0
        self.made: list[str] = []
        self._kept: dict[str, tuple[str, object]] = {}

    def now(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        """Moves the clock: ``advance(hours=24)``."""
        self.at += timedelta(**by)

    def nonce(self) -> str:
        self.names += 1
        return f"name{self.names}"

    async def once(self, key: str, digest: str, kind: type[T], act: Callable[[], Awaitable[T]], /) -> T:
        held = self._kept.get(key)
        if held is not None and held[0] == digest and isinstance(held[1], kind):
            return held[1]
        self.made.append(key)
        value = await act()
        self._kept[key] = (digest, value)
        return value
