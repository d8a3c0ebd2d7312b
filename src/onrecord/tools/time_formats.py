"""Texts that name a time: an instant, a range of two, a zone. Read strictly, so that nobody guesses which is meant.

An *instant* has a date, a time and an offset (``2026-03-01T09:00:00Z``, ``2026-03-01T09:00+01:00``), seconds and up
to nine digits of their fraction if need be. A *time range* is two of them around a slash, the first the earlier; its
end is not part of it. A *zone* is a name of the time zone database (``Europe/Lisbon``, ``UTC``), no abbreviation and
no offset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache, partial

__all__ = ("TIME_FORMATS", "time_problem")

# Compiled when first used: most agents name no time, and all of them import this.
_instant = partial(
    re.fullmatch,
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|([+-])(\d{2}):(\d{2}))?",
    flags=re.ASCII,
)
_zone = partial(re.fullmatch, r"UTC|[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)+", flags=re.ASCII)

Instant = tuple[int, int]
"""Seconds since the beginning of the calendar, and nanoseconds: any instant that can be written has one."""


def _read(text: str) -> Instant | str:
    """The instant, or the code that says what is wrong with it."""
    found = _instant(text)
    if found is None:
        return "not-an-instant"
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    try:
        days = date(year, month, day).toordinal()
    except ValueError:
        return "not-an-instant"
    if hour > 23 or minute > 59 or second > 59:
        return "not-an-instant"
    if found[8] is None:
        return "no-offset"
    hours, minutes = int(found[10] or 0), int(found[11] or 0)
    if hours > 23 or minutes > 59:
        return "not-an-instant"
    offset = (hours * 60 + minutes) * (-60 if found[9] == "-" else 60)
    return days * 86_400 + hour * 3600 + minute * 60 + second - offset, int((found[7] or "").ljust(9, "0"))


def _instant_problem(text: str) -> str:
    read = _read(text)
    return read if isinstance(read, str) else ""


def _range_problem(text: str) -> str:
    halves = text.split("/")
    if len(halves) != 2:
        return "not-a-range"
    start, end = map(_read, halves)
    if isinstance(start, str) or isinstance(end, str):
        return start if isinstance(start, str) else str(end)
    return "out-of-order" if start >= end else ""


@lru_cache(maxsize=1024)
def _zone_problem(text: str) -> str:
    return "" if _zone(text) and (_is_zone(text) or not _is_zone("Etc/UTC")) else "not-a-zone"


def _is_zone(name: str) -> bool:
    """Whether the time zone database has it. A machine without one has none, and then a name is taken as it is."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (OSError, LookupError, ValueError):
        return False
    return True


TIME_FORMATS: Mapping[str, Callable[[str], str]] = {
    "instant": _instant_problem,
    "time-range": _range_problem,
    "zone": _zone_problem,
}
"""For each format the function that names what is wrong with a text: a code, or an empty string."""

_WORDS = {
    "not-an-instant": "it is no instant such as 2026-03-01T09:00:00Z",
    "no-offset": "it does not say at which offset from UTC: write Z, or +01:00",
    "not-a-range": "it is not two instants around a slash",
    "out-of-order": "it ends before it starts, or when it starts",
    "not-a-zone": "it is no name of a time zone such as Europe/Lisbon",
}


def time_problem(name: object, text: object) -> str:
    """What is wrong with a text of the format of this name, in words and with its code; empty for any other format."""
    check = TIME_FORMATS.get(name) if isinstance(name, str) else None
    code = "" if check is None or not isinstance(text, str) else check(text)
    return f"{_WORDS[code]} ({code})" if code else ""
