import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Wake
from onrecord.session.inbox import wake_row
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import AT
from tests.stores.filled import intact

pytestmark = pytest.mark.integration

WORKER = """
import asyncio, json, sys, time
from onrecord.stores import SqliteStore

async def main():
    took = []
    async with SqliteStore(sys.argv[1]) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        while True:
            rows = await store.lease("in", sys.argv[2], ttl=60, limit=4)
            begun = time.monotonic()
            if not rows:
                if await store.next_due("in") is None:
                    break
                continue
            held = await store.extend(rows, ttl=60)
            for row in held:
                done = time.monotonic()
                took.append((row.session.id, row.key, row.attempt, begun, done))
                assert await store.done(row)
    print(json.dumps(took))
asyncio.run(main())
"""


async def test_each_row_is_leased_by_one_of_several_processes(tmp_path: Path) -> None:
    """Three workers on one file: every row is taken once, in the order of its session, by one taker at a time."""
    path = tmp_path / "x.db"
    sessions, each = 40, 10
    async with SqliteStore(path) as store:
        for n in range(sessions):
            key = SessionKey(f"s{n}")
            put = tuple(wake_row(key, Wake(key=f"{place}", at=AT.replace(year=2020))) for place in range(each))
            await store.commit(Change(session=Session(key=key), put=put))
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORKER, str(path), f"w{n}",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for n in range(3)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None
        assert await worker.stdout.readline() == b"ready\n"
    ends = await asyncio.gather(*(worker.communicate(b"go\n") for worker in workers))
    assert [error for _, error in ends] == [b""] * 3
    took = [json.loads(told) for told, _ in ends]
    assert sum(1 for one in took if one) > 1  # else they were no rivals
    every = sorted((one for worker in took for one in worker), key=lambda one: one[3])
    assert Counter((session, key) for session, key, *_ in every) == Counter(
        {(f"s{n}", f"woke::{place}"): 1 for n in range(sessions) for place in range(each)}
    )
    assert {attempt for _, _, attempt, *_ in every} == {1}
    ended = dict[str, tuple[int, float]]()
    for session, key, _, begun, done in every:
        place, before = ended.get(session, (-1, 0.0))
        assert int(key.removeprefix("woke::")) == place + 1
        assert begun > before
        ended[session] = (place + 1, done)
    assert intact(path)
