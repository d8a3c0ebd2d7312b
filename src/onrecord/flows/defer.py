"""What becomes of an answer that a model could not give: said later, or never. A table, no clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from onrecord.errors import ErrorKind, ModelError

__all__ = ("EMPTY", "LADDER", "Failure", "failure_of", "retry_at")

LADDER = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 360))
"""How long the n-th failure in a row waits; one more ends the run."""

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
    code, retryable = _CODES[error.kind]
    if error.kind == "quota":
        retryable = error.reset_at is not None
    if error.should_retry is not None:
        retryable = error.should_retry
    return Failure(code=code, retryable=retryable, after=error.retry_after, reset_at=error.reset_at)


def retry_at(failure: Failure, failures: int, now: datetime) -> datetime | None:
    """When to speak again after ``failures`` earlier ones in a row; None: never."""
    if not failure.retryable or failures >= len(LADDER):
        return None
    stated = [now + LADDER[failures]]
    if failure.reset_at is not None:
        stated.append(failure.reset_at)
    if failure.after is not None:
        stated.append(now + timedelta(seconds=failure.after))
    return max(stated)
