"""What the library itself costs: turns over a model that answers at once, in the same process.

A row is the difference of two turns where it says so: a tool round is a turn with four of them less a turn without,
by four.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.measure import YARDSTICK_US, Figure, Work, by_turns, yardstick
from onrecord import Agent, tool
from onrecord.conversation.content import Mark, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import AssistantMessage, Message, Round, ToolCall, UserMessage
from onrecord.governance.rules import before_tool
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.record.kinds import Noted
from onrecord.session import Session, pack, unpack
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.director import Stage
from onrecord.turn.moments import ALLOW, Allow, Hooks
from onrecord.turn.turn import Turn

__all__ = ("BUDGETS", "Row", "measured", "rows_of", "table")

INSTRUCTIONS = "You are a concise assistant. Use the lookup tool when asked."
ROUNDS = 4
DELTAS = 500
ENTRIES = 500


class Row(Struct, frozen=True, kw_only=True):
    """One figure beside its budget. ``scaled`` is ``best`` as it would be where the budgets were stated."""

    name: str
    unit: str
    budget: float
    best: float
    median: float
    scaled: float


BUDGETS: Mapping[str, tuple[str, float]] = {
    "plain turn": ("us", 80),
    "plain turn at 10,000 messages": ("times", 1.2),
    "tool round": ("us", 120),
    "one round of eight tools": ("us", 400),
    "delta": ("us", 2),
    "delta read as text": ("us", 2),
    "one text filter, a delta": ("us", 1.5),
    "ten rules that allow, a call": ("us", 10),
    "one entry recorded": ("us", 5),
    "idle session of 50 messages, packed": ("KB", 12),
    "idle session of 50 messages, live": ("KB", 0),
    "import of the door": ("ms", 40),
}
"""Unit and budget of each row; 0 where there is none."""


# ---- the pieces -----------------------------------------------------------------------------------------------------
class Instant:
    """A model that answers at once with the chunks that ``script`` gives for a request."""

    card = ModelCard(provider="bench", model="instant", protocol="instant")
    _wire = Wire(body=b"{}")

    def __init__(self, script: Callable[[Request], Sequence[Chunk]]) -> None:
        self._script = script

    def wire(self, request: Request, /) -> Wire:
        """Always the same bytes: projection is measured over HTTP."""
        return self._wire

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """The script's chunks, then the end."""
        for chunk in self._script(request):
            yield chunk
        yield _END


_END = Finished()
_WORDS: Sequence[Chunk] = (TextChunk("All good: the answer is forty-two, as expected."),)
_VOCABULARY = tuple(f"{n * 7919 % 999_983:x}" for n in range(1, 3000))
_MANY: Sequence[Chunk] = tuple(TextChunk("alpha ") for _ in range(DELTAS))


@tool(read_only=True)
async def lookup(q: str) -> str:
    """Look up a key."""
    return f"value of {q}"


def _asks(rounds: int, calls: int) -> Callable[[Request], Sequence[Chunk]]:
    asked = tuple(
        CallChunk(wire_id=f"call_{n}", name="lookup", raw_args='{"q":"k%d"}' % n)  # noqa: UP031 - braces of JSON
        for n in range(calls)
    )

    def script(request: Request) -> Sequence[Chunk]:
        return asked if len(request.conversation.units) - request.own < rounds else _WORDS

    return script


class _Filtered:
    """A feature with one text filter that changes nothing."""

    name = "filtered"

    def hooks(self, spec: AgentSpec) -> Hooks:
        """The filter."""
        return Hooks(on_text=lambda _: _Passing())


class _Passing:
    def feed(self, item: str | Mark, /) -> Sequence[str | Mark]:
        return (item,)

    def close(self) -> Sequence[str | Mark]:
        return ()


