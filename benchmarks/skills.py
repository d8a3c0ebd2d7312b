"""What skills cost: turns with a graph of 200 skills less the same turns without, over a model that answers at once.

A turn of a conversation has two requests and a call between them. With the graph a message is matched against 200
starts, the cursor is led on by the call, and what is offered changes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.in_process import Instant, Row, lookup, rows_of, table
from benchmarks.measure import Work, by_turns, yardstick
from onrecord import Agent
from onrecord.models.chunks import CallChunk, Chunk, TextChunk
from onrecord.models.request import Request
from onrecord.skills import Engagement, Keywords, Pattern, Route, Skill, SkillGraph, Skills, Start
from onrecord.tools.tool import Tool

__all__ = ("BUDGETS", "measured", "table")

TURNS = 40
SKILLS = 200

BUDGETS: Mapping[str, tuple[str, float]] = {
    "a graph of 200 skills": ("us", 200),
    "a graph of 200 skills, scoped, with engagement": ("us", 200),
    "a graph of 200 skills, a pattern each": ("us", 200),
    "200 skills that the model takes up": ("us", 200),
}
"""Unit and budget of each row."""

MESSAGE = "Good morning, about my order of last week: could you have a look at topic number 150, please? Thank you!"


def _asks(called: str, args: str) -> Callable[[Request], Sequence[Chunk]]:
    asked = (CallChunk(wire_id="call_0", name=called, raw_args=args),)
    words = (TextChunk("All good: the answer is forty-two, as expected."),)
    return lambda request: words if len(request.conversation.units) > request.own else asked


def _skills() -> list[Skill]:
    return [
        Skill(
            f"skill-{n}", f"Helps with topic number {n} in some way.", f"What to do about topic {n}. " * 20,
            tools=(Tool(f"tool_{n}", lambda *_: "ok", f"Does something about {n}."),),
        )
        for n in range(SKILLS)
    ]  # fmt: skip


def _graph(match: Callable[[int], Any], **more: Any) -> SkillGraph:
    skills = _skills()
    start = [Start(skill.id, match=match(n)) for n, skill in enumerate(skills)]
    routes = [Route(f"skill-{n}", f"skill-{(n + 1) % SKILLS}", on_tool="lookup") for n in range(SKILLS)]
    return SkillGraph(skills, start=start, routes=routes, check="off", **more)


def _words(n: int) -> Keywords:
    return Keywords([f"topic number {n}", f"subject{n}", f"matter {n}"])


def _turns(features: Sequence[Any], called: str = "lookup", args: str = '{"q":"k"}') -> Work:
    agent: Agent[Any, Any] = Agent(Instant(_asks(called, args)), tools=[lookup], features=features)

    async def block() -> int:
        session: Any = "s"
        for _ in range(TURNS):
            session = (await agent.turn(MESSAGE, session=session)).session
        return TURNS

    return block


async def measured(blocks: int = 25) -> list[Row]:
    """Every row with a budget."""
    works: dict[str, Work] = {
        "yardstick": yardstick,
        "plain": _turns([]),
        "a graph of 200 skills": _turns([_graph(_words)]),
        "a graph of 200 skills, scoped, with engagement": _turns(
            [_graph(_words, scope_tools=True, engagement=Engagement(), continuity="conversation")]
        ),
        "a graph of 200 skills, a pattern each": _turns([_graph(lambda n: Pattern(rf"\btopic number {n}\b"))]),
        "200 skills that the model takes up": _turns([Skills(*_skills())], "read_skill", '{"id":"skill-7"}'),
    }
    return rows_of(await by_turns(works, blocks), BUDGETS, "plain")


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
