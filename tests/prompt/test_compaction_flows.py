"""Flows and a window: understanding and speaking see the same past, and one summary counts in the turn."""

from __future__ import annotations

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Said
from onrecord.flows import Collect, Flow, Flows, OnMessage, Talk, history_to_events
from onrecord.flows.history_events import events_to_history
from onrecord.prompt import Compaction
from onrecord.prompt.window.summarising import HEADING
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.turn.options import Silenced
from tests.prompt.windows import dialogue, evictions, spans

pytestmark = pytest.mark.unit

SUMMED = f"{HEADING}\nThey met."
INTAKE = Flows(
    Flow("intake", on=[OnMessage()], steps=[Collect("name", id="who"), Talk("Ask how to help.", id="help")]),
    fields={"name": {"type": "string", "ask": "Ask the name."}},
)
UNDERSTOOD = '{"fields":{"name":"Ana"}}'


def agent_of(model: ScriptedModel) -> Agent[object, str]:
    """The intake, with room for 80 tokens of history."""
    return Agent(model, name="Ana", director=INTAKE, features=[Compaction(100)])


async def test_both_calls_of_a_turn_see_the_summary() -> None:
    """Of a history that the host keeps as events; it is paid once."""
    model = ScriptedModel(
        '{"message":"Your name?","name":null}', '{"message":"How can I help?"}', judge=[UNDERSTOOD],
        consult=["They met."],
    )  # fmt: skip
    agent, effects = agent_of(model), FakeEffects()
    past = history_to_events(dialogue(8))
    first = await agent.turn(Said("hi", key="m1"), session="s1", history=events_to_history(past), effects=effects)
    assert (model.calls, first.llm_calls) == (["consult", "speak"], 2)
    past += history_to_events([{"role": "user", "content": "hi"}, {"role": "assistant", "content": first.text}])
    second = await agent.turn(
        Said("I am Ana", key="m2"), session=first.session, history=events_to_history(past), effects=effects
    )
    assert (model.calls[2:], second.llm_calls) == (["judge", "speak"], 2)
    assert [spans(r) for r in model.requests[2:]] == [[SUMMED, (4, 11)]] * 2
    assert second.text == "How can I help?"
    assert [len(evictions(r)) for r in (first, second)] == [1, 0]


async def test_a_turn_that_asks_no_model_sums_nothing_up() -> None:
    """Silenced, or handled before: there is no call to make room for."""
    model = ScriptedModel('{"message":"Your name?","name":null}', consult=["They met."])
    agent, effects, past = agent_of(model), FakeEffects(), dialogue(8)
    silenced = [Silenced("a person answers")]
    one = await agent.turn(Said("hi", key="m1"), session="s1", history=past, options=silenced, effects=effects)
    two = await agent.turn(Said("hi", key="m1"), session=one.session, history=past, effects=effects)
    assert (one.llm_calls, two.llm_calls, two.status) == (0, 0, "ignored")
