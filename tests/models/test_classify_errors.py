"""What a failed answer means, and what an error may say about it."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta

import pytest

from onrecord.errors import ErrorKind, ModelError
from onrecord.models.classify_errors import (
    answer_error,
    is_content_array_related_error,
    is_tool_related_error,
    kind_of_answer,
    kind_of_exception,
    retry_after_seconds,
    stream_error,
    waits_of,
)

pytestmark = pytest.mark.unit

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CANARY = "the-secret-words-of-a-person"


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (408, "", "timeout"),
        (400, "This model's maximum context length is 8192 tokens", "context"),
        (400, "context_length_exceeded", "context"),
        (413, "prompt is too long: 210000 tokens > 200000 maximum", "context"),
        (403, "Your plan does not include API access", "entitlement"),
        (403, "upgrade to a paid plan", "entitlement"),
        (429, "insufficient_quota You exceeded your current quota", "quota"),
        (429, "usage limit reached", "quota"),
        (429, "you hit your weekly limit", "quota"),
        (429, "账户余额不足", "quota"),
        (500, "maximum context length", "overload"),
        (404, "The model `gpt-9` does not exist or you do not have access to it", "model"),
        (500, "model not found", "model"),
        (401, "", "auth"),
        (403, "", "auth"),
        (400, "Incorrect API key provided", "auth"),
        (402, "", "quota"),
        (404, "", "model"),
        (429, "", "rate"),
        (400, "flagged by our content filter", "content"),
        (409, "", "overload"),
        (425, "", "overload"),
        (500, "", "overload"),
        (503, "", "overload"),
        (529, "", "overload"),
        (None, "Too Many Requests", "rate"),
        (None, "RESOURCE_EXHAUSTED", "rate"),
        (None, "The engine is currently overloaded", "overload"),
        (None, "at capacity", "overload"),
        (None, "the upstream request timed out", "timeout"),
        (400, "messages: bad value", "invalid"),
        (422, "", "invalid"),
        (302, "", "invalid"),
        (None, "something else", "unknown"),
        (201, "", "unknown"),
    ],
)
def test_the_first_line_of_the_table_that_matches_decides(status: int | None, text: str, kind: ErrorKind) -> None:
    """By status and by the words of the body."""
    assert kind_of_answer(status, text) == kind


def test_s6_the_kinds_that_the_case_names() -> None:
    """The case's own list; a connection that was reset has no status at all."""
    told = [
        kind_of_answer(status, text)
        for status, text in (
            (402, ""),
            (529, ""),
            (429, "insufficient_quota"),
            (400, "maximum context length"),
            (403, "plan does not include"),
        )
    ]
    assert told == ["quota", "overload", "quota", "context", "entitlement"]
    assert kind_of_exception(ConnectionResetError("ECONNRESET")) == "network"
    assert stream_error("acme", {"error": {"message": "something went another way"}}).kind == "overload"


def test_exceptions_are_told_apart_through_their_causes() -> None:
    """Up to five deep."""
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = ValueError("inner")
    wrapped.__cause__.__context__ = ConnectionResetError()
    deep: BaseException = ConnectionResetError()
    for _ in range(6):
        above = RuntimeError("x")
        above.__cause__, deep = deep, above
    assert kind_of_exception(ModelError("m", kind="quota")) == "quota"
    assert kind_of_exception(asyncio.CancelledError()) == "aborted"
    assert kind_of_exception(TimeoutError()) == "timeout"
    assert kind_of_exception(socket.gaierror()) == "network"
    assert kind_of_exception(wrapped) == "network"
    assert kind_of_exception(deep) == "unknown"
    assert kind_of_exception(RuntimeError("server overloaded")) == "overload"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        (" 0.25 ", 0.25),
        ("-1", 0.0),
        ("soon", None),
        ("", None),
        ("inf", None),
        ("nan", None),
        ("Mon, 30 Nov 9999999999 00:00:00 GMT", None),
        ("Mon, 99999999999999999999 Nov 2026 08:00:00 GMT", None),
    ],
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    """At least 0; what is no number of seconds is nothing."""
    assert retry_after_seconds(value, NOW) == seconds


