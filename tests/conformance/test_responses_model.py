"""The Responses wire keeps the promises of every model, over a loopback server."""

from collections.abc import Mapping

import pytest

from onrecord.jsonio import Json, dumps
from onrecord.models.model import Model
from tests.conformance.over_http import OverHttp
from tests.net.loopback import Loopback
from tests.providers.responses_events import added, called, delta, done, ended, event, spoken
from tests.providers.responses_server import model_at, streamed

pytestmark = pytest.mark.integration

WORDS = streamed(event("created", response={}), delta(""), *spoken("A room ", "is a place."), ended())


def calling(name: str, args: Mapping[str, Json]) -> bytes:
    """A tool call whose arguments come in two pieces."""
    text = dumps(args).decode()
    pieces = (event("function_call_arguments.delta", delta=part, output_index=0) for part in (text[:4], text[4:]))
    return streamed(added(called(name, "")), *pieces, done(called(name, text)), ended())


class TestResponses(OverHttp):
    """Any server that speaks Responses."""

    words = WORDS
    asks = calling("weather", {"city": "Lund"})

    def at(self, server: Loopback) -> Model:
        return model_at(server)
