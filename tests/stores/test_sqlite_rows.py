"""What rows in a SQLite file need beyond the shared suite: indices that are used, and files and callers that fail."""

# ruff: noqa: ASYNC110  these tests look at files and threads between two calls

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Woke
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import LeaseLost, SessionConflict, StoreError
from onrecord.session.inbox import Lease, outgoing_row, wake_row
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.stores import SqliteStore, sqlite_schema
from onrecord.testing.conformance.asking import SetClock, accepted, keys, later, record, stored, taken, unchanged
from onrecord.testing.conformance.samples import row, turn
from tests.stores.filled import CANARY, intact, outcome

pytestmark = pytest.mark.integration

S = SessionKey("s")


# ---- indices ---------------------------------------------------------------------------------------------------------


async def _statements(store: SqliteStore, act: Callable[[], Awaitable[object]]) -> list[str]:
    """What SQLite is asked while something is done, with the values in place."""
    said: list[str] = []
    await store._file.run(lambda db: db.set_trace_callback(said.append))
    await act()
    await store._file.run(lambda db: db.set_trace_callback(None))
    return said


async def _plan(store: SqliteStore, sql: str) -> list[str]:
    rows = await store._file.run(lambda db: db.execute(f"explain query plan {sql}").fetchall())
    return [step for *_, step in rows]


async def _everything(store: SqliteStore, clock: SetClock) -> None:
    """Each call there is, with rows that are due, leased, parked and asleep."""
    await accepted(store, row("one"))
    await store.put(row("two"), busy="supersede")
    await store.put(row("three"), busy="reject")
    await store.put(row(Outgoing(key="m", text="hi")))
    held = await taken(store)
    await store.extend([held], ttl=60)
    assert await store.again(held, due=later(5))
    clock.move(5)
    held = await taken(store, session="s")
    assert await store.park(held, why="attempts")
    await store.revive("in", S, keys=[held.key])
    await store.revive("in", S)
    session = await store.commit(replace(turn("s"), taken=await taken(store)))
    put = (wake_row(S, Wake(key="w", at=later(9))), outgoing_row(S, Outgoing(key="m2", text="hi")))
    await store.commit(replace(turn(session), drop=("woke::w",), put=put))
    assert await store.done(await taken(store, "out"))
    await store.rows("in")
    await store.rows("in", S)
    await store.next_due("in")
    await store.cancel("in", S, keys=["woke::w"])
    await store.cancel("in", S, by=Interruption(id="i"))
    await store.cancel("in", S)


async def test_no_statement_reads_all_rows(tmp_path: Path) -> None:
    """Each finds its rows by an index; only the index of leased rows, which is as short as they are few, is scanned."""
    clock = SetClock()
    async with SqliteStore(tmp_path / "x.db", clock=clock) as store:
        said = await _statements(store, lambda: _everything(store, clock))
        asked = {sql for sql in said if " rows" in sql}
        assert len(asked) > 20
        for sql in asked:
            scans = [step for step in await _plan(store, sql) if step.startswith("SCAN")]
            # What is looped over besides: values, the heads that a lease has picked, messages that line up.
            known = (
                "SCAN rows USING COVERING INDEX rows_leased",
                "SCAN CONSTANT",
                "SCAN 2 CONSTANT",
                "SCAN h",
                "SCAN (",
            )
            assert [step for step in scans if not step.startswith(known)] == [], sql


async def test_a_lease_walks_the_index_of_what_is_due(tmp_path: Path) -> None:
    """In its order, so that it stops at the limit and never sorts what is due."""
    async with SqliteStore(tmp_path / "x.db") as store:
        (sql,) = [said for said in await _statements(store, lambda: store.lease("in", "w", ttl=5)) if "rows" in said]
        plan = await _plan(store, sql)
        assert "SEARCH r USING INDEX rows_due (box=? AND due<?)" in plan
        assert [step for step in plan if "TEMP B-TREE" in step] == []


async def test_a_lease_and_a_look_at_the_clock_are_one_statement(tmp_path: Path) -> None:
    """Nothing else is asked of the file, not even a transaction."""
    async with SqliteStore(tmp_path / "x.db") as store:
        await accepted(store, row("hello"))
        assert len(await _statements(store, lambda: store.next_due("in"))) == 1
        assert len(await _statements(store, lambda: store.lease("in", "w", ttl=5))) == 1


async def test_a_put_that_leases_is_one_transaction(tmp_path: Path) -> None:
    """With the session that its taker knows already, five statements in all."""
    async with SqliteStore(tmp_path / "x.db") as store:
        session = await store.commit(turn("s"))
        lease = Lease(owner="w", ttl=5, known=session)
        said = await _statements(store, lambda: store.put(row("hello"), lease=lease))
        assert len(said) == 5
        assert (said[0], said[-1]) == ("begin immediate", "commit")


