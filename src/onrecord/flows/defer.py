"""What becomes of an answer that a model could not give: said later, or never. A table, no clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from onrecord.errors import ErrorKind, ModelError

__all__ = ("EMPTY", "LADDER", "Failure", "failure_of", "retry_at")

LADDER = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 360))
"""How long the n-th failure in a row waits; one more ends the run."""

LONGEST_S = 366 * 86_400
"""The longest wait that a model may state, in seconds."""

FailureCode = Literal[
    "provider-quota", "provider-context", "provider-auth", "provider-invalid", "provider-unavailable"
]  # fmt: skip


class Failure(Struct, frozen=True, kw_only=True):
    """Why there is no answer, whether waiting can mend that, and the instant before which it cannot.

    ``after`` is a wait in seconds that the provider stated, ``reset_at`` an instant.
    """

    code: FailureCode
    retryable: bool
    after: float | None = None
    reset_at: datetime | None = None


EMPTY = Failure(code="provider-unavailable", retryable=True)
"""A reply without words."""

_CODES: dict[ErrorKind, tuple[FailureCode, bool]] = {
    "aborted": ("provider-unavailable", False),
    "timeout": ("provider-unavailable", True),
    "network": ("provider-unavailable", True),
    "overload": ("provider-unavailable", True),
    "rate": ("provider-unavailable", True),
    "unknown": ("provider-unavailable", True),
    "quota": ("provider-quota", False),
    "auth": ("provider-auth", False),
    "entitlement": ("provider-auth", False),
    "context": ("provider-context", False),
    "model": ("provider-invalid", False),
    "invalid": ("provider-invalid", False),
    "content": ("provider-invalid", False),
}


def failure_of(error: ModelError) -> Failure:
    """What an error of a model means for the step that wanted to speak.

    A provider that says outright whether to try again is believed; a spent quota is worth waiting for only when it
    says until when.
    """
    code, retryable = _CODES.get(error.kind, _CODES["unknown"])
    after, reset_at = _seconds(error.retry_after), _instant(error.reset_at)
    if error.kind == "quota":
        retryable = reset_at is not None
    if error.should_retry is not None:
        retryable = error.should_retry
    return Failure(code=code, retryable=retryable, after=after, reset_at=reset_at)


def _seconds(stated: object) -> float | None:
    """A wait as a model stated it; None for one that nobody can wait, since models may be anybody's."""
    if not isinstance(stated, (int, float)) or not 0 <= stated <= LONGEST_S:
        return None
    return float(stated)


def _instant(stated: object) -> datetime | None:
    return stated if isinstance(stated, datetime) and stated.utcoffset() is not None else None


def retry_at(failure: Failure, failures: int, now: datetime) -> datetime | None:
    """When to speak again after ``failures`` earlier ones in a row; None: never."""
    if not failure.retryable or failures >= len(LADDER):
        return None
    stated = [now + LADDER[failures]]
    if failure.reset_at is not None:
        stated.append(min(failure.reset_at, now + timedelta(seconds=LONGEST_S)))
    if failure.after is not None:
        stated.append(now + timedelta(seconds=failure.after))
    return max(stated)
