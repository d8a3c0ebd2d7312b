"""Effects: the one way the loop reaches time, names and outside calls."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

__all__ = ("Effects", "PlainEffects", "made_once")

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


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


async def made_once(
    effects: Effects, done: dict[str, Any], key: str, kind: type[T], act: Callable[[], Awaitable[T]]
) -> T:
    """What ``act`` gave under this key: from ``done``, which a pause keeps, else made through the effects.

    A value that JSON cannot keep is made anew each time.
    """
    held = done.get(f"once/{key}")
    if held is not None:
        return msgspec.json.decode(held, type=kind)
    value = await effects.once(key, "", kind, act)
    with suppress(TypeError, ValueError):
        done[f"once/{key}"] = Raw(_encode(value))
    return value
