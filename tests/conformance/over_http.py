"""The suites of models over a loopback server: what a wire's server answers is all that differs."""

from collections.abc import AsyncIterator
from typing import ClassVar

import pytest

from onrecord.models.model import Model
from onrecord.testing.conformance.model import MakeCaller, MakeModel, ModelCallsTools, ModelConformance, ModelFails
from tests.net.loopback import Loopback, serving
from tests.providers.chat_server import each, status

__all__ = ("OverHttp",)


class OverHttp(ModelConformance, ModelCallsTools, ModelFails):
    """``words`` is a whole answer in pieces, ``asks`` one that calls ``weather`` for Lund."""

    words: ClassVar[bytes]
    asks: ClassVar[bytes]

    def at(self, server: Loopback) -> Model:
        """A model of the wire at the server, without waits."""
        raise NotImplementedError

    @pytest.fixture
    async def make_model(self) -> AsyncIterator[MakeModel]:
        async with serving(each(self.words)) as server:
            yield lambda: self.at(server)

    @pytest.fixture
    async def make_caller(self) -> AsyncIterator[MakeCaller]:
        async with serving(each(self.asks, self.words)) as server:
            yield lambda *_: self.at(server)

    @pytest.fixture
    async def make_failing(self) -> AsyncIterator[MakeModel]:
        async with serving(each(status(400))) as server:
            yield lambda: self.at(server)
