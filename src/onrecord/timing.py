"""Instants as the library writes and compares them. Nothing here reads a clock."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial

from onrecord.errors import FlowInvalid

__all__ = ("Clock", "duration", "duration_text", "iso_ms", "to_ms", "whole_ms")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

Clock = Callable[[], datetime]
"""Returns the present instant with its UTC offset."""


def whole_ms(at: datetime) -> datetime:
    """The instant cut to milliseconds, as the record keeps it."""
    return at - timedelta(microseconds=at.microsecond % 1000)


def to_ms(at: datetime) -> int:
    """Milliseconds since the epoch, cut to whole ones."""
    return (at - EPOCH) // MILLISECOND


def iso_ms(at: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a ``Z``: the form that keys use."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_duration = partial(re.fullmatch, r"([0-9]+(?:\.[0-9]+)?)([smhd])")  # compiled when used: few agents write durations
_LONGEST_MS = 36_525 * _UNITS["d"]  # a century: any instant of our time can be moved by it
_HINT = 'write a number and one unit: "30s", "5m", "24h" or "1.5d"'


def duration(given: str | timedelta) -> timedelta:
    """A length of time in whole milliseconds, from ``"30s"``, ``"5m"``, ``"24h"``, ``"1.5d"`` or a timedelta.

    Raises FlowInvalid for any other text, for a negative length, and for one longer than a century.
    """
    if isinstance(given, str):
        return _parsed(given)
    if not isinstance(given, timedelta):
        raise FlowInvalid(f"a duration must be text or a timedelta, got {type(given).__name__}", hint=_HINT)
    return _bounded(given / timedelta(milliseconds=1), str(given))


def duration_text(length: timedelta) -> str:
    """A length as text that `duration` reads, in seconds and whole milliseconds: ``"90s"``, ``"0.25s"``."""
    seconds, ms = divmod(round(length / timedelta(milliseconds=1)), 1000)
    return f"{seconds}.{ms:03d}".rstrip("0").rstrip(".") + "s"


@lru_cache(maxsize=1024)
def _parsed(text: str) -> timedelta:
    found = _duration(text)
    if found is None:
        raise FlowInvalid(f'duration "{text[:60]}" does not parse', hint=_HINT)
    return _bounded(float(found[1]) * _UNITS[found[2]], text[:60])


def _bounded(ms: float, shown: str) -> timedelta:
    if not 0 <= ms <= _LONGEST_MS:
        raise FlowInvalid(f'duration "{shown}" is {"negative" if ms < 0 else "longer than a century"}', hint=_HINT)
    return timedelta(milliseconds=math.floor(ms + 0.5))
