"""A model server for measuring: Chat Completions on a loopback port, in a process of its own, at next to no cost.

The path says what it answers, so the body is never parsed:

    /text/v1/chat/completions           one short text
    /rounds/5x1/v1/chat/completions     five rounds of one call, then the text
    /deltas/2000/0/v1/chat/completions  2,000 deltas, none or that many milliseconds apart
    /wire/google/2000/...               2,000 deltas at once, as that wire writes them
    /stats                              CPU seconds so far

Streamed or in one piece, as the body asks. Which round it is follows from the tool results in the body: they are
counted, and so a history must hold none.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, cast

from benchmarks.measure import pin
from benchmarks.wire_streams import body_of

__all__ = ("TEXT", "serving")

TEXT = "All good: the answer is forty-two, as expected."
WORDS = ("alpha ", "beta ", "gamma ", "delta ", "omega ")
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
BURST = 64  # deltas written at once

_number = 1_000_000


# ---- what it says ---------------------------------------------------------------------------------------------------
def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _head(kind: str, length: int | None = None) -> bytes:
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{size}\r\nconnection: keep-alive\r\n\r\n".encode()


def _named(template: bytes) -> bytes:
    """The answer with an id of its own; all are as long as the one in the template."""
    global _number  # noqa: PLW0603 - a counter of the server's process
    _number += 1
    return template.replace(b"1000000", b"%d" % _number)


def _calls(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_1000000_{n}",
            "type": "function",
            "function": {"name": "lookup", "arguments": _json({"q": f"k{n}"})},
        }
        for n in range(count)
    ]


@cache
def _whole(calls: int) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else TEXT, "refusal": None}
    if calls:
        message["tool_calls"] = _calls(calls)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if calls else "stop",
    }
    body = _json({
        "id": "chatcmpl-1000000",
        "object": "chat.completion",
        "created": 1750000000,
        "model": "mock-1",
        "choices": [choice],
        "usage": USAGE,
        "system_fingerprint": "fp",
        "service_tier": "default",
    }).encode()  # fmt: skip
    return _head("application/json", len(body)) + body


def _event(delta: dict[str, Any] | None, finish: str | None = None) -> bytes:
    """One event as a chunk of the answer; without a delta the one with the usage."""
    held: dict[str, Any] = {
        "id": "chatcmpl-1000000",
        "object": "chat.completion.chunk",
        "created": 1750000000,
        "model": "mock-1",
        "service_tier": "default",
        "system_fingerprint": "fp",
    }
    if delta is None:
        held |= {"choices": [], "usage": USAGE}
    else:
        held["choices"] = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return _chunk(f"data: {_json(held)}\n\n".encode())


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_FIRST = _event({"role": "assistant", "content": "", "refusal": None})
_LAST = _event({}, "stop") + _event(None) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_STREAM = _head("text/event-stream")
_DELTAS = [_event({"content": word}) for word in WORDS]


@cache
def _streamed(calls: int) -> bytes:
    if not calls:
        return _STREAM + _FIRST + b"".join(_event({"content": f"{word} "}) for word in TEXT.split()) + _LAST
    out = [_STREAM, _event({"role": "assistant", "content": None})]
    for n, call in enumerate(_calls(calls)):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        begun = {**call, "index": n, "function": {**call["function"], "arguments": ""}}
        out.append(_event({"tool_calls": [begun]}))
        out += [
            _event({"tool_calls": [{"index": n, "function": {"arguments": part}}]})
            for part in (arguments[:half], arguments[half:])
        ]
    out += [_event({}, "tool_calls"), *(_LAST.partition(_event(None))[1:])]
    return b"".join(out)


# ---- how it is served -----------------------------------------------------------------------------------------------
class _Server(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.pieces: list[bytes] = []
        self.missing = -1
        self.path = b""

    def data_received(self, data: bytes) -> None:
        """Counts the body down and answers at its end."""
        if self.missing < 0:
            head, end, rest = (b"".join(self.pieces) + data).partition(b"\r\n\r\n")
            if not end:
                self.pieces = [head]
                return
            at = head.lower().find(b"content-length:")
            self.missing = int(head[at + 15 : at + 32].split(b"\r", 1)[0]) if at > 0 else 0
            self.path, self.pieces, data = head.split(b" ", 2)[1], [], rest
        self.pieces.append(data)
        self.missing -= len(data)
        if self.missing == 0:
            body, self.pieces, self.missing = b"".join(self.pieces), [], -1
            self.answer(body)

    def answer(self, body: bytes) -> None:
        """What the path asks for."""
        _, kind, *more = self.path.decode().split("/")
        streamed = b'"stream":true' in body or b'"stream": true' in body
        if kind == "deltas":
            self.transport.write(_STREAM + _named(_FIRST))
            self.pump(0, int(more[0]), int(more[1]) / 1000)
        elif kind == "wire":
            self.transport.write(body_of(more[0], int(more[1])))
        elif kind == "stats":
            told = _json({"cpu_s": time.process_time()}).encode()
            self.transport.write(_head("application/json", len(told)) + told)
        else:
            calls = 0
            if kind == "rounds":
                rounds, _, each = more[0].partition("x")
                done = body.count(b'"tool_call_id"') // int(each)
                calls = int(each) if done < int(rounds) else 0
            self.transport.write(_named(_streamed(calls) if streamed else _whole(calls)))

    def pump(self, sent: int, count: int, pause: float) -> None:
        """Sends the next deltas and comes back for the rest."""
        upto = min(count, sent + (1 if pause else BURST))
        if self.transport.is_closing():
            return
        for n in range(sent, upto):
            self.transport.write(_DELTAS[n % len(_DELTAS)])
        if upto < count:
            asyncio.get_running_loop().call_later(pause, self.pump, upto, count, pause)
        else:
            self.transport.write(_LAST)


def _serve(pipe: Connection) -> None:
    pin(-1)

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def serving() -> Iterator[str]:
    """Runs the server in a process of its own, on another core where there is one; gives its address."""
    near, far = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(far,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{near.recv()}"
    finally:
        process.terminate()
        process.join()
