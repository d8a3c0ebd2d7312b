"""Two writers on one file, killed again and again. Run as a script: FILE ROUNDS SEED; prints what it saw as JSON.

A process of its own, which forks: a forked writer starts in milliseconds, and a process without other threads may
fork safely.
"""

# ruff: noqa: S311  chance, not secrets
import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from onrecord.errors import SessionConflict
from onrecord.session.folding import refold
from onrecord.session.session import Session
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.asking import record
from onrecord.testing.conformance.samples import turn

SESSIONS = ("s0", "s1", "s2")
Stored = tuple[str, int]


async def _write(path: str, told: int, seed: int) -> None:
    """Commits turns of random size to random sessions, and tells each that the store says it has."""
    chance = random.Random(seed)
    hot: dict[str, Session | None] = {}
    async with SqliteStore(path) as store:
        while True:
            id = chance.choice(SESSIONS)
            session = hot[id] = await store.load(id, known=hot.get(id))
            text = "x" * chance.choice((10, 200, 5_000, 200_000))
            try:
                hot[id] = await store.commit(turn(session or id, text))
            except SessionConflict:
                os.write(told, b"conflict 0\n")
            else:
                os.write(told, f"{id} {hot[id].version}\n".encode())  # type: ignore[union-attr]  # a session was stored before


def _writer(path: str, told: int, seed: int) -> NoReturn:
    try:
        asyncio.run(_write(path, told, seed))
    finally:
        os._exit(1)


def _kill_two(path: str, chance: random.Random) -> list[Stored]:
    """Lets two writers run for a moment, kills both, and returns what they said was stored."""
    reads, writes = os.pipe()
    children = []
    for _ in range(2):
        seed = chance.random()
        child = os.fork()
        if child == 0:
            os.close(reads)
            _writer(path, writes, int(seed * 1e9))
        children.append(child)
    os.close(writes)
    for child in children:
        time.sleep(chance.uniform(0.005, 0.06))
        os.kill(child, signal.SIGKILL)
    for child in children:
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit("a writer ended by itself")
    with os.fdopen(reads) as lines:
        return [(id, int(version)) for id, version in (line.split() for line in lines if line.endswith("\n"))]


async def _check(path: str, acknowledged: dict[str, int]) -> int:
    """Every session is whole, folds from its record, and holds all that was acknowledged; returns all versions."""
    total = 0
    async with SqliteStore(path) as store:
        for key in await store.sessions():
            session = await store.load(key)
            entries = await record(store, key)
            if session is None or session.version < acknowledged.get(key.id, 0):
                raise SystemExit(f"{key.id}: version {acknowledged.get(key.id)} was acknowledged, found {session}")
            told = refold(key, entries, digest_key=session.digest_key)
            if replace(told, version=session.version) != session or len(entries) != 7 * session.version:
                raise SystemExit(f"{key.id}: the record of {len(entries)} entries does not tell of {session}")
            total += session.version
    return total


def main(path: str, rounds: int, seed: int) -> None:
    """Runs all rounds; ends with a message when anything is lost, torn or damaged."""
    warnings.simplefilter("ignore", DeprecationWarning)
    chance, seen, acknowledged, versions = random.Random(seed), Counter[str](), dict[str, int](), 0
    for _ in range(rounds):
        for id, version in _kill_two(path, chance):
            seen["conflicts" if id == "conflict" else "acknowledged"] += 1
            acknowledged[id] = max(acknowledged.get(id, 0), version)
        seen["killed"] += 2
        if Path(path).exists():
            db = sqlite3.connect(path)
            if db.execute("pragma integrity_check").fetchone() != ("ok",):
                raise SystemExit("the file is damaged")
            db.close()
            versions = asyncio.run(_check(path, acknowledged))
    print(json.dumps({**seen, "versions": versions}))  # noqa: T201 - this is its output


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
