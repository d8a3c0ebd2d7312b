"""The Chat wire keeps the promises of every model, over a loopback server."""

from collections.abc import Mapping

import pytest

from onrecord.jsonio import Json, dumps
from onrecord.models.model import Model
from tests.conformance.over_http import OverHttp
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, chunk
from tests.providers.chat_server import delta, model_at, sse

pytestmark = pytest.mark.integration


def streamed(*events: object) -> bytes:
    """A whole answer of the server."""
    return SSE_HEAD + chunk(sse(*events)) + LAST_CHUNK


WORDS = streamed(delta("A room "), delta(""), delta("is a place."), delta(finish="stop"))


def calling(name: str, args: Mapping[str, Json]) -> bytes:
    """A tool call in two fragments."""
    text = dumps(args).decode()
    head = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": text[:4]}}
    tail = {"index": 0, "function": {"arguments": text[4:]}}
    return streamed(delta(tool_calls=[head]), delta(tool_calls=[tail]), delta(finish="tool_calls"))


class TestCompatible(OverHttp):
    """Any server that speaks Chat Completions."""

    words = WORDS
    asks = calling("weather", {"city": "Lund"})

    def at(self, server: Loopback) -> Model:
        return model_at(server)
