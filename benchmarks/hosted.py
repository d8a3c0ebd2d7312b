"""What a host costs over the turns it runs: accepting, leasing and storing them in a SQLite file on disk.

Each figure is CPU time of all threads, the file's own among them, in short blocks by turns; a rate is how many of a
thing one second of CPU does. Real processes on one file are in `two_workers`.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.in_process import INSTRUCTIONS, Instant, session_of
from benchmarks.measure import YARDSTICK_US, Figure, Work, by_turns, yardstick
from onrecord import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Wake
from onrecord.host import Host
from onrecord.host.live import Progress
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.request import Request
from onrecord.session import Session
from onrecord.session.inbox import wake_row
from onrecord.session.memory_store import MemoryStore
from onrecord.session.store import Change
from onrecord.stores.sqlite import SqliteStore

__all__ = ("BUDGETS", "Hosted", "hosted_agent", "measured", "table")

SHORT, LONG = 10, 10_000
DUE = 1_000
SLEEPING = 100_000
DELTAS = 500
READERS = 8
AT_ONCE = 200
_FAR = datetime(2100, 1, 1, tzinfo=UTC)


class Hosted(Struct, frozen=True, kw_only=True):
    """One figure beside its budget: the most it may be, or with ``high`` the least.

    ``scaled`` is ``best`` as it would be where the budgets were stated.
    """

    name: str
    unit: str
    budget: float
    best: float
    median: float
    scaled: float
    high: bool = False

    def is_met(self, head_room: float = 1) -> bool:
        """Whether the figure is within its budget, or within that many times of it."""
        return self.scaled * head_room >= self.budget if self.high else self.scaled <= self.budget * head_room

    def is_better_than(self, other: Hosted) -> bool:
        """Whether this run of the row was the better one."""
        return self.scaled > other.scaled if self.high else self.scaled < other.scaled


BUDGETS: Mapping[str, tuple[str, float]] = {
    "warm hosted turn, above the bare one": ("us", 1200),
    "the same at 10,000 messages": ("times", 1.2),
    "hosted turns, one session": ("/s", 400),
    "hosted turns, 16 sessions at once": ("/s", 400),
    "cold load of 10,000 messages": ("ms", 40),
    "wakes armed": ("/s", 20_000),
    "due wakes drained": ("/s", 700),
    "a live subscriber, a delta": ("us", 5),
    "asking what is due, 100,000 asleep": ("us", 0),
    "statements a poll, 100,000 asleep": ("", 1),
    "tasks of a host, 100,000 asleep": ("", 2),
    "idle host, a second": ("us", 0),
    "memory of a running turn": ("KB", 0),
    "memory of a hot session, 50 messages": ("KB", 0),
}
"""Unit and budget of each row, 0 where there is none. Rates are wanted at least, the others at most."""


# ---- the pieces -----------------------------------------------------------------------------------------------------
_WORDS: Sequence[Chunk] = (TextChunk("All good: the answer is forty-two, as expected."),)
_END = Finished()


def hosted_agent() -> Agent:
    """Says one sentence at once, over a wire that does not grow with the history."""
    return Agent(Instant(lambda _: _WORDS), instructions=INSTRUCTIONS)


class _Talking(Instant):
    """One word at a time: whoever reads live is woken for each."""

    def __init__(self) -> None:
        super().__init__(lambda _: ())

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        for _ in range(DELTAS):
            yield TextChunk("alpha ")
            await asyncio.sleep(0)
        yield _END


class _Held(Instant):
    """Says nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__(lambda _: ())
        self.begun = 0
        self.go = asyncio.Event()

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        self.begun += 1
        await self.go.wait()
        for chunk in (*_WORDS, _END):
            yield chunk


async def _until(is_so: Any) -> None:
    while not await is_so():  # noqa: ASYNC110 - a benchmark waits for what other tasks do
        await asyncio.sleep(0.002)


# ---- turns ----------------------------------------------------------------------------------------------------------
def _hosted(host: Host[Any, Any], key: str, count: int = 30) -> Work:
    async def block() -> int:
        for _ in range(count):
            await host.turn(key, "hello")
        return count

    return block


def _bare(agent: Agent, start: Session, count: int = 30) -> Work:
    held = [start]

    async def block() -> int:
        for _ in range(count):
            result = await agent.turn("hello", session=held[0])
            held[0] = result.session or held[0]
        return count

    return block


def _at_once(host: Host[Any, Any], sessions: int = 16, count: int = 4) -> Work:
    async def block() -> int:
        await asyncio.gather(*(_hosted(host, f"of many {n}", count)() for n in range(sessions)))
        return sessions * count

    return block


def _cold(store: SqliteStore, key: str) -> Work:
    async def block() -> int:
        held = await store.load(key)
        if held is None or len(held.conversation.messages) != LONG:
            raise ValueError(held)
        return 1

    return block


