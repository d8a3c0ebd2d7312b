"""A soak: workers on one file are killed and stopped again and again, and nothing may be lost or doubled.

    python -m tests.soak.run --kills 200 --seed 7

Everything random follows from the seed, except what the machine decides: which instruction a kill meets. Ends with
status 1, and keeps its folder, when a promise was broken.
"""

# ruff: noqa: S311, T201  chance, not secrets; its output is its purpose
from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tests.soak import checks, vendor, worker
from tests.soak.diary import Diary

DRAIN_S = 60.0
_STEP_S = 0.05


def _forked(act: Callable[[], object]) -> int:
    """A child process. Forked, it starts in milliseconds, and this process has no other threads."""
    child = os.fork()
    if not child:
        _live(act)
    return child


def _live(act: Callable[[], object]) -> NoReturn:
    try:
        act()
    finally:
        os._exit(1)


class Soak:
    """The processes of one soak in one folder."""

    def __init__(self, folder: Path, seed: int, workers: int) -> None:
        self.folder, self.seed, self.chance = folder, seed, random.Random(seed)
        self.kills = self.stops = self.lives = 0
        self.vendor = _forked(lambda: vendor.serve(folder, f"{seed} vendor"))
        _until((folder / "port").exists, 10)
        self.workers = [self._worker() for _ in range(workers)]

    def _worker(self) -> int:
        self.lives += 1
        life = f"{self.seed} worker {self.lives}"
        return _forked(lambda: worker.work(self.folder, life))

    def harm(self) -> None:
        """Kills a worker, or stops it for longer than its leases last."""
        place = self.chance.randrange(len(self.workers))
        if self.chance.random() < 0.12:
            os.kill(self.workers[place], signal.SIGSTOP)
            time.sleep(worker.LEASE_S * self.chance.uniform(1.1, 1.8))
            os.kill(self.workers[place], signal.SIGCONT)
            self.stops += 1
            return
        self._end(self.workers[place], "a worker")
        self.workers[place] = self._worker()
        self.kills += 1

    def _end(self, child: int, who: str) -> None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"{who} ended by itself; its folder is {self.folder}")

    def run(self, kills: int, told: Callable[[str], object]) -> None:
        """Harms until there were that many kills, then lets everything come to rest."""
        while self.kills < kills:
            time.sleep(self.chance.uniform(0.1, 1.0))
            self.harm()
            told(f"\r{self.kills} of {kills} kills, {self.stops} stops, {self._count('accepted')} inputs accepted")
        (self.folder / "calm").touch()
        _until(self._is_at_rest, DRAIN_S)

    def _count(self, what: str) -> int:
        return sum(1 for _ in Diary(self.folder / "diary").lines(what))

    def _is_at_rest(self) -> bool:
        """Nothing waits and no question is open; otherwise the checks say what does."""
        db = sqlite3.connect(self.folder / "soak.db")
        try:
            (rows,) = db.execute("select count(*) from rows").fetchone()
            (paused,) = db.execute(
                "select count(*) from sessions where cast(state as text) like '%\"pending\":{%'"
            ).fetchone()
        finally:
            db.close()
        return not rows and not paused

    def end(self) -> None:
        """Ends every process."""
        for child in self.workers:
            self._end(child, "a worker")
        self._end(self.vendor, "the vendor")


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(_STEP_S)


def soak(folder: Path, kills: int, seed: int, workers: int) -> bool:
    """Runs one soak and tells how it went. Whether every promise was kept."""
    print(f"soak: seed {seed}, {workers} workers, folder {folder}", flush=True)
    began = time.monotonic()
    running = Soak(folder, seed, workers)
    show = _shown if sys.stdout.isatty() else len
    try:
        running.run(kills, show)
    finally:
        running.end()
    told = asyncio.run(checks.read(folder / "soak.db"))
    diary = Diary(folder / "diary")
    print(f"\n{'SIGKILLs':<44}{running.kills:>8}\n{'SIGSTOPs longer than a lease':<44}{running.stops:>8}")
    for name, count in checks.summary(diary, told):
        print(f"{name:<44}{count:>8}")
    found = list(checks.problems(folder / "soak.db", diary, told))
    for problem in found[:40]:
        print(f"BROKEN: {problem}")
    print(f"{len(found)} promises broken after {time.monotonic() - began:.0f} s; seed {seed}")
    return not found


def _shown(text: str) -> None:
    print(text, end="", flush=True)


def main() -> None:
    """Reads the command line."""
    warnings.simplefilter("ignore", DeprecationWarning)
    given = argparse.ArgumentParser(description="Kills workers again and again; nothing may be lost or doubled.")
    given.add_argument("--kills", type=int, default=200)
    given.add_argument("--workers", type=int, default=2)
    given.add_argument("--seed", type=int, default=None, help="default: a new one")
    given.add_argument("--folder", type=Path, default=None, help="default: a new one, removed when all is well")
    asked = given.parse_args()
    seed = random.randrange(10**6) if asked.seed is None else asked.seed
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="onrecord-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    if not soak(folder, asked.kills, seed, asked.workers):
        raise SystemExit(f"kept: {folder}")
    if asked.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
