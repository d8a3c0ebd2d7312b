"""Events of a Chat stream, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.parse import Parser
from tests.models.requests import PLAIN

CANARY = "the-secret-words-of-a-person"
USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


def event(delta: Any = None, finish: str | None = None, **fields: Any) -> bytes:
    """One event with one choice, without blanks, as servers write it: the parser's short way is for these."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    whole = {"id": "x", "model": "m-1", "choices": [choice], **fields}
    return json.dumps(whole, separators=(",", ":")).encode()


def fragment(
    index: int | None = 0, id: str | None = None, name: str | None = None, args: Any = None, **more: Any
) -> Any:
    """A delta with one fragment of a call."""
    call = {"index": index, "id": id, "function": {"name": name, "arguments": args}, **more}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


def read(*events: bytes, dialect: Dialect = PLAIN) -> list[Chunk]:
    """All chunks of a stream."""
    parser = Parser("acme", dialect)
    out = [chunk for data in events for chunk in parser.feed(data)]
    return [*out, *parser.close()]


def failure(*events: bytes) -> ModelError:
    """The error of a stream that has to fail; it says nothing of what the stream said."""
    with pytest.raises(ModelError) as caught:
        read(*events)
    error = caught.value
    assert CANARY not in f"{error} {error.hint} {error.__dict__}"
    assert error.provider == "acme"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return error


STOP = event(finish="stop")
DONE = b"[DONE]"


def end_of(*events: bytes) -> Finished:
    """The last chunk."""
    last = read(*events)[-1]
    assert isinstance(last, Finished)
    return last
