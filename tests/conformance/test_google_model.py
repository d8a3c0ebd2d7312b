"""Google's wire keeps the promises of every model, over a loopback server."""

import pytest

from onrecord.models.model import Model
from tests.conformance.over_http import OverHttp
from tests.net.loopback import Loopback
from tests.providers.google_events import SIGNATURE, STOP, calling, event
from tests.providers.google_server import model_at, streamed

pytestmark = pytest.mark.integration

THOUGHT = {"text": "hm", "thought": True}
WORDS = streamed(event(THOUGHT), event("A room "), event(""), event("is a place."), STOP)
CALL = streamed(event(THOUGHT), event(calling("weather", {"city": "Lund"}, SIGNATURE)), STOP)


class TestGoogle(OverHttp):
    """A server that speaks generateContent."""

    words = WORDS
    asks = CALL

    def at(self, server: Loopback) -> Model:
        return model_at(server)
