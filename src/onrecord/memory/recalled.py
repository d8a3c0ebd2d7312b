"""What was recalled for a turn and what was kept of it, on the record; and citations that point to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from onrecord.conversation.content import Citation
from onrecord.declared import declared
from onrecord.record.entry import Body, Entry

__all__ = ("MemoryKept", "MemoryRecalled", "Rejected", "Served", "cited", "served")


class Served(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A text that a request showed, by its source.

    ``id`` is what the model was told to cite it by. ``place`` counts from 1, the best first; ``score`` is what it was
    ranked by, where it was. Of a document: its ``url`` and ``title``, the ``heading`` and ``page`` the passage stands
    under, and its ``start`` and ``stop`` in the document's text.
    """

    id: str
    kind: str
    place: int
    score: float | None = None
    url: str = ""
    title: str = ""
    heading: str = ""
    page: int | None = None
    start: int = 0
    stop: int = 0


class Rejected(Struct, frozen=True, gc=False):
    """A candidate that was not shown: ``below-threshold``, ``over-top`` or ``over-budget``."""

    id: str
    why: str
    score: float | None = None


class MemoryRecalled(Body, frozen=True, gc=False, kw_only=True, tag="memory.recalled"):
    """A feature looked something up for this turn; the words themselves are in the receipts of its requests.

    ``considered`` is how many candidates there were, ``rejected`` those that were not shown. ``embedder`` is the
    fingerprint ``name@dims`` where vectors were compared; ``missed`` says what was left out because it failed.
    """

    feature: str
    served: tuple[Served, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    considered: int = 0
    chars: int = 0
    embedder: str = ""
    missed: str = ""


class MemoryKept(Body, frozen=True, gc=False, kw_only=True, tag="memory.kept"):
    """A memory took something in; ``keys`` name it there by kind, and hold none of its words."""

    feature: str
    keys: dict[str, tuple[str, ...]]
    dropped: tuple[str, ...] = ()


@declared
def served(entries: Iterable[Entry]) -> tuple[Served, ...]:
    """Everything that requests of these entries' turns were shown by memories and retrieval, in order."""
    return tuple(one for entry in entries if isinstance(entry.body, MemoryRecalled) for one in entry.body.served)


_marker = re.compile(r"\[([^\[\]\n]{1,200})\]")


@declared
def cited(text: str, sources: Sequence[Served]) -> tuple[Citation, ...]:
    """The citations in an answer: each ``[id]`` of something that was served, with where in the text it stands.

    ``url`` is the source's, or its id where it has none; ids that were never served are no citations.
    """
    known = {source.id: source for source in sources}
    found: list[Citation] = []
    for marker in _marker.finditer(text):
        for id in re.split(r"\s*[,;]\s*", marker.group(1)):
            if (source := known.get(id.strip())) is not None:
                title = source.title or source.heading
                found.append(Citation(url=source.url or id, title=title, start=marker.start(), stop=marker.end()))
    return tuple(found)
