"""Hosts in processes of their own on one SQLite file: what a second one adds.

    python -m benchmarks.two_workers [--rounds 9]

Each process keeps to a core of its own. One works alone, then both at once, by turns; what else ran meanwhile on these
cores is shown beside the figures: where it is much, they say little.
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
from pathlib import Path

from msgspec import Struct

from benchmarks.hosted import hosted_agent
from benchmarks.measure import pin
from onrecord.host import Host
from onrecord.stores.sqlite import SqliteStore

__all__ = ("Workers", "measured", "table", "used")

SESSIONS = 16
SECONDS = 0.6
BUDGET = 1.6
ALONE = 400


class Workers(Struct, frozen=True, kw_only=True):
    """Turns a second of one process and of two, CPU microseconds of a turn then, and how many cores others used."""

    alone: list[float]
    both: list[float]
    alone_us: float
    both_us: float
    others: float

    @property
    def ratio(self) -> float:
        """The median of the rounds: one alone, and both right after it."""
        return statistics.median(both / alone for alone, both in zip(self.alone, self.both, strict=True))

    @property
    def best(self) -> float:
        """The best of both over the best alone: others only ever take away."""
        return max(self.both) / max(self.alone)

    def is_met(self, head_room: float = 1) -> bool:
        """Whether two do so many times what one does, or that by so much less; the better of both ratios counts."""
        return max(self.best, self.ratio) * head_room >= BUDGET


# ---- a worker -------------------------------------------------------------------------------------------------------
async def _work(path: str, name: str) -> None:
    """Answers each line, a number of seconds, with the turns it ran in them and the CPU that took."""
    store = SqliteStore(path)
    async with Host(hosted_agent(), store=store) as host:
        while line := await asyncio.to_thread(sys.stdin.readline):
            begun = time.process_time()
            count = await _turns(host, name, time.monotonic() + float(line))
            print(count, time.process_time() - begun, flush=True)
    await store.close()


async def _turns(host: Host, name: str, end: float) -> int:
    async def talk(session: str) -> int:
        count = 0
        while time.monotonic() < end:
            await host.turn(session, "hello")
            count += 1
        return count

    return sum(await asyncio.gather(*(talk(f"{name} {n}") for n in range(SESSIONS))))


# ---- both of them ---------------------------------------------------------------------------------------------------
class _Process:
    def __init__(self, path: Path, core: int) -> None:
        command = [sys.executable, "-m", "benchmarks.two_workers", "--worker", str(path), "--core", str(core)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, seconds: float) -> None:
        """Starts a round."""
        pipe = self._process.stdin
        if pipe is None:
            raise ValueError(pipe)
        pipe.write(f"{seconds}\n")
        pipe.flush()

    def told(self) -> tuple[int, float]:
        """The turns of the round that was begun, and its CPU seconds."""
        pipe = self._process.stdout
        if pipe is None:
            raise ValueError(pipe)
        count, used = pipe.readline().split()
        return int(count), float(used)

    def close(self) -> None:
        """Ends it."""
        self._process.communicate(timeout=30)


def measured(rounds: int = 9, seconds: float = SECONDS) -> Workers:
    """One alone and both at once, by turns; the first round makes the sessions."""
    alone, both, busy = list[float](), list[float](), list[float]()
    alone_us, both_us = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shared.db"
        first, second = _Process(path, 0), _Process(path, 1)
        for place in range(rounds + 1):
            before, began = used(), time.monotonic()
            first.begin(seconds)
            one, alone_s = first.told()
            first.begin(seconds)
            second.begin(seconds)
            ended = [first.told(), second.told()]
            two, both_s = sum(count for count, _ in ended), sum(cpu for _, cpu in ended)
            if place:
                alone.append(one / seconds)
                both.append(two / seconds)
                alone_us.append(alone_s / one * 1e6)
                both_us.append(both_s / two * 1e6)
                busy.append((used() - before - alone_s - both_s) / (time.monotonic() - began))
        first.close()
        second.close()
    return Workers(
        alone=alone, both=both, others=max(0.0, statistics.median(busy)),
        alone_us=statistics.median(alone_us), both_us=statistics.median(both_us),
    )  # fmt: skip


def used() -> float:
    """CPU seconds of everybody on this machine; 0 where the system does not say."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    idle = int(fields[3]) + int(fields[4])
    return (sum(map(int, fields[:8])) - idle) / os.sysconf("SC_CLK_TCK")


def table(workers: Workers) -> str:
    """The rows to read."""
    alone, both = workers.alone, workers.both
    return "\n".join(
        [
            f"{'two processes, one file':38}{'best':>10}{'median':>10}{'':10}{'budget':>10}",
            f"{'one alone':38}{max(alone):10.0f}{statistics.median(alone):10.0f}{'':10}{f'>={ALONE}':>10} turns/s",
            f"{'both at once':38}{max(both):10.0f}{statistics.median(both):10.0f}{'':20} turns/s",
            f"{'ratio':38}{workers.best:10.2f}{workers.ratio:10.2f}{'':10}{f'>={BUDGET}':>10} times",
            f"{'CPU of a turn, one alone':38}{'':10}{workers.alone_us:10.0f}{'':20} us",
            f"{'CPU of a turn, both at once':38}{'':10}{workers.both_us:10.0f}{'':20} us",
            f"{'cores that others used meanwhile':38}{'':10}{workers.others:10.2f}",
        ]
    )


def main() -> int:
    """A worker, or both and their table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--worker", default="", help=argparse.SUPPRESS)
    arguments.add_argument("--core", type=int, default=0, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if not options.worker:
        print(table(measured(options.rounds)))
        return 0
    pin(options.core % (os.cpu_count() or 1))
    asyncio.run(_work(options.worker, f"worker {options.core}, session"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
