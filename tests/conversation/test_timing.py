"""Instants as records and keys write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from onrecord.timing import iso_ms, to_ms, whole_ms

pytestmark = pytest.mark.unit

EAST = timezone(timedelta(hours=5, minutes=30))
AT = datetime(2026, 1, 5, 2, 3, 4, 56_789, tzinfo=EAST)


def test_the_record_keeps_whole_milliseconds() -> None:
    """Cut, never rounded up, in the offset that the instant carries."""
    assert whole_ms(AT) == AT.replace(microsecond=56_000)
    assert whole_ms(AT).utcoffset() == timedelta(hours=5, minutes=30)
    assert whole_ms(AT.replace(microsecond=999_999)).microsecond == 999_000


def test_keys_are_in_utc_with_three_digits() -> None:
    """The same instant has the same key wherever it was written."""
    assert iso_ms(AT) == iso_ms(AT.astimezone(UTC)) == "2026-01-04T20:33:04.056Z"
    assert iso_ms(AT.replace(microsecond=7_999)) == "2026-01-04T20:33:04.007Z"


def test_milliseconds_count_from_the_epoch() -> None:
    """In UTC, whatever offset the instant carries."""
    assert to_ms(datetime(1970, 1, 1, 0, 0, 1, 2_000, tzinfo=UTC)) == 1002
    assert to_ms(AT) == to_ms(AT.astimezone(UTC)) == 1_767_558_784_056
