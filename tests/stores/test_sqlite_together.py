"""Turns that are stored at the same moment: one transaction, and each of them still its own."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from onrecord.errors import LeaseLost, StoreError
from onrecord.stores import SqliteStore, sqlite_schema
from onrecord.testing.conformance.asking import accepted, taken
from onrecord.testing.conformance.samples import row, turn
from tests.stores.filled import intact

pytestmark = pytest.mark.integration


async def at_once(store: SqliteStore, *asked: Awaitable[object]) -> tuple[list[object], list[str]]:
    """What came of things that all wait when the store begins with them, and what SQLite was asked meanwhile."""
    gate, said = threading.Event(), list[str]()

    def hold(db: sqlite3.Connection) -> None:
        gate.wait(10)
        db.set_trace_callback(said.append)

    held = asyncio.ensure_future(store._file.run(hold))
    done = [asyncio.ensure_future(one) for one in asked]
    await asyncio.sleep(0)
    gate.set()
    await held
    found: list[object] = await asyncio.gather(*done, return_exceptions=True)
    await store._file.run(lambda db: db.set_trace_callback(None))
    return found, said


def begun(said: Sequence[str]) -> int:
    """How many transactions those are."""
    return sum(sql.startswith("begin") for sql in said)


async def test_turns_stored_at_once_share_a_transaction(tmp_path: Path) -> None:
    """Commits and accepted inputs alike; each has its own answer."""
    async with SqliteStore(tmp_path / "x.db") as store:
        found, said = await at_once(
            store, store.commit(turn("a")), store.commit(turn("b")), store.put(row("hello", session="c"))
        )
        assert begun(said) == 1
        assert found[:2] == [await store.load("a"), await store.load("b")]
        assert [one.session.id for one in await store.rows("in")] == ["c"]


async def test_one_that_fails_leaves_the_others_alone(tmp_path: Path) -> None:
    """They are undone together and done one by one: who lost a lease is told, and nobody else notices."""
    async with SqliteStore(tmp_path / "x.db") as store:
        held = await accepted(store, row("hello"))
        leased = await taken(store)
        lost = replace(leased, attempt=leased.attempt + 1)
        found, said = await at_once(
            store, store.commit(turn("a")), store.commit(replace(turn("s"), taken=lost)), store.commit(turn("b"))
        )
        assert begun(said) == 4
        assert isinstance(found[1], LeaseLost)
        assert found[0] == await store.load("a")
        assert found[2] == await store.load("b")
        assert await store.load("s") is None
        assert [one.n for one in await store.rows("in")] == [held.n]


async def test_nobody_is_told_before_it_is_stored(tmp_path: Path) -> None:
    """Each finds what it stored in a second connection, once it has its answer."""
    path = tmp_path / "x.db"
    async with SqliteStore(path) as store, SqliteStore(path) as other:

        async def stored(name: str) -> bool:
            return await store.commit(turn(name)) == await other.load(name)

        found, _ = await at_once(store, *(stored(name) for name in "abc"))
        assert found == [True, True, True]
    assert intact(path)


async def test_all_of_them_wait_for_another_process_as_long_as_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one after the other: who asks last is not told last."""
    monkeypatch.setattr(sqlite_schema, "BUSY_S", 0.3)
    path = tmp_path / "x.db"
    async with SqliteStore(path) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        started = time.monotonic()
        found, _ = await at_once(store, *(store.commit(turn(str(n))) for n in range(20)))
        taken_s = time.monotonic() - started
        other.close()
        assert {one.code for one in found if isinstance(one, StoreError)} == {"store-busy"}
        assert len(found) == 20
        assert taken_s < 3
        assert await store.sessions() == []


async def test_a_writer_elsewhere_is_waited_for_no_longer_than_it_writes(tmp_path: Path) -> None:
    """Its lock of some milliseconds costs about that."""
    path = tmp_path / "x.db"
    async with SqliteStore(path) as store:
        await store.commit(turn("a"))
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("begin immediate")
        timer = threading.Timer(0.02, other.execute, ["rollback"])
        timer.start()
        await store.commit(turn("b"))
        timer.join()
        other.close()
        assert len(await store.sessions()) == 2


async def test_one_who_gave_up_waiting_stores_nothing_and_holds_nobody_up(tmp_path: Path) -> None:
    """A commit that was cancelled before it began is left out."""
    async with SqliteStore(tmp_path / "x.db") as store:
        gate = threading.Event()
        held = asyncio.ensure_future(store._file.run(lambda _: gate.wait(10)))
        first, gone, last = (asyncio.ensure_future(store.commit(turn(name))) for name in "abc")
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(held, first, last)
        assert [key.id for key in await store.sessions()] == ["a", "c"]
