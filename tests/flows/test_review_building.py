"""What an agent with flows says when it is built: 3.2 of the specification, through the door."""

from __future__ import annotations

import logging

import pytest

from onrecord.agent import Agent
from onrecord.errors import FlowInvalid
from onrecord.flows import Chain, Collect, Do, Flow, FlowInstruction, Flows, Idle, Talk
from onrecord.testing import ScriptedModel
from onrecord.tools.tool import Tool

pytestmark = pytest.mark.unit

PRICE = Tool("price", lambda *_: 1)


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        (Flows(Flow("f", tools=["prise"], steps=[Talk("Hi.", id="t")])), 'flow "f": unknown tool "prise"'),
        (
            Flows(Flow("f", steps=[Talk("Hi.", id="t", tools=["prise"])])),
            'flow "f", step "t": unknown tool "prise"',
        ),
        (Flows(idle=Idle("Help.", tools=["prise"])), 'idle: unknown tool "prise"'),
    ],
    ids=["flow", "step", "idle"],
)
def test_a_tool_that_the_agent_does_not_have_is_refused(flows: Flows, message: str) -> None:
    """When the agent is built, since only it knows all its tools; with the nearest right name."""
    with pytest.raises(FlowInvalid) as refused:
        Agent(ScriptedModel(), tools=[PRICE], director=flows)
    assert str(refused.value).startswith(message)
    assert '"price"' in refused.value.hint


def test_tools_that_the_agent_has_are_fine() -> None:
    """An action is no tool of the model's."""
    flows = Flows(
        Flow("f", tools=["price"], steps=[Talk("Hi.", id="t"), Do("act", id="a")]), actions=[Tool("act", print)]
    )
    assert Agent(ScriptedModel(), tools=[PRICE], director=flows)
    named = Flows(Flow("f", steps=[Talk("Hi.", id="t", tools=["act"])]), actions=[Tool("act", print)])
    with pytest.raises(FlowInvalid):
        Agent(ScriptedModel(), tools=[PRICE], director=named)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"instructions": [FlowInstruction("x", only_if="vip")]},
            'agent: unknown condition "vip" in instructions[0].only_if',
        ),
        (
            {"idle": Idle("x", instructions=[FlowInstruction("x"), FlowInstruction("y", only_if="vip")])},
            'idle: unknown condition "vip" in instructions[1].only_if',
        ),
    ],
    ids=["agent", "idle"],
)
def test_a_gate_of_an_instruction_that_nobody_declared_is_refused(given: dict[str, object], message: str) -> None:
    """Of the agent and of the idle speaker, as of a flow."""
    with pytest.raises(FlowInvalid) as refused:
        Flows(**given)  # type: ignore[arg-type]  # one option at a time
    assert str(refused.value).startswith(message)


def test_warnings_are_kept_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Once for each agent that is built of them."""
    flow = Flow("f", steps=[Collect("name", id="q", then=Chain("gone"))])
    flows = Flows(flow, fields={"name": {"type": "string"}})
    assert len(flows.warnings) == 2
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "onrecord.flows"):
        Agent(ScriptedModel(), director=flows)
    assert [record.getMessage() for record in caplog.records] == [f"[Agent] {each}" for each in flows.warnings]
