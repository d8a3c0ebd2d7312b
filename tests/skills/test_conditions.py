"""Conditions that an application writes: an async one is refused, and one that hands out a promise never holds."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conditions import says_yes
from onrecord.errors import ConfigurationError
from onrecord.skills import Decide, Hop, Route, SkillGraph, Skills, Start, ToolOutcome
from onrecord.testing import ScriptedModel
from tests.skills.knowing import answering, descriptions, pick, skill, systems
from tests.turn.acting import texts

pytestmark = pytest.mark.unit

A, B = skill("a"), skill("b")


async def later(*_: Any) -> bool:
    """A promise, which Python takes for true."""
    return False


class Waited:
    """An object whose call is async."""

    async def __call__(self, *_: Any) -> bool:
        return False


@pytest.mark.parametrize("condition", [later, partial(later), Waited(), "yes"])
@pytest.mark.parametrize(
    "make",
    [
        lambda condition: Start("a", only_if=condition),
        lambda condition: Route("a", "b", only_if=condition),
        lambda condition: Decide(condition, "a", "b"),
        lambda condition: Agent(ScriptedModel(), features=[Skills(A, visible=condition)]),
        lambda condition: Agent(ScriptedModel(), features=[SkillGraph([A], start="a", visible=condition)]),
    ],
)
def test_an_async_condition_is_refused_where_it_is_declared(make: Any, condition: Any) -> None:
    """It would hold always."""
    with pytest.raises(ConfigurationError):
        make(condition)


async def test_a_promise_opens_no_way_and_shows_no_skill() -> None:
    """Where a plain function hands one out."""
    promises: Any = lambda *_: later()  # noqa: E731 - as applications write them
    start = [Start("b", only_if=promises), Start("a")]
    requests, _ = await answering("done", features=[SkillGraph([A, B], start=start, check="off")])
    assert systems(requests[0]) == "About a."
    held = SkillGraph([A, B], tree=Decide(promises, "b", "a"), check="off")
    assert held.next_skill(Hop()) == "a"
    way = SkillGraph([A, B], start="a", routes=[Route("a", "b", only_if=promises)], check="off")
    outcome = ToolOutcome(tool="x", status="returned", text="")
    assert way.next_skill(Hop(round=2, cursor="a", results=(outcome,))) == "a"
    requests, _ = await answering(pick("a"), "done", features=[Skills(A, visible=promises)])
    assert "- a:" not in descriptions(requests[0])["read_skill"]
    assert texts(requests[1]) == ["Permission denied: there is no such skill for this conversation."]


async def test_any_awaitable_is_no_answer() -> None:
    """Not only what an async function makes; nothing warns that it was never awaited."""
    waiting = asyncio.get_running_loop().create_future()
    for promise in (waiting, later()):
        with pytest.raises(TypeError, match="answers at once"):
            says_yes(promise)
    assert (says_yes(1), says_yes("")) == (True, False)
