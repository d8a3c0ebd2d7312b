"""The Chat wire keeps the promises of every model, over a loopback server."""

from collections.abc import AsyncIterator, Mapping

import pytest

from onrecord.jsonio import Json, dumps
from onrecord.testing.conformance.model import MakeCaller, MakeModel, ModelCallsTools, ModelConformance, ModelFails
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, chunk, serving
from tests.providers.chat_server import delta, each, model_at, sse, status

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


class TestCompatible(ModelConformance, ModelCallsTools, ModelFails):
    """Any server that speaks Chat Completions."""

    @pytest.fixture
    async def make_model(self) -> AsyncIterator[MakeModel]:
        async with serving(each(WORDS)) as server:
            yield lambda: model_at(server)

    @pytest.fixture
    async def make_caller(self) -> AsyncIterator[MakeCaller]:
        async with serving(each(calling("weather", {"city": "Lund"}), WORDS)) as server:
            yield lambda *_: model_at(server)

    @pytest.fixture
    async def make_failing(self) -> AsyncIterator[MakeModel]:
        async with serving(each(status(400))) as server:
            yield lambda: model_at(server)
