"""Errors carry their facts, and come back whole from another process."""

import copy
import pickle
import traceback
from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.errors import (
    AnswerRefused,
    FeatureFailed,
    MessageDenied,
    ModelError,
    OnrecordError,
    OutputInvalid,
    SessionConflict,
    UsageError,
)

pytestmark = pytest.mark.unit

AT = datetime(2026, 1, 1, tzinfo=UTC)
ERRORS: list[tuple[OnrecordError, str, dict[str, Any]]] = [
    (UsageError("no", hint="do"), "usage", {"hint": "do"}),
    (UsageError("no", code="odd"), "odd", {"hint": ""}),
    (MessageDenied("input", "r", "why"), "message-denied", {"moment": "input", "rule": "r", "reason": "why"}),
    (AnswerRefused("r", "why"), "answer-refused", {"moment": "output", "rule": "r", "reason": "why", "result": None}),
    (FeatureFailed("f", "reply", "p"), "feature-failed", {"feature": "f", "moment": "reply"}),
    (
        ModelError("m", kind="rate", provider="p", status=429, retry_after=1.5, reset_at=AT,
                   window="day", should_retry=True, started=True, hint="h"),
        "model-rate",
        {"kind": "rate", "provider": "p", "status": 429, "retry_after": 1.5, "window": "day", "should_retry": True,
         "reset_at": AT, "started": True, "result": None, "hint": "h"},
    ),
    (OutputInvalid("p", path="$.a"), "output-invalid", {"problem": "p", "path": "$.a"}),
    (SessionConflict("s", expected=1, found=2), "session-conflict", {"expected": 1, "found": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "code", "facts"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_comes_back_whole(error: OnrecordError, code: str, facts: dict[str, Any]) -> None:
    """Its kind, words, code, hint and facts, pickled or copied."""
    for back in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert (type(back), str(back), back.code) == (type(error), str(error), code)
        assert {name: getattr(back, name) for name in facts} == facts
        told = traceback.format_exception_only(back)
        assert (told[-1] == f"hint: {error.hint}\n") if error.hint else (len(told) == 1)
