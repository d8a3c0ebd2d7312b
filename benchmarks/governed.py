"""What a governed agent costs: a support desk with twelve features over a model that answers at once.

A rule on what goes out, permissions, check-ins, redaction and commentary behind it, a window, an instruction under a
condition, a graph of skills, memory, retrieval, artifacts, a budget. ``with a call`` has two requests and a tool
between them, which permissions and check-ins judge. The sessions go on from block to block, as those of people do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Any

from benchmarks.in_process import INSTRUCTIONS, Instant, Row, session_of, table
from benchmarks.measure import YARDSTICK_US, Figure, Work, by_turns, yardstick
from onrecord import Agent, Allow, Deny, Instruction, on_output
from onrecord.governance import Budget, CheckIn, Limit, NeedsCheckIn, Permissions, Policy, Redaction
from onrecord.honesty import Commentary
from onrecord.memory import Corpus, Document, Facts, Memory, PlainShelf, Recent, Retrieve
from onrecord.memory.documents import passages_of
from onrecord.models.chunks import CallChunk, Chunk, TextChunk
from onrecord.models.request import Request
from onrecord.prompt import Artifacts, Window
from onrecord.session import Session
from onrecord.skills import Keywords, Route, Skill, SkillGraph, Start
from onrecord.tools.tool import Tool
from onrecord.turn.instruction import OnReturn
from onrecord.turn.moments import Feature

__all__ = ("BUDGETS", "desk", "features", "measured", "table")

TURNS = 20
MESSAGES = 10_000
TOPICS = ("refunds", "delivery", "invoices", "returns", "accounts", "vouchers", "complaints", "opening hours")
WORDS = tuple(f"{n * 7919 % 999_983:x}" for n in range(1, 3000))
SAID = "Good morning, a question about refunds: my order of last week came broken. What can be done about it?"
TOLD = "I am sorry to hear that. You can have your money back within fourteen days, or another one is sent to you."

BUDGETS: Mapping[str, tuple[str, float]] = {
    "twelve features": ("us", 600),
    "twelve features at 10,000 messages": ("times", 1.3),
    "twelve features, with a call": ("us", 1200),
    "twelve features, with a call, 10,000": ("times", 1.3),
}
"""Unit and budget of each row. The tool of the call is a plain function: its thread is in the figure."""


# ---- the desk -------------------------------------------------------------------------------------------------------


@on_output
def no_promises(turn: Any, answer: Any) -> Any:
    """No guarantee is given."""
    return Deny("a promise") if "guarantee" in answer.text else Allow()


def _look(args: Mapping[str, Any], ctx: object) -> str:
    return f"order {args['order']}: delivered, two items, 59.90 euros"


def _pay(args: Mapping[str, Any], ctx: object) -> str:
    return "paid"


def _schema(**kinds: str) -> Mapping[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


TOOLS = (
    Tool("look_up_order", _look, "What became of an order.", parameters=_schema(order="string"), read_only=True),
    Tool(
        "refund", _pay, "Pays an amount back.", parameters=_schema(order="string", amount="number"),
        traits=(NeedsCheckIn(lambda args, _: float(args["amount"]) > 50),),
    ),
)  # fmt: skip


def _graph() -> SkillGraph:
    skills = [
        Skill(topic.replace(" ", "-"), f"Helps with {topic}.", f"About {topic}: be exact. " * 8) for topic in TOPICS
    ]
    start = [Start(skill.id, match=Keywords([topic])) for skill, topic in zip(skills, TOPICS, strict=True)]
    route = Route("refunds", "returns", on_tool="refund")
    return SkillGraph(skills, start=start, routes=[route], check="off")


def _corpus() -> Corpus:
    """Two hundred passages; a message about a topic shares a word with an eighth of them."""
    chance = Random(1)  # noqa: S311 - words for texts, the same at each run
    told = [f"{TOPICS[n % 8]} {' '.join(chance.choices(WORDS, k=24))}. " for n in range(200)]
    edges = [0, *accumulate(len(text) for text in told)]
    return Corpus(passages_of(Document("handbook", "".join(told)), list(pairwise(edges))))


def features(told: Callable[[str, Any], Any]) -> list[Feature]:
    """The twelve."""
    return [
        no_promises,
        Permissions({"desk": ["*"]}, "desk", policies=(Policy(name="small", tools=("refund",), args={"amount": 0}),)),
        CheckIn(),
        Redaction(patterns=[r"\b\d{4}-\d{4}\b"], names=["amount"]),
        Window.last(40, slack=20),
        Instruction("Say where the order is.", only_if=OnReturn("look_up_order"), name="order"),
        _graph(),
        Memory(PlainShelf(), (Facts(), Recent(4))),
        Retrieve(_corpus(), top=2),
        Artifacts(2000),
        Budget(Limit(tokens=1_000_000)),
        Commentary(tell=told),
    ]  # fmt: skip


def desk(script: Callable[[Request], Sequence[Chunk]]) -> Agent[Any, Any]:
    """The agent with all of them."""
    heard: list[str] = []

    def tell(sentence: str, entry: object) -> None:
        heard[:] = [sentence]

    return Agent(Instant(script), instructions=INSTRUCTIONS, tools=TOOLS, features=features(tell))


_WORDS: Sequence[Chunk] = (TextChunk(TOLD),)
_CALL: Sequence[Chunk] = (CallChunk(wire_id="call_0", name="look_up_order", raw_args='{"order":"7"}'),)


def _plainly(request: Request) -> Sequence[Chunk]:
    return _WORDS


def _calling(request: Request) -> Sequence[Chunk]:
    return _WORDS if len(request.conversation.units) > request.own else _CALL


# ---- the figures ----------------------------------------------------------------------------------------------------


def _turns(script: Callable[[Request], Sequence[Chunk]], messages: int) -> Work:
    agent = desk(script)
    held: list[Session] = [session_of(messages)]

    async def block() -> int:
        for _ in range(TURNS):
            result = await agent.turn(SAID, session=held[0])
            held[0] = result.session or held[0]
        return TURNS

    return block


async def measured(blocks: int = 15) -> list[Row]:
    """Every row. Ratios are those of best figures, and do not depend on how fast the machine is."""
    seen = await by_turns(
        {
            "yardstick": yardstick,
            "plain": _turns(_plainly, 100), "plain, long": _turns(_plainly, MESSAGES),
            "call": _turns(_calling, 100), "call, long": _turns(_calling, MESSAGES),
        },
        blocks,
    )  # fmt: skip
    pace = YARDSTICK_US / seen["yardstick"].best

    def row(name: str, figure: Figure, scale: float) -> Row:
        unit, budget = BUDGETS[name]
        return Row(
            name=name, unit=unit, budget=budget, best=figure.best, median=figure.median, scaled=figure.best * scale
        )  # fmt: skip

    figures = (
        (seen["plain"], pace), (_ratio(seen, "plain"), 1.0), (seen["call"], pace), (_ratio(seen, "call"), 1.0)
    )  # fmt: skip
    return [row(name, figure, scale) for name, (figure, scale) in zip(BUDGETS, figures, strict=True)]


def _ratio(seen: Mapping[str, Figure], name: str) -> Figure:
    long, short = seen[f"{name}, long"], seen[name]
    return Figure(long.best / short.best, long.median / short.median)


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
