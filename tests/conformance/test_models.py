"""The models that need no network keep the promises of every model."""

from collections.abc import Mapping

import pytest

from onrecord.jsonio import Json
from onrecord.models.model import preset
from onrecord.models.names import model_named
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
