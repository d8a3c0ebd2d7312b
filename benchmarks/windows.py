"""What a window costs over a long conversation: turns with one less turns without, in a session of 10,000 messages.

``drops each turn`` is everything a removal takes: planning, the notice, digests, the entry, the fold and the view.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from benchmarks.in_process import INSTRUCTIONS, Instant, Row, rows_of, session_of, table
from benchmarks.measure import Work, by_turns, yardstick
from onrecord import Agent
from onrecord.conversation.usage import Usage
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.request import Request
from onrecord.prompt.window.window import Window
from onrecord.session import Session
from onrecord.turn.moments import Feature

__all__ = ("BUDGETS", "measured", "table")

MESSAGES = 10_000
TURNS = 40

BUDGETS: Mapping[str, tuple[str, float]] = {
    "window of the last 12, drops each turn": ("us", 200),
    "window with a budget, drops each turn": ("us", 200),
    "window with a budget, room enough": ("us", 200),
    "window with a summary, room enough": ("us", 200),
}
"""Unit and budget of each row."""


class Counting(Instant):
    """Answers at once, and says that the request had a thousand tokens."""

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """A sentence and its usage."""
        yield TextChunk("All good: the answer is forty-two, as expected.")
        yield Finished(usage=Usage(input_tokens=1000, output_tokens=12))


def _turns(*features: Feature) -> Work:
    """Turns of one session that goes on from block to block."""
    agent: Agent[object, str] = Agent(Counting(lambda _: ()), instructions=INSTRUCTIONS, features=features)
    held: list[Session] = [session_of(MESSAGES)]

    async def block() -> int:
        for _ in range(TURNS):
            result = await agent.turn("hello", session=held[0])
            held[0] = result.session or held[0]
        return TURNS

    return block


async def measured(blocks: int = 15) -> list[Row]:
    """Every row with a budget."""
    scribe = Counting(lambda _: ())
    scribe.card = type(scribe.card)(provider="bench", model="scribe", protocol="instant")
    works: dict[str, Work] = {
        "yardstick": yardstick,
        "without": _turns(),
        "window of the last 12, drops each turn": _turns(Window.last(12)),
        "window with a budget, drops each turn": _turns(Window.budget(500)),
        "window with a budget, room enough": _turns(Window.budget(5000)),
        "window with a summary, room enough": _turns(Window.summarize(5000, model=scribe)),
    }
    return rows_of(await by_turns(works, blocks), BUDGETS, "without")


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
