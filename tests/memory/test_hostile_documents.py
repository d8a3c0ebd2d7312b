"""Files that are made to harm: each ends as a document or as one clear error, in bounded time, quoting nothing."""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable

import pytest

from onrecord.errors import DocumentInvalid
from onrecord.memory import Document, by_heading
from onrecord.memory.html_text import html_document
from onrecord.memory.loaders import markdown_document, text_document
from onrecord.memory.pdf_text import pdf_document
from tests.memory.files import pdf

pytestmark = pytest.mark.integration

CANARY = b"xylographer"
LONG_S = 8.0
"""Seconds that no file may take, on a machine that does other things too."""


def bomb(size: int) -> bytes:
    """So many zeros, packed small."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


PAGES: dict[str, bytes] = {
    "nested": b"<div>" * 200_000 + b"deep",
    "nested tables": b"<table><tr><td>" * 50_000,
    "nested inline": b"<b><i><a>" * 100_000,
    "angle brackets": b"<" * 2_000_000,
    "open comments": b"<!--" * 400_000,
    "open attributes": b"<a b='" * 200_000,
    "one long line": b"x" * 10_000_000,
    "open paragraphs": b"<p>" * 200_000,
    "entities": b"&amp;" * 300_000,
    "no text at all": bytes(range(256)) * 200,
    "half a tag": b"<",
    "a script that never ends": b"<script>" + CANARY * 1000,
    "headings in headings": b"<h1>a<h2>b<h3>" * 200,
}


def read(loader: Callable[[bytes, str], Document], data: bytes) -> Document | None:
    """The document, or None where it is refused; both in time, and in words that quote nothing."""
    begun, refused = time.process_time(), list[DocumentInvalid]()
    made: Document | None = None
    try:
        made = loader(data, "file")
    except DocumentInvalid as error:
        refused.append(error)
    assert time.process_time() - begun < LONG_S
    assert [error.code for error in refused] == ["document-invalid"] * (made is None)
    assert not any(CANARY.decode() in f"{error} {error.hint}" for error in refused)
    return made


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_strangers(name: str) -> None:
    """What is nested beyond reason is refused before it is parsed."""
    made = read(html_document, PAGES[name])
    assert (made is None) == name.startswith(("nested", "open attributes"))
    if made is not None:
        assert CANARY.decode() not in made.text
        assert all(0 <= start < stop <= len(made.text) for start, stop in by_heading()(made))


TEXTS: dict[str, bytes] = {
    "one long line": b"x" * 10_000_000,
    "one long heading": b"#" * 1_000_000,
    "marks and blanks": b"# " * 500_000,
    "fences": b"```\n" * 100_000,
    "lines under lines": b"=\n" * 200_000,
    "empty lines": b"\n" * 500_000,
}


@pytest.mark.parametrize("loader", [markdown_document, text_document])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_strangers(loader: Callable[[bytes, str], Document], name: str) -> None:
    """Ten megabytes in a line, and lines of nothing but marks."""
    made = read(loader, TEXTS[name])
    assert made is not None
    assert len(made.text) == len(TEXTS[name])


FILES: dict[str, bytes] = {
    "empty": b"",
    "no pdf": b"hello " + CANARY,
    "a head alone": b"%PDF-1.7\n",
    "cut in the middle": pdf("page", CANARY.decode())[:300],
    "a bomb": pdf("page", "x", content=bomb(200 << 20)),
    "a bomb in a bomb": pdf("x", content=zlib.compress(bomb(100 << 20))),
    "a stream that is none": pdf("x", content=CANARY),
    "no pages": pdf().replace(b"/Kids[]", b"/Kids[2 0 R]"),
    "pages in circles": pdf("x").replace(b"/Kids[5 0 R]", b"/Kids[2 0 R]"),
    "a count that lies": pdf("x").replace(b"/Count 1", b"/Count 999999999"),
    "a table that lies": pdf("x").replace(b"startxref\n", b"startxref\n9999"),
    "nothing but brackets": b"%PDF-1.4\n" + b"[" * 500_000,
    "nothing but dictionaries": b"%PDF-1.4\n1 0 obj" + b"<</A" * 100_000,
    "encrypted": pdf("x").replace(b"trailer<<", b"trailer<</Encrypt 1 0 R/ID[<00><00>]"),
    "scanned": pdf("", ""),
}


@pytest.mark.parametrize("name", FILES)
def test_pdf_files_of_strangers(name: str) -> None:
    """Most are refused; one whose damage can be passed over is read."""
    made = read(pdf_document, FILES[name])
    if made is not None:
        assert name in {
            "a count that lies",
            "a table that lies",
            "a bomb",
            "cut in the middle",
            "a stream that is none",
        }


def test_damaged_files_end_in_one_kind_of_error() -> None:
    """Bytes changed at random: a document, or DocumentInvalid."""
    whole, chance = pdf("one page", "another page", title="t"), random.Random(7)  # noqa: S311 - the same damage each time
    refused = 0
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        refused += read(pdf_document, bytes(data)) is None
    assert 0 < refused < 150
