"""When instructions have grown too long (case N152)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError
from onrecord.prompt.prompt_budget import PromptBudget
from onrecord.prompt.window.evicted import Pressure
from onrecord.prompt.window.window import Window
from onrecord.testing import ScriptedModel, call
from onrecord.testing.conformance.feature import InertFeatureConformance, MakeFeature
from tests.turn.acting import bodies, read, tool, turn

pytestmark = pytest.mark.unit


class TestPromptBudget(InertFeatureConformance):
    """With room enough it has nothing to say."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: PromptBudget(1000)


async def test_n152_a_prompt_over_its_budget_is_sent_whole_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """With each request on the record, and once in the log; beside a window, which tells the same kind (case N152)."""
    model = ScriptedModel([call("x")], "done")
    text = "You are a patient helper."
    agent = Agent(model, instructions=text, tools=[tool("x")], features=[PromptBudget(10), Window.last(50)])
    with caplog.at_level(logging.WARNING, "onrecord.prompt"):
        result = await turn(agent)
    assert [read(request)["system"] for request in model.requests] == [text] * 2
    told = Pressure(slot="system-prompt", overflow_by=15, plan_action="none", unit="chars", cap=10, projected=25)
    assert bodies(result, Pressure) == [told, told]
    assert len(caplog.records) == 1
    assert text not in caplog.text


@pytest.mark.parametrize("bad", [0, -1, True, 1.5])
def test_a_budget_is_a_number_of_characters(bad: Any) -> None:
    """From one on."""
    with pytest.raises(ConfigurationError, match="system of PromptBudget is a whole number from 1 on"):
        PromptBudget(bad)