class _Noting:
    """A director that files entries and says nothing."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        """Files the entries."""
        for _ in range(ENTRIES):
            turn.note(Noted(by="bench", text="an entry"))


def _allows(number: int) -> object:
    async def rule(turn: Turn, call: ToolCall) -> Allow[Mapping[str, object]]:
        return ALLOW

    rule.__name__ = f"rule {number}"
    return before_tool(rule)


def session_of(messages: int, seed: int = 1) -> Session:
    """A session with that many messages of about a hundred characters, no two of them alike."""
    said: list[Message] = []
    chance = Random(seed)  # noqa: S311 - words for texts, the same at each run
    for i in range(messages):
        text = " ".join(chance.choices(_VOCABULARY, k=17))
        if i % 2:
            answer = Round(id=f"t{i}/answer/r0", content=(Text(text),))
            said.append(AssistantMessage(id=f"t{i}/a1", turn=f"t{i}", rounds=(answer,), shown=(Text(text),)))
        else:
            said.append(UserMessage(id=f"t{i}/u", turn=f"t{i}", content=(Text(text),)))
    return Session(key=SessionKey("bench"), conversation=Conversation.of(said), digest_key="0f" * 8)


# ---- work -----------------------------------------------------------------------------------------------------------
def _turns(agent: Agent, start: Session, count: int) -> Work:
    """Turns that follow each other in one session, begun anew with each block."""

    async def block() -> int:
        session = start
        for _ in range(count):
            result = await agent.turn("hello", session=session)
            session = result.session or session
        return count

    return block


def _growing(agent: Agent, start: Session, count: int) -> Work:
    """The same in one session that goes on from block to block, so that nothing is copied at the start of a block."""
    held = [start]

    async def block() -> int:
        for _ in range(count):
            result = await agent.turn("hello", session=held[0])
            held[0] = result.session or held[0]
        return count

    return block


def _streams(agent: Agent, start: Session, *, text: bool) -> Work:
    async def block() -> int:
        for _ in range(3):
            stream, seen = agent.turn_stream("hello", session=start), 0
            if text:
                async for _word in stream.text:
                    seen += 1
            else:
                async for batch in stream.batches():
                    seen += len(batch)
            if seen != DELTAS:
                raise ValueError(seen)
        return 3

    return block


def _works() -> dict[str, Work]:
    short, long = session_of(10), session_of(10_000)
    plain = Agent(Instant(lambda _: _WORDS), instructions=INSTRUCTIONS)
    tooled = Agent(Instant(_asks(0, 1)), instructions=INSTRUCTIONS, tools=[lookup])
    rounds = tooled.with_(model=Instant(_asks(ROUNDS, 1)))
    talks = Agent(Instant(lambda _: _MANY), instructions=INSTRUCTIONS)
    return {
        "yardstick": yardstick,
        "plain": _turns(plain, short, 40),
        "plain, long": _growing(plain, long, 40),
        "no round": _turns(tooled, short, 20),
        "rounds": _turns(rounds, short, 10),
        "rounds, ruled": _turns(rounds.with_(features=[_allows(n) for n in range(10)]), short, 10),
        "eight": _turns(tooled.with_(model=Instant(_asks(1, 8))), short, 10),
        "deltas": _streams(talks, short, text=False),
        "deltas, text": _streams(talks, short, text=True),
        "deltas, filtered": _streams(talks.with_(features=[_Filtered()]), short, text=False),
        "silent": _turns(Agent(Instant(lambda _: _WORDS), director=_Silent()), short, 10),
        "noting": _turns(Agent(Instant(lambda _: _WORDS), director=_Noting()), short, 4),
    }


class _Silent:
    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        return


async def measured(blocks: int = 40, *, imports: bool = True) -> list[Row]:
    """Every row; the import, which starts interpreters, only if asked for."""
    seen = await by_turns(_works(), blocks)
    pace = YARDSTICK_US / seen["yardstick"].best

    def row(name: str, more: str, less: str = "", by: float = 1) -> Row:
        unit, budget = BUDGETS[name]
        low = seen[less] if less else Figure(0, 0)
        best, median = (seen[more].best - low.best) / by, (seen[more].median - low.median) / by
        return Row(name=name, unit=unit, budget=budget, best=best, median=median, scaled=best * pace)

    long, short = seen["plain, long"], seen["plain"]
    return [
        row("plain turn", "plain"),
        _fixed("plain turn at 10,000 messages", long.best / short.best, long.median / short.median),
        row("tool round", "rounds", "no round", ROUNDS),
        row("one round of eight tools", "eight", "no round"),
        row("delta", "deltas", "plain", DELTAS),
        row("delta read as text", "deltas, text", "plain", DELTAS),
        row("one text filter, a delta", "deltas, filtered", "deltas", DELTAS),
        row("ten rules that allow, a call", "rounds, ruled", "rounds", ROUNDS),
        row("one entry recorded", "noting", "silent", ENTRIES),
        *_memory(),
        *([_import(pace)] if imports else []),
    ]


def _fixed(name: str, best: float, median: float | None = None) -> Row:
    """A figure that does not depend on how fast the machine is."""
    unit, budget = BUDGETS[name]
    return Row(name=name, unit=unit, budget=budget, best=best, median=best if median is None else median, scaled=best)


def _memory() -> list[Row]:
    """What one of many sessions that wait takes, as bytes and as live objects; every text of it is its own."""
    packed = [pack(session_of(50, seed)) for seed in range(20)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    live = [unpack(data) for data in packed]
    gc.collect()
    each = (tracemalloc.get_traced_memory()[0] - before) / len(live)
    tracemalloc.stop()
    return [
        _fixed("idle session of 50 messages, packed", sum(map(sys.getsizeof, packed)) / len(packed) / 1024),
        _fixed("idle session of 50 messages, live", each / 1024),
    ]


_IMPORT = "import asyncio,time;t=time.process_time();from onrecord import Agent;print((time.process_time()-t)*1000)"


def _import(pace: float, runs: int = 7) -> Row:
    """CPU of ``from onrecord import Agent`` over ``import asyncio``, in fresh interpreters with warm bytecode."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-c", _IMPORT]
        taken = sorted(
            float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
            for _ in range(runs + 1)
        )[:runs]  # the first one compiles
    row = _fixed("import of the door", taken[0], taken[runs // 2])
    return replace(row, scaled=row.best * pace)


_UNITS = {"us": 1.0, "ms": 1000.0}


def rows_of(
    seen: Mapping[str, Figure], budgets: Mapping[str, tuple[str, float]], less: str | Mapping[str, str] = ""
) -> list[Row]:
    """A row for each budget: what its work takes, less what other work does. A yardstick is among what was seen."""
    pace = YARDSTICK_US / seen["yardstick"].best
    rows: list[Row] = []
    for name, (unit, budget) in budgets.items():
        other = less if isinstance(less, str) else less[name]
        low, by = seen[other] if other else Figure(0, 0), _UNITS[unit]
        best, median = (seen[name].best - low.best) / by, (seen[name].median - low.median) / by
        rows.append(Row(name=name, unit=unit, budget=budget, best=best, median=median, scaled=best * pace))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows to read."""
    head = f"{'without network':38}{'best':>10}{'median':>10}{'at pace':>10}{'budget':>10}"
    lines = [
        f"{row.name:38}{row.best:10.2f}{row.median:10.2f}{row.scaled:10.2f}"
        + (f"{row.budget:10g} {row.unit}" if row.budget else f"{'':10} {row.unit}")
        for row in rows
    ]
    return "\n".join([head, *lines])
