"""A loopback server that speaks Chat Completions, and models behind it."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.model import Model
from onrecord.models.request import Request
from onrecord.providers.openai_compatible import openai_compatible
from tests.models.requests import request, user
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, Peer, Script, chunk, serving

SECRET = "sk-the-key"


def sse(*events: object) -> bytes:
    """Events, ended as OpenAI ends them."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return b"".join(f"data: {line}\n\n".encode() for line in (*lines, "[DONE]"))


def delta(content: str | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event with one choice."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": {"content": content, **fields}, "finish_reason": finish}]}


HELLO = sse(delta("Hel"), delta("lo"), delta(finish="stop"))
FIRST = HELLO[: HELLO.index(b"\n\n") + 2]
SAID = [TextChunk("Hel"), TextChunk("lo"), Finished(finish="stop", model="m-1")]
GOOD = SSE_HEAD + chunk(HELLO) + LAST_CHUNK


def status(code: int, *headers: str, body: str = '{"error":{"code":"told"}}') -> bytes:
    """An answer with a status."""
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {code} X\r\n{lines}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def each(*answers: bytes) -> Script:
    """One answer for each request, the last for all that follow."""
    left = list(answers)

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(left.pop(0) if len(left) > 1 else left[0])

    return script


def model_at(server: Loopback, **fields: Any) -> Model:
    """A model behind the server, without waits."""
    given: dict[str, Any] = {"api_key": SECRET, "retry": False} | fields
    return openai_compatible(f"http://{server.host}:{server.port}/v1", "m", **given)


async def ask(model: Model, asked: Request | None = None) -> list[Chunk]:
    """All chunks."""
    async with aclosing(model.stream(asked or request(user("hi")))) as chunks:
        return [item async for item in chunks]


async def failure(script: Script, **fields: Any) -> ModelError:
    """The error of a request that has to fail; it holds no key and nothing that was said."""
    async with serving(script) as server:
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server, **fields), request(user("the-secret-words")))
    error = caught.value
    told = f"{error} {error.hint} {error!r} {error.__dict__}"
    assert SECRET not in told
    assert "the-secret-words" not in told
    return error
