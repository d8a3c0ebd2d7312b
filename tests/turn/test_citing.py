"""Sources at the texts that they stand for: a round has several texts where thoughts or calls come in between."""

from __future__ import annotations

import pytest

from onrecord.conversation.content import CallRef, Citation, Refusal, Text, Thinking
from onrecord.turn.citing import MOST_TEXTS, cited

pytestmark = pytest.mark.unit

PARTS = (Text("Lisbon."), Thinking("hm"), CallRef("c0"), Refusal("No."), Text("Porto."))


def at(start: int, stop: int) -> Citation:
    """A source with a place."""
    return Citation(url="http://a", start=start, stop=stop)


def placed(*citations: Citation) -> list[list[tuple[str, int, int]]]:
    """Of each text: the passage of each source, and its offsets."""
    texts = [part for part in cited(PARTS, citations) if isinstance(part, Text)]
    return [[(text.text[one.start : one.stop], one.start, one.stop) for one in text.citations] for text in texts]


def test_a_source_goes_to_the_text_of_its_passage_and_is_counted_from_there() -> None:
    """The words of a refusal count among those that offsets address, since they are part of the reply's text."""
    assert placed(at(0, 6), at(10, 15)) == [[("Lisbon", 0, 6)], [("Porto", 0, 5)]]


def test_a_passage_is_cut_where_texts_meet_and_ends_with_the_last() -> None:
    """Vendors may count in other units, or name one passage over several texts."""
    assert placed(at(3, 12)) == [[("bon.", 3, 7)], [("Po", 0, 2)]]
    assert placed(at(12, 900)) == [[], [("rto.", 2, 6)]]
    assert placed(at(-5, 3)) == [[("Lis", 0, 3)], []]


@pytest.mark.parametrize("absurd", [at(-3, -1), at(0, 0), at(5, 2), at(2**62, 2**63), at(16, 17), at(7, 9)])
def test_offsets_of_no_passage_leave_a_source_of_the_whole(absurd: Citation) -> None:
    """It is kept, at the last text; the words of a refusal carry no sources."""
    assert placed(absurd) == [[], [("", 0, 0)]]


def test_a_reply_without_words_has_no_place_for_sources() -> None:
    """Nothing is made up to carry them."""
    assert cited((Thinking("hm"),), (at(0, 1),)) == [Thinking("hm")]


def test_many_sources_over_many_texts_cost_what_they_are_many() -> None:
    """A reply that claims all of itself for each of its sources is not multiplied with itself."""
    parts = [Text("word") for _ in range(4_000)]
    out = cited(parts, [at(0, 2**40)] * 4_000)
    assert sum(len(part.citations) for part in out if isinstance(part, Text)) == 4_000 * MOST_TEXTS
