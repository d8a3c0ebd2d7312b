"""The Responses wire keeps the promises of every model, over a loopback server."""

from collections.abc import AsyncIterator, Mapping

import pytest

from onrecord.jsonio import Json, dumps
from onrecord.testing.conformance.model import MakeCaller, MakeModel, ModelCallsTools, ModelConformance, ModelFails
from tests.net.loopback import serving
from tests.providers.chat_server import each, status
from tests.providers.responses_events import added, called, delta, done, ended, event, spoken
from tests.providers.responses_server import model_at, streamed

pytestmark = pytest.mark.integration

WORDS = streamed(event("created", response={}), delta(""), *spoken("A room ", "is a place."), ended())


def calling(name: str, args: Mapping[str, Json]) -> bytes:
    """A tool call whose arguments come in two pieces."""
    text = dumps(args).decode()
    pieces = (event("function_call_arguments.delta", delta=part, output_index=0) for part in (text[:4], text[4:]))
    return streamed(added(called(name, "")), *pieces, done(called(name, text)), ended())


class TestResponses(ModelConformance, ModelCallsTools, ModelFails):
    """Any server that speaks Responses."""

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
