"""Docstrings as they are really written."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.tools.docstrings import documented

pytestmark = pytest.mark.unit

GOOGLE = """Price of a stay
    in a city.

    More about it: none of this is shown.

    Args:
        city (str): Where to stay,
            as a name: no code.
        nights: How many.

            At least one.
        *more: Anything else.
        undocumented:

    Returns:
        total: not an argument.
    """

NUMPY = """Price of a stay.

    Parameters
    ----------
    city : str
        Where to stay.
    nights, guests : int, optional
        How many.
    (odd line)
        skipped

    Returns
    -------
    int
        The price.
    """

REST = """Price of a stay.
    :param city: Where
        to stay.
    :param int nights: How many.
    :returns: the price
    @param guests: Who.
    :param: nothing
    """


def test_google_style() -> None:
    """Arguments of a Google docstring, with their continuation lines; other sections are not arguments."""
    read = documented(GOOGLE)
    assert read.summary == "Price of a stay in a city."
    assert read.arguments == {
        "city": "Where to stay, as a name: no code.",
        "nights": "How many. At least one.",
        "more": "Anything else.",
    }


def test_numpy_style() -> None:
    """Arguments of a NumPy docstring; several names may share one description."""
    read = documented(NUMPY)
    assert read.summary == "Price of a stay."
    assert read.arguments == {"city": "Where to stay.", "nights": "How many.", "guests": "How many."}


def test_field_style() -> None:
    """``:param name:`` and ``@param name:``, with or without a type; the summary ends where the fields begin."""
    read = documented(REST)
    assert read.summary == "Price of a stay."
    assert read.arguments == {"city": "Where to stay.", "nights": "How many.", "guests": "Who."}


@pytest.mark.parametrize("text", [None, "", "  \n  "])
def test_no_docstring_says_nothing(text: str | None) -> None:
    """A tool without a docstring has an empty description."""
    assert documented(text) == documented(None)
    assert not documented(text).summary


def test_a_summary_may_begin_on_the_second_line_and_run_into_its_sections() -> None:
    """Both habits are common; neither puts the section into the summary."""
    assert documented("\n    First.\n    Second.\n\n    Third.").summary == "First. Second."
    assert documented("First.\nArgs:\n    a: one").summary == "First."
    assert documented("First.\nParameters\n----------\na : int\n    one").arguments == {"a": "one"}
    assert documented("Args:\n    a: one").summary == ""
    assert documented("First.\nParameters").summary == "First. Parameters"


def test_sections_end_where_the_next_one_begins() -> None:
    """A description never swallows what follows it."""
    text = dedent("""
        First.

        Attributes:
            not an entry
            a: one
        Note: something else
        """)
    assert documented(text).arguments == {"a": "one"}
    assert documented("First.\n\n  Parameters\n  ---\n  a\n    one\nOuter\n  more").arguments == {"a": "one"}


@given(st.text(alphabet="Args: \n-paramxy*()@,", max_size=80))
def test_no_text_is_too_odd_to_read(text: str) -> None:
    """A docstring can be anything, and a declaration must not fail on it."""
    read = documented(text)
    assert "\n" not in read.summary
