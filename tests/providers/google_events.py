"""Events of a generateContent stream, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished, NativeItem
from onrecord.providers.google.parse import Parser

CANARY = "the-secret-words-of-a-person"
COUNTS = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 7,
    "toolUsePromptTokenCount": 3,
    "cachedContentTokenCount": 4,
    "totalTokenCount": 25,
}
SIGNATURE = "EpwICpkIAXLI2nxl+w/=="


def event(*parts: Any, finish: str | None = None, **fields: Any) -> bytes:
    """One event with one candidate; a string is a part that is words alone."""
    content = {"parts": [{"text": part} if isinstance(part, str) else part for part in parts], "role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    if (grounding := fields.pop("grounding", None)) is not None:
        candidate["groundingMetadata"] = grounding
    return json.dumps({"candidates": [candidate], "modelVersion": "m-1", "responseId": "r", **fields}).encode()


def calling(name: str = "price", args: Any = None, signature: str = "", **fields: Any) -> dict[str, Any]:
    """A part with a call."""
    call = {"name": name, **({} if args is None else {"args": args}), **fields}
    return {"functionCall": call, **({"thoughtSignature": signature} if signature else {})}


STOP = event(finish="STOP")


def read(*events: bytes) -> list[Chunk]:
    """All chunks of a stream."""
    parser = Parser("acme")
    out = [chunk for data in events for chunk in parser.feed(data)]
    return [*out, *parser.close()]


def natives(*events: bytes) -> list[Any]:
    """The items for the continuation."""
    return [json.loads(bytes(chunk.raw)) for chunk in read(*events) if isinstance(chunk, NativeItem)]


def failure(*events: bytes) -> ModelError:
    """The error of a stream that has to fail; it says nothing of what the stream said."""
    with pytest.raises(ModelError) as caught:
        read(*events)
    error = caught.value
    assert CANARY not in f"{error} {error.hint} {error.__dict__}"
    assert error.provider == "acme"
    assert error.__suppress_context__ or error.__context__ is None
    return error


def end_of(*events: bytes) -> Finished:
    """The last chunk."""
    last = read(*events)[-1]
    assert isinstance(last, Finished)
    return last
