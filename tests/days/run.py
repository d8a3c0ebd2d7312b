"""Ten days of a shop: two workers on one file, a clock that all of them share, and nothing may be lost or doubled.

    python -m tests.days.run --sessions 1000 --days 10 --seed 7

Customers write, vanish and come back; the clock jumps to the next thing that is due once everything due is done.
Workers are killed and stopped at random moments, and the clock is set ahead and back under them. What customers do
follows from the seed, what a kill meets does not. Ends with status 1, and keeps its folder, when a promise was broken.
"""

# ruff: noqa: S311, T201  chance, not secrets; its output is its purpose
from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import select
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter, deque
from pathlib import Path

import msgspec

from tests.days import checks, worker
from tests.days.customers import Act, acts
from tests.days.shop import BEGIN, Clock
from tests.soak.diary import Diary

STUCK_S = 30.0
"""So many real seconds everything due may take."""

LONGEST_REST = 30 * 86400.0
"""So many seconds after the last customer nothing may wait any more."""

WAYS = ((75, "kill"), (10, "stop"), (10, "ahead"), (5, "back"))
_AT_ONCE = 50


class Worker:
    """A worker's process; ``owed`` is what it was asked to do and has not done, ``new`` what it has not even begun."""

    def __init__(self, folder: Path, life: str) -> None:
        asked, self.asked = os.pipe()
        self.told, told = os.pipe()
        self.life, self.owed, self.new, self._rest = life, dict[tuple[str, str], bytes](), set[tuple[str, str]](), b""
        self.pid = os.fork()
        if not self.pid:
            try:
                os.close(self.asked)
                os.close(self.told)
                worker.work(folder, life, asked, told)
            finally:
                os._exit(1)
        os.close(asked)
        os.close(told)

    def ask(self, key: tuple[str, str], line: bytes) -> None:
        """Hands an act in."""
        self.owed[key] = line
        self.new.add(key)
        os.write(self.asked, line)

    def hear(self) -> None:
        """What it has begun, and what it has done, since."""
        while select.select([self.told], [], [], 0)[0]:
            more = os.read(self.told, 65536)
            *lines, self._rest = (self._rest + more).split(b"\n")
            for line in lines:
                what, session, key = json.loads(line)
                self.new.discard((session, key))
                if what == "done":
                    self.owed.pop((session, key), None)
            if not more:
                return

    def kill(self) -> None:
        """Ends it where it stands."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self.hear()
        os.close(self.asked)
        os.close(self.told)
        if not os.WIFSIGNALED(status):
            raise SystemExit("a worker ended by itself: look into its diary")


class Days:
    """The processes of one run in one folder, and the world around them."""

    def __init__(self, folder: Path, seed: int, workers: int, harms: float) -> None:
        self.folder, self.seed, self.chance, self.harms = folder, seed, random.Random(seed), harms
        self.clock = Clock(folder / "clock")
        self.clock.jump((BEGIN - self.clock.now()).total_seconds())
        self.lives, self.did = 0, Counter[str]()
        self.workers = [self._worker() for _ in range(workers)]
        self.db = sqlite3.connect(folder / "days.db", timeout=30, isolation_level=None)
        while not self.db.execute("select 1 from sqlite_master where name='rows'").fetchone():
            time.sleep(0.01)

    def _worker(self) -> Worker:
        self.lives += 1
        return Worker(self.folder, f"life{self.lives}")

    @property
    def passed(self) -> float:
        """Seconds since the first day began."""
        return (self.clock.now() - BEGIN).total_seconds()

    # ---- the world

    def run(self, what: list[Act], end: float, grid: float) -> None:
        """Until the last customer has acted, and then until nothing waits any more."""
        left, shown, asked = deque(what), 0.0, 0
        while True:
            due = self._next_due()
            nexts = [at for at in (due, left[0].at if left else None) if at is not None]
            if self.passed > end + LONGEST_REST or asked > _AT_ONCE:
                raise SystemExit("it never comes to rest: something goes on for ever")
            if not nexts:
                if not self._answer_all():
                    return
                asked += 1
                continue
            at = min(nexts)
            if at > self.passed:
                at = -(-at // grid) * grid if at == due else at
                self.clock.jump(at - self.passed)
            now = []
            while left and left[0].at <= self.passed:
                now.append(left.popleft())
            self.did["ticks"] += 1
            if self.did["ticks"] % 8 == 0:
                self._answer_all()
            self._tick(now, chaos=self.passed < end)
            if time.monotonic() - shown > 1 and sys.stdout.isatty():
                shown = time.monotonic()
                print(f"\rday {self.passed / 86400:5.2f}  {dict(self.did)}  ", end="", flush=True)

    def _tick(self, some: list[Act], *, chaos: bool) -> None:
        """What happens now, and everything that follows from it; in the midst of it somebody may be harmed."""
        harm = time.monotonic() + self.chance.uniform(0, 0.06) if chaos and self.chance.random() < self.harms else None
        waiting, deadline = deque(some), time.monotonic() + STUCK_S
        while True:
            for one in self.workers:
                while waiting and len(one.new) < _AT_ONCE:
                    act = waiting.popleft()
                    one.ask(act.row, msgspec.json.encode(act) + b"\n")
            for one in self.workers:
                one.hear()
            if harm is not None and time.monotonic() >= harm:
                harm = None
                self._harm()
            elif not waiting and not any(one.new for one in self.workers) and harm is None and self._is_quiet():
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"stuck at day {self.passed / 86400:.3f}: {self._stuck()}")
            time.sleep(0.004)

    def _harm(self) -> None:
        """Kills or stops a worker, or jumps the clock under both."""
        (how,) = self.chance.choices([way for _, way in WAYS], [weight for weight, _ in WAYS])
        self.did[how] += 1
        place = self.chance.randrange(len(self.workers))
        victim = self.workers[place]
        if how == "kill":
            victim.kill()
            self.workers[place] = self._worker()
            for key, line in victim.owed.items():
                self.workers[place].ask(key, line)
        elif how == "stop":
            os.kill(victim.pid, signal.SIGSTOP)
            self.clock.jump(worker.LEASE_S * 1.5)
            time.sleep(self.chance.uniform(0.05, 0.2))
            os.kill(victim.pid, signal.SIGCONT)
        elif how == "ahead":
            self.clock.jump(self.chance.choice([2, 60, 3600]))
        else:
            self.clock.jump(-self.chance.choice([1, 3]))

    # ---- what waits

    def _is_quiet(self) -> bool:
        """Nothing is due and nobody who lives has anything. What the dead have leased is waited for on the clock."""
        now = self.clock.now().timestamp() * 1e6
        leased = self.db.execute("select owner, session, box from rows where dead='' and lease_until>?", (now,))
        dead = set()
        for owner, session, box in leased.fetchall():
            if any(owner.startswith(f"{one.life}.") for one in self.workers):
                return False
            dead.add((session, box))
        due = self.db.execute("select session, box from rows where dead='' and due<=?", (now,)).fetchall()
        if any(place not in dead for place in due):
            return False
        if dead:
            self.clock.jump(worker.LEASE_S * 1.1)
            return False
        return True

    def _next_due(self) -> float | None:
        (due,) = self.db.execute("select min(due) from rows where dead=''").fetchone()
        return None if due is None else due / 1e6 - BEGIN.timestamp()

    def _stuck(self) -> list[tuple[object, ...]]:
        columns = "n, session, box, key, due, owner, lease_until, attempt, rung, dead"
        now = self.clock.now().timestamp() * 1e6
        return self.db.execute(f"select {columns} from rows where due<=? limit 8", (now,)).fetchall()  # noqa: S608 - our own text

    def _answer_all(self) -> bool:
        """The staff looks at every open question."""
        found = self.db.execute("select id from sessions where cast(state as text) like '%\"pending\":{%'").fetchall()
        for number, (session,) in enumerate(found):
            one = self.workers[number % len(self.workers)]
            key = f"answer {self.did['answers']}"
            self.did["answers"] += 1
            one.ask((session, key), json.dumps({"kind": "answer", "session": session, "key": key}).encode() + b"\n")
            if number % _AT_ONCE == 0:
                self._tick([], chaos=False)
        self._tick([], chaos=False)
        return bool(found)

    def end(self) -> None:
        """Ends every process."""
        for one in self.workers:
            one.kill()


def days(folder: Path, sessions: int, length: float, seed: int, *, step: float, kills: int, workers: int = 2) -> bool:
    """Runs them and tells how it went. Whether every promise was kept."""
    print(f"days: seed {seed}, {sessions} sessions, {length:g} days, {workers} workers, folder {folder}", flush=True)
    began, what = time.monotonic(), acts(seed, sessions, length, step)
    harms = min(1.0, kills / 0.75 / (length * 86400 / step))
    running = Days(folder, seed, workers, harms)
    try:
        running.run(what, length * 86400, min(step, 60.0))
    finally:
        running.end()
    took = time.monotonic() - began
    diary = Diary(folder / "diary")
    told = asyncio.run(checks.read(folder))
    print(f"\n{'real seconds':<44}{took:>8.0f}")
    for name, count in [*sorted(running.did.items()), *checks.summary(diary, told)]:
        print(f"{name:<44}{count:>8}")
    found = list(checks.problems(folder, diary, told, what))
    for problem in found[:40]:
        print(f"BROKEN: {problem}")
    print(f"{len(found)} promises broken after {time.monotonic() - began:.0f} s; seed {seed}")
    return not found


def main() -> None:
    """Reads the command line."""
    warnings.simplefilter("ignore", DeprecationWarning)
    given = argparse.ArgumentParser(description="Ten days of a shop; nothing may be lost or doubled.")
    given.add_argument("--sessions", type=int, default=1000)
    given.add_argument("--days", type=float, default=10)
    given.add_argument("--seed", type=int, default=None, help="default: a new one")
    given.add_argument("--step", type=float, default=1200, help="customers act at whole multiples of so many seconds")
    given.add_argument("--kills", type=int, default=150, help="about how many SIGKILLs")
    given.add_argument("--folder", type=Path, default=None, help="default: a new one, removed when all is well")
    asked = given.parse_args()
    seed = random.randrange(10**6) if asked.seed is None else asked.seed
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="onrecord-days-"))
    folder.mkdir(parents=True, exist_ok=True)
    if not days(folder, asked.sessions, asked.days, seed, step=asked.step, kills=asked.kills):
        raise SystemExit(f"kept: {folder}")
    if asked.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
