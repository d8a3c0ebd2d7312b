"""Durations: how long something lasts, as authors write it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import FlowInvalid
from onrecord.timing import duration, duration_text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "ms"),
    [("30s", 30_000), ("5m", 300_000), ("24h", 86_400_000), ("1.5d", 129_600_000), ("0s", 0), ("0.0005s", 1)],
)
def test_a_number_and_a_unit_are_whole_milliseconds(text: str, ms: int) -> None:
    """A1: seconds, minutes, hours and days, rounded to the millisecond."""
    assert duration(text) == timedelta(milliseconds=ms)


@pytest.mark.parametrize(
    "text",
    ["tomorrow", "5 min", "", "-1h", "10", "1H", " 1h", "1h ", "1h\n", ".5h", "1.h", "1e3s", "1h30m", "٣h", "1,5h"],
)
def test_anything_else_does_not_parse(text: str) -> None:
    """A2: no spaces, signs, other units or other digits; the hint shows how to write one."""
    with pytest.raises(FlowInvalid, match="does not parse") as caught:
        duration(text)
    assert '"24h"' in caught.value.hint


def test_a_timedelta_is_cut_to_milliseconds() -> None:
    """Python code may pass its own lengths of time; a negative one is refused."""
    assert duration(timedelta(seconds=1, microseconds=1_600)) == timedelta(milliseconds=1002)
    with pytest.raises(FlowInvalid, match="negative"):
        duration(timedelta(seconds=-1))


@pytest.mark.parametrize("given_value", ["99999999999999999999d", "1" * 5000 + "d", "36526d", timedelta.max])
def test_a_duration_is_at_most_a_century(given_value: str | timedelta) -> None:
    """A longer one could not be added to an instant; it is refused where it is declared, and quoted in short."""
    with pytest.raises(FlowInvalid, match="longer than a century") as caught:
        duration(given_value)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("given_value", [5, 1.5, None, True, ["1h"]])
def test_what_is_neither_text_nor_timedelta_is_refused(given_value: object) -> None:
    """A bare number has no unit."""
    with pytest.raises(FlowInvalid, match=f"got {type(given_value).__name__}"):
        duration(given_value)  # type: ignore[arg-type] # what a caller may pass by mistake


@given(st.integers(0, 36_525 * 86_400_000))
def test_what_is_written_is_read_back(ms: int) -> None:
    """`duration_text` writes what `duration` reads, to the millisecond."""
    length = timedelta(milliseconds=ms)
    assert duration(duration_text(length)) == length
