"""What the words of flows cost: envelopes decoded while they stream, replies read, and the prompts of both calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from benchmarks.measure import YARDSTICK_US, Figure, Work, by_turns, yardstick
from onrecord.conversation.content import Text
from onrecord.conversation.messages import Round
from onrecord.flows.envelope import Unwrap, speak_shape
from onrecord.flows.fields import FieldSpec, fields_of
from onrecord.flows.flow import Flow
from onrecord.flows.instructions import FlowInstruction
from onrecord.flows.prompts import Prompts, Told
from onrecord.flows.steps import Collect, Step, Talk
from onrecord.flows.triggers import OnMention, OnMessage, Trigger
from onrecord.flows.understand import Frame, ToJudge, understand_shape

__all__ = ("BUDGETS", "Cost", "measured", "table")

SIZE = 200_000
FLOWS = 200
STEPS = 10
NAMES = frozenset({"message", "name", "size"})

BUDGETS: Mapping[str, tuple[str, float]] = {
    "envelope in one piece": ("MB/s", 10),
    "envelope in pieces of 4": ("MB/s", 10),
    "message full of escapes": ("MB/s", 10),
    "the same in pieces of 4": ("MB/s", 0),
    "plain text in pieces of 4": ("MB/s", 0),
    "four times the envelope": ("times", 5),
    "a reply with three fields, read": ("us", 40),
    "understand, 200 flows": ("us", 300),
    "understand, flows never seen together": ("us", 0),
    "speak": ("us", 100),
}
"""Unit and budget of each row; 0 where there is none."""


class Cost(Struct, frozen=True, kw_only=True):
    """One figure beside its budget: the most it may be, of a rate the least.

    ``scaled`` is ``best`` as it would be where the budgets were stated.
    """

    name: str
    unit: str
    budget: float
    best: float
    median: float
    scaled: float

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit == "MB/s"

    def is_met(self, head_room: float = 1) -> bool:
        """Whether the figure is within its budget, or within that many times of it."""
        return self.scaled * head_room >= self.budget if self.is_rate else self.scaled <= self.budget * head_room

    def is_better_than(self, other: Cost) -> bool:
        """Whether this run of the row was the better one."""
        return self.scaled > other.scaled if self.is_rate else self.scaled < other.scaled


# ---- what is decoded -------------------------------------------------------------------------------------------------
def _envelope(size: int) -> str:
    words = "The quick brown fox jumps over the lazy dog. "
    return f'{{"name":"Jo","message":"{words * (size // len(words))}","size":"1-10"}}'


def _escaped(size: int) -> str:
    words = r"one\ntwo \"quoted\" caf\u00e9 \ud83d\ude00, "
    return f'{{"message":"{words * (size // len(words))}"}}'


def _plain(size: int) -> str:
    words = "What is your name, and how many are you? "
    return words * (size // len(words))


def _decodes(text: str, step: int = 0) -> Work:
    """Decodes a text; one operation is a character of it."""
    step = step or len(text)
    pieces = [text[at : at + step] for at in range(0, len(text), step)]

    async def block() -> int:
        unwrap, shown = Unwrap(NAMES), 0
        for piece in pieces:
            for item in unwrap.feed(piece):
                shown += len(item) if isinstance(item, str) else 0
        unwrap.close()
        if not shown:
            raise ValueError(shown)
        return len(text)

    return block


# ---- what is told ----------------------------------------------------------------------------------------------------
def _fields() -> dict[str, FieldSpec]:
    told = {"type": "string", "ask": "Ask for it, lightly.", "about": "What the matter is."}
    return fields_of({f"field{n}": told for n in range(40)})


def _flow(n: int) -> Flow:
    steps: list[Step] = [
        Collect(f"field{(n + k) % 40}", prompt=f"Ask for what is missing in {n}.")
        if k % 2
        else Talk(f"Talk about {k}.")
        for k in range(STEPS)
    ]
    rules = [FlowInstruction("Be brief.", kind="must"), FlowInstruction("Offer a call.", when=["is lost", "!is angry"])]
    on: list[Trigger] = [
        OnMessage(f"wants to {n}", f"asks for the price of {n}", f"!only says thanks for {n}"),
        OnMention(f"says {n}"),
    ]
    return Flow(f"flow{n}", name=f"Flow {n}", description=f"What is to be said about {n}.", on=on, steps=steps,
                instructions=rules)  # fmt: skip


class _Telling:
    """The prompts of many flows, and what is put into them."""

    def __init__(self) -> None:
        self.fields, self.flows = _fields(), [_flow(n) for n in range(FLOWS)]
        self.prompts = Prompts(
            flows=self.flows, fields=self.fields, persona="A concierge.", goal="Rooms for everybody.",
            knowledge={"breakfast": "from seven"}, instructions=[FlowInstruction("Never guess.", kind="never")],
        )  # fmt: skip
        self.known = {f"field{n}": f"value {n}" for n in range(5)}
        self.pending = tuple(self.fields[f"field{n}"] for n in range(7, 10))

    def asked(self) -> ToJudge:
        """Everything at once, as each turn puts it together anew."""
        floor = self.flows[0]
        step = floor.steps[1]
        return ToJudge(
            floor=floor, floor_step=step if isinstance(step, Collect) else None, pending=self.pending,
            candidates=tuple(self.flows), mentions=tuple(self.flows[:20]), fields=tuple(self.fields.values()),
            asks=True, branches=(("run#1/who/0", "Do they give up?"), ("run#1/who/1", "Are they angry?")),
        )  # fmt: skip

    async def understand(self) -> int:
        """Prompt and shape of the understand call."""
        for _ in range(10):
            asked = self.asked()
            self.prompts.understand(asked, name="Ana", text="Hello there", data=self.known)
            understand_shape(asked)
        return 10

    async def unseen(self) -> int:
        """What is kept for a set of flows, built."""
        asked = self.asked()
        for _ in range(3):
            Frame(asked)
        return 3

    async def speak(self) -> int:
        """Prompt and shape of the speak call."""
        flow = self.flows[0]
        for _ in range(50):
            told = Told(
                name="Ana", flow=flow, guideline="Ask for what is missing.", pending=self.pending, data=self.known,
                instructions=tuple(flow.instructions), text="Hello there", said=(("Welcome.", None),),
                offers_tools=True,
            )  # fmt: skip
            self.prompts.speak(told)
            speak_shape(self.pending)
        return 50


async def _reads() -> int:
    """Replies as they are, most of them short."""
    shape = speak_shape((FieldSpec(slug="name"), FieldSpec(slug="size"), FieldSpec(slug="budget", type="number")))
    reply = Round(id="r", content=(Text('{"message":"Thanks, and the size?","name":"Jo","size":null,"budget":1500}'),))
    for _ in range(50):
        if len(shape.read(reply).value) != 2:
            raise ValueError(reply)
    return 50


async def measured(blocks: int = 20) -> list[Cost]:
    """Every row."""
    telling = _Telling()
    seen = await by_turns(
        {
            "yardstick": yardstick,
            "envelope in one piece": _decodes(_envelope(SIZE)),
            "envelope in pieces of 4": _decodes(_envelope(SIZE), 4),
            "message full of escapes": _decodes(_escaped(SIZE)),
            "the same in pieces of 4": _decodes(_escaped(SIZE // 4), 4),
            "plain text in pieces of 4": _decodes(_plain(SIZE), 4),
            "a quarter": _decodes(_envelope(SIZE // 4), 4),
            "a reply with three fields, read": _reads,
            "understand, 200 flows": telling.understand,
            "understand, flows never seen together": telling.unseen,
            "speak": telling.speak,
        },
        blocks,
    )
    pace = YARDSTICK_US / seen["yardstick"].best
    whole, quarter = seen["envelope in pieces of 4"], seen["a quarter"]
    growth = Figure(4 * whole.best / quarter.best, 4 * whole.median / quarter.median)
    return [
        _row(name, growth, 1) if name == "four times the envelope" else _row(name, seen[name], pace) for name in BUDGETS
    ]


def _row(name: str, figure: Figure, pace: float) -> Cost:
    """Of what is decoded, characters a microsecond are megabytes a second."""
    unit, budget = BUDGETS[name]
    if unit == "MB/s":
        figure, pace = Figure(1 / figure.best, 1 / figure.median), 1 / pace
    return Cost(
        name=name, unit=unit, budget=budget, best=figure.best, median=figure.median, scaled=figure.best * pace
    )  # fmt: skip


def table(rows: Sequence[Cost]) -> str:
    """The rows to read."""
    lines = [f"{'words of flows':38}{'best':>10}{'median':>10}{'at pace':>10}{'budget':>10}"]
    for row in rows:
        budget = f"{'>=' if row.is_rate else '<='}{row.budget:g}" if row.budget else ""
        lines.append(f"{row.name:38}{row.best:10.2f}{row.median:10.2f}{row.scaled:10.2f}{budget:>10} {row.unit}")
    return "\n".join(lines)
