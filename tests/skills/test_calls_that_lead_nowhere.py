"""Calls that lead nowhere: those that failed, were refused or never ran (specification §7.4, §15.1)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.governance.rules import before_tool
from onrecord.skills import Engagement, Keywords, Route, SkillGraph, Start
from onrecord.skills.skill_entries import MapParked, SkillMoved
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import ALLOW, Deny
from tests.skills.knowing import answering, skill
from tests.turn.acting import bodies, results, tool

pytestmark = pytest.mark.unit

A, B, C = (skill(id, f"tool_{id}") for id in "abc")
WANTS_AN_ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def graph(*routes: Route, start: Any = "a", **more: Any) -> SkillGraph:
    """A graph of three skills that is not checked up."""
    return SkillGraph([A, B, C], start=start, routes=routes, check="off", **more)


@pytest.mark.parametrize("how", ["raises", "denied", "invalid", "absent"])
async def test_a_call_that_did_not_do_it_leads_nowhere_unless_a_route_says_so(how: str) -> None:
    """Otherwise a model could go on by asking for what it may not have."""

    def fails(*_: Any) -> str:
        raise OSError("down")

    @before_tool
    async def no(turn: Any, called: Any) -> Any:
        return Deny("No.") if how == "denied" else ALLOW

    status = "failed" if how == "raises" else how
    handler = fails if how == "raises" else None
    tools = [] if how == "absent" else [tool("x", handler, parameters=WANTS_AN_ID, check_arguments=how == "invalid")]
    for route, to in ((Route("a", "b", on_tool="x"), "a"), (Route("a", "b", on_tool="x", on_status=status), "b")):
        _, result = await answering(call("x"), "done", tools=tools, features=[graph(route), no])
        assert (results(result), bodies(result, SkillMoved)[-1].to) == ([("x", status)], to)


async def test_a_call_that_was_left_leads_nowhere_and_renews_nothing() -> None:
    """A sibling of a call that waits for a person is settled and never ran (spec §7.4)."""

    @before_tool
    async def asks(turn: Any, called: Any) -> Any:
        return Ask("May I?") if called.name == "first" and turn.resumed is None else ALLOW

    ways = [Route("a", "b", only_if=lambda outcome: outcome.tool == "tool_a"), Route("a", "c", on_tool="tool_a")]
    held = graph(*ways, start=[Start("a", match=Keywords(["hi"]))], engagement=Engagement(1))
    model, effects = ScriptedModel([call("first"), call("tool_a")], "done"), FakeEffects()
    agent = Agent(model, tools=[tool("first")], features=[held, asks])
    paused = await agent.turn("hi", session="s", effects=effects)
    assert paused.question is not None
    done = await agent.turn(Answered(paused.question.key, approved=True), session=paused.session, effects=effects)
    assert results(done) == [("tool_a", "not_run"), ("first", "returned")]
    assert (
        [b.to for b in bodies(done, SkillMoved) if b.to != b.source],
        [b.idle for b in bodies(done, MapParked)],
    ) == ([], [1])
