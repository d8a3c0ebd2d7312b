"""Random replies of a model that names whatever it likes: what is not in use is not offered nor, by a rule, run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.governance.rules import before_tool
from onrecord.skills import Decide, Engagement, Keywords, Route, SkillGraph, Skills, Start
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import ALLOW, Deny
from tests.skills.knowing import offered, skill, systems
from tests.turn.acting import tool

pytestmark = pytest.mark.unit

IDS = "abcd"
calls = st.one_of(
    st.sampled_from([f"own_{id}" for id in IDS]).map(call),
    st.sampled_from([*IDS, "z"]).map(lambda id: call("read_skill", id=id)),
    st.just(call("look")),
)
replies = st.lists(st.one_of(st.lists(calls, min_size=1, max_size=4), st.just("Said.")), max_size=6)

WIRED: dict[str, Any] = {"start": "a", "routes": [Route("a", "b", on_tool="look"), Route("b", "c"), Route("c", "a")]}
KINDS: dict[str, dict[str, Any]] = {
    "assist": WIRED,
    "guard": {**WIRED, "strictness": "guard"},
    "rails": {**WIRED, "strictness": "rails"},
    "parked": {**WIRED, "start": [Start("a", match=Keywords(["hi"]))], "engagement": Engagement(1)},
    "tree": {"tree": Decide(lambda hop: hop.round > 1, "b", Decide(lambda hop: bool(hop.results), "c", "a"))},
}


@settings(max_examples=60, deadline=None)
@given(answers=replies, kind=st.sampled_from(["skills", *KINDS]))
def test_a_tool_of_a_skill_is_offered_and_with_a_rule_run_only_while_that_is_in_use(
    answers: list[Any], kind: str
) -> None:
    """Not in the round that takes the skill up, beside it in one reply, nor in the next turn.

    Scoping alone hides (case 186); ``in_use`` is what a rule forbids by.
    """
    ran = list[tuple[int, str]]()
    model = ScriptedModel(*answers, *["Done."] * 20)

    def own(id: str) -> Any:
        def handler(*_: Any) -> str:
            ran.append((len(model.requests), id))
            return "ok"

        return tool(f"own_{id}", handler, concurrency_safe=id == "b")

    skills = [skill(id, own(id), scoped=True) for id in IDS]
    loose, wired = skills[3:], skills[:3]
    feature: Any = SkillGraph(wired, loose=loose, check="off", **KINDS[kind]) if kind in KINDS else Skills(*skills)

    @before_tool
    async def only_in_use(turn: Any, called: Any) -> Any:
        owner = called.name.removeprefix("own_")
        return ALLOW if owner not in IDS or owner in feature.in_use(turn) else Deny("not now")

    agent = Agent(model, features=[feature, only_in_use], tools=[tool("look")], rounds=4)

    async def lived() -> None:
        session: Any = "s"
        for _ in range(2):
            session = (await agent.turn("hi", session=session, effects=FakeEffects())).session

    asyncio.run(lived())
    shown = [{id for id in IDS if f"About {id}." in systems(request)} for request in model.requests]
    for place, request in enumerate(model.requests):
        if request.purpose == "speak":
            own_tools = {name for name in offered(request) if name.startswith("own_")}
            assert own_tools == {f"own_{id}" for id in shown[place]}
    assert all(id in shown[place - 1] for place, id in ran)


async def test_without_a_rule_a_hidden_tool_runs_and_with_one_only_from_the_next_request_on() -> None:
    """The same replies, told apart by the rule alone (case 186)."""
    ran = list[str]()
    held = Skills(skill("billing", tool("refund", lambda *_: ran.append("refund"))), scoped_tools=True)

    @before_tool
    async def only_in_use(turn: Any, called: Any) -> Any:
        return ALLOW if called.name != "refund" or "billing" in held.in_use(turn) else Deny("not now")

    answers: list[Any] = [[call("read_skill", id="billing"), call("refund")], call("refund"), "done"]
    for rules, times in (([], 2), ([only_in_use], 1)):
        ran.clear()
        await Agent(ScriptedModel(*answers), features=[held, *rules]).turn("hi", session="s", effects=FakeEffects())
        assert len(ran) == times
