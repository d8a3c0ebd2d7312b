"""Grounding: what Google's search found, as citations of the reply's text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Raw, Struct
from msgspec.json import Decoder

from onrecord.conversation.content import Citation
from onrecord.jsonio import UNREADABLE

__all__ = ("Grounding", "citations_of", "read_grounding")

MOST_MISSES = 200
"""How many passages that are not at their places are looked for: each costs a walk over the text."""


class _Source(Struct, rename="camel"):
    uri: str | None = None
    source_uri: str | None = None
    title: str | None = None


class _Chunk(Struct, rename="camel"):
    web: _Source | None = None
    retrieved_context: _Source | None = None
    maps: _Source | None = None
    image: _Source | None = None


class _Segment(Struct, rename="camel"):
    start_index: int = 0
    end_index: int = 0
    text: str = ""


class _Support(Struct, rename="camel"):
    segment: _Segment | None = None
    grounding_chunk_indices: list[int] = []


class Grounding(Struct, rename="camel"):
    """What was searched for, what was found, and which passages stand on it."""

    web_search_queries: list[str] = []
    grounding_chunks: list[_Chunk] = []
    grounding_supports: list[_Support] = []


_decode = Decoder(Grounding).decode


def read_grounding(raw: Raw) -> Grounding | None:
    """The metadata of a candidate; None where it is empty or of another form, which costs sources and no reply."""
    try:
        held = _decode(raw)
    except UNREADABLE:
        return None
    return held if held.web_search_queries or held.grounding_chunks or held.grounding_supports else None


def citations_of(held: Grounding, text: str) -> tuple[Citation, ...]:
    """The sources of passages in the order of the passages, then those that no passage names.

    Google counts bytes of UTF-8; citations count characters of the round's text. A passage that is not where it is
    said to be is looked for, and has no place if it is nowhere.
    """
    sources = [_source(chunk) for chunk in held.grounding_chunks]
    segments = [support.segment or _Segment() for support in held.grounding_supports]
    places = _places(text, segments)
    found: list[Citation] = []
    named: set[int] = set()
    for support, (start, stop) in zip(held.grounding_supports, places, strict=True):
        for index in support.grounding_chunk_indices:
            if 0 <= index < len(sources) and (source := sources[index]) is not None:
                named.add(index)
                found.append(Citation(url=source[0], title=source[1], start=start, stop=stop))
    rest = (source for index, source in enumerate(sources) if source is not None and index not in named)
    return (*found, *(Citation(url=url, title=title) for url, title in rest))


def _source(chunk: _Chunk) -> tuple[str, str] | None:
    held = chunk.web or chunk.retrieved_context or chunk.maps or chunk.image
    url = (held.uri or held.source_uri or "") if held is not None else ""
    return (url, held.title or "") if held is not None and url.startswith(("http://", "https://")) else None


def _places(text: str, segments: Sequence[_Segment]) -> list[tuple[int, int]]:
    chars = _characters(text.encode(), {at for one in segments for at in (one.start_index, one.end_index)})
    places: list[tuple[int, int]] = []
    seen, misses = 0, 0
    for one in segments:
        start, stop = chars[one.start_index], chars[one.end_index]
        if one.text and text[start:stop] != one.text:
            misses += 1
            start = text.find(one.text, seen) if misses <= MOST_MISSES else -1
            stop = start + len(one.text)
        if start < 0 or stop <= start:
            start = stop = 0
        seen = stop or seen
        places.append((start, stop))
    return places


def _characters(data: bytes, offsets: Iterable[int]) -> Mapping[int, int]:
    """Offsets in bytes as offsets in characters, in one walk; what lies outside is put to the nearest end."""
    found: dict[int, int] = {}
    last = chars = 0
    for offset in sorted(offsets):
        at = min(max(offset, last), len(data))
        while last < at < len(data) and data[at] & 0xC0 == 0x80:  # inside a character: where it begins
            at -= 1
        chars += len(data[last:at].decode())
        found[offset], last = chars, at
    return found
