"""Phrases: what counts, and what is excluded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.phrases import Phrases, phrases

pytestmark = pytest.mark.unit


def test_phrases_are_trimmed_and_sorted() -> None:
    """A15: a leading ! excludes, one elsewhere is plain text, blanks and a bare ! are dropped."""
    sorted_out = phrases(["  asks price ", "!  only thanks ", "", "!", "now!"])
    assert sorted_out.counts == ("asks price", "now!")
    assert sorted_out.excludes == ("only thanks",)


def test_no_phrases_count_and_exclude_nothing() -> None:
    """An empty list is the catch-all; it is for its caller to tell it from one of blanks."""
    assert phrases([]) == phrases(["", " ! "]) == Phrases((), ())


@given(st.lists(st.text(max_size=6)))
def test_nothing_sorted_out_is_blank(written: list[str]) -> None:
    """Every phrase that is kept says something, and has no spaces around it."""
    sorted_out = phrases(written)
    for phrase in (*sorted_out.counts, *sorted_out.excludes):
        assert phrase
        assert phrase == phrase.strip()