async def _turns(folder: Path, blocks: int) -> dict[str, Figure]:
    agent, store = hosted_agent(), SqliteStore(folder / "turns.db")
    short, long = session_of(SHORT), session_of(LONG)
    async with Host(agent, store=store) as host:
        for key, session in (("short", short), ("long", long), ("cold", long)):
            await host.import_history(key, list(session.conversation.messages), by="bench")
        works = {
            "yardstick": yardstick,
            "bare": _bare(agent, short),
            "bare, long": _bare(agent, long),
            "hosted": _hosted(host, "short"),
            "hosted, long": _hosted(host, "long"),
            "at once": _at_once(host),
            "cold": _cold(store, "cold"),
        }
        seen = await by_turns(works, blocks)
    await store.close()
    return seen


# ---- wakes ----------------------------------------------------------------------------------------------------------
async def _arm(store: SqliteStore, names: Sequence[str], at: datetime, many: int = 100) -> None:
    """Wakes for that many sessions, as turns arm them: with a commit."""
    by = Session(key=SessionKey("bench"))
    for start in range(0, len(names), many):
        wakes = [Wake(key="ring", at=at, session=SessionKey(name)) for name in names[start : start + many]]
        await store.commit(Change(session=by, put=tuple(wake_row(by.key, wake) for wake in wakes)))


async def _drained(store: SqliteStore) -> float:
    """CPU seconds of a host from its start until all wakes that were due are taken and stored."""
    await _arm(store, [f"session {n}" for n in range(DUE)], datetime.now(UTC))

    async def is_empty() -> bool:
        return not await store.rows("in", limit=1)

    started = time.process_time()
    async with Host(hosted_agent(), store=store):
        await _until(is_empty)
        return time.process_time() - started


class _Wakes(Struct):
    arm: Figure
    drain: Figure
    ask: Figure
    statements: float
    tasks: int
    idle: Figure


async def _wakes(folder: Path, blocks: int) -> _Wakes:
    """Armed for 100,000 sessions that sleep on; drained for 1,000, whose sessions the first block makes."""
    asleep, due = SqliteStore(folder / "asleep.db"), SqliteStore(folder / "due.db")
    arm = list[float]()
    for start in range(0, SLEEPING, DUE):
        begun = time.process_time()
        await _arm(asleep, [f"session {n}" for n in range(start, start + DUE)], _FAR)
        arm.append((time.process_time() - begun) / DUE)
    drain = [await _drained(due) / DUE for _ in range(blocks + 1)][1:]

    async def ask() -> int:
        for _ in range(50):
            await asleep.next_due("in")
        return 50

    async def load() -> int:
        for _ in range(50):
            await asleep.load("nobody")
        return 50

    asked = await by_turns({"ask": ask, "load": load}, 20)  # a hop to the file's thread is in both
    del asked["load"]
    statements, tasks, idle = await _idle(asleep)
    await asleep.close()
    await due.close()
    return _Wakes(_figure(arm), _figure(drain), asked["ask"], statements, tasks, idle)


async def _idle(store: SqliteStore, polls: int = 40, poll_s: float = 0.02) -> tuple[float, int, Figure]:
    """Statements a poll, tasks, and CPU of an idle host over this store; the CPU as if it polled each second."""
    told = list[str]()
    before, held, costs = len(asyncio.all_tasks()), store._file, list[float]()  # noqa: SLF001 - statements are counted on the one connection there is
    async with Host(hosted_agent(), store=store, poll_s=poll_s):
        await asyncio.sleep(5 * poll_s)
        await held.run(lambda connection: connection.set_trace_callback(told.append))
        started = time.perf_counter()
        for _ in range(4):
            begun = time.process_time()
            await asyncio.sleep(polls / 4 * poll_s)
            costs.append((time.process_time() - begun) / (polls / 4))
        rounds = (time.perf_counter() - started) / poll_s
        await held.run(lambda connection: connection.set_trace_callback(None))
        tasks = len(asyncio.all_tasks()) - before
    return len(told) / rounds, tasks, _figure(costs)


def _figure(seconds: Sequence[float]) -> Figure:
    return Figure(min(seconds) * 1e6, statistics.median(seconds) * 1e6)


