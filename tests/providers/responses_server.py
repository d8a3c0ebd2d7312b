"""A loopback server that speaks Responses, and models behind it."""

from __future__ import annotations

from typing import Any

from onrecord.models.chunks import Finished, TextChunk
from onrecord.models.model import Model
from onrecord.providers.openai_responses.client import openai_responses
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, chunk
from tests.providers.chat_server import SECRET
from tests.providers.responses_events import delta, ended, raw, spoken


def sse(*events: Any) -> bytes:
    """Events, each under its name, as OpenAI writes them."""
    return b"".join(
        b"event: " + (one["type"].encode() if isinstance(one, dict) else b"message") + b"\ndata: " + data + b"\n\n"
        for one, data in zip(events, raw(*events), strict=True)
    )


def streamed(*events: Any) -> bytes:
    """A whole answer of the server."""
    return SSE_HEAD + chunk(sse(*events)) + LAST_CHUNK


HELLO = streamed(*spoken("Hel", "lo"), ended())
FIRST = sse(delta("Hel"))
SAID = [TextChunk("Hel"), TextChunk("lo")]
END = Finished(finish="stop", model="m-1")


def model_at(server: Loopback, model: str = "gpt-5-mini", **fields: Any) -> Model:
    """A model behind the server, without waits."""
    given: dict[str, Any] = {"api_key": SECRET, "retry": False} | fields
    return openai_responses(model, base_url=f"http://{server.host}:{server.port}/v1", **given)
