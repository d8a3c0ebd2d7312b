"""Events of a Responses stream, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished
from onrecord.providers.openai_responses.parse import Parser

CANARY = "the-secret-words-of-a-person"
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """One event; ``kind`` without its beginning, which all share."""
    return {"type": f"response.{kind}", **fields}


def delta(text: Any, index: int = 0, part: int = 0, kind: str = "output_text", **fields: Any) -> dict[str, Any]:
    """A piece of text."""
    return event(f"{kind}.delta", delta=text, output_index=index, content_index=part, item_id=f"i{index}", **fields)


def message(*parts: Any, **fields: Any) -> dict[str, Any]:
    """A finished message; strings are texts."""
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content, **fields}


def text(words: str, *annotations: Any) -> dict[str, Any]:
    """A content part of words."""
    return {"type": "output_text", "text": words, "annotations": list(annotations), "logprobs": []}


def called(name: Any = "price", args: Any = "{}", call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    """A finished call."""
    return {"type": "function_call", "id": "f", "call_id": call_id, "name": name, "arguments": args, **fields}


def cites(url: str, start: Any, stop: Any, title: Any = "T") -> dict[str, Any]:
    """An annotation that names a web page."""
    return {"type": "url_citation", "url": url, "title": title, "start_index": start, "end_index": stop}


def done(item: Any, index: int = 0, **fields: Any) -> dict[str, Any]:
    """An item is finished."""
    return event("output_item.done", item=item, output_index=index, **fields)


def added(item: Any, index: int = 0, **fields: Any) -> dict[str, Any]:
    """An item begins."""
    return event("output_item.added", item=item, output_index=index, **fields)


def ended(kind: str = "completed", **response: Any) -> dict[str, Any]:
    """The last event."""
    return event(kind, response={"status": kind, "model": "m-1", "output": [], **response})


def spoken(*words: str, index: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """A message in pieces, finished."""
    return [*(delta(word, index) for word in words), done(message("".join(words), **fields), index)]


def raw(*events: Any) -> list[bytes]:
    """Events as their data; bytes are data already."""
    return [one if isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode() for one in events]


def numbered(*events: dict[str, Any], start: int = 0) -> list[dict[str, Any]]:
    """Events with their numbers."""
    return [{**one, "sequence_number": n} for n, one in enumerate(events, start)]


def read(*events: Any) -> list[Chunk]:
    """All chunks of a stream."""
    parser = Parser("acme")
    out = [chunk for data in raw(*events) for chunk in parser.feed(data)]
    return [*out, *parser.close()]


def failure(*events: Any) -> ModelError:
    """The error of a stream that has to fail; it says nothing of what the stream said."""
    with pytest.raises(ModelError) as caught:
        read(*events)
    error = caught.value
    assert CANARY not in f"{error} {error.hint} {error.__dict__}"
    assert error.provider == "acme"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return error


def end_of(*events: Any) -> Finished:
    """The last chunk."""
    last = read(*events)[-1]
    assert isinstance(last, Finished)
    return last