# ---- readers --------------------------------------------------------------------------------------------------------
async def _readers(blocks: int) -> dict[str, Figure]:
    """The same turns with and without somebody who reads them live; without a file, which has nothing to do with it."""
    async with Host(Agent(_Talking(), instructions=INSTRUCTIONS)) as host:

        async def read() -> None:
            seen = 0
            async with aclosing(host.live("heard")) as items:
                async for item in items:
                    seen += len(item.items) if isinstance(item, Progress) else 0
                    if seen >= DELTAS:
                        return

        async def heard() -> int:
            async with asyncio.TaskGroup() as group:
                for _ in range(READERS):
                    group.create_task(read())
                await asyncio.sleep(0)
                await host.turn("heard", "hello")
            return 1

        async def unheard() -> int:
            await host.turn("unheard", "hello")
            return 1

        return await by_turns({"heard": heard, "unheard": unheard}, blocks)


# ---- memory ---------------------------------------------------------------------------------------------------------
async def _memory() -> tuple[float, float]:
    """KB of a turn that runs, in a session of no messages, and of a session of fifty that is kept ready."""
    model, hot = _Held(), MemoryStore()
    async with Host(Agent(model, instructions=INSTRUCTIONS), turns=AT_ONCE + 1) as host:
        await host.send("warm", "hello")
        await asyncio.sleep(0.05)
        before = _traced()
        tickets = [await host.send(f"session {n}", "hello") for n in range(AT_ONCE)]

        async def is_begun() -> bool:
            return model.begun > AT_ONCE

        await _until(is_begun)
        running = (_traced() - before) / AT_ONCE
        tracemalloc.stop()
        model.go.set()
        for ticket in tickets:
            await ticket.result()
    async with Host(hosted_agent(), store=hot) as filling:
        for n in range(50):
            said = session_of(50, n).conversation.messages
            await filling.import_history(f"session {n}", list(said), by="bench")
    async with Host(hosted_agent(), store=hot) as host:
        before = _traced()
        for n in range(50):
            await host.turn(f"session {n}", "hello")
        kept = (_traced() - before) / 50
        tracemalloc.stop()
    return running / 1024, kept / 1024


def _traced() -> int:
    gc.collect()
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


# ---- rows -----------------------------------------------------------------------------------------------------------
async def measured(blocks: int = 40) -> list[Hosted]:
    """Every row."""
    with tempfile.TemporaryDirectory() as folder:
        seen = await _turns(Path(folder), blocks)
        wakes = await _wakes(Path(folder), max(3, blocks // 8))
    heard = await _readers(max(8, blocks // 2))
    running, kept = await _memory()
    pace = YARDSTICK_US / seen["yardstick"].best

    def row(name: str, figure: Figure, by: float = 1) -> Hosted:
        if BUDGETS[name][0] == "/s":
            rate = Figure(1e6 / figure.best, 1e6 / figure.median)
            return _row(name, rate, rate.best / pace, high=True)
        return _row(name, Figure(figure.best / by, figure.median / by), figure.best / by * pace)

    above, beyond = _less(seen["hosted"], seen["bare"]), _less(seen["hosted, long"], seen["bare, long"])
    return [
        row("warm hosted turn, above the bare one", above),
        _fixed("the same at 10,000 messages", beyond.best / above.best, beyond.median / above.median),
        row("hosted turns, one session", seen["hosted"]),
        row("hosted turns, 16 sessions at once", seen["at once"]),
        row("cold load of 10,000 messages", seen["cold"], 1000),
        row("wakes armed", wakes.arm),
        row("due wakes drained", wakes.drain),
        row("a live subscriber, a delta", _less(heard["heard"], heard["unheard"]), READERS * DELTAS),
        row("asking what is due, 100,000 asleep", wakes.ask),
        _fixed("statements a poll, 100,000 asleep", wakes.statements),
        _fixed("tasks of a host, 100,000 asleep", wakes.tasks),
        row("idle host, a second", wakes.idle),
        _fixed("memory of a running turn", running),
        _fixed("memory of a hot session, 50 messages", kept),
    ]


def _less(more: Figure, less: Figure) -> Figure:
    return Figure(more.best - less.best, more.median - less.median)


def _row(name: str, figure: Figure, scaled: float, *, high: bool = False) -> Hosted:
    unit, budget = BUDGETS[name]
    return Hosted(
        name=name, unit=unit, budget=budget, best=figure.best, median=figure.median, scaled=scaled, high=high
    )  # fmt: skip


def _fixed(name: str, best: float, median: float | None = None) -> Hosted:
    """A figure that does not depend on how fast the machine is."""
    return _row(name, Figure(best, best if median is None else median), best)


def table(rows: Sequence[Hosted]) -> str:
    """The rows to read."""
    lines = [f"{'hosted, over SQLite':38}{'best':>10}{'median':>10}{'at pace':>10}{'budget':>10}"]
    for row in rows:
        budget = f"{'>=' if row.high else '<='}{row.budget:g}" if row.budget else ""
        lines.append(f"{row.name:38}{row.best:10.2f}{row.median:10.2f}{row.scaled:10.2f}{budget:>10} {row.unit}")
    return "\n".join(lines)
