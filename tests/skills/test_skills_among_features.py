"""Skills among everything that hides tools, thins requests out, remembers and waits for people."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.governance import Permissions
from onrecord.governance.rules import before_tool
from onrecord.memory import Memory, PlainShelf, Recent
from onrecord.models.model import ModelCard
from onrecord.prompt import Artifacts, CacheMarks, Window
from onrecord.session.codec import pack, unpack
from onrecord.skills import Engagement, Keywords, Route, Skill, SkillGraph, Skills, Start
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import ALLOW
from tests.skills.knowing import offered
from tests.turn.acting import read, tool

pytestmark = pytest.mark.unit

IDS = "abc"
ASKED = "look"
calls = st.one_of(
    st.sampled_from([f"own_{id}" for id in IDS]).map(call),
    st.sampled_from(IDS).map(lambda id: call("read_skill", id=id)),
    st.just(call(ASKED)),
)
replies = st.lists(st.one_of(st.lists(calls, min_size=1, max_size=3), st.just("Said.")), max_size=7)


@before_tool
async def asks(turn: Any, called: Any) -> Any:
    """A person agrees to every look."""
    return Ask("May I?") if called.name == ASKED and turn.resumed is None else ALLOW


def text(id: str) -> str:
    """The text of a skill, long enough to be stored away where it is a result."""
    return f"All about {id}, in many words. " * 6


@settings(max_examples=50, deadline=None)
@given(
    answers=replies,
    graph=st.booleans(),
    surface=st.sampled_from(["auto", "tool_only", "both"]),
    window=st.integers(1, 4),
    most=st.sampled_from([100, 10_000]),
)
def test_a_skill_in_use_is_read_and_what_is_forbidden_is_neither_offered_nor_run(
    answers: list[Any], graph: bool, surface: Any, window: int, most: int
) -> None:
    """Over turns, pauses and stored sessions: wherever a tool of a skill is offered, its text is in the request too."""
    ran = set[str]()

    def own(id: str) -> Any:
        def handler(*_: Any) -> str:
            ran.add(id)
            return "ok"

        return tool(f"own_{id}", handler)

    skills = [Skill(id, f"For {id}.", text(id), tools=(own(id),), scoped=True, surface=surface) for id in IDS]
    start: Any = [Start("a", match=Keywords(["hi"]))] if surface != "tool_only" else ()
    ways = [Route("a", "b"), Route("b", "c"), Route("c", "a")]
    feature: Any = (
        SkillGraph(
            skills, start=start, entries=() if start else ["a"], routes=ways, engagement=Engagement(2),
            continuity="conversation", check="off",
        )
        if graph
        else Skills(*skills)
    )  # fmt: skip
    card = ModelCard(provider="scripted", model="script", protocol="scripted", cache_marks=True)
    model = ScriptedModel(*answers, *["Done."] * 30, card=card)
    features = [
        feature, Permissions({"clerk": ["read_skill", ASKED, "own_a", "own_b"]}, "clerk"), asks, CacheMarks(),
        Window.last(window, keep_last_tool_results=0), Artifacts(most), Memory(PlainShelf(), (Recent(3),)),
    ]  # fmt: skip

    async def lived() -> None:
        session: Any = "s"
        for said in ("hi", "and then?", "hi again"):
            agent = Agent(model, features=features, tools=[tool(ASKED)], rounds=4)
            result = await agent.turn(said, session=session, effects=FakeEffects())
            while result.question is not None:
                assert result.session is not None
                session = unpack(pack(result.session))
                answer = Answered(result.question.key, approved=True)
                result = await agent.turn(answer, session=session, effects=FakeEffects())
            assert result.session is not None
            session = unpack(pack(result.session))

    asyncio.run(lived())
    assert "c" not in ran
    for request in model.requests:
        names = offered(request)
        assert "own_c" not in names
        told = repr(read(request))
        for id in IDS:
            if f"own_{id}" in names:
                assert text(id).strip() in told, (id, surface)
