"""Instants, ranges and zones as people and models write them: what is meant is said, or it is refused by a code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.tools import time_formats
from onrecord.tools.problems import argument_problems
from onrecord.tools.time_formats import TIME_FORMATS, time_problem

pytestmark = pytest.mark.unit

instant, span, zone = (TIME_FORMATS[name] for name in ("instant", "time-range", "zone"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-03-01T09:00:00Z", ""),
        ("2026-03-01T09:00Z", ""),
        ("2026-03-01T09:00:00.123456789-23:59", ""),
        ("0001-01-01T00:00+23:00", ""),
        ("9999-12-31T23:59:59-23:00", ""),
        ("2024-02-29T00:00Z", ""),
        ("2026-02-29T00:00Z", "not-an-instant"),
        ("2026-03-01T24:00Z", "not-an-instant"),
        ("2026-03-01T09:60Z", "not-an-instant"),
        ("2026-03-01T09:00:60Z", "not-an-instant"),
        ("2026-03-01T09:00:00.1234567890Z", "not-an-instant"),
        ("2026-03-01T09:00+24:00", "not-an-instant"),
        ("2026-03-01T09:00+0100", "not-an-instant"),
        ("2026-03-01t09:00z", "not-an-instant"),
        ("2026-03-01 09:00Z", "not-an-instant"),
        ("2026-03-01", "not-an-instant"),
        ("\uff12026-03-01T09:00Z", "not-an-instant"),
        ("2026-03-01T09:00Z\n", "not-an-instant"),
        ("2026-03-01T09:00", "no-offset"),
        ("2026-03-01T09:00:00.5", "no-offset"),
    ],
)
def test_an_instant_is_read_strictly(text: str, code: str) -> None:
    """With an offset always; every day and time must be one."""
    assert instant(text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-03-01T09:00Z/2026-03-01T09:00:00.000000001Z", ""),
        ("2026-03-01T09:00+02:00/2026-03-01T09:00+01:00", ""),
        ("2026-03-01T09:00+01:00/2026-03-01T09:00+02:00", "out-of-order"),
        ("2026-03-01T09:00Z/2026-03-01T10:00+01:00", "out-of-order"),
        ("2026-03-01T09:00Z", "not-a-range"),
        ("a/b/c", "not-a-range"),
        ("/2026-03-01T09:00Z", "not-an-instant"),
        ("2026-03-01T09:00Z/2026-03-01T10:00", "no-offset"),
    ],
)
def test_a_range_is_two_instants_in_order(text: str, code: str) -> None:
    """Compared as instants, whatever their offsets."""
    assert span(text) == code


@pytest.mark.parametrize("text", ["UTC", "Europe/Lisbon", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
def test_a_zone_has_a_name(text: str) -> None:
    """Of the time zone database."""
    assert zone(text) == ""


@pytest.mark.parametrize(
    "text",
    ["", "PST", "EST", "GMT", "PST8PDT", "+01:00", "utc", "Europe/Nowhere", "../../etc/passwd", "/etc/x", "a/../b"],
)
def test_an_abbreviation_or_an_offset_is_no_zone(text: str) -> None:
    """Nor is a path."""
    assert zone(text) == "not-a-zone"


def test_without_a_database_a_name_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could be asked, and refusing all would help nobody."""
    monkeypatch.setattr(time_formats, "_is_zone", lambda _: False)
    assert time_formats._zone_problem.__wrapped__("Somewhere/Else") == ""
    assert time_formats._zone_problem.__wrapped__("PST") == "not-a-zone"


LOW, HIGH = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (2, 9998))
NAIVE = st.datetimes(LOW, HIGH)


@given(
    NAIVE, NAIVE,
    st.integers(-1439, 1439), st.integers(-1439, 1439),
)  # fmt: skip
def test_ranges_are_in_order_as_python_says(one: datetime, other: datetime, here: int, there: int) -> None:
    """For every two instants with any offsets."""
    ends = [at.replace(tzinfo=timezone(timedelta(minutes=by))) for at, by in ((one, here), (other, there))]
    assert span("/".join(at.isoformat() for at in ends)) == ("" if ends[0] < ends[1] else "out-of-order")
    assert [instant(at.astimezone(UTC).isoformat()) for at in ends] == ["", ""]


def test_arguments_of_tools_have_these_formats_too() -> None:
    """With an example for a model that got one wrong."""
    problems = argument_problems({"type": "object", "properties": {"at": {"type": "string", "format": "instant"}}})
    assert problems({"at": "2026-03-01T09:00Z"}) == ""
    assert problems({"at": "noon"}) == "at: expected instant (like 2026-01-31T09:30:00Z), got string"
    assert time_problem("date", "noon") == time_problem(None, "noon") == time_problem("instant", 3) == ""
