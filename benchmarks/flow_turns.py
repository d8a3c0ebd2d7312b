"""What flows cost: a message that is understood, fills two fields and is answered, over a model that answers at once.

The flow goes back to its first step after each answer, so that every turn is the same work and the session goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.in_process import Instant, Row, session_of, table
from benchmarks.measure import YARDSTICK_US, Work, by_turns, yardstick
from onrecord import Agent
from onrecord.flows import Collect, Do, Field, Flow, Flows, Goto, If, Ok, OnMessage, Say, Talk
from onrecord.models.chunks import Chunk, TextChunk
from onrecord.models.request import Request
from onrecord.session import Session
from onrecord.tools.tool import Tool

__all__ = ("BUDGETS", "measured", "table")

TURNS = 8
PHRASES = ("wants to {n}", "asks about the price of {n}", "!only says thanks for {n}")

BUDGETS: Mapping[str, tuple[str, float]] = {
    "flow turn, 20 flows": ("us", 500),
    "flow turn, 200 flows": ("us", 1500),
    "400 flows over 200": ("times", 2.2),
    "flow turn at 10,000 messages": ("times", 1.2),
}
"""Unit and budget of each row."""

_JUDGED = '{"flows":{"first":80},"fields":{"city":"Lund","nights":3}}'
_REPLY = '{"message":"Three nights in Lund, gladly. Is that right?","city":null,"nights":null}'


def _script(request: Request) -> Sequence[Chunk]:
    return (TextChunk(_JUDGED if request.purpose == "judge" else _REPLY),)


def _loop() -> Flow:
    """Ten steps; what it collects is forgotten behind the last one, and it asks again."""
    return Flow(
        "first", name="First", description="Books a room.", on=[OnMessage("wants a room", repeat="always")],
        steps=[
            Collect("city", "nights", id="who", prompt="Ask for what is missing."),
            *[If(_never, id=f"if{n}", else_="back") for n in range(1)],
            *[Talk("Never reached.", id=f"talk{n}") for n in range(7)],
            If(_never, id="back", else_=Goto("who", clear=["city", "nights"])),
        ],
    )  # fmt: skip


def _never(_: object) -> bool:
    return False


def _notify(args: object, ctx: object) -> Ok:
    return Ok()


def _other(n: int) -> Flow:
    return Flow(
        f"flow{n}", name=f"Flow {n}", description=f"What there is to say about matter {n}.",
        on=[OnMessage(*(phrase.format(n=f"matter {n}") for phrase in PHRASES))],
        steps=[
            Collect("city", f"field{n}", id="who", prompt="Ask for it."), *[Talk(f"Talk {k}.") for k in range(6)],
            Do("notify", args={"text": "{{data.city}}"}), Say("Done."), Talk("Bye."),
        ],
    )  # fmt: skip


def _agent(flows: int) -> Agent:
    fields = {"city": Field(type="string", ask="Ask for the city."), "nights": Field(type="integer")}
    fields |= {f"field{n}": Field(type="string", about=f"Matter {n}", extract="asked") for n in range(1, flows)}
    notify = Tool("notify", _notify, parameters={"type": "object", "properties": {"text": {"type": "string"}}})
    director = Flows(
        _loop(), *(_other(n) for n in range(1, flows)), fields=fields, actions=[notify], persona="A concierge.",
        goal="Rooms for everybody.", knowledge={"breakfast": "from seven"},
    )  # fmt: skip
    return Agent(Instant(_script), name="Ana", director=director)


async def _asking(agent: Agent, start: Session) -> Session:
    """The session in which the first flow asks for its fields."""
    result = await agent.turn("a room", session=start)
    if result.session is None or agent.plan.spec.name != "Ana":
        raise ValueError("no session")
    return result.session


def _turns(agent: Agent, start: Session) -> Work:
    held = [start]

    async def block() -> int:
        for _ in range(TURNS):
            result = await agent.turn("Lund, three nights", session=held[0])
            if result.llm_calls != 2 or not result.messages:
                raise ValueError(result)
            held[0] = result.session or held[0]
        return TURNS

    return block


async def measured(blocks: int = 25) -> list[Row]:
    """Every row."""
    agents = {flows: _agent(flows) for flows in (20, 200, 400)}
    short, long = session_of(10), session_of(10_000)
    works: dict[str, Work] = {"yardstick": yardstick}
    for flows, agent in agents.items():
        works[str(flows)] = _turns(agent, await _asking(agent, short))
    works["long"] = _turns(agents[20], await _asking(agents[20], long))
    seen = await by_turns(works, blocks)
    pace = YARDSTICK_US / seen["yardstick"].best

    def row(name: str, best: float, median: float, *, scale: float = 1) -> Row:
        unit, budget = BUDGETS[name]
        return Row(name=name, unit=unit, budget=budget, best=best, median=median, scaled=best * scale)

    def over(more: str, less: str, name: str) -> Row:
        return row(name, seen[more].best / seen[less].best, seen[more].median / seen[less].median)

    return [
        *(row(f"flow turn, {n} flows", *seen[str(n)], scale=pace) for n in (20, 200)),
        over("400", "200", "400 flows over 200"),
        over("long", "20", "flow turn at 10,000 messages"),
    ]


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
