"""What agents below agents cost: turns that call a sub-agent less the same turns that call a tool, at an instant model.

The difference holds the sub-agent's whole turn, which alone is a plain turn of `benchmarks.in_process`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.in_process import Instant, Row, rows_of, table
from benchmarks.measure import Work, by_turns, yardstick
from onrecord import Agent
from onrecord.governance.budget import Budget, Limit
from onrecord.models.chunks import CallChunk, Chunk, TextChunk
from onrecord.models.request import Request
from onrecord.tools.tool import Tool

__all__ = ("BUDGETS", "measured", "table")

TURNS = 40

BUDGETS: Mapping[str, tuple[str, float]] = {
    "a child turn": ("us", 200),
    "a child turn under a budget": ("us", 300),
    "three child turns, one in the other": ("us", 800),
}
"""Unit and budget of each row."""

_WORDS: Sequence[Chunk] = (TextChunk("All good: the answer is forty-two, as expected."),)


async def _plain(args: Any, ctx: Any) -> str:
    return "All good: the answer is forty-two, as expected."


def _asks(name: str) -> Callable[[Request], Sequence[Chunk]]:
    asked = (CallChunk(wire_id="call_0", name=name, raw_args='{"message":"What is the answer?"}'),)
    return lambda request: _WORDS if len(request.conversation.units) > request.own else asked


def _turns(called: Tool, *features: Any) -> Work:
    agent: Agent[Any, Any] = Agent(Instant(_asks(called.id)), tools=[called], features=features)

    async def block() -> int:
        session: Any = "s"
        for _ in range(TURNS):
            session = (await agent.turn("Good morning, what is the answer?", session=session)).session
        return TURNS

    return block


def _below(levels: int) -> Tool:
    agent: Agent[Any, Any] = Agent(Instant(lambda _: _WORDS), name="level1")
    for level in range(2, levels + 1):
        below = agent.as_tool()
        agent = Agent(Instant(_asks(below.id)), name=f"level{level}", tools=[below])
    return agent.as_tool()


async def measured(blocks: int = 25) -> list[Row]:
    """Every row with a budget."""
    parameters = _below(1).parameters
    works: dict[str, Work] = {
        "yardstick": yardstick,
        "plain": _turns(Tool("plain", _plain, "A tool.", parameters=parameters, check_arguments=True)),
        "a child turn": _turns(_below(1)),
        "a child turn under a budget": _turns(_below(1), Budget(turn=Limit(tokens=10**9))),
        "three child turns, one in the other": _turns(_below(3)),
    }
    return rows_of(await by_turns(works, blocks), BUDGETS, "plain")


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
