"""Embedded objects: the JSON object that a model wrote somewhere in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onrecord.jsonio import Json, read_object

__all__ = ("first_object",)

EFFORT = 8
"""How many times as much text as there is may be tried as JSON, all attempts together."""

_language = re.compile(r"[\w+.-]*+\s*+")
_opening = re.compile(r'\{(?=\s*+["}])')
_mark = re.compile(r'["{}]')
_string = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class _Span:
    """Where balanced braces stand, and those inside them."""

    __slots__ = ("inner", "start", "stop")

    def __init__(self, start: int) -> None:
        self.start, self.stop = start, 0
        self.inner: list[_Span] = []


def first_object(text: str, expected: frozenset[str] = frozenset()) -> dict[str, Json] | None:
    """The first JSON object in the text with one of the expected keys; else the first one at all; else None.

    The whole text is tried first, without a code fence around it. Takes time linear in the text, whatever it is.
    """
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = _language.sub("", bare.strip("`"), count=1).rstrip()
    if not bare:
        return None
    if bare[0] == "{" and (whole := read_object(bare)) is not None:
        return whole
    first: dict[str, Json] | None = None
    left = EFFORT * len(bare)
    waiting = list(reversed(_balanced(bare)))
    while waiting:
        span = waiting.pop()
        left -= span.stop - span.start
        if left < 0:
            break
        found = read_object(bare[span.start : span.stop])
        if found is None:
            waiting += reversed(span.inner)
        elif not expected.isdisjoint(found):
            return found
        else:
            first = found if first is None else first
    return first


def _balanced(text: str) -> list[_Span]:
    """Balanced braces, outermost ones in their order. Quotes count inside braces, where they hide others."""
    top: list[_Span] = []
    open_: list[_Span] = []
    for at, mark in _marks(text, open_):
        if mark == "{":
            open_.append(_Span(at))
            continue
        span = open_.pop()
        span.stop = at + 1
        (open_[-1].inner if open_ else top).append(span)
    # What never closed may hold what did.
    for span in open_:
        top += span.inner
    return top


def _marks(text: str, open_: list[_Span]) -> Iterator[tuple[int, str]]:
    """Braces that matter, while ``open_`` says whether any is open."""
    at = 0
    while found := (_mark if open_ else _opening).search(text, at):
        at = found.end()
        if found[0] != '"':
            yield found.start(), found[0]
        elif past := _string.match(text, at):
            at = past.end()
        else:
            return
