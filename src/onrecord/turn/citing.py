"""Sources of a reply's text, each at the passage that it stands for. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec.structs import replace

from onrecord.conversation.content import CallRef, Citation, Refusal, Text, Thinking

__all__ = ("cited",)

Content = Text | Refusal | Thinking | CallRef


def cited(content: Sequence[Content], citations: Sequence[Citation]) -> list[Content]:
    """The content of a round with its sources, whose offsets address all words of the round.

    Each goes to the text in which its passage begins, counted from there and no further than that text goes. One
    whose offsets are of no passage stands for the whole: the last text has it, without a place.
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
        n = bisect_right(starts, one.start) - 1 if 0 <= one.start < one.stop else -1
        start = one.start - starts[n]
        room = len(content[at[n]].text)  # type: ignore[union-attr]  # those are texts
        if n < 0 or start >= room:
            held[-1].append(one if one.start == one.stop == 0 else replace(one, start=0, stop=0))
        else:
            stop = min(one.stop - starts[n], room)
            held[n].append(one if stop == one.stop and not starts[n] else replace(one, start=start, stop=stop))
    out = list(content)
    for i, found in zip(at, held, strict=True):
        if found:
            out[i] = Text(content[i].text, citations=tuple(found))  # type: ignore[union-attr]  # those are texts
    return out
