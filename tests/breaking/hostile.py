"""What servers send when they are broken or mean, as bytes and as events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Peer, Script, chunk
from tests.providers.chat_server import HELLO

__all__ = ("EVENT", "HEADS", "ODD", "once", "places", "put", "stream")

EVENT: dict[str, Any] = {
    "id": "x",
    "model": "m",
    "object": "chat.completion.chunk",
    "choices": [
        {
            "index": 0,
            "delta": {
                "content": "a",
                "refusal": None,
                "tool_calls": [{"index": 0, "id": "i", "function": {"name": "lookup", "arguments": "{}"}}],
                "reasoning_content": "r",
                "reasoning": "q",
                "reasoning_details": [{"type": "t", "text": "x"}],
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1},
                    }
                ],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
    },
    "error": None,
}
"""An event with every field that is read."""

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    "",
    "words",
    [],
    [None],
    ["words"],
    {},
    {"a": "words"},
    [[[]]],
)
"""What may stand in a place where something else belongs."""

DEEP = b'{"choices":' + b"[" * 100_000
OBJECT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

HEADS: dict[str, bytes] = {
    "not http": b"\x00\xff garbage\r\n\r\n",
    "no head at all": HELLO,
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcdef",
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    "a chunk of any size": EVENTS + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\nabc\r\n",
    "a long field": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "many fields": b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: y\r\n" % i for i in range(50_000)) + b"\r\n",
    "a page": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>",
    "no object": OBJECT % 2 + b"[]",
    "nothing": OBJECT % 4 + b"null",
    "an empty object": OBJECT % 2 + b"{}",
    "a deep object": OBJECT % len(DEEP) + DEEP,
    "a deep event": SSE_HEAD + chunk(b"data: " + DEEP + b"\n\n") + LAST_CHUNK,
    "no gzip": EVENTS + b"Content-Encoding: gzip\r\n\r\n" + HELLO,
    "a gzip bomb": EVENTS + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"data: " + b"x" * 100_000_000),
    "an unknown coding": EVENTS + b"Content-Encoding: zz\r\n\r\n" + gzip.compress(HELLO),
    "an early hint and no answer": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "a switch of protocols": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
}  # fmt: skip
"""Answers that hold no reply."""


def once(data: bytes) -> Script:
    """Answers the first request of each connection with these bytes, then closes it."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)

    return script


def stream(*events: Any) -> bytes:
    """A whole answer with these events."""
    lines = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return SSE_HEAD + chunk(lines + b"data: [DONE]\n\n") + LAST_CHUNK


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, itself first."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield from places(item, (*at, name))


def put(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """The value with something else in one place."""
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = put(value[at[0]], at[1:], new)
    return copy
