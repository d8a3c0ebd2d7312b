"""Bundles beside others: instructions of one name, and a turn that goes on under another version (case O188)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.errors import ConfigurationError, FeatureConflict
from onrecord.record.kinds import TurnOpened, TurnResumed
from onrecord.testing import ScriptedModel, call
from onrecord.turn.instruction import Instruction
from onrecord.turn.plan import Bundle
from tests.turn.acting import bodies, tool, turn

pytestmark = pytest.mark.unit


def test_188_two_instructions_of_one_name_are_refused_naming_both_sides() -> None:
    """As two tools are (cases 184 and O188); those that nobody named, and one that comes by several ways, are not."""
    style = Instruction("Be brief.", name="style")
    desk = Bundle(name="desk", version="1", instructions=(style, Instruction("Be kind.")))
    with pytest.raises(FeatureConflict, match="'style': one of the agent itself, one of bundle 'desk' 1"):
        Agent(ScriptedModel(), features=[Instruction("Be long.", name="style"), desk])
    house = Bundle(name="house", version="2", features=(Instruction("Be long.", name="style"),))
    with pytest.raises(FeatureConflict, match="'style': one of bundle 'desk' 1, one of bundle 'house' 2"):
        Agent(ScriptedModel(), features=[desk, house])
    Agent(ScriptedModel(), features=[style, desk, Instruction("Be there.")])
    wrong: Any = ("Be kind.",)
    with pytest.raises(ConfigurationError, match="instructions= of Bundle is a list of Instruction, not one with str"):
        Agent(ScriptedModel(), features=[Bundle(name="desk", version="1", instructions=wrong)])


async def test_188_a_turn_that_goes_on_under_another_version_says_so() -> None:
    """Each take names the bundles that it was taken with; nested ones too (case O188)."""

    def agent(version: str) -> Agent[Any, Any]:
        ask = tool("pay", lambda _, ctx: ctx.ask(Ask("Sure?")))
        desk = Bundle(name="desk", version=version, features=(Bundle(name="till", version="7", tools=(ask,)),))
        return Agent(ScriptedModel(call("pay")) if version == "1" else ScriptedModel("done"), features=[desk])

    paused = await turn(agent("1"), session="s")
    assert paused.question is not None
    done = await turn(agent("2"), Answered(paused.question.key, value=True), session=paused.session)
    (opened,), (resumed,) = bodies(paused, TurnOpened), bodies(done, TurnResumed)
    assert opened.manifest["bundles"] == {"desk": "1", "till": "7"}
    assert (done.text, resumed.manifest["bundles"]) == ("done", {"desk": "2", "till": "7"})
