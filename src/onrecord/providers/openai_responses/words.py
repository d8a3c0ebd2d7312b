"""The words of one reply while it streams: text, refusals, thoughts and sources, each at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from onrecord.models.chunks import Chunk, CitationChunk, TextChunk, ThinkingChunk
from onrecord.providers.openai_responses.events import Item, citations_of

__all__ = ("Place", "Words")

BETWEEN = "\n\n"
"""Between two messages of one reply, and between two thoughts: the wire keeps them apart, running text cannot."""

Place = tuple[int, int]
"""Which content part of which item."""


class _Part(NamedTuple):
    """A content part of a finished message, in words."""

    number: int
    text: str
    refusal: bool
    annotations: Any


class Words:
    """Pieces as they come, and what a finished item has beyond them. ``chars`` is how much text there is so far."""

    __slots__ = ("_annotated", "_at", "_bases", "_said", "_saying", "_thought", "_thoughts", "chars", "refused")

    def __init__(self) -> None:
        self.chars = 0
        self.refused = False
        self._at: Place = (-1, -1)  # where the last text went, and the pieces of its item
        self._saying: list[str] = []
        self._said: dict[int, list[str]] = {}
        self._bases: dict[Place, int] = {}
        self._annotated: dict[Place, int] = {}
        self._thought: tuple[int, str, int] | None = None
        self._thoughts: set[int] = set()

    def say(self, at: Place, text: str, *, refusal: bool = False) -> TextChunk:
        """A piece of text."""
        if at == self._at:
            self._saying.append(text)
        else:
            text = self._begin(at, text) + text
        self.chars += len(text)
        if refusal:
            self.refused = True
            return TextChunk(text, refusal=True)
        return TextChunk(text)

    def _begin(self, at: Place, text: str) -> str:
        """Text goes on in another place: what stands between the two."""
        lead = BETWEEN if self.chars and at[0] not in self._said else ""
        self._at, self._saying = at, self._said.setdefault(at[0], [])
        self._saying.append(text)
        self._bases.setdefault(at, self.chars + len(lead))
        return lead

    def think(self, index: int, kind: str, part: Any, text: Any, out: list[Chunk]) -> None:
        """A piece of reasoning: of which item, of its summary or of the reasoning itself, and of which part of that."""
        if isinstance(text, str) and text:
            at = (index, kind, part if isinstance(part, int) else 0)
            out.append(ThinkingChunk(text if self._thought in {None, at} else BETWEEN + text))
            self._thought = at
            self._thoughts.add(index)

    def annotate(self, at: Place, annotation: Any, out: list[Chunk]) -> None:
        """A source, as an event of its own."""
        self._annotated[at] = self._annotated.get(at, 0) + 1
        self._cite([annotation], at, out)

    def _cite(self, annotations: Sequence[Any], at: Place, out: list[Chunk]) -> None:
        if citations := citations_of(annotations, self._bases.get(at, self.chars)):
            out.append(CitationChunk(citations))

    def finish(self, index: int, item: Item, out: list[Chunk]) -> bool:
        """What of a finished message did not come in pieces; False when the pieces are not those of the message."""
        parts = list(_worded(item))
        whole, streamed = "".join(part.text for part in parts), "".join(self._said.get(index, ()))
        if not whole.startswith(streamed):
            if whole.strip() != streamed.strip():
                return False
            streamed = whole  # servers that trim what they have finished
        skip = len(streamed)
        for part in parts:
            at = (index, part.number)
            if left := part.text[skip:]:
                out.append(self.say(at, left, refusal=part.refusal))
            skip = max(0, skip - len(part.text))
            if isinstance(part.annotations, list):
                self._cite(part.annotations[self._annotated.get(at, 0) :], at, out)
        return True

    def finish_thought(self, index: int, item: Item, out: list[Chunk]) -> None:
        """The words of finished reasoning that did not come in pieces."""
        if index not in self._thoughts:
            for kind, held in (("summary", item.summary), ("text", item.content)):
                for n, part in _objects(held):
                    self.think(index, kind, n, part.get("text"), out)


def _worded(item: Item) -> Iterator[_Part]:
    for n, part in _objects(item.content):
        kind = part.get("type")
        text = part.get("refusal" if kind == "refusal" else "text")
        if kind in ("output_text", "refusal") and isinstance(text, str):
            yield _Part(n, text, kind == "refusal", part.get("annotations"))


def _objects(held: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(held, list):
        yield from ((n, one) for n, one in enumerate(held) if isinstance(one, dict))
