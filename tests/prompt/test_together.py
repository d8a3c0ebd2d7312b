"""Every two features of this package keep each one's promises together: a bundle of both is a feature, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.prompt.artifacts import Artifacts
from onrecord.prompt.buckets import ContextRegistry, ContextUpdate, RuntimeContext
from onrecord.prompt.cache_marks import CacheMarks
from onrecord.prompt.prompt_budget import PromptBudget
from onrecord.prompt.window.window import Window
from onrecord.testing import ScriptedModel, call
from onrecord.testing.conformance.feature import FeatureConformance, InertFeatureConformance, MakeFeature
from onrecord.turn.instruction import Instruction, OnReturn
from onrecord.turn.moments import Feature
from onrecord.turn.plan import Bundle
from tests.prompt.window_units import LONG
from tests.turn.acting import read, tool, turn

pytestmark = pytest.mark.unit


def told() -> ContextRegistry:
    """A registry with something in it."""
    registry = ContextRegistry()
    registry.ingest(ContextUpdate(text="rain", source="sky"))
    return registry


BUSY: Mapping[str, Callable[[], Feature]] = {
    "window": lambda: Window.last(1),
    "context": lambda: RuntimeContext(registry=told()),
    "artifacts": lambda: Artifacts(1),
    "prompt-budget": lambda: PromptBudget(1),
    "template": lambda: Instruction("{{action}}", template=True),
    "condition": lambda: Instruction("Looked.", only_if=OnReturn("look")),
}
"""Features as they are when they have something to do."""

IDLE: Mapping[str, Callable[[], Feature]] = {
    "window": lambda: Window.last(99),
    "context": lambda: RuntimeContext(registry=ContextRegistry()),
    "artifacts": Artifacts,
    "prompt-budget": lambda: PromptBudget(9999),
    "condition": lambda: Instruction("Never.", only_if=lambda _: False),
}
"""The same with nothing to do."""


def both(features: Mapping[str, Callable[[], Feature]], names: tuple[str, str]) -> Feature:
    """Two of them as one."""
    return Bundle(name="both", version="1", features=tuple(features[name]() for name in names))


class TestTwoThatAreBusy(FeatureConformance):
    """Stored, replayed, read along, taken out again."""

    @pytest.fixture(params=list(combinations(BUSY, 2)), ids="-".join)
    def make_feature(self, request: pytest.FixtureRequest) -> MakeFeature:
        names: tuple[str, str] = request.param
        return lambda: both(BUSY, names)


class TestAllThatAreIdle(InertFeatureConformance):
    """Requests and records are those of an agent without any of them."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Bundle(name="all", version="1", features=tuple(make() for make in IDLE.values()))


async def test_all_of_them_at_once_each_keep_their_place() -> None:
    """Instructions by rank, the context before the rounds, a ticket for the result, a notice where something left."""
    model = ScriptedModel(LONG, [call("look")], "done")
    features: list[Any] = [*(make() for make in BUSY.values()), CacheMarks()]
    agent = Agent(model, instructions="Be kind.", tools=[tool("look", lambda *_: LONG)], features=features)
    first = await turn(agent, "#1 " + LONG, session="s")
    result = await turn(agent, "#2", session=first.session)
    assert result.text == "done"
    last = read(model.requests[-1])
    assert last["system"] == "Be kind.\n\n2\n\nLooked."
    assert last["turn"] == ["[Context]\n- sky: rain"]
    roles = [(m["role"], m["content"][:9]) for m in last["messages"]]
    assert roles == [("data", "[dropped "), ("user", "#2"), ("assistant", ""), ("tool", '{"placed"')]
