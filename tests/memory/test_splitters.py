"""Splitters cover the text, word for word, at the places that they say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import ConfigurationError
from onrecord.memory import Document, Heading, by_heading, by_paragraph, fixed, whole
from onrecord.memory.documents import passages_of
from onrecord.memory.loaders import markdown_document
from onrecord.memory.splitters import Splitter

pytestmark = pytest.mark.unit

SPLITTERS: dict[str, Splitter] = {
    "whole": whole,
    "fixed": fixed(40, overlap=10),
    "fixed, no overlap": fixed(20, overlap=0),
    "by paragraph": by_paragraph(40),
    "by paragraph, overlapping": by_paragraph(40, overlap=15),
    "by heading": by_heading(40),
}
BOUNDED = 40

texts = st.text(alphabet=st.sampled_from("ab .\n\t#。é\u00a0"), max_size=400) | st.text(max_size=200).filter(
    lambda text: not any("\ud800" <= c <= "\udfff" for c in text)
)


@pytest.mark.parametrize("name", SPLITTERS)
@given(text=texts, marks=st.lists(st.integers(0, 400), max_size=5))
def test_every_word_is_in_a_passage_at_its_place(name: str, text: str, marks: list[int]) -> None:
    """In order, within bounds, without white space at the edges; what is in none is white space."""
    headings = tuple(Heading(at, 1, "h") for at in sorted(marks) if at < len(text))
    document = Document("d", text, headings=headings)
    spans = SPLITTERS[name](document)
    covered = [False] * len(text)
    before = (-1, -1)
    for start, stop in spans:
        held = text[start:stop]
        assert held == held.strip() != ""
        assert (start, stop) > before
        assert name == "whole" or stop - start <= BOUNDED
        covered[start:stop] = [True] * (stop - start)
        before = (start, stop)
    assert all(c or text[at].isspace() for at, c in enumerate(covered))
    passages = passages_of(document, spans)
    assert [document.text[p.start : p.stop] for p in passages] == [p.text for p in passages]
    assert len({p.id for p in passages}) == len(passages)


@pytest.mark.parametrize("name", ["fixed, no overlap", "by paragraph", "by heading", "whole"])
@given(text=texts)
def test_without_overlap_no_word_is_in_two(name: str, text: str) -> None:
    """Passages follow each other."""
    spans = SPLITTERS[name](Document("d", text))
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_passages_end_where_a_text_does() -> None:
    """Between paragraphs, sentences or words, rather than in the middle of one."""
    text = "One sentence is here. Another follows it there. And a third one ends the text."
    assert [text[a:b] for a, b in fixed(50, overlap=0)(Document("d", text))] == [
        "One sentence is here. Another follows it there.", "And a third one ends the text.",
    ]  # fmt: skip
    spaced = fixed(30, overlap=12)(Document("d", "word " * 30))
    assert all((stop - start) % 5 == 4 for start, stop in spaced)


def test_no_passage_reaches_over_a_heading() -> None:
    """Each knows what it stands under."""
    document = markdown_document(
        b"Intro.\n\n# Money\n\n## Refunds\nIn ten days.\n\n## Fees\nNone.\n\n# Contact\nCall.", "m"
    )
    passages = passages_of(document, by_heading(400)(document))
    assert [(p.heading, p.text.split("\n")[-1]) for p in passages] == [
        ("", "Intro."), ("Money", "# Money"), ("Money > Refunds", "In ten days."), ("Money > Fees", "None."),
        ("Contact", "Call."),
    ]  # fmt: skip


def test_short_paragraphs_stay_together() -> None:
    """As long as they fit."""
    text = "One.\n\nTwo.\n\n" + "x" * 76 + "\n\nThree."
    assert [text[a:b] for a, b in by_paragraph(40)(Document("d", text))] == [
        "One.\n\nTwo.",
        "x" * 40,
        "x" * 36,
        "Three.",
    ]


def test_an_endless_line_is_cut_in_time() -> None:
    """Ten million letters without a blank."""
    document = Document("d", "x" * 10_000_000)
    spans = by_heading(1000, overlap=150)(document)
    assert spans[0] == (0, 1000)
    assert spans[-1][1] == 10_000_000


@pytest.mark.parametrize("make", [fixed, by_paragraph, by_heading])
@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (19, 0), (100, -1), (100, 51), (True, 0), ("100", 0)])
def test_sizes_that_make_no_sense_are_refused(make: Callable[..., Splitter], size: int, overlap: int) -> None:
    """When the splitter is made."""
    with pytest.raises(ConfigurationError):
        make(size, overlap=overlap)
