"""Whole turns over HTTP beside plain aiohttp loops, turn and turn about, in one process against one server.

Ours stream, keep a record, order their calls, may be cancelled at any point and retry; the plain loops do none of
that, and ask for their short answers in one piece.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import Struct

from benchmarks.in_process import session_of
from benchmarks.measure import pin
from benchmarks.mock_model import TEXT, serving
from benchmarks.plain_loops import INSTRUCTIONS, PARAMETERS, PlainLoops
from onrecord import Agent
from onrecord.models.request import Request
from onrecord.net.transport import post
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.session import Session
from onrecord.tools.tool import Tool, ToolContext

__all__ = ("Pair", "measured", "table")

DELTAS = 2000
LONG = 10_000
HELLO = json.dumps({
    "model": "mock-1",
    "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "hello"}],
}).encode()  # fmt: skip
_names = count()


class Pair(Struct, frozen=True, kw_only=True):
    """One row: what the plain loop and we took, and the ratio of neighbouring blocks.

    ``best`` is the ratio of the best blocks, ``high`` says that more is better.
    """

    name: str
    unit: str
    plain: float
    ours: float
    ratio: float
    best: float
    budget: float
    high: bool = False


# ---- the two sides --------------------------------------------------------------------------------------------------
class Ours:
    """Agents that do the same."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._agents: dict[str, Agent] = {}

    def agent(self, path: str, *, tools: bool = False) -> Agent:
        """The agent whose model is scripted by this path."""
        if (held := self._agents.get(path)) is None:
            model = openai_compatible(f"{self.base}/{path}/v1", "mock-1", api_key="k")
            lookup = Tool("lookup", _lookup, "Look up a key.", parameters=PARAMETERS, read_only=True)
            held = Agent(model, instructions=INSTRUCTIONS, tools=[lookup] if tools else [])
            self._agents[path] = held
        return held

    async def turn(self, session: Session | str, said: str) -> Session:
        """One more turn of a conversation."""
        result = await self.agent("text").turn(said, session=session)
        if result.text.strip() != TEXT or result.session is None:
            raise ValueError(result.text)
        return result.session

    async def simple(self) -> str:
        """One turn without tools and history, in a session of its own."""
        return (await self.agent("text").turn("hello")).text

    async def tools(self, script: str) -> str:
        """One turn with calls."""
        return (await self.agent(f"rounds/{script}", tools=True).turn("look it up")).text

    async def exchange(self, body: bytes) -> bytes:
        """A body sent and its answer read, over the transport alone."""
        url, headers = f"{self.base}/text/v1/chat/completions", {"authorization": "Bearer k"}
        async with post(url, body, headers=headers, provider="bench") as reply:
            return await reply.read()

    async def stream(self, count: int, pause: int, first: Callable[[], None]) -> int:
        """The deltas of one streamed turn; ``first`` is called at the first."""
        seen = 0
        async for batch in self.agent(f"deltas/{count}/{pause}").turn_stream("go on").batches():
            if not seen:
                first()
            seen += len(batch)
        return seen


