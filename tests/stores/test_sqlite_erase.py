"""Nothing of what was erased is in the file, in its log, or in anything beside it."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.session.erasure import Retention
from onrecord.session.session import Session
from onrecord.stores import SqliteStore, sqlite_erase
from onrecord.testing.conformance.asking import loaded
from onrecord.testing.conformance.erasable import Canary, cut_short, everything, folds, waiting
from onrecord.testing.conformance.samples import turn
from tests.stores.filled import TO_FIRST_SCHEMA, intact

pytestmark = pytest.mark.integration

KEY = SessionKey("s", tenant="t")


def found(folder: Path, texts: Iterable[str]) -> set[str]:
    """Which texts any file of the folder holds, as they are or in UTF-16."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return {t for t in texts if any(t.encode() in file or t.encode("utf-16-le") in file for file in files)}


async def lived(store: SqliteStore, canary: Canary, key: SessionKey = KEY) -> Session:
    """A session with texts everywhere among others that were written in between, and rows that wait."""
    session = Session(key=key, digest_key="canary-digest-key", owner=Identity(tenant="t", principal="canary-owner"))
    for n in range(12):
        await store.commit(turn(f"other{n}", f"kept {n}"))
        known = await store.load(f"other{n}")
        assert known is not None
        await store.commit(turn(known, "kept", "kept " * 200))
        session = await store.commit(everything(session, canary))
        session = await store.commit(cut_short(session, canary))
        session = await store.commit(turn(session, f"{canary('long')} " * 300))
    await waiting(store, key, canary)
    canary.made += ["canary-digest-key"]
    return session


async def test_nothing_of_an_erased_session_is_in_any_file(tmp_path: Path) -> None:
    """While the store is open, after it is closed, and after a vacuum; other sessions are whole."""
    store, canary = SqliteStore(tmp_path / "s.db"), Canary()
    await lived(store, canary)
    assert found(tmp_path, canary.made) == set(canary.made)
    done = await store.erase(KEY, why="asked")
    assert done.remains == ()
    assert found(tmp_path, canary.made) == set()
    assert found(tmp_path, ["canary-owner", "kept 3"]) == {"canary-owner", "kept 3"}
    await store.commit(turn(await loaded(store, "other0")))
    await store.close()
    assert found(tmp_path, canary.made) == set()
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("vacuum")
    db.close()
    assert found(tmp_path, canary.made) == set()
    assert intact(tmp_path / "s.db")
    async with SqliteStore(tmp_path / "s.db") as again:
        for n in range(12):
            _ = await folds(again, f"other{n}")
        assert not (await folds(again, KEY)).conversation.messages


async def test_nothing_of_a_person_is_in_any_file(tmp_path: Path) -> None:
    """Not even their name."""
    canary = Canary()
    async with SqliteStore(tmp_path / "s.db") as store:
        await lived(store, canary)
        assert (await store.erase(Identity(tenant="t", principal="canary-owner"), why="asked")).sessions == 1
        assert found(tmp_path, [*canary.made, "canary-owner"]) == set()


async def test_nothing_of_an_erased_message_is_in_any_file(tmp_path: Path) -> None:
    """Nor of its turn; the turns before it are."""
    canary, kept = Canary(), Canary()
    async with SqliteStore(tmp_path / "s.db") as store:
        first = await store.commit(turn(KEY, kept("one"), kept("two")))
        paused = await store.commit(everything(first, canary))
        last = await store.commit(turn(paused, kept("three"), kept("four")))
        (message,) = [m for m in last.conversation.messages if "m7~7/u" in m.id]
        await store.erase(KEY, messages=[message.id], why="asked")
        assert found(tmp_path, canary.made) == set()
        assert found(tmp_path, kept.made) == set(kept.made)


async def test_nothing_of_what_expired_is_in_any_file(tmp_path: Path) -> None:
    """Sessions and parked rows whose time is over."""
    canary = Canary()
    now = datetime.now(UTC) + timedelta(days=50_000)
    async with SqliteStore(tmp_path / "s.db", clock=lambda: now) as store:
        session = await store.commit(everything(Session(key=KEY), canary))
        for box in ("in", "out"):
            for row in await store.rows(box, KEY):
                (leased,) = await store.lease(box, "worker", ttl=60)
                assert leased.n == row.n
                assert await store.park(leased, why="gave up")
        day = timedelta(days=1)
        done = await store.expire(Retention(sessions=day, rows=day))
        assert (done.sessions, done.entries, done.remains) == (1, session.seq, ())
        assert found(tmp_path, canary.made) == set()


async def test_what_was_deleted_before_goes_with_the_next_erasure(tmp_path: Path) -> None:
    """Rows that were handled and messages that were removed leave nothing behind either."""
    canary, other = Canary(), SessionKey("other")
    async with SqliteStore(tmp_path / "s.db") as store:
        await store.commit(turn(KEY))
        await waiting(store, other, canary)
        while leased := await store.lease("in", "worker", ttl=60):
            assert await store.done(leased[0])
        await store.erase(KEY, why="asked")
        assert found(tmp_path, canary.made) == set()


