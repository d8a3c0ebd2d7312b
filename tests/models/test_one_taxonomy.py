"""One table tells the failures of all wires apart: the shapes that vendors really send, and what each of them is."""

from __future__ import annotations

import errno
import json
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onrecord.errors import ErrorKind, ModelError
from onrecord.models.classify_errors import answer_error, kind_of_answer, kind_of_exception, stream_error

pytestmark = pytest.mark.unit

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def openai(message: str, sort: str = "invalid_request_error", code: str | None = None) -> Any:
    """As Chat and Responses, and most servers that speak Chat, send it."""
    return {"error": {"message": message, "type": sort, "param": None, "code": code}}


def anthropic(message: str, sort: str) -> Any:
    """As Messages sends it, in an answer and in a stream."""
    return {"type": "error", "error": {"type": sort, "message": message}, "request_id": "req_1"}


def google(message: str, code: int, status: str) -> Any:
    """As the Gemini API sends it."""
    return {"error": {"code": code, "message": message, "status": status, "details": []}}


WIRES: list[tuple[int, Any, ErrorKind]] = [
    # OpenAI Chat and Responses
    (401, openai("Incorrect API key provided.", code="invalid_api_key"), "auth"),
    (429, openai("You exceeded your current quota, check your plan.", "insufficient_quota", "insufficient_quota"),
     "quota"),
    (429, openai("Rate limit reached for gpt-5 in organization o.", "tokens", "rate_limit_exceeded"), "rate"),
    (400, openai("This model's maximum context length is 128000 tokens.", code="context_length_exceeded"), "context"),
    (400, openai("Your input exceeds the context window of this model.", code="context_length_exceeded"), "context"),
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", code="model_not_found"), "model"),
    (400, openai("Invalid schema for function 'f'.", code="invalid_function_parameters"), "invalid"),
    (400, openai("The response was filtered.", code="content_filter"), "content"),
    (500, openai("The server had an error while processing your request.", "server_error"), "overload"),
    (503, openai("The engine is currently overloaded, please try again later.", "server_error"), "overload"),
    # Anthropic
    (401, anthropic("invalid x-api-key", "authentication_error"), "auth"),
    (403, anthropic("Your API key does not have permission.", "permission_error"), "auth"),
    (404, anthropic("model: claude-9", "not_found_error"), "model"),
    (400, anthropic("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), "context"),
    (400, anthropic("Your credit balance is too low to access the API.", "invalid_request_error"), "quota"),
    (413, anthropic("Request exceeds the maximum size", "request_too_large"), "invalid"),
    (429, anthropic("This request would exceed your organization's rate limit.", "rate_limit_error"), "rate"),
    (500, anthropic("Internal server error", "api_error"), "overload"),
    (529, anthropic("Overloaded", "overloaded_error"), "overload"),
    (400, anthropic("thinking: budget_tokens must be less than max_tokens", "invalid_request_error"), "invalid"),
    # Google
    (400, google("API key not valid. Please pass a valid API key.", 400, "INVALID_ARGUMENT"), "auth"),
    (400, google("API key expired. Please renew the API key.", 400, "INVALID_ARGUMENT"), "auth"),
    (403, google("Permission denied on resource project p.", 403, "PERMISSION_DENIED"), "auth"),
    (404, google("models/gemini-9 is not found for API version v1beta.", 404, "NOT_FOUND"), "model"),
    (429, google("Resource has been exhausted (e.g. check quota).", 429, "RESOURCE_EXHAUSTED"), "rate"),
    (400, google("The input token count (1200000) exceeds the maximum number of tokens allowed.", 400,
                 "INVALID_ARGUMENT"), "context"),
    (400, google("Request contains an invalid argument.", 400, "INVALID_ARGUMENT"), "invalid"),
    (500, google("An internal error has occurred.", 500, "INTERNAL"), "overload"),
    (503, google("The model is overloaded. Please try again later.", 503, "UNAVAILABLE"), "overload"),
    (504, google("Deadline expired before operation could complete.", 504, "DEADLINE_EXCEEDED"), "overload"),
    # Chat at other vendors: OpenRouter, DeepSeek, Groq, Z.ai, Ollama, llama.cpp, vLLM
    (402, {"error": {"code": 402, "message": "This request requires more credits."}}, "quota"),
    (408, {"error": {"code": 408, "message": "Request timed out"}}, "timeout"),
    (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}, "quota"),
    (413, {"error": {"message": "Request too large for model m: reduce the length of the messages", "type": "tokens"}},
     "context"),
    (429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}, "quota"),
    (403, {"error": {"code": "1309", "message": "您的账户已欠费,请充值后重试"}}, "quota"),
    (429, {"error": {"code": "1302", "message": "您的配额已用尽"}}, "quota"),
    (429, {"error": {"code": "1305", "message": "当前API请求过多,请稍后重试"}}, "rate"),
    (404, {"error": "model 'qwen9' not found"}, "model"),
    (400, {"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context size"}}, "context"),
    (400, {"object": "error", "message": "This model's maximum context length is 4096.", "code": 400}, "context"),
    (503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, "overload"),
    (403, {"error": {"message": "Your plan does not include this model."}}, "entitlement"),
    (403, {"message": "No API access on the free tier, upgrade to Pro."}, "entitlement"),
    # Plain text, web pages, and nothing
    (502, "<html><body>502 Bad Gateway</body></html>", "overload"),
    (429, "Too Many Requests", "rate"),
    (400, "unsupported model", "model"),
    (400, "You have reached your weekly limit", "quota"),
    (409, "", "overload"),
    (425, "", "overload"),
    (418, "", "invalid"),
    (301, "", "invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "held", "kind"), WIRES, ids=[f"{s}-{k}-{n}" for n, (s, _, k) in enumerate(WIRES)])
def test_s6_every_wire_s_answers_are_told_apart_by_one_table(status: int, held: Any, kind: ErrorKind) -> None:
    """By status and by what the provider says, in whatever shape."""
    body = held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
    error = answer_error("acme", status, {}, body.encode(), now=NOW)
    assert (error.kind, error.status, error.code) == (kind, status, f"model-{kind}")


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        (anthropic("Overloaded", "overloaded_error"), "overload"),
        (anthropic("Rate limited", "rate_limit_error"), "rate"),
        (anthropic("who knows", "strange_error"), "overload"),
        (openai("The server had an error.", "server_error"), "overload"),
        (openai("maximum context length", code="context_length_exceeded"), "context"),
        ({"error": {"code": "rate_limit_exceeded", "message": "Rate limit reached"}}, "rate"),
        (google("Resource has been exhausted.", 429, "RESOURCE_EXHAUSTED"), "rate"),
        (google("odd", 400, "INVALID_ARGUMENT"), "invalid"),
        ({"error": {"code": "1302", "message": "您的账户已达到速率限制,请您控制请求频率"}}, "rate"),
        ({"error": {"code": "1113", "message": "余额不足"}}, "quota"),
        ({"error": {"code": 502, "message": "Provider returned error"}}, "overload"),
        ({"error": {"message": "something new"}}, "overload"),
        ("something new", "overload"),
    ],
)
def test_s6_errors_inside_a_stream_go_by_the_same_table(held: Any, kind: ErrorKind) -> None:
    """What it cannot tell is an overload there: the provider had said yes."""
    assert stream_error("acme", held).kind == kind


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (ConnectionResetError(errno.ECONNRESET, "reset"), "network"),
        (ConnectionRefusedError(), "network"),
        (BrokenPipeError(), "network"),
        (EOFError(), "network"),
        (socket.gaierror(), "network"),
        (TimeoutError(), "timeout"),
        (ModelError("m", kind="entitlement"), "entitlement"),
        (OSError("rate limit"), "rate"),
        (RuntimeError("the server is at capacity"), "overload"),
        (RuntimeError("nothing known"), "unknown"),
    ],
)
def test_s6_exceptions_go_by_their_types_then_by_their_words(problem: Exception, kind: ErrorKind) -> None:
    """Also when something else was raised from them."""
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = problem
    assert kind_of_exception(problem) == kind
    assert kind_of_exception(wrapped) == (kind if kind in {"network", "timeout", "entitlement"} else "unknown")


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (402, "", "quota"),
        (529, "", "overload"),
        (429, "insufficient_quota", "quota"),
        (400, "maximum context length", "context"),
        (403, "plan does not include", "entitlement"),
        (500, "maximum context length", "overload"),
        (503, "insufficient_quota", "overload"),
        (None, "insufficient credits", "quota"),
        (500, "unsupported model", "model"),
        (503, "model_not_found", "model"),
        (400, "invalid_api_key", "auth"),
        (429, "content filter", "rate"),
        (500, "blocked by safety", "content"),
        (None, "UNAVAILABLE", "overload"),
    ],
)
def test_s6_the_lines_of_the_case(status: int | None, text: str, kind: ErrorKind) -> None:
    """Which words count below 500 only, and which status goes before which words."""
    assert kind_of_answer(status, text) == kind


