"""Wakes of flows that come due at one moment, drained by two workers in processes of their own on one SQLite file.

    python -m benchmarks.flow_wakes [--rounds 7]

Each of a thousand sessions has a run that waits. Its wake makes it speak, over a model that answers at once, deliver
that, and wait again. A round is over when both workers have nothing left; what else ran meanwhile on these cores is
shown beside the figures: where it is much, they say little.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from benchmarks.in_process import Instant
from benchmarks.measure import pin
from benchmarks.two_workers import used
from onrecord import Agent, SessionKey
from onrecord.conversation.inputs import Started
from onrecord.conversation.outgoing import Outgoing
from onrecord.flows import Flow, Flows, OnMessage, Talk, Wait
from onrecord.host import Host
from onrecord.models.chunks import Chunk, TextChunk
from onrecord.stores.sqlite import SqliteStore
from onrecord.turn.effects import PlainEffects

__all__ = ("BUDGET", "Drained", "measured", "table")

SESSIONS = 1_000
BUDGET = 300
MOST_ROUNDS = 40
HOUR = 3600.0
_WORDS: Sequence[Chunk] = (TextChunk('{"message":"Is there anything else that we can do for you?"}'),)


class Drained(Struct, frozen=True, kw_only=True):
    """Turns a second of each round, CPU microseconds of a turn, and how many cores others used."""

    rates: list[float]
    cpu_us: float
    others: float

    @property
    def best(self) -> float:
        """The best round: others only ever take away."""
        return max(self.rates)

    def is_met(self, head_room: float = 1) -> bool:
        """Whether they did so many turns a second, or that by so much less."""
        return self.best * head_room >= BUDGET


# ---- a worker --------------------------------------------------------------------------------------------------------
class _Ahead(PlainEffects):
    """A clock that runs ahead of the real one by as many seconds as it is told."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.now = self._now

    def _now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead)


def followed() -> Agent:
    """A run of its first flow waits an hour, speaks, and waits again; the others are there to be looked through."""
    follow = Flow("follow", steps=[step for n in range(MOST_ROUNDS) for step in (Wait("1h"), Talk(f"Ask again, {n}."))])
    others = [Flow(f"flow{n}", on=[OnMessage(f"asks about {n}")], steps=[Talk(f"Talk of {n}.")]) for n in range(19)]
    director = Flows(follow, *others, persona="A concierge.", goal="Rooms for everybody.")
    return Agent(Instant(lambda _: _WORDS), name="Ana", director=director)


async def _work(path: str) -> None:
    """Answers each line, how far the clock is ahead then, with the wakes it took until none is due, and their CPU."""
    clock, said = _Ahead(), list[str]()

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        said.append(message.key)

    store = SqliteStore(path, clock=clock.now)
    async with Host(followed(), store=store, effects=clock, deliver=deliver) as host:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            taken, begun = (await host.health()).taken, time.process_time()
            clock.ahead = float(line)
            await host.work(once=True)
            used_s = time.process_time() - begun
            print((await host.health()).taken - taken, len(said), used_s, flush=True)
            said.clear()
    await store.close()


async def _prepare(path: Path) -> None:
    """A file in which every session waits an hour, counted from now."""
    store = SqliteStore(path)
    async with Host(followed(), store=store) as host:
        for first in range(0, SESSIONS, 50):
            some = (host.turn(f"s{n}", Started("follow", key="k")) for n in range(first, first + 50))
            await asyncio.gather(*some)
    await store.close()


# ---- both of them ----------------------------------------------------------------------------------------------------
class _Process:
    def __init__(self, path: Path, core: int) -> None:
        command = [sys.executable, "-m", "benchmarks.flow_wakes", "--worker", str(path), "--core", str(core)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, ahead: float) -> None:
        """Sets its clock."""
        pipe = self._process.stdin
        if pipe is None:
            raise ValueError(pipe)
        pipe.write(f"{ahead}\n")
        pipe.flush()

    def told(self) -> list[str]:
        """Its next line."""
        pipe = self._process.stdout
        if pipe is None:
            raise ValueError(pipe)
        return pipe.readline().split()

    def close(self) -> None:
        """Ends it."""
        self._process.communicate(timeout=30)


def measured(rounds: int = 7) -> Drained:
    """Rounds of all wakes at once; the first one warms up. ValueError for too many, or a wake taken twice or never."""
    rates, cpu, busy = list[float](), list[float](), list[float]()
    if rounds >= MOST_ROUNDS:
        raise ValueError(rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wakes.db"
        asyncio.run(_prepare(path))
        both = [_Process(path, 0), _Process(path, 1)]
        for one in both:
            one.told()
        for place in range(rounds + 1):
            before, began = used(), time.monotonic()
            for one in both:
                one.begin((place + 1) * 2 * HOUR)
            told = [one.told() for one in both]
            took = time.monotonic() - began
            turns, said = (sum(int(line[at]) for line in told) for at in (0, 1))
            cpu_s = sum(float(line[2]) for line in told)
            if (turns, said) != (SESSIONS, SESSIONS):
                raise ValueError((turns, said))
            if place:
                rates.append(turns / took)
                cpu.append(cpu_s / turns * 1e6)
                busy.append((used() - before - cpu_s) / took)
        for one in both:
            one.close()
    return Drained(rates=rates, cpu_us=statistics.median(cpu), others=max(0.0, statistics.median(busy)))


def table(drained: Drained) -> str:
    """The rows to read."""
    median = statistics.median(drained.rates)
    return "\n".join(
        [
            f"{f'{SESSIONS} wakes of flows, two processes':38}{'best':>10}{'median':>10}{'':10}{'budget':>10}",
            f"{'drained and delivered':38}{drained.best:10.0f}{median:10.0f}{'':10}{f'>={BUDGET}':>10} turns/s",
            f"{'CPU of a turn':38}{'':10}{drained.cpu_us:10.0f}{'':20} us",
            f"{'cores that others used meanwhile':38}{'':10}{drained.others:10.2f}",
        ]
    )


def main() -> int:
    """A worker, or both and their table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--worker", default="", help=argparse.SUPPRESS)
    arguments.add_argument("--core", type=int, default=0, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if not options.worker:
        print(table(measured(options.rounds)))
        return 0
    pin(options.core % (os.cpu_count() or 1))
    asyncio.run(_work(options.worker))
    return 0


if __name__ == "__main__":
    sys.exit(main())
