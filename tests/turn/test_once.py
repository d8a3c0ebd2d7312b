"""What a feature or a handler reads outside is read once per turn, also when a question comes in between."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask, Input
from onrecord.session import pack, unpack
from onrecord.testing import ScriptedModel
from onrecord.tools.tool import ToolContext
from onrecord.turn.moments import ALLOW, Allow, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, call, tool

pytestmark = pytest.mark.unit


class _Outside:
    """Counts how often it is asked."""

    def __init__(self, *values: Any) -> None:
        self.values, self.asked = values, 0

    async def __call__(self) -> Any:
        self.asked += 1
        return self.values[self.asked - 1]


async def _paused_and_answered(agent: Agent[Any, Any]) -> str:
    """The turn's text, with its session packed while it waits."""
    paused = await agent.turn("hi")
    assert paused.session is not None
    assert paused.question is not None
    waited = unpack(pack(paused.session))
    return (await agent.turn(Answered(paused.question.key, value="yes"), session=waited)).text


async def test_an_effect_of_a_handler_that_asks_is_made_once() -> None:
    """Run again from its top, the handler gets what the effect gave the first time."""
    charge, seen = _Outside({"id": 1}, {"id": 2}), list[Any]()

    async def handler(args: object, ctx: ToolContext[Any]) -> object:
        seen.append(await ctx.once("charge", dict[str, int], charge))
        return (await ctx.ask(Ask("Really?"))).value

    assert (
        await _paused_and_answered(Agent(ScriptedModel(call("book"), "done"), tools=[tool("book", handler)])) == "done"
    )
    assert (charge.asked, seen) == (1, [{"id": 1}, {"id": 1}])


async def test_a_reading_of_a_rule_is_the_same_in_the_resumed_take() -> None:
    """A rule at ``input`` reads a customer's file; the answer's take reads the same one. None is a value too."""
    for file in ("gold", None):
        crm, seen = _Outside(file, "changed"), list[Any]()

        async def look(turn: Turn, given: Input, crm: _Outside = crm, seen: list[Any] = seen) -> Allow[Input]:
            seen.append(await turn.once("crm", object, crm))
            return ALLOW

        agent: Agent[Any, Any] = Agent(
            ScriptedModel(call("book"), "done"),
            tools=[tool("book", lambda *_: Ask("Really?"))],
            features=[Named("crm", Hooks(on_input=look))],
        )
        await _paused_and_answered(agent)
        assert (crm.asked, seen) == (1, [file, file])


async def test_a_value_that_json_cannot_keep_is_made_anew() -> None:
    """It neither fails the pause nor comes back as something else."""
    handles, seen = _Outside(object(), object()), list[Any]()

    async def handler(args: object, ctx: ToolContext[Any]) -> object:
        seen.append(await ctx.once("handle", object, handles))
        return (await ctx.ask(Ask("Really?"))).value

    await _paused_and_answered(Agent(ScriptedModel(call("book"), "done"), tools=[tool("book", handler)]))
    assert seen == list(handles.values)
