"""Models that ask other models keep the promises of every model, also while they fail over."""

from collections.abc import Mapping

import pytest

from onrecord.jsonio import Json
from onrecord.models.breaker import Breaker
from onrecord.models.call_rules import CallRule
from onrecord.models.fallback import Fallback
from onrecord.models.held_reply import fits_shape
from onrecord.models.retry import Reliable
from onrecord.testing import ScriptedModel, call, raises
from onrecord.testing.conformance.model import MakeCaller, MakeModel, ModelCallsTools, ModelConformance, ModelFails

pytestmark = pytest.mark.unit

WORDS = ["A room ", "is ", "a place."]
OTHER = CallRule(only_if=lambda s: s.error is not None, then="retry_other")


def down() -> ScriptedModel:
    """Always busy."""
    return ScriptedModel(*[raises("overload")] * 20)


class TestFailingOver(ModelConformance, ModelCallsTools, ModelFails):
    """A backup answers, by a rule, behind a circuit, with replies validated."""

    @pytest.fixture
    def make_model(self) -> MakeModel:
        return lambda: Reliable(
            down(), ScriptedModel(*[WORDS] * 20), rules=[OTHER], breaker=Breaker(), validate=fits_shape
        )

    @pytest.fixture
    def make_caller(self) -> MakeCaller:
        def make(name: str, args: Mapping[str, Json]) -> Reliable:
            return Reliable(down(), ScriptedModel([call(name, **args)], "Done."), waits_s=())

        return make

    @pytest.fixture
    def make_failing(self) -> MakeModel:
        return lambda: Reliable(down(), down(), rules=[OTHER])


class TestFallingBack(ModelConformance, ModelCallsTools, ModelFails):
    """Another vendor answers, and the first is left alone."""

    @pytest.fixture
    def make_model(self) -> MakeModel:
        return lambda: Fallback(down(), ScriptedModel(*[WORDS] * 20))

    @pytest.fixture
    def make_caller(self) -> MakeCaller:
        def make(name: str, args: Mapping[str, Json]) -> Fallback:
            return Fallback(down(), ScriptedModel([call(name, **args)], "Done."))

        return make

    @pytest.fixture
    def make_failing(self) -> MakeModel:
        return lambda: Fallback(down(), down())


class TestStandingIn(ModelConformance):
    """A function answers in the end."""

    @pytest.fixture
    def make_model(self) -> MakeModel:
        return lambda: Reliable(down(), fallback=lambda _r, _e: "A room is a place.")
