"""The text of a PDF file, page by page, through `pypdf` (extra ``documents``)."""

from __future__ import annotations

import io
import logging
from typing import Any

from onrecord.errors import DocumentInvalid
from onrecord.jsonio import writable
from onrecord.memory.documents import Document
from onrecord.memory.optional_libraries import needed

__all__ = ("MOST_CHARS", "MOST_PAGES", "pdf_document")

MOST_PAGES = 2000
MOST_CHARS = 20_000_000
"""What a file may hold: a small one can be made to unfold into anything."""


def pdf_document(data: bytes, id: str) -> Document:
    """The text that a PDF file has in it; one of scanned pages has none, and is told as such.

    DocumentInvalid for a file that is broken or encrypted, or that unfolds into more than 2,000 pages, 20 million
    characters, or what `pypdf` itself allows one stream to become.
    """
    pypdf = needed("pypdf", "documents", "reading PDF")
    logging.getLogger("pypdf").addFilter(_silent)  # it quotes what it finds in files
    try:
        return _document(pypdf.PdfReader(io.BytesIO(data), strict=False), id)
    except DocumentInvalid:
        raise
    except RecursionError:
        raise DocumentInvalid(f"{id!r} is nested deeper than can be read", hint="it is no file for people") from None
    except MemoryError:
        raise DocumentInvalid(f"{id!r} needs more memory than there is") from None
    except Exception as error:  # noqa: BLE001 - see below
        # pypdf documents no closed set: broken files end in KeyError, ValueError, struct.error and what they like, with
        # words of the file in them. Nothing is lost: the caller is told what it was, by its type.
        raise DocumentInvalid(f"{id!r} cannot be read as PDF: {type(error).__name__}") from None


def _document(reader: Any, id: str) -> Document:
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentInvalid(f"{id!r} is encrypted", hint="save it without a password first")
    if len(reader.pages) > MOST_PAGES:
        raise DocumentInvalid(f"{id!r} has more than {MOST_PAGES} pages", hint="split it")
    parts, pages, size = list[str](), list[int](), 0
    for page in reader.pages:
        text = writable(str(page.extract_text() or "").replace("\0", "\ufffd")).strip()
        pages.append(size)
        parts.append(f"{text}\n\n")
        size += len(text) + 2
        if size > MOST_CHARS:
            raise DocumentInvalid(f"{id!r} unfolds into more than {MOST_CHARS} characters", hint="split it")
    if size == 2 * len(parts):
        raise DocumentInvalid(f"{id!r} has no text in it", hint="a scanned file has to be read by OCR first")
    return Document(id, "".join(parts).rstrip("\n"), title=_title(reader), pages=tuple(pages))


def _title(reader: Any) -> str:
    try:
        return writable(" ".join(str(reader.metadata.title or "").split()))[:200] if reader.metadata else ""
    except Exception:  # noqa: BLE001 - as above; a document is read without the title that it has broken
        return ""


def _silent(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.CRITICAL
