"""Files become documents: their text, titles, headings and pages, and refusals that say what is wrong."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onrecord.errors import ConfigurationError, DocumentInvalid, MissingDependency
from onrecord.memory import Document, Heading, by_heading, document_id, load, load_folder, pdf_text
from onrecord.memory.documents import passages_of
from onrecord.memory.html_text import html_document
from onrecord.memory.loaders import LARGEST, markdown_document, text_document
from onrecord.memory.pdf_text import pdf_document
from tests.memory.files import pdf

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("größe".encode(), "größe"),
        ("größe".encode("utf-8-sig"), "größe"),
        ("größe".encode("utf-16"), "größe"),
        ("größe".encode("cp1252"), "größe"),
        (b"a\r\nb\rc\0", "a\nb\nc\ufffd"),
        (b"", ""),
    ],
)
def test_text_in_the_usual_encodings(data: bytes, text: str) -> None:
    """As people's files have it; ends of lines are one thing."""
    assert text_document(data, "t").text == text


def test_markdown_keeps_its_text_and_tells_its_headings() -> None:
    """Both forms of headings; what looks like one in code is none."""
    text = "Top\n===\n\n```\n# no heading\n```\n\n## Sub ##\nwords\n\nNext\n----\n\n    # code\n#tag\n"
    document = markdown_document(text.encode(), "m")
    assert document.text == text
    assert [(h.level, h.text) for h in document.headings] == [(1, "Top"), (2, "Sub"), (2, "Next")]
    assert all(document.text[h.start :].lstrip("# ").startswith(h.text) for h in document.headings)
    assert document.title == "Top"


def test_a_fence_ends_with_its_own_kind() -> None:
    """Code about Markdown holds other fences; a longer line of the same ends it, too."""
    text = "~~~\n```\n# in code\n```\n# in code\n~~~~\n# out\n"
    assert [h.text for h in markdown_document(text.encode(), "m").headings] == ["out"]


def test_html_is_what_a_page_shows() -> None:
    """Blocks on lines of their own, headings at their places, nothing of scripts, styles and menus."""
    page = """<!doctype html><title>Refunds &amp; fees</title><style>p{}</style><nav>Menu</nav>
      <h1>Refunds <em>now</em></h1><p>In   ten
      days.<br>Or<b>der</b> later.</p><script>alert(1)</script><ul><li>One<li>Two</ul><pre>a\n  b</pre>
      <table><tr><td>x</td><td>y</td></tr></table><h2></h2>End"""
    document = html_document(page.encode(), "page.html")
    assert document.title == "Refunds & fees"
    assert document.headings == (Heading(0, 1, "Refunds now"),)
    lines = [line for line in document.text.split("\n") if line]
    assert lines == ["Refunds now", "In ten days.", "Order later.", "One", "Two", "a", "  b", "x", "y", "End"]
    assert html_document(b"<h1>No title</h1>", "x").title == "No title"
    inside = html_document(b"<h1>Out <div><h2>in</h2></div></h1><h2>Next</h2>", "x")
    assert [(heading.level, heading.text) for heading in inside.headings] == [(1, "Out in"), (2, "Next")]
    assert html_document(b"", "x").text == ""


def test_pdf_is_text_with_pages() -> None:
    """Each passage can say which page it is on."""
    document = pdf_document(pdf("First page", "Second (page)", title="A file"), "f.pdf")
    assert document.title == "A file"
    assert document.text == "First page\n\nSecond (page)"
    assert [document.page_at(document.text.index(word)) for word in ("First", "Second")] == [1, 2]


