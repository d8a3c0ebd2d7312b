"""The text of an HTML page, with its headings, through Lexbor (`selectolax`, extra ``documents``)."""

from __future__ import annotations

import re
from typing import Any

from onrecord.errors import DocumentInvalid
from onrecord.jsonio import writable
from onrecord.memory.documents import Document, Heading
from onrecord.memory.optional_libraries import needed

__all__ = ("DEEPEST", "html_document")

DEEPEST = 1000
"""Elements inside each other that are read: real pages have dozens, and a parser takes the square of it."""

_LEFT_OUT = frozenset("script style noscript template svg math iframe object head nav".split())
_BLOCKS = frozenset(
    "address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr html legend li main menu ol option p pre section summary table tbody td tfoot th "
    "thead tr ul".split()
)
# Elements that end by themselves, or where another one begins.
_SHALLOW = frozenset(
    "area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot option "
    "optgroup colgroup rp rt".split()
)
_tag = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_blank = re.compile(r"[ \t\n\r\f\v\u00a0]+")


def html_document(data: bytes, id: str) -> Document:
    """What a page shows as text: a line for each block, scripts, styles and navigation left out."""
    _check_depth(data, id)
    lexbor = needed("selectolax.lexbor", "documents", "reading HTML")
    try:
        tree = lexbor.LexborHTMLParser(data)
        title = tree.css_first("title")
        writer = _Writer()
        if tree.body is not None:
            _walk(tree.body, writer)
        named = _blank.sub(" ", title.text()).strip() if title is not None else ""
    except (ValueError, RuntimeError, AttributeError, UnicodeError) as error:
        raise DocumentInvalid(f"{id!r} cannot be read as HTML: {type(error).__name__}") from None
    text, headings = writer.done()
    return Document(id, text, title=writable(named) or (headings[0].text if headings else ""), headings=headings)


def _check_depth(data: bytes, id: str) -> None:
    """DocumentInvalid for what is nested beyond reason, told from its tags alone."""
    open_now = deepest = 0
    for tag in _tag.finditer(data):
        name = tag.group(2).lower().decode("ascii")
        if name not in _SHALLOW:
            open_now = max(open_now + (-1 if tag.group(1) else 1), 0)
            deepest = max(deepest, open_now)
    if deepest > DEEPEST:
        raise DocumentInvalid(
            f"{id!r} has more than {DEEPEST} elements inside each other", hint="it is no page for people"
        )


class _Writer:
    """Text as it grows: white space collapsed, blocks on lines of their own."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0
        self.headings: list[Heading] = []
        self.begun: list[int] = []  # where headings that are open began
        self.at_line, self.gap = True, False

    def words(self, text: str) -> None:
        flat = _blank.sub(" ", text)
        if not flat.strip():
            self.gap = self.gap or bool(flat)
            return
        if (self.gap or flat[0] == " ") and not self.at_line:
            self._put(" ")
        self._put(flat.strip())
        self.at_line, self.gap = False, flat[-1] == " "

    def verbatim(self, text: str) -> None:
        self._put(text)
        self.at_line, self.gap = text.endswith("\n"), False

    def line(self, *, apart: bool = False) -> None:
        """Ends a line; ``apart`` leaves an empty one behind it."""
        if not self.at_line:
            self._put("\n\n" if apart else "\n")
            self.at_line = True
        elif apart and self.parts and not self.parts[-1].endswith("\n\n"):
            self._put("\n")
        self.gap = False

    def done(self) -> tuple[str, tuple[Heading, ...]]:
        text = writable("".join(self.parts).replace("\0", "\ufffd"))
        return text, tuple(h for h in self.headings if h.start < len(text))

    def _put(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)


_APART = frozenset("p h1 h2 h3 h4 h5 h6 table ul ol pre blockquote section article".split())


def _walk(top: Any, writer: _Writer) -> None:
    """The nodes below one in order, without recursion: pages of strangers are deep."""
    stack: list[tuple[Any, bool]] = [(top, False)]
    while stack:
        node, left = stack.pop()
        tag = str(node.tag or "")
        if left:
            _leave(node, tag, writer)
            continue
        if tag == "-text":
            pre = node.parent is not None and node.parent.tag in {"pre", "textarea"}
            (writer.verbatim if pre else writer.words)(str(node.text_content or ""))
        elif tag == "br":
            writer.line()
        elif not tag.startswith(("-", "_", "!")) and tag not in _LEFT_OUT:
            if tag in _BLOCKS:
                writer.line(apart=tag in _APART)
            if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
                writer.begun.append(writer.size)
            stack.append((node, True))
            children = []
            child = node.child
            while child is not None:
                children.append((child, False))
                child = child.next
            stack += reversed(children)


def _leave(node: Any, tag: str, writer: _Writer) -> None:
    if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
        start = writer.begun.pop()
        if not writer.begun and (words := _since(writer, start)):  # one inside another is part of it
            writer.headings.append(Heading(start, int(tag[1]), words))
    if tag in _BLOCKS:
        writer.line(apart=tag in _APART)


def _since(writer: _Writer, start: int) -> str:
    """What was written since a place."""
    size, words = writer.size, list[str]()
    for part in reversed(writer.parts):
        if size <= start:
            break
        words.append(part)
        size -= len(part)
    return " ".join("".join(reversed(words)).split())[:200]
