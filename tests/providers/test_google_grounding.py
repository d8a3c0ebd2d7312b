"""Grounding becomes citations whose places count characters, while Google counts bytes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from onrecord.conversation.content import Citation
from onrecord.models.chunks import CitationChunk, SearchChunk
from tests.providers.google_events import STOP, event, read

pytestmark = pytest.mark.unit

LISBON, PORTO = "https://e.test/lisbon", "https://e.test/porto"
CHUNKS = [{"web": {"uri": LISBON, "title": "L"}}, {"web": {"uri": PORTO}}]


def support(start: int | None, stop: int, *chunks: int, text: str | None = None) -> dict[str, Any]:
    """One passage and what it stands on."""
    segment: dict[str, Any] = {"endIndex": stop} | ({} if start is None else {"startIndex": start})
    return {"segment": segment | ({} if text is None else {"text": text}), "groundingChunkIndices": list(chunks)}


def cited(text: str, *supports: dict[str, Any], chunks: Any = CHUNKS) -> list[tuple[str, str]]:
    """The address and the passage of each citation of a reply that says the text in two pieces."""
    grounding = {"groundingChunks": chunks, "groundingSupports": list(supports)}
    half = len(text) // 2
    out = read(event(text[:half]), event(text[half:], finish="STOP", grounding=grounding))
    return [
        (c.url, text[c.start : c.stop]) for chunk in out if isinstance(chunk, CitationChunk) for c in chunk.citations
    ]


def test_places_count_characters_of_the_whole_text() -> None:
    """Two bytes for a degree sign, four for a sun; a passage at the start has no start."""
    text = "21°C ☀🌞 in Lisbon. 18°C in Porto."
    first, second = "21°C ☀🌞 in Lisbon.", "18°C in Porto."
    at = len(f"{first} ".encode())
    assert cited(
        text,
        support(None, len(first.encode()), 0, 1, text=first),
        support(at, at + len(second.encode()), 1, text=second),
    ) == [(LISBON, first), (PORTO, first), (PORTO, second)]


def test_a_place_inside_a_character_is_in_front_of_it() -> None:
    """Rather than an error in the middle of a reply."""
    assert cited("°°°", support(1, 5, 0), support(2, 4, 1)) == [(LISBON, "°°"), (PORTO, "°")]


def test_a_passage_that_is_elsewhere_is_looked_for() -> None:
    """Some replies count from a part of theirs; what is nowhere has no place."""
    found = cited("One. Two. Two.", support(0, 4, 0, text="Two."), support(0, 4, 1, text="Two."))
    assert found == [(LISBON, "Two."), (PORTO, "Two.")]
    assert cited("One.", support(0, 4, 0, text="Four.")) == [(LISBON, ""), (PORTO, "")]


def test_sources_that_no_passage_names_come_without_a_place() -> None:
    """Once each, behind the others; a passage may name what is not there."""
    assert cited("One.", support(0, 4, 1, 7, -1)) == [(PORTO, "One."), (LISBON, "")]
    assert cited("One.") == [(LISBON, ""), (PORTO, "")]


def test_places_outside_the_text_are_put_to_its_ends() -> None:
    """And one that ends before it begins is none."""
    assert cited("One.", support(0, 99, 0), support(3, 1, 1)) == [(LISBON, "One."), (PORTO, "")]
    assert cited("One.", support(-5, 4, 0), support(50, 60, 1)) == [(LISBON, "One."), (PORTO, "")]


def test_sources_of_every_kind_are_read() -> None:
    """By their web address; what has none is no citation."""
    kinds = [
        {"retrievedContext": {"uri": "https://e.test/r", "title": "R"}},
        {"retrievedContext": {"uri": "gs://b/o"}},
        {"maps": {"uri": "https://e.test/m"}},
        {"image": {"sourceUri": "https://e.test/i", "imageUri": "https://e.test/i.png"}},
        {"novel": {}},
    ]
    assert [url for url, _ in cited("One.", chunks=kinds)] == [f"https://e.test/{kind}" for kind in "rmi"]


def test_what_was_searched_for_is_told_once_and_before_the_sources() -> None:
    """Empty metadata says nothing, the last that is not empty holds, and what cannot be read costs only the sources."""
    search = {"webSearchQueries": ["lisbon"]}
    full = search | {"groundingChunks": CHUNKS[:1]}
    out = read(
        event("a", grounding={}), event("b", grounding=search), event("c", grounding=full), event(grounding={}), STOP
    )
    assert [chunk for chunk in out if isinstance(chunk, SearchChunk)] == [SearchChunk(id="search", status="completed")]
    assert out[-2] == CitationChunk((Citation(url=LISBON, title="L"),))
    broken = read(event("a", grounding={"groundingChunks": 7}), STOP)
    assert not any(isinstance(chunk, (CitationChunk, SearchChunk)) for chunk in broken)


def test_many_passages_that_are_nowhere_cost_little() -> None:
    """Of a server that means harm: a walk over the text for each is not made."""
    text = "a" * 200_000
    supports = [support(1, 2, 0, text=f"b{n}") for n in range(20_000)]
    began = time.process_time()
    assert len(cited(text, *supports)) == 20_001
    assert time.process_time() - began < 2
