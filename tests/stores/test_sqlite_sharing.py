# ruff: noqa: ASYNC110, ASYNC240  these tests look at files and threads between two calls
import asyncio
import gc
import os
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from onrecord.errors import SessionConflict, StoreError
from onrecord.record.entry import Body, UnknownBody
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.asking import record, unchanged
from onrecord.testing.conformance.samples import entries_of, turn
from tests.stores.filled import filled, intact

pytestmark = pytest.mark.integration


class RoomHeld(Body, frozen=True, kw_only=True, tag="rooms.held"):
    """A feature's body."""

    room: int


# ---- loops and threads ---------------------------------------------------------------------------------------------


def test_one_store_serves_loop_after_loop(tmp_path: Path) -> None:
    """Each `asyncio.run` has a loop of its own; the store goes on with the same file."""
    store = SqliteStore(tmp_path / "x.db")
    session = asyncio.run(_commit(store, turn("s")))
    session = asyncio.run(_commit(store, turn(session)))
    assert asyncio.run(_load(store, session)) is session
    asyncio.run(store.close())


async def _commit(store: SqliteStore, change: Change) -> Session:
    return await store.commit(change)


async def _load(store: SqliteStore, known: Session) -> Session | None:
    return await store.load(known.key, known=known)


def test_one_store_serves_several_threads(tmp_path: Path) -> None:
    """Eight loops in eight threads talk at once; every conversation is whole afterwards."""
    store = SqliteStore(tmp_path / "x.db")
    ended: dict[str, Session] = {}

    async def talk(id: str) -> None:
        session = await store.commit(turn(id))
        for _ in range(9):
            session = await store.commit(turn(session))
        ended[id] = session

    threads = [threading.Thread(target=lambda id=f"s{n}": asyncio.run(talk(id))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def check() -> None:
        for session in ended.values():
            await unchanged(store, session)
        await store.close()

    assert len(ended) == 8
    asyncio.run(check())


def test_a_loop_that_ends_early_hurts_nobody(tmp_path: Path) -> None:
    """What it asked for is done or not, and the answer that nobody waits for is dropped."""
    store = SqliteStore(tmp_path / "x.db")

    async def ask_and_go() -> None:
        left_behind = asyncio.ensure_future(store.commit(turn("s")))
        await asyncio.sleep(0)
        assert not left_behind.done()

    for _ in range(5):
        asyncio.run(ask_and_go())

    async def check() -> None:
        found = await store.load("s")
        assert found is None or found.version == 1
        await store.close()

    asyncio.run(check())


async def test_a_cancelled_wait_leaves_no_transaction_open(tmp_path: Path) -> None:
    """A commit whose caller left while it was written is whole, and the next one does not wait for it."""
    path = tmp_path / "x.db"
    async with SqliteStore(path) as store, SqliteStore(path) as other:
        session = await store.commit(turn("s"))
        large = turn(session, "0123456789" * 400_000)
        started = threading.Event()

        def linger(connection: object) -> None:
            started.set()
            time.sleep(0.05)

        slow = asyncio.ensure_future(store._file.run(linger))
        task = asyncio.ensure_future(store.commit(large))
        await asyncio.to_thread(started.wait)
        task.cancel()
        await slow
        assert await other.load("s") == session  # it had not begun
        task = asyncio.ensure_future(store.commit(large))
        await asyncio.sleep(0)
        while not store._file._jobs.empty():
            await asyncio.sleep(0)
        task.cancel()
        found = await other.load("s")
        assert found is not None
        assert found.version in {1, 2}
        found = await store.load("s")
        assert found is not None
        await other.commit(turn(found))


def _look_at(value: object, connection: object) -> object:
    return value


async def test_an_idle_store_keeps_nothing_of_its_last_change(tmp_path: Path) -> None:
    """The thread that waits does not hold on to a change, or to the answer it gave."""

    class Marked:
        pass

    async with SqliteStore(tmp_path / "x.db") as store:
        marked = Marked()
        gone = weakref.ref(marked)
        await store._file.run(partial(_look_at, marked))
        del marked
        while gone() is not None:  # the thread may be about to let go
            await asyncio.sleep(0.001)


async def test_a_dropped_store_ends_its_thread(tmp_path: Path) -> None:
    """A store that is forgotten without being closed closes its file all the same."""
    store = SqliteStore(tmp_path / "x.db")
    await store.commit(turn("s"))
    thread = store._file._thread
    assert thread is not None
    del store
    gc.collect()
    await asyncio.to_thread(thread.join, 5)
    assert not thread.is_alive()
    assert [p.name for p in tmp_path.iterdir()] == ["x.db"]


async def test_two_stores_on_one_file_see_each_other(tmp_path: Path) -> None:
    """What one commits the other reads at once, and a stale writer is told."""
    path = tmp_path / "x.db"
    async with SqliteStore(path) as one, SqliteStore(path) as two:
        session = await one.commit(turn("s"))
        assert await two.load("s", known=session) is session
        newer = await two.commit(turn(session))
        with pytest.raises(SessionConflict):
            await one.commit(turn(session))
        await unchanged(one, newer)


async def test_a_session_is_read_as_of_one_moment(tmp_path: Path) -> None:
    """What another process commits between two reads of one load is not mixed into it."""
    path = tmp_path / "x.db"
    session = await filled(path)
    ours, others = (sqlite3.connect(path, isolation_level=None) for _ in range(2))

    class Interrupted:
        """A connection during whose reading of messages somebody else writes."""

        in_transaction = False

        def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
            if "from messages" in sql:
                others.execute("delete from messages")
            return ours.execute(sql, values)

    with closing(ours), closing(others):
        loaded = SqliteStore(path)._load(session.key, None, Interrupted())  # type: ignore[arg-type]  # what is used
        assert isinstance(loaded, Session)
        assert loaded.conversation == session.conversation
        assert others.execute("select count(*) from messages").fetchone() == (0,)


async def test_declared_bodies_come_back_typed(tmp_path: Path) -> None:
    """``bodies`` are read as their features declare them; another store that does not know them keeps their bytes."""
    path = tmp_path / "x.db"
    session = Session(key=turn("s").session.key)
    entries = entries_of(session, (RoomHeld(room=12),))
    async with SqliteStore(path, bodies=(RoomHeld,)) as store:
        session = await store.commit(Change(session=replace(session, seq=1), entries=entries))
        assert await record(store, "s") == list(entries)
    async with SqliteStore(path) as store:
        (entry,) = await record(store, "s")
        assert isinstance(entry.body, UnknownBody)
        again = replace(entry, seq=1)
        await store.commit(Change(session=replace(session, seq=2), entries=(again,)))
    async with SqliteStore(path, bodies=(RoomHeld,)) as store:
        assert [entry.body for entry in await record(store, "s")] == [RoomHeld(room=12)] * 2


# ---- processes -----------------------------------------------------------------------------------------------------


def _python(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, *map(str, args)],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip


UNCLOSED = """
import asyncio, sys
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import turn
store = SqliteStore(sys.argv[1])
async def main():
    await store.commit(turn("s"))
    if sys.argv[2] == "pending":
        asyncio.ensure_future(store.commit(turn("late")))
        await asyncio.sleep(0)
    if sys.argv[2] == "error":
        raise SystemExit(3)
asyncio.run(main())
"""


@pytest.mark.parametrize(("how", "code"), [("idle", 0), ("pending", 0), ("error", 3)])
async def test_an_interpreter_may_end_without_closing(tmp_path: Path, how: str, code: int) -> None:
    """No warning, no hanging thread, and the log is folded into the one file."""
    ended = _python(UNCLOSED, tmp_path / "x.db", how)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")
    assert [p.name for p in tmp_path.iterdir()] == ["x.db"]
    async with SqliteStore(tmp_path / "x.db") as store:
        assert (await store.load("s")) is not None


LIGHT = """
import sys
import onrecord.stores, onrecord.session.memory_store
onrecord.stores.SqliteStore("x.db")
print("sqlite3" in sys.modules)
"""


def test_importing_and_making_a_store_does_not_load_sqlite() -> None:
    """The driver is loaded by the first call."""
    assert _python(LIGHT).stdout == "False\n"


FORKED = """
import asyncio, os, sys, warnings
from onrecord.errors import StoreError
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import turn
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
unused, used = SqliteStore(sys.argv[1]), SqliteStore(sys.argv[1])
session = asyncio.run(used.commit(turn("s")))
child = os.fork()
if child == 0:
    async def main():
        try:
            await used.load("s")
        except StoreError as error:
            print(error.code, bool(error.hint), flush=True)
        await used.close()
        print(await unused.load("s") == session, flush=True)
        await unused.close()
    asyncio.run(main())
    sys.exit(0)
os.waitpid(child, 0)
session = asyncio.run(used.commit(turn(session)))
print("parent", session.version)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_is_told_apart(tmp_path: Path) -> None:
    """A store in use says so in the child, one not used yet works there, and the parent goes on undisturbed."""
    ended = _python(FORKED, tmp_path / "x.db")
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == ["store-forked True", "True", "parent 2"]
    assert intact(tmp_path / "x.db")


MAKER = """
import asyncio, sys
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import turn
sys.stdin.readline()
async def main():
    async with SqliteStore(sys.argv[1]) as store:
        await store.commit(turn(sys.argv[2]))
asyncio.run(main())
"""


async def test_many_processes_make_one_file_at_once(tmp_path: Path) -> None:
    """Whoever is first makes the tables, the others find them; nobody fails."""
    for attempt in range(2):
        path = tmp_path / f"{attempt}.db"
        makers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", MAKER, str(path), f"s{n}", stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for n in range(4)
        ]
        ends = await asyncio.gather(*(maker.communicate(b"go\n") for maker in makers))
        assert [error for _, error in ends] == [b""] * 4
        async with SqliteStore(path) as store:
            assert len(await store.sessions()) == 4
        assert intact(path)


async def test_a_store_may_be_copied_when_closed(tmp_path: Path) -> None:
    """A closed store is one file and nothing beside it."""
    session = await filled(tmp_path / "x.db")
    (tmp_path / "x.db").rename(tmp_path / "y.db")
    async with SqliteStore(tmp_path / "y.db") as store:
        await unchanged(store, session)


def test_a_closed_store_tells_which_file(tmp_path: Path) -> None:
    """Its name is in its repr and in its errors."""
    store = SqliteStore(tmp_path / "x.db")
    asyncio.run(store.close())
    assert repr(store) == f"SqliteStore({str(tmp_path / 'x.db')!r})"
    with pytest.raises(StoreError, match=r"x\.db"):
        asyncio.run(store.sessions())
