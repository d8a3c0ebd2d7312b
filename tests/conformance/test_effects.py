"""The effects of the library keep the promises of all."""

import pytest

from onrecord.testing import FakeEffects
from onrecord.testing.conformance.effects import EffectsConformance, MakeEffects
from onrecord.turn.effects import PlainEffects

pytestmark = pytest.mark.unit


class TestPlain(EffectsConformance):
    """The system's clock and randomness, and every call made as it comes."""

    @pytest.fixture
    def make_effects(self) -> MakeEffects:
        return PlainEffects


class TestFake(EffectsConformance):
    """A clock that stands still, names that count, calls remembered."""

    journaled = True

    @pytest.fixture
    def make_effects(self) -> MakeEffects:
        return FakeEffects