async def test_sleeping_rows_do_not_slow_the_others(tmp_path: Path) -> None:
    """With 20,000 of them the same number of steps is taken as with 20."""
    steps: list[int] = []
    async with SqliteStore(tmp_path / "x.db") as store:
        for total in (20, 20_000):
            far = wake_row(S, Wake(key="w", at=later(10**8)))
            sleeping = tuple(replace(far, session=SessionKey(f"s{n}")) for n in range(total))
            await store.commit(Change(session=Session(key=S), put=sleeping))
            await accepted(store, row(f"hello {total}", f"due{total}"))
            count = _Counter()
            await store._file.run(partial(_watch, count))
            assert await store.next_due("in") is not None
            assert len(await store.lease("in", "w", ttl=600, limit=16)) == 1
            await store._file.run(partial(_watch, None))
            steps.append(count.n)
    assert steps[1] < 1.2 * steps[0] + 50


def _watch(count: Callable[[], int] | None, db: sqlite3.Connection) -> None:
    db.set_progress_handler(count, 1)


class _Counter:
    n = 0

    def __call__(self) -> int:
        self.n += 1
        return 0


# ---- a commit with rows ----------------------------------------------------------------------------------------------


async def test_a_commit_that_is_refused_leaves_its_rows_alone(tmp_path: Path) -> None:
    """A stale session or a lost lease: neither entries nor rows are stored, and the row stays its taker's."""
    async with SqliteStore(tmp_path / "x.db", clock=SetClock()) as store:
        await accepted(store, row("hello"))
        held = await taken(store)
        put = (wake_row(S, Wake(key="w", at=later(9))),)
        stale = replace(turn("s"), taken=held, put=put)
        session = await store.commit(turn("s"))
        with pytest.raises(SessionConflict):
            await store.commit(stale)
        assert await store.rows("in") == [held]
        with pytest.raises(LeaseLost):
            await store.commit(replace(turn(session), taken=replace(held, attempt=2), put=put))
        assert await store.rows("in") == [held]
        await unchanged(store, session)


async def test_many_rows_are_put_at_once(tmp_path: Path) -> None:
    """More than fit into one statement, wakes and messages out mixed; those that are there keep their place."""
    async with SqliteStore(tmp_path / "x.db", clock=SetClock()) as store:
        wakes = [wake_row(S, Wake(key=f"{n}", at=later(n))) for n in range(350)]
        out = [outgoing_row(S, Outgoing(key=f"{n}", text="hi", after_ms=1000)) for n in range(350)]
        put = tuple(one for pair in zip(wakes, out, strict=True) for one in pair)
        await store.commit(Change(session=Session(key=S), put=put[:40]))
        await store.commit(Change(session=Session(key=S), put=put))
        assert keys(await store.rows("in")) == [f"woke::{n}" for n in range(350)]
        found = await store.rows("out")
        assert [(one.key, one.due) for one in found] == [(f"{n}", later(n + 1)) for n in range(350)]


# ---- files that fail -------------------------------------------------------------------------------------------------


async def _failing(store: SqliteStore, code: str) -> None:
    """Every call that writes says what is wrong, and nothing has changed."""
    held = await taken(store)
    before = await store.rows("in")
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: store.put(row(CANARY * 20_000)),
        lambda: store.put(row(CANARY * 20_000), lease=Lease(owner="w", ttl=5)),
        lambda: store.commit(replace(turn("s", CANARY * 20_000), taken=held)),
        lambda: store.commit(
            Change(session=Session(key=S), put=(outgoing_row(S, Outgoing(key="m", text="x" * 10**6)),))
        ),
    )
    for call in calls:
        error = await outcome(call)
        assert isinstance(error, StoreError)
        assert (error.code, error.hint != "", CANARY in f"{error} {error.hint}") == (code, True, False)
    assert (await store.rows("in"), await store.rows("out"), await record(store, "s")) == (before, [], [])


async def test_rows_on_a_full_disk(tmp_path: Path) -> None:
    """What does not fit is not accepted, a take that does not fit keeps its row; with room again both are stored."""
    path = tmp_path / "x.db"
    async with SqliteStore(path, clock=SetClock()) as store:
        await accepted(store, row("hello"))
        pages = await store._file.run(lambda db: db.execute("pragma page_count").fetchone()[0])
        await store._file.run(lambda db: db.execute(f"pragma max_page_count={pages}").fetchone())
        await _failing(store, "store-full")
        await store._file.run(lambda db: db.execute("pragma max_page_count=1000000").fetchone())
        (held,) = await store.rows("in")
        await store.commit(replace(turn("s", CANARY * 20_000), taken=held))
        assert await store.rows("in") == []
    assert intact(path)


