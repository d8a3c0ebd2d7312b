"""A conversation outlives the build that it began in: skills come and go while a turn waits, and between turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.governance.rules import before_tool
from onrecord.session.codec import pack, unpack
from onrecord.skills import Intent, Route, SkillGraph, Skills, Start
from onrecord.skills.skill_entries import SkillMoved
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import ALLOW
from tests.skills.knowing import offered, pick, procedure, skill, systems
from tests.turn.acting import bodies, tool

pytestmark = pytest.mark.unit

A, B, C = (skill(id, f"tool_{id}") for id in "abc")


@before_tool
async def asks(turn: Any, called: Any) -> Any:
    """A person must agree to a look."""
    return Ask("May I?") if called.name == "look" and turn.resumed is None else ALLOW


async def newer(*answers: Any, before: Any, after: Any) -> tuple[ScriptedModel, Any]:
    """A turn that waits for a person in one build, and goes on in another."""
    model, effects, tools = ScriptedModel(*answers), FakeEffects(), [tool("look")]
    first = await Agent(model, tools=tools, features=[before, asks]).turn("hi", session="s", effects=effects)
    assert first.session is not None
    session = unpack(pack(first.session))
    assert session.pending is not None
    answer = Answered(session.pending.question.key, approved=True)
    return model, await Agent(model, tools=tools, features=[after, asks]).turn(answer, session=session, effects=effects)


async def test_a_skill_that_is_gone_is_in_use_no_more() -> None:
    """Its text and tools are gone with it; the turn goes on."""
    model, result = await newer(pick("a"), call("look"), "done", before=Skills(A, B), after=Skills(B))
    assert (result.text, systems(model.requests[-1])) == ("done", "")
    assert offered(model.requests[-1]) == ["look", "read_skill", "tool_b"]


async def test_a_skill_that_stayed_is_still_in_use() -> None:
    """Beside one that is gone."""
    answers = [[pick("a"), pick("b")], call("look"), "done"]
    model, _ = await newer(*answers, before=Skills(A, B, C, scoped_tools=True), after=Skills(B, C, scoped_tools=True))
    assert (systems(model.requests[-1]), offered(model.requests[-1])) == ("About b.", ["look", "read_skill", "tool_b"])


async def test_a_procedure_that_lost_steps_is_over_or_goes_on_where_it_stands() -> None:
    """The steps are those of the newer build."""
    shorter = skill("returns", "t1", "t2")
    model, result = await newer(
        pick("returns"), call("look"), "done", before=Skills(procedure()), after=Skills(shorter)
    )
    assert (result.text, "skip_step" in offered(model.requests[-1])) == ("done", False)


def graph(skills: Sequence[Any], **given: Any) -> SkillGraph:
    """A graph that is not checked up."""
    return SkillGraph(skills, **{"start": skills[0].id, "check": "off", **given})


async def test_a_cursor_whose_skill_is_gone_stands_nowhere_and_begins_anew() -> None:
    """Not where it was: a newer graph has other ways."""
    before = graph([A, B], routes=[Route("a", "b", on_tool="look")])
    model, result = await newer(call("look"), "done", before=before, after=graph([B, C]))
    assert systems(model.requests[-1]) == "About b."
    assert [(b.source, b.to, b.by) for b in bodies(result, SkillMoved)] == [("", "b", "entry")]


async def test_a_cursor_whose_skill_stayed_goes_its_new_ways() -> None:
    """Routes are those of the newer build."""
    before = graph([A, B, C], routes=[Route("a", "b", on_tool="look")])
    after = graph([A, B, C], routes=[Route("a", "c", on_tool="look")])
    _, result = await newer(call("look"), "done", before=before, after=after)
    assert [(b.source, b.to) for b in bodies(result, SkillMoved)] == [("a", "c")]


async def test_a_menu_offers_nothing_that_is_gone() -> None:
    """Nor does a menu of the older build open a way that the newer one has not."""

    class Undecided:
        name, floor, categorical = "undecided", None, False

        async def score(self, turn: Any, message: str, candidates: Any, /) -> dict[str, float]:
            return dict.fromkeys((c.skill for c in candidates), 0.5)

    def starts(*ids: str) -> list[Start]:
        return [Start(id, match=Intent(f"wants {id}")) for id in ids]

    before = graph([A, B, C], start=starts("a", "b", "c"), classify=Undecided())
    after = graph([B, C], start=starts("b", "c"), classify=Undecided())
    model, _ = await newer(call("look"), "done", before=before, after=after)
    told = {o.spec.name: o.spec.description for o in model.requests[-1].offers}["read_skill"]
    assert told.startswith("What the person wants may be one of these: b (33%), c (33%).")