def test_waits_are_read_in_every_form_that_providers_use() -> None:
    """Headers first, then fields of the body."""
    google = [{"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}]
    assert waits_of(429, {}, google, NOW).retry_after == 34.5
    assert waits_of(429, {"retry-after": "2"}, google, NOW).retry_after == 2
    assert waits_of(503, {"retry-after-ms": "1500"}, None, NOW).retry_after == 1.5
    assert waits_of(503, {"retry-after-ms": "soon"}, None, NOW).retry_after is None
    assert waits_of(429, {}, {"error": {"resets_in_seconds": 90}}, NOW).reset_at == NOW + timedelta(seconds=90)
    epoch = int(NOW.timestamp()) + 60
    assert waits_of(429, {}, {"error": {"resets_at": epoch}}, NOW).reset_at == NOW + timedelta(seconds=60)
    assert waits_of(429, {}, {"resets_at": "2026-03-01T12:05:00Z"}, NOW).reset_at == NOW + timedelta(minutes=5)
    assert waits_of(429, {}, {"resets_at": "whenever"}, NOW).reset_at is None
    assert waits_of(429, {}, {"resets_at": "2026-03-01T12:05:00"}, NOW).reset_at == NOW + timedelta(minutes=5)


def test_a_wait_without_end_is_still_a_number_that_can_be_reckoned_with() -> None:
    """What a provider states goes on record and is added to a clock."""
    assert waits_of(429, {}, {"retryDelay": "inf"}, NOW).retry_after == 1e9
    assert waits_of(429, {}, {"resets_in_seconds": 1e300}, NOW).reset_at == NOW + timedelta(seconds=1e9)
    assert waits_of(429, {}, {"resets_in_seconds": -5}, NOW).reset_at == NOW
    assert waits_of(429, {"x-ratelimit-reset": "inf"}, None, NOW).reset_at is None


def test_of_two_stated_waits_the_first_and_outermost_counts() -> None:
    """What stands beside the error is about the whole call."""
    body = {"retryDelay": "1s", "error": {"retryDelay": "2s"}, "resets_in_seconds": 5}
    assert waits_of(429, {}, body, NOW) == (1.0, NOW + timedelta(seconds=5), None)
    assert waits_of(429, {}, {"details": [{"retryDelay": "3s"}, {"retryDelay": "4s"}]}, NOW).retry_after == 3.0
    headers = {"x-ratelimit-reset-requests": "20s", "x-ratelimit-reset-tokens": "60s"}
    assert waits_of(429, headers, None, NOW).reset_at == NOW + timedelta(seconds=60)


def test_reset_headers_count_where_a_limit_is_used_up() -> None:
    """A bare number above 1,000,000,000 is an epoch, else a countdown; only a 429 makes them mean anything."""
    headers = {
        "x-ratelimit-reset-requests": "6m0s",
        "x-ratelimit-remaining-requests": "4999",
        "x-ratelimit-reset-tokens": "120ms",
        "x-ratelimit-remaining-tokens": "0",
    }
    assert waits_of(429, headers, None, NOW).reset_at == NOW + timedelta(milliseconds=120)
    assert waits_of(200, headers, None, NOW).reset_at is None
    assert waits_of(429, {"x-ratelimit-reset": "20"}, None, NOW).reset_at == NOW + timedelta(seconds=20)
    epoch = int(NOW.timestamp()) + 7
    assert waits_of(429, {"x-ratelimit-reset": str(epoch)}, None, NOW).reset_at == NOW + timedelta(seconds=7)
    assert waits_of(429, {"x-ratelimit-reset": f"{epoch}000"}, None, NOW).reset_at == NOW + timedelta(seconds=7)
    assert waits_of(429, {"x-ratelimit-reset": "later"}, None, NOW).reset_at is None


def test_an_error_quotes_the_provider_s_code_and_nothing_of_the_body() -> None:
    """Servers echo prompts and keys in what they say."""
    told = {"message": f"bad input: {CANARY} sk-123", "type": "invalid_request_error", "code": None}
    body = json.dumps({"error": told})
    error = answer_error("acme", 400, {}, body.encode(), now=NOW)
    assert str(error) == "acme answered with status 400 (invalid_request_error)"
    echo = json.dumps({"error": {"message": "m", "code": f"sk-{CANARY}", "type": f"{CANARY} and more"}})
    for held in (body, echo, f"<html>{CANARY}</html>", f'"{CANARY}"', "[]"):
        for error in (answer_error("acme", 401, {}, held.encode(), now=NOW), stream_error("acme", held)):
            assert CANARY not in f"{error} {error.hint} {error!r} {error.__dict__}"
            assert "sk-" not in str(error)


def test_an_error_carries_what_the_provider_says_about_waiting() -> None:
    """Seconds, instants, the window and whether to retry."""
    body = b'{"error":{"type":"usage_limit_reached","message":"weekly limit","resets_in_seconds":3600}}'
    headers = {"Retry-After": "7", "X-Should-Retry": "true"}
    error = answer_error("acme", 429, headers, body, now=NOW, key_hint="set ACME_KEY")
    assert (error.kind, error.status, error.retry_after, error.window) == ("quota", 429, 7.0, "weekly")
    assert (error.reset_at, error.should_retry, error.code) == (NOW + timedelta(hours=1), True, "model-quota")
    assert "billing" in error.hint
    assert answer_error("acme", 401, {}, b"", now=NOW, key_hint="set ACME_KEY").hint == "set ACME_KEY"
    assert answer_error("acme", 429, {}, b'{"error":"5 hour limit"}', now=NOW).window == "5h"


@pytest.mark.parametrize(
    ("held", "kind", "status"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, "rate", 429),
        ({"error": {"status_code": 400, "code": "tool_use_failed"}}, "invalid", 400),
        ({"error": {"code": "502", "message": "bad gateway"}}, "overload", 502),
        ({"error": "the engine broke"}, "overload", None),
        ({"error": {"message": "no idea"}}, "overload", None),
        ({"message": "maximum context length"}, "context", None),
        (None, "overload", None),
        ("just words", "overload", None),
        ({"error": {"code": "²", "message": "odd"}}, "overload", None),
        ({"error": {"code": "4" * 5000}}, "overload", None),
        ({"error": {"code": 700}}, "overload", None),
    ],
)
def test_errors_inside_a_stream_are_told_apart_by_the_same_table(
    held: object, kind: ErrorKind, status: int | None
) -> None:
    """What the table cannot tell is an overload; a status inside counts as one."""
    error = stream_error("acme", held, started=True)
    assert (error.kind, error.status, error.started, error.code) == (kind, status, True, f"model-{kind}")
    assert error.hint


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        ("messages[7]: invalid type: sequence, expected a string", True),
        ("messages.0.content: Input should be a valid string", True),
        ("Messages.12.content.0: expected a string", True),
        (RuntimeError("messages[0].content: invalid type: sequence, expected a string at line 1"), True),
        ("model not found", False),
        ("messages is required", False),
        (None, False),
    ],
)
def test_e25_errors_about_content_as_a_list_are_recognised(problem: object, found: bool) -> None:
    """By their words, whatever they are wrapped in."""
    assert is_content_array_related_error(problem) is found


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        ("registry.ollama.ai/library/gemma does not support tools", True),
        ("No endpoints found that support tool use", True),
        ("Functions are not supported for this model", True),
        ("Unrecognized request argument supplied: tools", True),
        ("tool use with function calling is unsupported", True),
        ("This model does not support function calling", True),
        (ValueError("Tools are not supported"), True),
        ("invalid_function_parameters", False),
        ("the tool price failed", False),
        (None, False),
    ],
)
def test_e26_errors_about_tools_as_such_are_recognised(problem: object, found: bool) -> None:
    """An invalid schema or one failed call is no proof."""
    assert is_tool_related_error(problem) is found
