"""Sources of a reply's text, each at the passage that it stands for. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec.structs import replace

from onrecord.conversation.content import CallRef, Citation, Refusal, Text, Thinking

__all__ = ("cited",)

Content = Text | Refusal | Thinking | CallRef

MOST_TEXTS = 16
"""Over so many texts a passage may go: one that claims all of a reply of thousands is not put into each."""


def cited(content: Sequence[Content], citations: Sequence[Citation]) -> list[Content]:
    """The content of a round with its sources, whose offsets address all words of the round.

    Each goes to the text that its passage is of, counted from the beginning of that text; a passage that goes over
    several texts is cut where they meet. One whose offsets are of no passage stands for the whole: the last text has
    it, without a place.
    """
    starts: list[int] = []
    at: list[int] = []  # where those texts are in the content
    length = 0
    for i, part in enumerate(content):
        if isinstance(part, (Text, Refusal)):
            if type(part) is Text and part.text:
                starts.append(length)
                at.append(i)
            length += len(part.text)
    if not at:
        return list(content)
    held: list[list[Citation]] = [[] for _ in at]
    for one in citations:
        n = bisect_right(starts, max(one.start, 0)) - 1 if one.start < one.stop else len(at)
        placed = False
        for i in range(max(n, 0), min(n + MOST_TEXTS, len(at))):
            start, room = one.start - starts[i], len(content[at[i]].text)  # type: ignore[union-attr]  # those are texts
            if (stop := one.stop - starts[i]) <= 0:
                break
            if start < room:
                held[i].append(replace(one, start=max(start, 0), stop=min(stop, room)))
                placed = True
        if not placed:
            held[-1].append(replace(one, start=0, stop=0))
    out = list(content)
    for i, found in zip(at, held, strict=True):
        if found:
            out[i] = Text(content[i].text, citations=tuple(found))  # type: ignore[union-attr]  # those are texts
    return out
