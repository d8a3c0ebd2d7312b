"""Responses: streams that fail, and how precisely that is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.net.sse import ErrorEvent
from onrecord.providers.openai_responses.parse import Parser
from tests.providers.responses_events import (
    CANARY,
    USAGE,
    added,
    called,
    delta,
    done,
    ended,
    event,
    failure,
    message,
    numbered,
    raw,
    read,
    spoken,
)

pytestmark = pytest.mark.unit


def failed(code: str | None, **fields: Any) -> dict[str, Any]:
    """The last event of a response that failed."""
    return ended("failed", error={"code": code, "message": CANARY, **fields})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", "overload"),
        ("rate_limit_exceeded", "rate"),
        ("insufficient_quota", "quota"),
        ("context_length_exceeded", "context"),
        ("invalid_prompt", "invalid"),
        ("invalid_image_url", "invalid"),
        ("image_too_large", "invalid"),
        ("unsupported_image_media_type", "invalid"),
        ("failed_to_download_image", "invalid"),
        ("image_content_policy_violation", "content"),
        (None, "overload"),
    ],
)
def test_a_response_that_failed_is_told_by_its_code(code: str | None, kind: str) -> None:
    """Never by its words, which may quote the conversation."""
    error = failure(failed(code))
    assert (error.kind, error.started) == (kind, False)
    assert (code or "error") in str(error)


def test_a_response_that_failed_without_saying_why() -> None:
    """The provider is at fault until it says otherwise."""
    assert failure(ended("failed")).kind == "overload"
    assert failure(ended("completed", status="failed", error=None)).kind == "overload"


@pytest.mark.parametrize(
    "told",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": CANARY, "param": None, "sequence_number": 3},
        {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": CANARY}},
        {"error": {"code": "rate_limit_exceeded", "message": CANARY}},
        {"code": "rate_limit_exceeded", "message": CANARY},
    ],
)
def test_an_error_event_is_read_in_all_its_forms(told: dict[str, Any]) -> None:
    """Flat, nested, and without the type of an event; also where the stream itself names it an error."""
    for data in (told, ErrorEvent(json.dumps(told).encode())):
        error = failure(*spoken("x")[:1], data)
        assert (error.kind, error.started) == ("rate", True)
        assert "rate_limit_exceeded" in str(error)


def test_an_error_event_that_cannot_be_read_is_an_error_all_the_same() -> None:
    """By its name."""
    for data in (ErrorEvent(b"busy"), ErrorEvent(b"{}"), {"type": "error"}):
        assert failure(data).kind == "overload"


def test_an_incomplete_response_fails_and_says_why() -> None:
    """A cut reply is no reply: by the cap, by a filter, or for a reason that nobody gave."""

    def cut(reason: str | None) -> ModelError:
        return failure(delta("x"), ended("incomplete", incomplete_details={"reason": reason}, usage=USAGE))

    capped = cut("max_output_tokens")
    assert (capped.kind, capped.hint, capped.started) == ("invalid", "raise max_tokens", True)
    assert str(capped) == "acme reached the output cap in its reply (2 tokens went to reasoning)"
    assert cut("content_filter").kind == "content"
    assert cut(None).kind == cut("sunset").kind == "overload"
    bare = failure(ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert str(bare) == "acme reached the output cap in its reply"


def test_the_status_counts_and_not_the_name_of_the_event() -> None:
    """Some servers end every stream with the same event."""
    assert failure(ended("completed", status="incomplete")).kind == "overload"
    assert failure(ended("completed", status="in_progress")).kind == "invalid"
    assert failure(ended("cancelled")).kind == "invalid"
    assert failure(event("incomplete", response={})).kind == "overload"
    assert read(*spoken("x"), event("completed", response={}))


def test_a_stream_that_ends_before_its_end_fails() -> None:
    """Wherever it is cut, also behind a mark that ends other wires."""
    events = [added(message()), *spoken("Hel", "lo"), done(called(), 1), ended(output=[message("Hello"), called()])]
    for at in range(len(events)):
        error = failure(*events[:at], b"[DONE]")
        assert (error.kind, error.started) == ("network", at > 1)
    assert read(*events)


def test_an_event_that_breaks_off_is_an_early_end() -> None:
    """A connection cut in the middle of an event, at any place of it."""
    whole = raw(delta("naïve ☃"))[0]
    for at in range(len(whole)):
        error = failure(delta("x"), whole[:at])
        assert (error.kind, error.started, str(error)) == ("network", True, "acme ended its stream early")


def test_a_call_that_began_unseen_counts_as_started() -> None:
    """It may have been paid for, and is not asked for again."""
    assert failure(added(called(args=""))).started is True
    assert failure(added(message())).started is False


@pytest.mark.parametrize("drop", range(5))
def test_a_stream_that_lost_an_event_gives_the_whole_reply_or_none(drop: int) -> None:
    """What a finished item says decides; a lost end, or words out of the middle, are told."""
    finished = [message("Hello, you"), called()]
    events = numbered(delta("Hel"), delta("lo, "), delta("you"), done(finished[0]), done(called(), 1))
    kept = [one for n, one in enumerate(events) if n != drop]
    if drop < 2:  # what is left is no beginning of the message
        assert failure(*kept, ended(output=finished)).kind == "network"
    else:
        assert read(*kept, ended(output=finished))[-4:] == read(*events, ended(output=finished))[-4:]


def test_an_item_that_began_and_never_ended_is_told() -> None:
    """A call without its arguments is never run."""
    error = failure(*spoken("x"), added(called(args=""), 1), ended())
    assert (error.kind, str(error)) == ("network", "acme ended its reply with an item unfinished")


def test_an_empty_answer_is_a_failure() -> None:
    """Nothing at all was said."""
    assert failure(ended()).kind == "overload"


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        b"[1]",
        b'"x"',
        b"7",
        b"{}",
        b'{"choices":[{"delta":{"content":"x"}}]}',
        b'{"type":3}',
        b'{"type":"response.output_item.done","item":7,"output_index":0}',
        b'{"type":"response.output_item.added","item":[],"output_index":0}',
        b'{"type":"response.completed"}',
        b'{"type":"response.completed","response":[]}',
        b'{"type":"response.completed","response":{"status":3}}',
        b'{"type":"response.output_text.delta","delta":"\xff"}',
    ],
)
def test_what_is_no_event_of_this_wire_is_told(data: bytes) -> None:
    """Precisely, and without a word of it."""
    error = failure(data)
    assert (error.kind, str(error)) == ("invalid", "acme sent an event that is not of its protocol")


def test_a_call_without_a_name_is_refused() -> None:
    """Nothing could be run."""
    for name in ("", None, 3):
        assert str(failure(done(called(name=name)), ended())) == "acme sent a tool call without a name"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"code": "rate_limit_exceeded", "message": CANARY}}, "rate"),
        ({"status": "failed", "error": {"code": "server_error", "message": CANARY}}, "overload"),
        ({"status": "incomplete", "output": []}, "overload"),
        ({"status": "queued", "output": []}, "invalid"),
        ({"choices": []}, "invalid"),
        ([], "invalid"),
    ],
)
def test_a_whole_answer_that_is_no_reply_is_told(body: Any, kind: str) -> None:
    """A status of 200 says nothing."""
    with pytest.raises(ModelError) as caught:
        Parser("acme").whole(raw(body)[0])
    assert caught.value.kind == kind
    assert CANARY not in str(caught.value)
