"""Google's wire keeps the promises of every model, over a loopback server."""

from collections.abc import AsyncIterator

import pytest

from onrecord.testing.conformance.model import MakeCaller, MakeModel, ModelCallsTools, ModelConformance, ModelFails
from tests.net.loopback import serving
from tests.providers.chat_server import each, status
from tests.providers.google_events import SIGNATURE, STOP, calling, event
from tests.providers.google_server import model_at, streamed

pytestmark = pytest.mark.integration

THOUGHT = {"text": "hm", "thought": True}
WORDS = streamed(event(THOUGHT), event("A room "), event(""), event("is a place."), STOP)
CALL = streamed(event(THOUGHT), event(calling("weather", {"city": "Lund"}, SIGNATURE)), STOP)


class TestGoogle(ModelConformance, ModelCallsTools, ModelFails):
    """A server that speaks generateContent."""

    @pytest.fixture
    async def make_model(self) -> AsyncIterator[MakeModel]:
        async with serving(each(WORDS)) as server:
            yield lambda: model_at(server)

    @pytest.fixture
    async def make_caller(self) -> AsyncIterator[MakeCaller]:
        async with serving(each(CALL, WORDS)) as server:
            yield lambda *_: model_at(server)

    @pytest.fixture
    async def make_failing(self) -> AsyncIterator[MakeModel]:
        async with serving(each(status(400))) as server:
            yield lambda: model_at(server)
