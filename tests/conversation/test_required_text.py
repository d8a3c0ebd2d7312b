"""A text that is in whatever an expression matches: what is looked for before the expression is tried."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onrecord.conversation.required_text import required_text

pytestmark = pytest.mark.unit

REGEX = st.text("abA\\.*+?{},02^$dsw x[]()|-@", max_size=9)


@given(REGEX, st.text("abA02x .,-@\\{}[]^", max_size=9))
@example("a{,2}b", "b")
@example("[]a]b", "]b")
@example("a{0}b", "b")
@example("x{}", "x{}")
def test_it_is_in_whatever_the_expression_matches(regex: str, message: str) -> None:
    """So that a text without it need not be searched."""
    try:
        compiled = re.compile(regex)
    except (re.error, FutureWarning):  # such as a set in a set
        return
    if compiled.search(message):
        assert required_text(regex) in message
    if re.search(regex, message, re.IGNORECASE):
        assert required_text(regex).lower() in message.lower()


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        (r"\btopic number 7\b", "topic number 7"), (r"INV-\d+", "INV-"), (r"ab?c", "a"), (r"ab+c", "ab"),
        (r"a{2}bc", "bc"), (r"a|b", ""), (r"(ab)", ""), (r"[ab]c", "c"), (r"\x41b", ""), (r"é", ""),
        (r"a\.b", "a.b"), ("", ""), (r"\b\d{4}-\d{4}\b", "-"), (r"[\w.]+@[\w.]+\.[a-z]+", "@"),
    ],
)  # fmt: skip
def test_the_longest_that_is_plain_to_see(regex: str, text: str) -> None:
    """Whatever stands for one of many says nothing; where anything is not understood, nothing is known."""
    assert required_text(regex) == text
