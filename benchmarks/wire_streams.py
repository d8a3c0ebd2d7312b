"""Long streamed replies of each wire, as its vendor writes them, and what one writes by hand to read their words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

__all__ = ("STREAMS", "Stream", "body_of")

WORDS = ("alpha ", "beta ", "gamma ", "delta ", "omega ")
BURST = 64
"""Events in one chunk of the answer."""

Event = dict[str, Any]


class Stream(NamedTuple):
    """One wire: its events around so many words, and how a plain loop finds the word in a parsed event."""

    events: Callable[[int], Iterator[Event | str]]
    word: Callable[[Event], str | None]
    named: bool = False


# ---- Chat Completions -----------------------------------------------------------------------------------------------
_CHUNK: Event = {
    "id": "chatcmpl-1000000", "object": "chat.completion.chunk", "created": 1750000000, "model": "mock-1",
    "service_tier": "default", "system_fingerprint": "fp",
}  # fmt: skip


def _choice(delta: Event, finish: str | None = None) -> Event:
    return _CHUNK | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def _chat(words: int) -> Iterator[Event | str]:
    yield _choice({"role": "assistant", "content": "", "refusal": None})
    for n in range(words):
        yield _choice({"content": WORDS[n % 5]})
    yield _choice({}, "stop")
    yield _CHUNK | {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 120}}
    yield "[DONE]"


def _chat_word(event: Event) -> str | None:
    choices = event["choices"]
    return choices[0]["delta"].get("content") if choices else None


# ---- Responses ------------------------------------------------------------------------------------------------------
def _responses(words: int) -> Iterator[Event | str]:
    text = "".join(WORDS[n % 5] for n in range(words))
    held: Event = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "mock-1", "output": []}
    part: Event = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    item: Event = {"id": "msg_1", "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
    place: Event = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    whole = item | {"status": "completed", "content": [part | {"text": text}]}
    usage = {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": words,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120,
    }  # fmt: skip
    events: list[Event] = [
        {"type": "response.created", "response": held},
        {"type": "response.in_progress", "response": held},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": WORDS[n % 5], "logprobs": []} for n in range(words)),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part | {"text": text}},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {
            "type": "response.completed",
            "response": held | {"status": "completed", "output": [whole], "usage": usage},
        },
    ]
    for n, event in enumerate(events):
        yield event | {"sequence_number": n}


def _responses_word(event: Event) -> str | None:
    return event["delta"] if event["type"] == "response.output_text.delta" else None


# ---- Messages -------------------------------------------------------------------------------------------------------
def _messages(words: int) -> Iterator[Event | str]:
    usage = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    message: Event = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "mock-1", "stop_reason": None,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "ping"}
    for n in range(words):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS[n % 5]}}
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": words}}
    yield {"type": "message_stop"}


def _messages_word(event: Event) -> str | None:
    return event["delta"]["text"] if event["type"] == "content_block_delta" else None


# ---- generateContent ------------------------------------------------------------------------------------------------
def _google(words: int) -> Iterator[Event | str]:
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    after: Event = {"usageMetadata": usage, "modelVersion": "mock-1", "responseId": "resp"}
    for n in range(words):
        candidate: Event = {"content": {"parts": [{"text": WORDS[n % 5]}], "role": "model"}, "index": 0}
        if n == words - 1:
            candidate["finishReason"] = "STOP"
        yield {"candidates": [candidate], **after}


def _google_word(event: Event) -> str | None:
    word: str | None = event["candidates"][0]["content"]["parts"][0]["text"]
    return word


STREAMS = {
    "chat": Stream(_chat, _chat_word),
    "responses": Stream(_responses, _responses_word, named=True),
    "messages": Stream(_messages, _messages_word, named=True),
    "google": Stream(_google, _google_word),
}


@cache
def body_of(wire: str, words: int) -> bytes:
    """The chunked answer, some events in each chunk."""
    stream = STREAMS[wire]
    events: list[bytes] = []
    for event in stream.events(words):
        data = event if isinstance(event, str) else json.dumps(event, separators=(",", ":"))
        kind = f"event: {event['type']}\n" if stream.named and isinstance(event, dict) else ""
        events.append(f"{kind}data: {data}\n\n".encode())
    out = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"]
    for at in range(0, len(events), BURST):
        piece = b"".join(events[at : at + BURST])
        out.append(b"%x\r\n%b\r\n" % (len(piece), piece))
    return b"".join((*out, b"0\r\n\r\n"))
