"""The text formats that are checked, with an example of each: those of JSON Schema, and three of our own for times.

A text that passes here is one that the declared Python type can be made of, so checking and converting never differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from functools import partial

import msgspec

from onrecord.tools.time_formats import TIME_FORMATS

__all__ = ("EXAMPLES", "FORMATS", "read_date", "read_datetime", "read_duration", "read_time")

_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
_ZONE = r"(?:[Zz]|[+-]\d{2}:?\d{2})?"

# fromisoformat also takes week dates and compact forms, which a schema's reader would not expect. Compiled when used.
_date = partial(re.fullmatch, _DAY, flags=re.ASCII)
_time = partial(re.fullmatch, _CLOCK + _ZONE, flags=re.ASCII)
_datetime = partial(re.fullmatch, f"{_DAY}[Tt ]{_CLOCK}{_ZONE}", flags=re.ASCII)
_uuid = partial(re.fullmatch, r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", flags=re.ASCII)


def read_date(text: str) -> date:
    """A day such as ``2026-01-31``. Raises ValueError."""
    if not _date(text):
        raise ValueError("not a date")
    return date.fromisoformat(text)


def read_time(text: str) -> time:
    """A time of day such as ``09:30`` or ``09:30:00Z``. Raises ValueError."""
    if not _time(text):
        raise ValueError("not a time")
    return time.fromisoformat(text.upper())


def read_datetime(text: str) -> datetime:
    """An instant such as ``2026-01-31T09:30:00Z``; without a zone it stays without one. Raises ValueError."""
    if not _datetime(text):
        raise ValueError("not a date-time")
    return datetime.fromisoformat(text.upper())


def read_duration(text: str) -> timedelta:
    """A length of time such as ``P1DT2H30M``. Raises ValueError."""
    return msgspec.convert(text, timedelta)


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, OverflowError):
            return False
        return True

    return fits


def _is_fine(problem: Callable[[str], str], text: str) -> bool:
    return not problem(text)


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _reads(read_date),
    "date-time": _reads(read_datetime),
    "duration": _reads(read_duration),
    "time": _reads(read_time),
    "uuid": lambda text: _uuid(text) is not None,
    **{name: partial(_is_fine, problem) for name, problem in TIME_FORMATS.items()},
}

EXAMPLES: Mapping[str, str] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T09:30:00Z",
    "duration": "P1DT2H30M",
    "instant": "2026-01-31T09:30:00Z",
    "time": "09:30:00",
    "time-range": "2026-01-31T09:30:00Z/2026-01-31T10:00:00Z",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "zone": "Europe/Lisbon",
}
