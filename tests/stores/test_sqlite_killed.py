import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.session.folding import refold
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.asking import loaded, record
from tests.stores.filled import intact

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")]


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_writers_leave_whole_turns(tmp_path: Path, seed: int) -> None:
    """Forty SIGKILLs at random moments: the file is sound, every session folds, nothing acknowledged is lost."""
    script = Path(__file__).parent / "killed_writers.py"
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "x.db"), "20", str(seed)],
        capture_output=True, text=True, check=False, timeout=19,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    seen = json.loads(ended.stdout)
    assert seen["killed"] == 40
    assert seen["versions"] >= seen["acknowledged"] > 20


TALKER = """
import asyncio, sys
from onrecord.errors import SessionConflict
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import turn

async def main():
    conflicts, session = 0, None
    async with SqliteStore(sys.argv[1]) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(60):
            while True:
                session = await store.load("s", known=session)
                try:
                    session = await store.commit(turn(session or "s", f"{sys.argv[2]} {n}"))
                    break
                except SessionConflict:
                    conflicts += 1
    print(conflicts)
asyncio.run(main())
"""


async def test_two_processes_take_turns_on_one_session(tmp_path: Path) -> None:
    """Each sees the other's commits as conflicts, tries again, and in the end all turns of both are there."""
    path = tmp_path / "x.db"
    talkers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", TALKER, str(path), name,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for name in ("left", "right")
    ]  # fmt: skip
    for talker in talkers:
        assert talker.stdout is not None
        assert await talker.stdout.readline() == b"ready\n"
    ends = await asyncio.gather(*(talker.communicate(b"go\n") for talker in talkers))
    assert [error for _, error in ends] == [b"", b""]
    assert sum(int(told) for told, _ in ends) > 0
    async with SqliteStore(path) as store:
        session = await loaded(store, "s")
        assert session.version == 120
        texts = [message.text for message in session.conversation.messages[::2]]  # type: ignore[union-attr]  # every other message is the person's
        for name in ("left", "right"):
            assert [text for text in texts if text.startswith(name)] == [f"{name} {n}" for n in range(60)]
        told = refold(session.key, await record(store, "s"), digest_key=session.digest_key)
        assert told.conversation == session.conversation
    assert intact(path)
