"""Whatever a model says, and in whatever order, what it may not use does not run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, approved, declined
from onrecord.governance import Asked, Permissions, Policy
from onrecord.session import pack, unpack
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import StaticTools
from onrecord.turn.moments import ALLOW, Allow, Deny

pytestmark = pytest.mark.unit

NAMES = ("look", "ask", "rm", "rm_all", "listed", "checked", "unknown")
MAY = {"look", "ask", "rm"}
"""What the role may use; ``rm`` only without ``all``, ``ask`` once a person has approved."""

calls = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=4)
replies = st.lists(st.one_of(calls, st.just([])), min_size=1, max_size=5)
decisions = st.lists(st.booleans(), min_size=20, max_size=20)


def check(asked: Asked) -> Allow[Any] | Deny | Ask:
    """Asks about one tool, refuses another, and fails at a third."""
    if asked.tool == "ask":
        return Ask("Sure?")
    if asked.tool == "checked":
        raise LookupError
    return ALLOW


async def ran_of(script: list[list[tuple[str, bool]]], yes: list[bool], *, in_set: bool) -> list[tuple[str, bool]]:
    """What ran while a model said all this, and people decided so."""
    ran: list[tuple[str, bool]] = []
    allowed: list[bool] = []

    def made(name: str) -> Tool:
        def run(args: Any, ctx: Any) -> str:
            if name == "ask":
                assert allowed.pop(0)
            ran.append((name, args["all"]))
            return name

        return Tool(name, run, read_only=name in ("look", "listed"))

    tools = [made(name) for name in NAMES if name != "unknown"]
    permissions = Permissions(
        {"some": ["look", "ask", "rm*", "checked"], "all": ["*"]}, lambda _: "some",
        policies=(Policy(name="never-all", tools=("rm",), args={"all": True}), Policy(name="p", tools=("rm_all",))),
        check=check,
    )  # fmt: skip
    steps = [[call(name, all=every) for name, every in reply] if reply else "Said." for reply in script]
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(*steps, *["Said."] * 20), tools=[StaticTools(tools)] if in_set else tools,
        features=[permissions], rounds=8,
    )  # fmt: skip
    result, effects = await agent.turn("go", session="s", effects=FakeEffects()), FakeEffects()
    for decision in yes:
        if result.question is None or result.session is None:
            break
        if decision:
            allowed.append(True)
        answer = approved(result.question, by="x") if decision else declined(result.question, by="x")
        result = await agent.turn(answer, session=unpack(pack(result.session)), effects=effects)
    return ran


@settings(max_examples=60, deadline=None)
@given(replies, decisions, st.booleans())
def test_no_sequence_of_replies_runs_a_refused_tool(
    script: list[list[tuple[str, bool]]], yes: list[bool], in_set: bool
) -> None:
    """By name, by arguments, by a failing check or an unknown id; and none that asks runs without a yes of its own."""
    for name, every in asyncio.run(ran_of(script, yes, in_set=in_set)):
        assert name in MAY
        assert not (name == "rm" and every)
