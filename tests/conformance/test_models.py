"""The models that need no network keep the promises of every model, and the suites see those that do not."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.jsonio import Json
from onrecord.models.chunks import CallChunk, Finished
from onrecord.models.model import ModelCard, preset
from onrecord.models.names import model_named
from onrecord.models.request import Request, Wire
from onrecord.testing import ScriptedModel, call, raises
from onrecord.testing.conformance.model import MakeCaller, MakeModel, ModelCallsTools, ModelConformance, ModelFails

pytestmark = pytest.mark.unit

WORDS = ["A room ", "is ", "a place."]


class TestScripted(ModelConformance, ModelCallsTools, ModelFails):
    """The test double is a model like any other."""

    @pytest.fixture
    def make_model(self) -> MakeModel:
        return lambda: ScriptedModel(*[WORDS] * 20)

    @pytest.fixture
    def make_caller(self) -> MakeCaller:
        def make(name: str, args: Mapping[str, Json]) -> ScriptedModel:
            return ScriptedModel([call(name, **args)], "Done.")

        return make

    @pytest.fixture
    def make_failing(self) -> MakeModel:
        return lambda: ScriptedModel(raises("overload"))


class TestOffline(ModelConformance, ModelCallsTools):
    """The rule-based stand-in cannot be told what to say, but calls what it is asked for."""

    @pytest.fixture
    def make_model(self) -> MakeModel:
        return lambda: model_named("offline")

    @pytest.fixture
    def make_caller(self) -> MakeCaller:
        return lambda *_: model_named("offline")


class TestPreset(ModelConformance):
    """A wrapper is a model too."""

    @pytest.fixture
    def make_model(self) -> MakeModel:
        return lambda: preset(ScriptedModel(*[WORDS] * 20), temperature=0.5)


class Renamed(ScriptedModel):
    """Is another model each time it is asked."""

    names = count()

    @property
    def card(self) -> ModelCard:
        return ModelCard(provider="p", model=f"m{next(self.names)}", protocol="p")


class Writes(ScriptedModel):
    """Writes a request in a way of its own."""

    def __init__(self, *answers: Any, body: Callable[[Request], bytes], stable: int = 0) -> None:
        super().__init__(*answers)
        self.body, self.stable = body, stable

    def wire(self, request: Request, /) -> Wire:
        return Wire(body=self.body(request), stable_until=self.stable)


once_more = count()
quoting = ModelError("no answer to canary-said", kind="overload", provider="p")
bare = CallChunk(wire_id="", name="weather", raw_args='{"city":"Lund"}')
WRONG: list[tuple[Any, str, MakeModel]] = [
    (ModelConformance, "test_a_card_says_who_the_model_is", Renamed),
    (ModelConformance, "test_equal_requests_have_equal_bytes", lambda: Writes(body=lambda _: b"%d" % next(once_more))),
    (ModelConformance, "test_plain_words_can_always_be_sent", lambda: Writes(body=lambda _: b"", stable=99)),
    (ModelConformance, "test_what_is_said_is_sent", lambda: Writes(body=lambda _: b"{}")),
    (ModelConformance, "test_a_reply_is_chunks_and_one_end", lambda: ScriptedModel(" ")),
    (ModelConformance, "test_a_reply_is_chunks_and_one_end", lambda: ScriptedModel(["a", Finished()])),
    (ModelConformance, "test_a_reply_is_chunks_and_one_end", lambda: ScriptedModel(["a", 5])),
    (ModelConformance, "test_no_words_are_empty_pieces", lambda: ScriptedModel(["a", "", "b"])),
    (ModelConformance, "test_an_agent_takes_turns_with_it", lambda: ScriptedModel(" ", "b")),
    (ModelCallsTools, "test_a_call_comes_whole", lambda: ScriptedModel([bare])),
    (ModelCallsTools, "test_a_call_comes_whole", lambda: ScriptedModel([call("weather", city="Oslo")])),
    (ModelCallsTools, "test_an_agent_runs_the_call", lambda: ScriptedModel("no call")),
    (ModelCallsTools, "test_without_tools_no_definition_is_sent", lambda: Writes(body=lambda _: b"weather")),
    (ModelFails, "test_a_failure_is_a_model_error", lambda: ScriptedModel(quoting)),
]


@pytest.mark.parametrize(("suite", "promise", "make"), WRONG, ids=range(len(WRONG)))
async def test_a_model_that_breaks_a_promise_is_told(suite: Any, promise: str, make: MakeModel) -> None:
    """The suites are not satisfied with anything."""
    asked = make if suite is not ModelCallsTools else lambda *_: make()
    with pytest.raises(AssertionError):
        await getattr(suite(), promise)(asked)
