"""Instants as the library writes and compares them. Nothing here reads a clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

__all__ = ("Clock", "iso_ms", "to_ms", "whole_ms")

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
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
