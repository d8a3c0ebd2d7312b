"""Files as these tests need them: PDF written by hand, and what stands in those that were written."""

from __future__ import annotations

import zlib
from pathlib import Path

__all__ = ("holding", "pdf")


def pdf(*pages: str, title: str = "", content: bytes | None = None) -> bytes:
    """A PDF file with a line of text on each page; ``content`` is the (packed) stream of the last one instead."""
    objects: list[bytes] = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[int] = []
    for number, text in enumerate(pages):
        shown = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("latin-1")
        stream = zlib.compress(b"BT /F1 12 Tf 72 720 Td (" + shown + b") Tj ET")
        if content is not None and number == len(pages) - 1:
            stream = content
        objects.append(b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(stream), stream))
        resources = b"<</Font<</F1 3 0 R>>>>"
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources%b/Contents %d 0 R>>" % (resources, len(objects))
        )
        kids.append(len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    objects.append(b"<</Title(%b)>>" % title.encode())
    out, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size %d/Root 1 0 R/Info %d 0 R>>" % (len(objects) + 1, len(objects))
    return out + b"xref\n0 %d\n0000000000 65535 f \n%b%b\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1, table, trailer, len(out),
    )  # fmt: skip


def holding(folder: Path, *needles: bytes) -> list[str]:
    """The files that have one of these bytes in them."""
    return [file.name for file in folder.iterdir() if any(needle in file.read_bytes() for needle in needles)]
