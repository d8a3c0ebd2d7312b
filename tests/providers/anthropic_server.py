"""A loopback server that speaks Messages, and models behind it."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.model import Model
from onrecord.models.request import Request
from onrecord.providers.anthropic import anthropic
from tests.models.requests import request, user
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, Script, chunk, serving
from tests.providers.anthropic_events import reply, text

SECRET = "sk-the-key"
MODEL = "claude-sonnet-4-5"


def sse(*events: bytes) -> bytes:
    """Events as Anthropic sends them, each with its name."""
    named = ((one.partition(b'"type":"')[2].partition(b'"')[0], one) for one in events)
    return b"".join(b"event: %b\ndata: %b\n\n" % pair for pair in named)


def answer(*events: bytes) -> bytes:
    """A whole answer of the server."""
    return SSE_HEAD + chunk(sse(*events)) + LAST_CHUNK


HELLO = reply(text(0, "Hel", "lo"))
GOOD = answer(*HELLO)
COUNTED = Usage(input_tokens=10, output_tokens=1)
SAID = [TextChunk("Hel"), TextChunk("lo"), Finished(finish="stop", model="m-1", usage=COUNTED)]


def model_at(server: Loopback, name: str = MODEL, **fields: Any) -> Model:
    """A model behind the server, without waits."""
    given: dict[str, Any] = {"api_key": SECRET, "retry": False} | fields
    return anthropic(name, base_url=f"http://{server.host}:{server.port}", **given)


async def ask(model: Model, asked: Request | None = None) -> list[Chunk]:
    """All chunks."""
    async with aclosing(model.stream(asked or request(user("hi")))) as chunks:
        return [item async for item in chunks]


async def failure(script: Script, **fields: Any) -> ModelError:
    """The error of a request that has to fail; it holds no key and nothing that was said."""
    async with serving(script) as server:
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server), request(user("the-secret-words"), **fields))
    error = caught.value
    told = f"{error} {error.hint} {error!r} {error.__dict__}"
    assert SECRET not in told
    assert "the-secret-words" not in told
    return error