def test_waits_are_read_from_every_wire_s_answers() -> None:
    """A header, a field of the body, a limit that is used up."""
    google_body = {
        "error": {
            "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "21s"}],
        }
    }  # fmt: skip
    assert answer_error("google", 429, {}, json.dumps(google_body).encode(), now=NOW).retry_after == 21.0
    headers = {
        "Anthropic-Ratelimit-Requests-Remaining": "0",
        "Anthropic-Ratelimit-Requests-Reset": "2026-03-01T12:00:45Z",
        "Anthropic-Ratelimit-Tokens-Remaining": "1000",
        "Anthropic-Ratelimit-Tokens-Reset": "2026-03-01T13:00:00Z",
    }
    body = json.dumps(anthropic("slow down", "rate_limit_error")).encode()
    assert answer_error("anthropic", 429, headers, body, now=NOW).reset_at == NOW + timedelta(seconds=45)
    limits = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
    assert answer_error("openai", 429, limits, b"", now=NOW).reset_at == NOW + timedelta(minutes=6)


@pytest.mark.parametrize(
    ("told", "window"),
    [
        ("5-hour usage limit reached", "5h"),
        ("您的每5小时配额已用尽", "5h"),
        ("weekly limit", "weekly"),
        ("每周额度已用完", "weekly"),
        ("monthly usage limit reached", "monthly"),
        ("每月额度已用完", "monthly"),
        ("Rate limit reached", None),
    ],
)
def test_the_window_that_is_used_up_is_named_where_it_is_told(told: str, window: str | None) -> None:
    """In the words of the error."""
    assert answer_error("acme", 429, {}, json.dumps({"error": told}).encode(), now=NOW).window == window
