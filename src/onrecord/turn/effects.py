"""Effects: the one way the loop reaches time, names and outside calls."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeVar

__all__ = ("Effects", "PlainEffects")

T = TypeVar("T")


class Effects(Protocol):
    """Time, random names, and outside calls made once per key. One object may serve many turns at once."""

    def now(self) -> datetime:
        """The present instant, with its UTC offset."""
        ...

    def nonce(self) -> str:
        """A name that has not been used before."""
        ...

    async def once(self, key: str, digest: str, kind: type[T], act: Callable[[], Awaitable[T]], /) -> T:
        """Runs ``act``; with a journal, returns what it gave under this key when ``digest`` is that time's."""
        ...


class PlainEffects:
    """Effects without a journal: the clock, the system's randomness, and every call made as it comes."""

    now = staticmethod(partial(datetime.now, UTC))

    def nonce(self) -> str:
        return os.urandom(8).hex()

    async def once(self, key: str, digest: str, kind: type[T], act: Callable[[], Awaitable[T]], /) -> T:
        return await act()
