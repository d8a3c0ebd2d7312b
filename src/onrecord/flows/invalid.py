"""How a declaration is refused: what stands in the message, and the nearest right name for the hint."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from onrecord.errors import FlowInvalid
from onrecord.jsonio import Json, dumps, writable
from onrecord.tools.issues import type_name

__all__ = ("got", "invalid", "nearest", "quoted", "text_problem", "unknown")

LONGEST = 60
MOST_NAMES = 12


def quoted(value: Json) -> str:
    """A name or a short value of a declaration in double quotes, cut to sixty characters."""
    if isinstance(value, str):
        text = writable(value)
        return dumps(text if len(text) <= LONGEST else text[:LONGEST] + "...").decode()
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if -(10**LONGEST) < value < 10**LONGEST else "a huge number"
    return f"a value of type {type(value).__name__}"


def got(value: object) -> str:
    """The type of what was given instead: its name in JSON, or its class."""
    if isinstance(value, (str, bool, int, float, list, tuple, dict, type(None))):
        return f"got {type_name(value)}"
    return f"got {type(value).__name__}"


def nearest(name: object, names: Iterable[str]) -> str:
    """A hint towards a right name: the most similar one, or all of them where they are few."""
    known = sorted(names) if isinstance(names, (set, frozenset)) else list(names)  # sets differ by process
    near = get_close_matches(name[:LONGEST], known, n=1) if isinstance(name, str) else []
    if near:
        return f"did you mean {quoted(near[0])}?"
    if not known:
        return "none are declared"
    shown = ", ".join(quoted(one) for one in known[:MOST_NAMES])
    return f"there are {shown}" + (", ..." if len(known) > MOST_NAMES else "")


def text_problem(value: object) -> str:
    """What keeps a value from being a text that can be kept, as ``must be text, got integer``; else empty."""
    if not isinstance(value, str):
        return f"must be text, {got(value)}"
    return "" if value.isascii() or writable(value) == value else "is no valid Unicode (half of a surrogate pair)"


def invalid(where: str, what: str, hint: str = "") -> FlowInvalid:
    """The error for something wrong at a place of a declaration."""
    return FlowInvalid(f"{where}: {what}" if where else what, hint=hint)


def unknown(where: str, kind: str, name: object, names: Iterable[str], place: str = "") -> FlowInvalid:
    """The error for a name that nothing has: ``unknown field "naame" in collect``."""
    told = f"unknown {kind} {quoted(name)}" + (f" in {place}" if place else "")
    return invalid(where, told, nearest(name, names))
