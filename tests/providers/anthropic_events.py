"""Events of a Messages stream, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished, NativeItem
from onrecord.providers.anthropic.parse import Parser

CANARY = "the-secret-words-of-a-person"
FIELD_OF = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def event(kind: str, **fields: Any) -> bytes:
    """One event without blanks, as the vendor writes it: the parser's short way is for these."""
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()


def begin(id: str = "msg_1", **usage: Any) -> bytes:
    """The beginning of a reply."""
    message = {"id": id, "type": "message", "role": "assistant", "model": "m-1", "content": []}
    return event("message_start", message=message | {"usage": usage or {"input_tokens": 10, "output_tokens": 1}})


def start(index: int, **block: Any) -> bytes:
    """The beginning of a block."""
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, value: Any = None, **fields: Any) -> bytes:
    """Something added to a block."""
    words = {FIELD_OF[kind]: value} if kind in FIELD_OF else {}
    return event("content_block_delta", index=index, delta={"type": kind, **words, **fields})


def stop(index: int) -> bytes:
    """The end of a block."""
    return event("content_block_stop", index=index)


def ended(reason: str | None = "end_turn", **usage: Any) -> tuple[bytes, bytes]:
    """The end of a reply."""
    counted = {"usage": usage} if usage else {}
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, **counted), event(
        "message_stop"
    )


def text(index: int, *words: str, **fields: Any) -> tuple[bytes, ...]:
    """A block of text."""
    pieces = (delta(index, "text_delta", one) for one in words)
    return start(index, type="text", text="", **fields), *pieces, stop(index)


def thought(index: int, *words: str, signature: str = "sig") -> tuple[bytes, ...]:
    """A block of thinking."""
    pieces = [delta(index, "thinking_delta", one) for one in words]
    signed = delta(index, "signature_delta", signature=signature)
    return start(index, type="thinking", thinking="", signature=""), *pieces, signed, stop(index)


def called(index: int, id: str, name: str, *parts: str, kind: str = "tool_use", **fields: Any) -> tuple[bytes, ...]:
    """A call."""
    pieces = (delta(index, "input_json_delta", one) for one in parts)
    return start(index, type=kind, id=id, name=name, input={}, **fields), *pieces, stop(index)


def reply(*blocks: tuple[bytes, ...], reason: str = "end_turn", **usage: Any) -> list[bytes]:
    """All events of a reply."""
    return [begin(), *(one for block in blocks for one in block), *ended(reason, **usage)]


def read(*events: bytes, **fields: Any) -> list[Chunk]:
    """All chunks of a stream."""
    parser = Parser("acme", **fields)
    out = [chunk for data in events for chunk in parser.feed(data)]
    return [*out, *parser.close()]


def natives(*events: bytes) -> list[Any]:
    """The native blocks of a stream, as what they mean."""
    return [json.loads(bytes(one.raw)) for one in read(*events) if isinstance(one, NativeItem)]


def end_of(*events: bytes, **fields: Any) -> Finished:
    """The last chunk."""
    last = read(*events, **fields)[-1]
    assert isinstance(last, Finished)
    return last


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
