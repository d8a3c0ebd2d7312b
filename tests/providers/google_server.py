"""A loopback server that speaks generateContent, and models behind it."""

from __future__ import annotations

from typing import Any

from onrecord.models.chunks import Finished, TextChunk
from onrecord.models.model import Model
from onrecord.providers.google import google
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, chunk
from tests.providers.chat_server import SECRET
from tests.providers.google_events import STOP, event

__all__ = ("GOOD", "SAID", "SECRET", "model_at", "streamed")


def streamed(*events: bytes) -> bytes:
    """A whole answer of the server, with the line ends that Google has."""
    return SSE_HEAD + chunk(b"".join(b"data: " + one + b"\r\n\r\n" for one in events)) + LAST_CHUNK


GOOD = streamed(event("Hel"), event("lo"), STOP)
SAID = [TextChunk("Hel"), TextChunk("lo"), Finished(finish="stop", model="m-1")]


def model_at(server: Loopback, name: str = "gemini-3.8-flash", **fields: Any) -> Model:
    """A model behind the server, without waits."""
    given: dict[str, Any] = {"api_key": SECRET, "retry": False} | fields
    return google(name, base_url=f"http://{server.host}:{server.port}/v1beta", **given)
