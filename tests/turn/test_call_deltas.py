"""What a live reader sees of tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.outgoing import CallDelta
from onrecord.governance.rules import before_tool
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Deny
from tests.turn.acting import tool

pytestmark = pytest.mark.unit


@before_tool
async def never(turn: Any, call: Any) -> Deny:
    """Denies everything."""
    return Deny("not today")


async def seen(agent: Agent[Any, Any]) -> list[tuple[str, str]]:
    """Names and statuses of the call deltas of one turn."""
    stream = agent.turn_stream("hi", effects=FakeEffects())
    return [(d.name, d.status) async for d in stream if isinstance(d, CallDelta)]


async def test_a_call_that_runs_is_shown_as_it_starts_and_as_it_ends() -> None:
    """Two deltas of one id, the second with the final status."""
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("lookup")], "done"), tools=[tool()])
    assert await seen(agent) == [("lookup", "asked"), ("lookup", "returned")]


async def test_a_denied_call_and_an_unknown_one_are_shown_as_they_end() -> None:
    """A call that never ran has one delta: how it was settled."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("lookup"), call("nowhere")], "done"), tools=[tool()], features=[never]
    )
    assert await seen(agent) == [("lookup", "denied"), ("nowhere", "absent")]


async def test_a_call_behind_the_stop_is_shown_as_not_run() -> None:
    """What the turn no longer reached is settled in front of the reader too."""

    @before_tool
    async def halt(turn: Any, call: Any) -> Deny:
        return Deny("enough", halt=True)

    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("lookup"), call("write")], "done"), tools=[tool(), tool("write")], features=[halt]
    )
    assert await seen(agent) == [("lookup", "denied"), ("write", "not_run")]
