"""Loaders: files as documents. Text and Markdown need nothing; HTML and PDF need the extra ``documents``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from onrecord.conditions import check_condition, says_yes
from onrecord.declared import declared
from onrecord.errors import DocumentInvalid
from onrecord.jsonio import writable
from onrecord.memory.documents import Document, Heading, document_id
from onrecord.memory.html_text import html_document
from onrecord.memory.pdf_text import pdf_document

__all__ = ("LARGEST", "LOADERS", "Loader", "load", "load_folder", "markdown_document", "text_document")

LARGEST = 25 << 20
"""Bytes of a file that is read."""

Loader: TypeAlias = Callable[[bytes, str], Document]
"""Makes a document of a file's bytes and the id that it shall have. DocumentInvalid for what is none."""

_heading = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+)$")
_fence = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_under = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")


def text_document(data: bytes, id: str) -> Document:
    """Plain text: UTF-8, or UTF-16 with its mark at the front; what is neither is read as Windows-1252."""
    return Document(id, _decoded(data))


def markdown_document(data: bytes, id: str) -> Document:
    """Markdown as it stands, with its headings; the first of the highest level is the title."""
    text = _decoded(data)
    headings = tuple(_headings(text))
    title = min(headings, key=lambda h: (h.level, h.start)).text if headings else ""
    return Document(id, text, title=title, headings=headings)


LOADERS: Mapping[str, Loader] = {
    ".txt": text_document,
    ".text": text_document,
    ".md": markdown_document,
    ".markdown": markdown_document,
    ".html": html_document,
    ".htm": html_document,
    ".pdf": pdf_document,
}
"""Who reads files of which ending."""


@declared
def load(
    path: str | os.PathLike[str], *, id: str = "", url: str = "", loaders: Mapping[str, Loader] = LOADERS
) -> Document:
    """One file, read by its ending; the title is the file's name where the document has none.

    ``id`` is the file's name where none is given, ``url`` what citations lead to. ``loaders`` is, by ending (``.csv``),
    a function of the file's bytes and the id that gives a `Document`.

    Parsing takes time and a whole core: in a program that serves others, run it in a thread. Files of strangers can be
    made to take very long; read those in a process that you can end. DocumentInvalid for a file over 25 MB, one that
    is broken, and one of no known ending; MissingDependency for HTML and PDF without the extra ``documents``.
    """
    file = Path(path)
    loader = loaders.get(file.suffix.lower())
    if loader is None:
        raise DocumentInvalid(
            f"nobody here reads files that end in {file.suffix!r}",
            hint=f"known endings: {', '.join(loaders)}; give loaders= one of yours",
        )
    made = loader(_read(file), id or document_id(file.name))
    about = {"title": made.title or file.name, "url": url or made.url}
    return Document(made.id, made.text, headings=made.headings, pages=made.pages, **about)


@declared
def load_folder(
    folder: str | os.PathLike[str],
    *,
    loaders: Mapping[str, Loader] = LOADERS,
    skip: Callable[[Path], bool] | None = None,
) -> Iterator[Document]:
    """Every file of a known ending below a folder, in order of their paths; ids are the paths below it.

    Links are not followed, and names that begin with a dot are passed over. Raises what `load` raises: half an index
    would look like a whole one. ``skip`` says which files to leave out: a plain function of the path below the folder.
    """
    check_condition(skip, "skip= of load_folder")
    top = Path(folder)
    if not top.is_dir():
        raise DocumentInvalid(f"{os.fspath(folder)!r} is no folder")
    for file in _files(top):
        inside = file.relative_to(top)
        if file.suffix.lower() in loaders and (skip is None or not says_yes(skip(inside))):
            yield load(file, id=document_id(inside.as_posix()), loaders=loaders)


def _files(folder: Path) -> Iterable[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _files(entry)
        elif entry.is_file():
            yield entry


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST + 1)
    except OSError as error:
        raise DocumentInvalid(f"{file.name!r} cannot be read: {type(error).__name__}") from None
    if len(data) > LARGEST:
        raise DocumentInvalid(
            f"{file.name!r} has more than {LARGEST >> 20} MB", hint="split it, or give its text as a Document"
        )
    return data


def _decoded(data: bytes) -> str:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return _plain(data.decode(encoding, "replace"))
    try:
        return _plain(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _plain(data.decode("cp1252", "replace"))


def _plain(text: str) -> str:
    return writable(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))


def _headings(text: str) -> Iterator[Heading]:
    """Headings outside of fenced code, in both of Markdown's forms."""
    at, fence, before = 0, "", ""
    for line in text.split("\n"):
        opened = _fence.match(line[:200])
        if fence:
            if opened and opened.group(1).startswith(fence):
                fence = ""
        elif opened:
            fence = opened.group(1)
        elif found := _heading.match(line[:400]):
            words = found.group(2)
            yield Heading(at, len(found.group(1)), (words.rstrip(" \t#") or words[0]).strip())
        elif before.strip() and (under := _under.match(line[:200])):
            yield Heading(at - len(before) - 1, 1 if under.group(1)[0] == "=" else 2, before.strip())
        before = line if not fence and not opened and not _heading.match(line[:400]) and len(line) <= 400 else ""
        at += len(line) + 1
