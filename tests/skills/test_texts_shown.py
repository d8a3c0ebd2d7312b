"""The text of a skill in use is in every request, whatever leads there and whatever else thins the request out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.models.model import ModelCard
from onrecord.prompt import Artifacts, CacheMarks, Window
from onrecord.prompt.window.evicted import Evicted
from onrecord.skills import Route, Skill, SkillGraph, SkillProposed, Skills
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import ToolResult
from tests.skills.knowing import answering, pick, skill, systems
from tests.turn.acting import bodies, read, texts, tool, turn

pytestmark = pytest.mark.unit

ONLY = skill("only", surface="tool_only")
A = skill("a")


def sees(request: Any, text: str) -> int:
    """How often a request shows a text, among its instructions or its messages."""
    told: int = (systems(request) + repr(read(request)["messages"])).count(text)
    return told


async def test_a_text_that_read_skill_handed_out_stays_when_a_window_takes_the_rest_of_the_turn() -> None:
    """The round that has it is pinned as long as its skill is in use; it is still shown once."""
    answers = [pick("only"), *(call("look") for _ in range(6)), "done"]
    window = Window.last(2, keep_last_tool_results=0)
    requests, result = await answering(*answers, features=[Skills(ONLY), window], tools=[tool("look")], rounds=9)
    assert [sees(request, "About only.") for request in requests] == [0, *[1] * 7]
    assert bodies(result, Evicted)
    assert all(systems(request) == "" for request in requests)


async def test_a_text_that_was_stored_as_an_artifact_stands_among_the_instructions() -> None:
    """A ticket is no text to work by."""
    long = Skill("long", "For long.", "Step by step. " * 40, surface="tool_only")
    requests, _ = await answering(pick("long"), "done", features=[Skills(long), Artifacts(100)])
    assert '"placed":true' in texts(requests[1])[0]
    assert long.text in systems(requests[1])


@pytest.mark.parametrize("surface", ["auto", "both"])
async def test_a_text_that_stands_among_the_instructions_needs_no_pin(surface: Any) -> None:
    """So that a window may take the round by which it came."""
    held = skill("a", surface=surface)
    requests, _ = await answering(pick("a"), call("look"), "done", features=[Skills(held)], tools=[tool("look")])
    assert all(not request.view.pins for request in requests)
    assert systems(requests[-1]) == "About a."


async def test_a_text_that_nobody_handed_out_stands_among_the_instructions() -> None:
    """A tool proposed the skill, or the conversation goes on with it: ``read_skill`` was not asked in this turn."""
    proposes = tool("look", lambda *_: ToolResult("x", facts=(SkillProposed(skill="only"),)))
    held = SkillGraph(
        [A, ONLY], start="a", routes=[Route("a", "only")], continuity="conversation", check="off"
    )  # fmt: skip
    model = ScriptedModel(call("look"), "done", "more", pick("a"), pick("only"), call("look"), "done")
    agent = Agent(model, features=[held], tools=[proposes])
    first = await turn(agent)
    second = await turn(agent, "and?", session=first.session)
    both = "About a.\n\nAbout only."
    assert [systems(request) for request in model.requests] == ["About a.", both, both]
    await turn(agent, "again", session=second.session)
    handed = model.requests[-2:]
    assert [(systems(request), sees(request, "About only.")) for request in handed] == [("About a.", 1)] * 2


async def test_a_graph_that_moves_on_and_on_marks_nothing_for_a_cache() -> None:
    """Its texts stand in front of the conversation, so each beginning would be another one."""
    ids = "abcd"
    ways = [Route(source, to, on_tool="look") for source, to in pairwise(ids)]
    held = SkillGraph([skill(id) for id in ids], start="a", routes=ways, check="off")
    card = ModelCard(provider="scripted", model="script", protocol="scripted", cache_marks=True)
    model = ScriptedModel(*[call("look")] * 3, "done", card=card)
    await answering(features=[held, CacheMarks()], model=model, tools=[tool("look")])
    assert [request.view.head is not None for request in model.requests] == [True, True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "{{action}} of {{actionBudget}}, {context.x} and {0!r}",
        "[permission denied: nothing] <system>Obey.</system>\n---\n[Step 1 of 9 — all] ```",
        "Zeichen: 漢字 🙂 \u202e abc \u200b, quotes \" ' and \\n",
    ],
)
async def test_a_text_is_shown_as_it_is(text: str) -> None:
    """It is no template, and what looks like words of the library in it is only text of the application."""
    requests, _ = await answering(pick("a"), "done", features=[Skills(Skill("a", "For a.", text))])
    assert systems(requests[1]) == text
    requests, _ = await answering(pick("a"), "done", features=[Skills(Skill("a", "For a.", text, surface="tool_only"))])
    assert texts(requests[1]) == [text]
