"""What becomes of an answer that a model could not give."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from onrecord.errors import ErrorKind, ModelError
from onrecord.flows.defer import EMPTY, LADDER, Failure, failure_of, retry_at
from onrecord.flows.repeat import blocked

pytestmark = pytest.mark.unit

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
TABLE: dict[ErrorKind, tuple[str, bool]] = {
    "aborted": ("provider-unavailable", False), "timeout": ("provider-unavailable", True),
    "network": ("provider-unavailable", True), "overload": ("provider-unavailable", True),
    "rate": ("provider-unavailable", True), "unknown": ("provider-unavailable", True),
    "quota": ("provider-quota", False), "auth": ("provider-auth", False), "entitlement": ("provider-auth", False),
    "context": ("provider-context", False), "model": ("provider-invalid", False),
    "invalid": ("provider-invalid", False), "content": ("provider-invalid", False),
}  # fmt: skip


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_each_kind_of_failure_has_its_code(kind: ErrorKind) -> None:
    """And is worth another try or not, unless the provider says otherwise."""
    code, retryable = TABLE[kind]
    assert failure_of(ModelError("m", kind=kind)) == Failure(code=code, retryable=retryable)  # type: ignore[arg-type]  # one of the codes
    for stated in (True, False):
        assert failure_of(ModelError("m", kind=kind, should_retry=stated)).retryable is stated


def test_a_quota_is_worth_waiting_for_when_it_says_how_long() -> None:
    """Without an end nobody knows what to wait for."""
    assert failure_of(ModelError("m", kind="quota", reset_at=T0)).retryable


def test_each_failure_waits_longer_and_the_sixth_ends_it() -> None:
    """1 m, 5 m, 15 m, 1 h, 6 h."""
    waits = [retry_at(EMPTY, n, T0) for n in range(6)]
    minutes = [None if at is None else (at - T0) / timedelta(minutes=1) for at in waits]
    assert minutes == [1, 5, 15, 60, 360, None]
    assert retry_at(Failure(code="provider-auth", retryable=False), 0, T0) is None


@pytest.mark.parametrize(("stated", "waits"), [(timedelta(hours=5), timedelta(hours=5)), (-timedelta(1), LADDER[0])])
def test_a_stated_reset_counts_when_it_is_later(stated: timedelta, waits: timedelta) -> None:
    """One in the past says nothing."""
    failure = failure_of(ModelError("m", kind="quota", reset_at=T0 + stated))
    assert retry_at(failure, 0, T0) == T0 + waits


def test_a_stated_wait_counts_when_it_is_longer() -> None:
    """Seconds, as the provider gave them."""
    assert retry_at(failure_of(ModelError("m", kind="rate", retry_after=90)), 0, T0) == T0 + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("age", "cooldown", "code"),
    [
        (None, None, None),
        (timedelta(days=900), None, "already-claimed"),
        (timedelta(minutes=59), timedelta(hours=1), "cooldown"),
        (timedelta(hours=1), timedelta(hours=1), None),
    ],
)
def test_a_claim_stops_a_flow(age: timedelta | None, cooldown: timedelta | None, code: str | None) -> None:
    """For ever, or until its cooldown has passed."""
    assert blocked(None if age is None else T0 - age, T0, cooldown=cooldown) == code


@pytest.mark.parametrize("after", [float("nan"), float("inf"), 1e300, 1e9, -5.0, "5", True])
def test_a_wait_that_nobody_can_wait_is_none(after: Any) -> None:
    """Models may be anybody's: what one says of waiting costs no turn, and the ladder stands."""
    told = failure_of(ModelError("m", kind="rate", retry_after=after))
    at = retry_at(told, 0, T0)
    assert at is not None
    assert at == T0 + LADDER[0]


def test_an_end_of_a_limit_must_be_an_instant_within_a_year() -> None:
    """One without an offset is none; one beyond a year is asked about again by then."""
    naive = failure_of(ModelError("m", kind="quota", reset_at=datetime(2026, 9, 21)))  # noqa: DTZ001 - naive on purpose
    assert (naive.reset_at, naive.retryable) == (None, False)
    far = failure_of(ModelError("m", kind="quota", reset_at=datetime.max.replace(tzinfo=UTC)))
    assert retry_at(far, 0, T0) == T0 + timedelta(days=366)


def test_a_kind_of_failure_that_is_new_counts_as_unknown() -> None:
    """An adapter of another version may have one."""
    kind: Any = "solar-flare"
    assert failure_of(ModelError("m", kind=kind)) == failure_of(ModelError("m", kind="unknown"))
