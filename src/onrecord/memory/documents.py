"""Documents, and the passages of them that are searched and shown."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from msgspec import Struct

from onrecord.declared import Declared, declared
from onrecord.errors import DocumentInvalid
from onrecord.jsonio import digest, writable

__all__ = ("Document", "Heading", "Passage", "document_id", "passages_of")

_fit_id = re.compile(r"[^\s\[\]<>&\",;`]{1,200}").fullmatch


class Heading(Struct, frozen=True, gc=False):
    """A heading: where in the text it begins, how deep it is from 1 on, and its words."""

    start: int
    level: int
    text: str


class _Texted(Struct, frozen=True, metaclass=Declared):
    id: str
    text: str


class Document(_Texted, frozen=True, kw_only=True, omit_defaults=True):
    """A text with a name, and where in it headings and pages begin.

    ``id`` is what passages are cited by: a word without blanks and brackets (see `document_id`). ``title`` is shown
    with its passages, ``url`` is what citations lead to (without one: the id). ``pages`` are the places where page 1,
    2, ... begin. DocumentInvalid for an id that nobody could cite, and for a text that is no valid Unicode.
    """

    title: str = ""
    url: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not _fit_id(self.id) or writable(self.id) != self.id:
            raise DocumentInvalid(
                f"{self.id[:60]!r} is no id for a document",
                hint='up to 200 characters without blanks and [ ] < > & " , ; or `; document_id(name) makes one',
            )
        if writable(self.text) != self.text:
            raise DocumentInvalid(
                f"the text of {self.id!r} is no valid Unicode", hint="decode it with errors='replace'"
            )

    def page_at(self, place: int) -> int | None:
        """The page that this place is on, from 1 on; None where nothing is known of pages."""
        return bisect_right(self.pages, place) or None

    def heading_at(self, place: int) -> str:
        """The headings that this place stands under, the outermost first: ``Refunds > Deadlines``."""
        return next(_headings_over(self.headings, (place,)))


class Passage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A stretch of a document: its text is ``document.text[start:stop]``, to the character.

    ``id`` is ``{document}#{number}``, counted from 1. ``title`` and ``url`` are the document's, ``heading`` the
    headings over its first character (``Refunds > Deadlines``), ``page`` the page of that, from 1 on; None without
    pages.
    """

    id: str
    document: str
    text: str
    start: int
    stop: int
    title: str = ""
    url: str = ""
    heading: str = ""
    page: int | None = None


@declared
def document_id(name: str) -> str:
    """An id made of a name or a path: what an id cannot have in it is percent-encoded, so that no two become one."""
    flat = re.sub(r"[\s\[\]<>&\",;`%\x00-\x1f\ud800-\udfff]", lambda c: quote(c.group(), errors="surrogatepass"), name)
    if len(flat) <= 200:
        return flat
    return f"{flat[:160]}~{digest(name.encode('utf-8', 'surrogatepass'))}"


def passages_of(document: Document, spans: Sequence[tuple[int, int]]) -> list[Passage]:
    """The passages at these places, with what is known about them."""
    over = _headings_over(document.headings, [start for start, _ in spans])
    return [
        Passage(
            id=f"{document.id}#{number}", document=document.id, text=document.text[start:stop], start=start, stop=stop,
            title=document.title, url=document.url, heading=heading, page=document.page_at(start),
        )
        for number, ((start, stop), heading) in enumerate(zip(spans, over, strict=True), start=1)
    ]  # fmt: skip


def _headings_over(headings: Sequence[Heading], places: Iterable[int]) -> Iterator[str]:
    """The headings over each of these places. Places in order cost one walk over all headings together."""
    over, at, last = list[Heading](), 0, 0
    for place in places:
        if place < last:
            over, at = [], 0
        while at < len(headings) and headings[at].start <= place:
            while over and over[-1].level >= headings[at].level:
                over.pop()
            over.append(headings[at])
            at += 1
        last = place
        yield " > ".join(heading.text for heading in over)
