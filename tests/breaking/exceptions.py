"""Exceptions that code in the wild raises: the ordinary ones, and those that slip through ``except Exception``."""

from __future__ import annotations

import asyncio

__all__ = ("ENDS", "ODD", "Panic", "Speechless")


class Panic(BaseException):
    """What extension modules raise when they give up: it derives from BaseException only."""


class Speechless(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no words")


ODD: tuple[BaseException, ...] = (
    ValueError("plain"),
    ValueError(""),
    ValueError("half a \ud83d pair"),
    Speechless(),
    StopIteration(1),
    StopAsyncIteration(),
    asyncio.CancelledError(),
    TimeoutError(),
    ExceptionGroup("several", [ValueError("one")]),
    RecursionError(),
    MemoryError(),
)
"""None of them ends a turn; each is the failure of whoever raised it."""

ENDS: tuple[BaseException, ...] = (Panic("gave up"), SystemExit(3), KeyboardInterrupt(), GeneratorExit())
"""From a thread they are failures too, since there is nobody whom they could reach."""