async def _lookup(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
    return f"value of {args['q']}"


Side = PlainLoops | Ours
Measure = Callable[[Side], Awaitable[float]]


# ---- what is measured: each returns one number ----------------------------------------------------------------------
def _cpu(act: Callable[[Side], Awaitable[object]], times: int) -> Measure:
    """CPU of one call, in microseconds."""

    async def measure(side: Side) -> float:
        start = time.process_time()
        for _ in range(times):
            await act(side)
        return (time.process_time() - start) / times * 1e6

    return measure


async def _exchange(side: Side) -> str:
    """What the simple turn of the plain loop does, for us by the transport alone."""
    if isinstance(side, PlainLoops):
        return await side.simple()
    return str(json.loads(await side.exchange(HELLO))["choices"][0]["message"]["content"])


async def _delta(side: Side) -> float:
    """CPU of one delta of many."""
    start = time.process_time()
    seen = await side.stream(DELTAS, 0, lambda: None)
    if seen != DELTAS:
        raise ValueError(seen)
    return (time.process_time() - start) / seen * 1e6


async def _first(side: Side) -> float:
    """Wall time to the first delta, in microseconds."""
    taken: list[float] = []
    for _ in range(15):
        start = time.perf_counter()

        def first(start: float = start) -> None:
            taken.append(time.perf_counter() - start)

        await side.stream(3, 2, first)
    return statistics.median(taken) * 1e6


def _history(messages: int, times: int) -> Measure:
    """CPU of one turn after so many messages; what is made once for a conversation is made before."""
    said: list[dict[str, str]] = []
    ours: list[Session] = []

    async def measure(side: Side) -> float:
        if not ours:  # made only now, so that the rows before need not drag it through their garbage collections
            session = session_of(messages)
            said.extend(
                {"role": "user" if index % 2 == 0 else "assistant", "content": getattr(message, "text", "")}
                for index, message in enumerate(session.conversation.messages)
            )
            ours.append(session)
        if isinstance(side, PlainLoops):
            held = [{"role": "system", "content": INSTRUCTIONS}, *said]
            gc.collect()
            start = time.process_time()
            for _ in range(times):
                await side.turn(held, "hello")
            return (time.process_time() - start) / times * 1e6
        ours[0] = await side.turn(ours[0], "hello")
        gc.collect()
        start = time.process_time()
        for _ in range(times):
            ours[0] = await side.turn(ours[0], "hello")
        return (time.process_time() - start) / times * 1e6

    return measure


def _crowd(sessions: int, waits: list[float]) -> Measure:
    """Turns per second when so many sessions talk at once; how long ours took goes to ``waits``."""
    turns = max(2, 512 // sessions)

    async def measure(side: Side) -> float:
        gc.collect()
        taken: list[float] = []

        async def plain(side: PlainLoops) -> None:
            held: list[dict[str, Any]] = [{"role": "system", "content": INSTRUCTIONS}]
            for _ in range(turns):
                await side.turn(held, "hello")

        async def ours(side: Ours) -> None:
            held: Session | str = f"crowd {next(_names)}"
            for _ in range(turns):
                start = time.perf_counter()
                held = await side.turn(held, "hello")
                taken.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(
            plain(side) if isinstance(side, PlainLoops) else ours(side) for _ in range(sessions)
        ))  # fmt: skip
        rate = sessions * turns / (time.perf_counter() - start)
        if taken:
            taken.sort()
            waits.append(taken[int(len(taken) * 0.99)] / taken[len(taken) // 2])
        return rate

    return measure


async def _sending(ours: Ours, times: int = 20) -> float:
    """CPU of sending the bytes of the long turn and reading the answer, over the transport alone."""
    session = session_of(LONG)
    agent = ours.agent("text")
    sent: list[bytes] = []
    held = agent.plan.fixed_model()
    if held is None:
        raise TypeError("the model is a function")
    await agent.with_(model=_Spied(held, sent)).turn("hello", session=session)
    gc.collect()
    start = time.process_time()
    for _ in range(times):
        await ours.exchange(sent[0])
    return (time.process_time() - start) / times * 1e6


class _Spied:
    """A model that keeps the bytes it is sent."""

    def __init__(self, model: Any, sent: list[bytes]) -> None:
        self.card, self.stream, self._model, self._sent = model.card, model.stream, model, sent

    def wire(self, request: Request, /) -> Any:
        wire = self._model.wire(request)
        self._sent.append(wire.body)
        return wire


# ---- the run --------------------------------------------------------------------------------------------------------
async def _compare(base: str, rounds: int, only: str) -> list[Pair]:
    plain, ours = PlainLoops(base), Ours(base)
    waits: dict[int, list[float]] = {64: [], 256: []}  # p99 over p50, by sessions
    rows: list[tuple[str, str, Measure, float]] = [
        ("one exchange, transport alone", "us CPU", _cpu(_exchange, 30), 0),
        ("simple turn", "us CPU", _cpu(lambda s: s.simple(), 30), 1.5),
        ("five tool rounds", "us CPU", _cpu(lambda s: s.tools("5x1"), 8), 1.5),
        ("one round of eight tools", "us CPU", _cpu(lambda s: s.tools("1x8"), 12), 1.5),
        ("streamed delta", "us CPU", _delta, 1.0),
        ("first delta", "us wall", _first, 0),
        ("turn after 10 messages", "us CPU", _history(10, 30), 0),
        (f"turn after {LONG:,} messages", "us CPU", _history(LONG, 4), 0),
        ("64 sessions", "turns/s", _crowd(64, waits[64]), 0.5),
        ("256 sessions", "turns/s", _crowd(256, waits[256]), 0.5),
    ]
    pairs: list[Pair] = []
    while rows:
        name, unit, measure, budget = rows.pop(0)
        if only in name:
            pairs.append(await _pair(name, unit, measure, budget, plain, ours, rounds))
    named = {pair.name: pair for pair in pairs}
    if (first := named.get("first delta")) is not None:
        pairs.append(_figure("first delta, later by", "ms", (first.ours - first.plain) / 1000, 0.3))
    if (long := named.get(f"turn after {LONG:,} messages")) and (short := named.get("turn after 10 messages")):
        beyond = long.ours - short.ours - await _sending(ours)
        pairs.append(_figure("a message of history, beyond sending", "us", beyond / (LONG - 10), 0.3))
    pairs += [
        _figure(f"{size} sessions, p99 over p50", "times", statistics.median(seen), 2.5)
        for size, seen in waits.items()
        if seen
    ]
    await plain.session.close()
    return pairs


def _figure(name: str, unit: str, value: float, budget: float) -> Pair:
    return Pair(name=name, unit=unit, plain=0, ours=value, ratio=value, best=value, budget=budget)


async def _pair(
    name: str, unit: str, measure: Measure, budget: float, plain: PlainLoops, ours: Ours, rounds: int
) -> Pair:
    """One row: blocks by turns, the first of them to warm up."""
    seen: dict[Side, list[float]] = {plain: [], ours: []}
    for block in range(rounds + 1):
        for side in (plain, ours) if block % 2 else (ours, plain):
            seen[side].append(await measure(side))
    theirs, own = seen[plain][1:], seen[ours][1:]
    high = unit == "turns/s"
    most = max if high else min
    return Pair(
        name=name, unit=unit, plain=statistics.median(theirs), ours=statistics.median(own), budget=budget, high=high,
        ratio=statistics.median(ours / plain for plain, ours in zip(theirs, own, strict=True)),
        best=most(own) / most(theirs),
    )  # fmt: skip


def measured(rounds: int = 21, only: str = "") -> list[Pair]:
    """Every row."""
    warnings.simplefilter("ignore", ResourceWarning)  # the plain loop hands large bodies over as bytes
    with serving() as base:
        pin(0)
        return asyncio.run(_compare(base, rounds, only))


def table(pairs: Sequence[Pair]) -> str:
    """The rows to read."""
    lines = [f"{'over HTTP':38}{'plain':>10}{'ours':>10}{'ratio':>8}{'of bests':>9}{'budget':>8}"]
    for pair in pairs:
        budget = f"{'>=' if pair.high else '<='}{pair.budget:g}" if pair.budget else ""
        if pair.plain:
            figures = f"{pair.plain:10.1f}{pair.ours:10.1f}{pair.ratio:8.2f}{pair.best:9.2f}"
        else:
            figures = f"{'':10}{pair.ours:10.3f}{'':17}"
        lines.append(f"{pair.name:38}{figures}{budget:>8}  {pair.unit}")
    return "\n".join(lines)
