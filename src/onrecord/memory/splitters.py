"""Splitters: where a document is cut into passages. Each keeps every word, at its place in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.memory.documents import Document

__all__ = ("Spans", "Splitter", "by_heading", "by_paragraph", "fixed", "whole")

Spans: TypeAlias = list[tuple[int, int]]
"""Stretches of a text in order, from a place up to before another. What no stretch has in it is white space."""

Splitter: TypeAlias = Callable[[Document], Spans]
"""Cuts a document."""

# Where a text may be cut, the best first: between paragraphs, lines, sentences, words.
_CUTS = tuple(re.compile(p) for p in (r"\n[ \t]*\n\s*", r"\n", r"(?<=[.!?])\s+|(?<=[。\uff01\uff1f])", r"\s+"))


@declared
def whole(document: Document) -> Spans:
    """The document as one passage."""
    return _trimmed(document.text, [(0, len(document.text))])


@declared
def fixed(size: int = 1000, *, overlap: int = 150) -> Splitter:
    """Passages of at most ``size`` characters that each begin ``overlap`` characters before the last one ended.

    They end between paragraphs, lines, sentences or words, where one of those is in the last third of them.
    ConfigurationError for a size below 20, and an overlap that is more than half of it.
    """
    _check(size, overlap)

    def split(document: Document) -> Spans:
        return _trimmed(document.text, _stretches(document.text, 0, len(document.text), size, overlap))

    return split


@declared
def by_paragraph(size: int = 1000, *, overlap: int = 0) -> Splitter:
    """Paragraphs, short ones together up to ``size`` characters, longer ones cut as `fixed` cuts.

    ConfigurationError as for `fixed`.
    """
    _check(size, overlap)

    def split(document: Document) -> Spans:
        return _packed(document.text, 0, len(document.text), size, overlap)

    return split


@declared
def by_heading(size: int = 1000, *, overlap: int = 0) -> Splitter:
    """No passage reaches over a heading; what stands under one is cut as `by_paragraph` cuts.

    ConfigurationError as for `fixed`.
    """
    _check(size, overlap)

    def split(document: Document) -> Spans:
        edges = sorted(
            {0, *(h.start for h in document.headings if 0 < h.start < len(document.text)), len(document.text)}
        )
        spans: Spans = []
        for start, stop in pairwise(edges):
            spans += _packed(document.text, start, stop, size, overlap)
        return spans

    return split


def _check(size: int, overlap: int) -> None:
    if type(size) is not int or size < 20:
        raise ConfigurationError(
            f"a splitter cuts no passages of {size!r} characters", hint="size= is 20 or more, such as 1000"
        )
    if type(overlap) is not int or not 0 <= overlap <= size // 2:
        raise ConfigurationError(
            f"overlap={overlap!r} of a splitter is no whole number from 0 to {size // 2}, half of its size={size}"
        )


def _packed(text: str, start: int, stop: int, size: int, overlap: int) -> Spans:
    """Neighbouring paragraphs together as long as they fit."""
    spans: Spans = []
    for first, last in _trimmed(text, _paragraphs(text, start, stop)):
        if last - first > size:
            spans += _trimmed(text, _stretches(text, first, last, size, overlap))
        elif spans and last - spans[-1][0] <= size:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    return spans


def _paragraphs(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    at = start
    for gap in _CUTS[0].finditer(text, start, stop):
        yield at, gap.start()
        at = gap.end()
    yield at, stop


def _stretches(text: str, start: int, stop: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    while stop - start > size:
        end = _cut(text, start, start + size)
        yield start, end
        start = max(_word_begin(text, end - overlap, end), start + 1) if overlap else end
    yield start, stop


def _cut(text: str, start: int, limit: int) -> int:
    """The last good place to cut before ``limit``, in the last third; else ``limit`` itself, though not in a pair."""
    floor = start + (limit - start) * 2 // 3
    for pattern in _CUTS:
        found = floor
        for gap in pattern.finditer(text, floor, limit):
            found = gap.end()
        if found > floor:
            return found
    return limit


def _word_begin(text: str, at: int, end: int) -> int:
    """The first place from ``at`` on where a word begins; ``at`` itself where that is too far off."""
    gap = _CUTS[3].search(text, at, end)
    return gap.end() if gap is not None and gap.end() < end else at


def _trimmed(text: str, spans: Sequence[tuple[int, int]] | Iterator[tuple[int, int]]) -> Spans:
    """Without white space at either end; what is nothing but white space is left out."""
    trimmed: Spans = []
    for start, stop in spans:
        held = text[start:stop]
        begin = start + len(held) - len(held.lstrip())
        end = begin + len(held.strip())
        if end > begin:
            trimmed.append((begin, end))
    return trimmed