async def test_rows_of_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    """They are listed, and every other call says why it cannot be done."""
    async with SqliteStore(tmp_path / "x.db") as store:
        held = await accepted(store, row("hello"))
        for call in (
            lambda: store.put(row("other")),
            lambda: store.lease("in", "w", ttl=5),
            lambda: store.extend([held], ttl=5),
            lambda: store.done(held),
            lambda: store.cancel("in", S),
        ):
            await store._file.run(lambda db: db.execute("pragma query_only=1"))  # the store opens the file anew
            error = await outcome(call)
            assert isinstance(error, StoreError)
            assert error.code == "store-readonly"
        assert await store.rows("in") == [held]


async def test_rows_wait_for_another_process_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First they wait, then they say so; what was asked can be asked again."""
    monkeypatch.setattr(sqlite_schema, "BUSY_S", 0.1)
    path = tmp_path / "x.db"
    async with SqliteStore(path, clock=SetClock()) as store:
        await accepted(store, row("hello"))
        held = await taken(store)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        for call in (
            lambda: store.put(row("other")),
            lambda: store.lease("in", "w", ttl=5),
            lambda: store.extend([held], ttl=5),
            lambda: store.commit(replace(turn("s"), taken=held)),
        ):
            error = await outcome(call)
            assert isinstance(error, StoreError)
            assert error.code == "store-busy"
        assert await store.rows("in") == [held]
        other.execute("rollback")
        other.close()
        await store.commit(replace(turn("s"), taken=held))
        assert await store.rows("in") == []


@pytest.mark.parametrize(
    "sql",
    [
        "update rows set body='not json' where session='s'",
        "update rows set body=x'ff' where session='s'",
        "update rows set kind='unknown' where session='s'",
        "update rows set kind='woke' where session='s'",
        "update rows set due='tomorrow' where session='s'",
        "update rows set cancel='{}' where session='s'",
        "update rows set floor=9223372036854775807 where session='s'",
        "update rows set dead=cast(x'80ff' as text), lease_until=1 where session='s'",
    ],
)
async def test_rows_that_make_no_sense_are_told(tmp_path: Path, sql: str) -> None:
    """By the file's name and without their content; the rows of other sessions are taken all the same."""
    path = tmp_path / "x.db"
    async with SqliteStore(path, clock=SetClock()) as store:
        await accepted(store, row(CANARY, due=later(-9)))
        await accepted(store, row("hello", "other"))
        with sqlite3.connect(path) as meddler:
            meddler.execute(sql)
        meddler.close()
        told = [await outcome(call) for call in (lambda: store.rows("in"), lambda: store.put(row(CANARY)))]
        leased = await outcome(lambda: store.lease("in", "w", ttl=5, limit=9))
        for error in (*told, *([leased] if isinstance(leased, StoreError) else [])):
            assert isinstance(error, StoreError)
            assert (error.code, str(path) in str(error)) == ("store-corrupt", True)
            assert CANARY not in f"{error} {error.hint}"
        if isinstance(leased, StoreError):
            leased = await store.lease("in", "w", ttl=5, limit=9)
        assert [(one.key, one.attempt) for one in leased] == [("said::hello", 1)]  # type: ignore[attr-defined]  # rows


# ---- callers that go away --------------------------------------------------------------------------------------------


async def test_a_put_that_is_left_is_stored_or_not(tmp_path: Path) -> None:
    """Left before its turn came it has not happened; left while it was done it is whole."""
    async with SqliteStore(tmp_path / "x.db", clock=SetClock()) as store:
        started, going = threading.Event(), threading.Event()

        def linger(_: object) -> None:
            started.set()
            going.wait()

        slow = asyncio.ensure_future(store._file.run(linger))
        task = asyncio.ensure_future(store.put(row("hello"), lease=Lease(owner="w", ttl=5)))
        await asyncio.to_thread(started.wait)
        task.cancel()
        going.set()
        await slow
        assert await store.rows("in") == []
        task = asyncio.ensure_future(store.put(row("hello"), lease=Lease(owner="w", ttl=5)))
        while not task.done() and await store.next_due("in") is None:  # in the queue behind it
            await asyncio.sleep(0)
        task.cancel()
        found = await stored(store, row("hello"))
        assert found is not None
        assert (found.owner, found.attempt) == ("w", 1)


async def test_what_is_asked_is_done_in_order(tmp_path: Path) -> None:
    """Puts that were not waited for get their numbers in the order in which they were asked for."""
    async with SqliteStore(tmp_path / "x.db") as store:
        tasks = [asyncio.ensure_future(store.put(row(Woke(f"{n}")))) for n in range(200)]
        await asyncio.gather(*tasks)
        assert keys(await store.rows("in")) == [f"woke::{n}" for n in range(200)]


def test_the_clock_is_the_systems_unless_another_is_given(tmp_path: Path) -> None:
    """A row without a due time is due now."""

    async def put() -> float:
        async with SqliteStore(tmp_path / "x.db") as store:
            found = await accepted(store, row("hello"))
            assert found.due is not None
            return found.due.timestamp()

    before = time.time()
    assert before - 0.001 <= asyncio.run(put()) <= time.time() + 0.001