async def test_what_was_deleted_without_being_overwritten_goes_too(tmp_path: Path) -> None:
    """By an older release, or by whoever opened the file otherwise: an erasure rewrites it without its unused parts."""
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        await store.commit(turn(KEY))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma secure_delete=off")
        db.execute("insert into messages values(1, 'a canary of old')")
        db.execute("delete from messages where place=1")
    assert found(tmp_path, ["a canary of old"])
    async with SqliteStore(path) as store:
        assert (await store.erase(KEY, why="asked")).remains == ()
        assert found(tmp_path, ["a canary of old"]) == set()


async def test_a_reader_elsewhere_is_told_of_and_the_log_emptied_later(tmp_path: Path) -> None:
    """Somebody reads an old moment of the file: its log stays, and goes with the next commit after they let go."""
    store, canary = SqliteStore(tmp_path / "s.db"), Canary()
    await lived(store, canary)
    reader = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from messages").fetchone()
    done = await store.erase(KEY, why="asked")
    assert "log" in done.remains
    assert not (await loaded(store, KEY)).conversation.messages
    reader.execute("commit")
    await store.commit(turn("another"))
    assert found(tmp_path, canary.made) == set()
    reader.close()
    await store.close()


async def test_a_store_that_closes_empties_the_log_it_had_to_leave(tmp_path: Path) -> None:
    """Though another process has the file open, as long as it does not read at that moment."""
    store, canary = SqliteStore(tmp_path / "s.db"), Canary()
    await lived(store, canary)
    reader = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from messages").fetchone()
    assert (await store.erase(KEY, why="asked")).remains
    reader.execute("commit")
    await store.close()
    assert found(tmp_path, canary.made) == set()
    reader.close()


async def test_another_process_at_rest_keeps_nothing(tmp_path: Path) -> None:
    """An open file that nobody reads at the moment does not hold the log."""
    canary = Canary()
    async with SqliteStore(tmp_path / "s.db") as store, SqliteStore(tmp_path / "s.db") as other:
        await lived(store, canary)
        assert (await loaded(other, KEY)).version == 36
        assert (await store.erase(KEY, why="asked")).remains == ()
        assert found(tmp_path, canary.made) == set()
        assert not (await loaded(other, KEY)).conversation.messages


async def test_a_large_file_is_swept_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewriting it would keep others waiting: the erasure says so, and ``sweep`` does it."""
    monkeypatch.setattr(sqlite_erase, "SWEPT_AT_ONCE", 1000)
    canary = Canary()
    async with SqliteStore(tmp_path / "s.db") as store:
        await lived(store, canary)
        assert (await store.erase(KEY, why="asked")).remains == ("pages",)
        assert (await store.sweep()).remains == ()
        assert found(tmp_path, canary.made) == set()


async def test_an_erasure_that_was_cut_short_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died before the file was swept: erasing again finds nothing to erase, and sweeps."""
    canary = Canary()
    store = SqliteStore(tmp_path / "s.db")
    await lived(store, canary)
    reader = sqlite3.connect(tmp_path / "s.db")  # keeps the log from being emptied by who closes the file last
    reader.execute("select count(*) from messages").fetchone()

    def dies(*_: object) -> tuple[()]:
        raise KeyError

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_erase, "sweep", dies)
        with pytest.raises(KeyError):
            await store.erase(KEY, why="asked")
    await store.close()
    assert found(tmp_path, canary.made)
    async with SqliteStore(tmp_path / "s.db") as again:
        done = await again.erase(KEY, why="asked")
        assert (done.sessions, done.remains) == (0, ())
        assert found(tmp_path, canary.made) == set()
    reader.close()


async def test_a_session_that_does_not_decode_can_be_erased(tmp_path: Path) -> None:
    """Damaged bodies, messages and states are erased like any."""
    path, canary = tmp_path / "s.db", Canary()
    async with SqliteStore(path) as store:
        session = await lived(store, canary)
    db = sqlite3.connect(path)
    db.execute("update sessions set state='canary-broken' where tenant='t'")
    db.execute("update entries set body='canary-broken' where kind in ('said', 'turn.closed')")
    db.commit()
    db.close()
    async with SqliteStore(path) as store:
        done = await store.erase(KEY, why="asked")
        assert (done.sessions, done.entries) == (1, session.seq)
        assert not (await folds(store, KEY)).conversation.messages
    db = sqlite3.connect(path)
    (left,) = db.execute("select count(*) from entries where body like 'canary%'").fetchone()
    db.close()
    assert left == 48  # those of the other sessions
    assert found(tmp_path, canary.made) == set()


async def test_owners_and_parents_of_an_older_file_are_known(tmp_path: Path) -> None:
    """A file of the first schema is brought up to date, and its people can be erased."""
    path, owner = tmp_path / "s.db", Identity(tenant="t", principal="ana")
    async with SqliteStore(path) as store:
        await store.commit(turn(Session(key=SessionKey("p"), owner=owner)))
        await store.commit(turn(Session(key=SessionKey("p/c"), parent="p")))
    db = sqlite3.connect(path)
    db.executescript(TO_FIRST_SCHEMA)
    db.close()
    async with SqliteStore(path) as store:
        assert (await store.erase(owner, why="asked")).sessions == 2
        assert (await folds(store, "p")).owner is None