@pytest.mark.parametrize(("limit", "most"), [("MOST_PAGES", 1), ("MOST_CHARS", 10)])
def test_a_pdf_that_unfolds_into_too_much_is_refused(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its own size."""
    monkeypatch.setattr(pdf_text, limit, most)
    with pytest.raises(DocumentInvalid, match=f"more than {most}"):
        pdf_document(pdf("one page", "two pages"), "f.pdf")


def test_an_encrypted_pdf_is_told() -> None:
    """One that opens without a password is read."""
    import pypdf

    for password, opens in (("secret", False), ("", True)):
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("a page")))
        writer.encrypt(password, "owner", algorithm="RC4-128")
        written = io.BytesIO()
        writer.write(written)
        if opens:
            assert pdf_document(written.getvalue(), "f.pdf").text == "a page"
        else:
            with pytest.raises(DocumentInvalid, match="encrypted"):
                pdf_document(written.getvalue(), "f.pdf")


def test_a_folder_is_read_in_order(tmp_path: Path) -> None:
    """Known endings only, no hidden files, no links; ids are paths below it."""
    for name, data in {
        "b.md": b"# B", "a/one.txt": b"one", "a/two.HTML": b"<p>two", "a/.hidden.md": b"x", "a/data.bin": b"\0",
        "a/skip.md": b"x", "c file.pdf": pdf("three"),
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link.md").symlink_to(tmp_path / "b.md")
    (tmp_path / "round").symlink_to(tmp_path)
    found = list(load_folder(tmp_path, skip=lambda path: path.name == "skip.md"))
    assert [(d.id, d.title) for d in found] == [
        ("a/one.txt", "one.txt"), ("a/two.HTML", "two.HTML"), ("b.md", "B"), ("c%20file.pdf", "c file.pdf"),
    ]  # fmt: skip
    assert load(tmp_path / "b.md", id="mine", url="https://x.example/b").url == "https://x.example/b"


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    """By its name, with what to do."""
    (tmp_path / "a.docx").write_bytes(b"x")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(LARGEST + 1)
    for name, words in {"a.docx": "'.docx'", "none.txt": "FileNotFoundError", "large.txt": "25 MB"}.items():
        with pytest.raises(DocumentInvalid, match=words):
            load(tmp_path / name)
    with pytest.raises(DocumentInvalid, match="no folder"):
        list(load_folder(tmp_path / "none"))


def test_a_loader_of_yours_reads_what_others_do_not(tmp_path: Path) -> None:
    """By ending, in the place of ours or beside them."""
    (tmp_path / "a.log").write_bytes(b"one|two")
    document = load(
        tmp_path / "a.log", loaders={".log": lambda data, id: Document(id, data.decode().replace("|", "\n"))}
    )
    assert (document.id, document.text) == ("a.log", "one\ntwo")


@pytest.mark.parametrize("module", ["pypdf", "selectolax.lexbor"])
def test_a_library_that_is_missing_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency) as told:
        (pdf_document if module == "pypdf" else html_document)(b"x", "x")
    assert isinstance(told.value, ConfigurationError)
    assert told.value.hint == "pip install 'onrecord[documents]'"


@pytest.mark.parametrize("id", ["", " ", "a b", "a[1]", "<x>", 'a"b', "a,b", "a;b", "a\nb", "a`b", "x" * 201, "\ud800"])
def test_an_id_that_nobody_could_cite_is_refused(id: str) -> None:
    """It is named in brackets, by models."""
    with pytest.raises(DocumentInvalid):
        Document(id, "text")


def test_a_text_that_is_none_is_refused() -> None:
    """No wire could carry it."""
    with pytest.raises(DocumentInvalid):
        Document("d", "\ud800")


def test_ids_of_names_are_fit_and_different() -> None:
    """Whatever the names are."""
    names = [
        "a b.md",
        "a%20b.md",
        "a[b].md",
        "ä/ö.md",
        "x" * 300,
        "x" * 299 + "y",
        "a,b",
        "tab\t",
        "\udcff.md",
        "日本.md",
    ]
    made = [document_id(name) for name in names]
    assert len(set(made)) == len(names)
    assert [Document(id, "").id for id in made] == made
    assert made[3] == "ä/ö.md"


def test_very_many_headings_are_read_in_time() -> None:
    """Signs that end none of them, and a passage below each."""
    lines = ("#" * (n % 6 + 1) + f" h{n}{' #' * 150}x\nwords\n" for n in range(20_000))
    document = markdown_document("".join(lines).encode(), "m")
    passages = passages_of(document, by_heading()(document))
    assert len(passages) == 20_000
    assert passages[-1].heading.count(" > ") == 1
    back = passages_of(document, [(one.start, one.stop) for one in reversed(passages[:30])])
    assert [one.heading for one in back] == [one.heading for one in reversed(passages[:30])]


@pytest.mark.parametrize(
    ("line", "words"), [("# a #", "a"), ("# a # b ##\t", "a # b"), ("# #", "#"), ("#  ##", "#"), ("## a#", "a")]
)
def test_signs_at_the_end_of_a_heading_are_none_of_its_words(line: str, words: str) -> None:
    """As Markdown has it."""
    (heading,) = markdown_document(line.encode(), "m").headings
    assert heading.text == words


def test_headings_say_where_a_place_is() -> None:
    """The path of headings above it; a deeper one before a higher one does not count."""
    headings = (Heading(0, 2, "Deep"), Heading(10, 1, "Top"), Heading(20, 3, "Low"), Heading(30, 2, "Mid"))
    document = Document("d", "x" * 50, headings=headings)
    assert [document.heading_at(at) for at in (0, 9, 10, 25, 40)] == ["Deep", "Deep", "Top", "Top > Low", "Top > Mid"]
    assert document.page_at(3) is None


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, who may read anything."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    """As any other."""
    (tmp_path / "a.txt").write_bytes(b"x")
    (tmp_path / "a.txt").chmod(0)
    with as_nobody(), pytest.raises(DocumentInvalid, match="PermissionError"):
        load(tmp_path / "a.txt")
