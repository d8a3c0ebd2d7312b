import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from onrecord.errors import StoreError
from onrecord.session.session import Session
from onrecord.stores import SqliteStore
from onrecord.stores.sqlite_schema import migrate
from onrecord.stores.sqlite_upkeep import backup, faults_of, sessions_of
from onrecord.testing.conformance.asking import loaded, record
from onrecord.testing.conformance.samples import turn
from tests.stores.filled import CANARY, filled, outcome

pytestmark = pytest.mark.integration


def meddle(path: Path, *statements: str) -> None:
    """Somebody else writes in the file."""
    with closing(sqlite3.connect(path)) as meddler, meddler:
        for sql in statements:
            meddler.execute(sql)


def _garble(path: Path, offset: int, size: int = 512) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xfe\x01garbage" * (size // 9))


async def _tried(path: Path) -> set[str]:
    """Every call on a damaged file: what it says, and that it says nothing of the content."""
    codes = set()
    store = SqliteStore(path)
    good = await outcome(lambda: store.load("s"))
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        store.sessions,
        lambda: record(store, "s"),
        lambda: store.commit(turn(good if isinstance(good, Session) else "s", CANARY)),
        lambda: store.commit(turn("another", CANARY)),
    )
    for end in [good, *[await outcome(call) for call in calls]]:
        if isinstance(end, StoreError):
            assert CANARY not in f"{end} {end.hint}"
            assert end.hint
            codes.add(end.code)
    await store.close()
    return codes


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("kind", ["cut", "garbage", "zeros"])
async def test_a_damaged_file_gives_an_error_and_no_traceback(tmp_path: Path, kind: str, share: float) -> None:
    """Wherever it is cut or overwritten, calls either work or say that the file is damaged; none invents a session."""
    path = tmp_path / "x.db"
    session = await filled(path, 60)
    size = path.stat().st_size
    offset = int(size * share) // 512 * 512 + (100 if share == 0 else 0)
    if kind == "cut":
        os.truncate(path, offset)
    elif kind == "garbage":
        _garble(path, offset, 8192)
    else:
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(b"\0" * 8192)
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    codes = await _tried(copy)
    assert codes <= {"store-corrupt", "store-change", "session-conflict", "store-foreign", "store-io"}
    store = SqliteStore(path)
    found = await outcome(lambda: store.load("s"))
    assert isinstance(found, StoreError) or found is None or _plausible(found, session)
    if kind == "cut":
        assert isinstance(found, StoreError)
        assert found.code == "store-corrupt"
    await store.close()


def _plausible(found: object, session: Session) -> bool:
    assert isinstance(found, Session)
    return (found.key, found.version, found.seq) == (session.key, session.version, session.seq)


async def test_an_entry_missing_from_a_long_record_is_told(tmp_path: Path) -> None:
    """Pages that begin where the last one ended do not make up for it: no entry is read twice."""
    path = tmp_path / "x.db"
    session = await filled(path, 200)
    assert session.seq > 2 * 500
    meddle(path, "delete from entries where place % 4294967296 = 9")
    async with SqliteStore(path) as store:
        found = await outcome(lambda: record(store, "s"))
        assert isinstance(found, StoreError)
        assert "entry 9 of session 's' does not decode" in str(found)


@pytest.mark.parametrize(
    "sql",
    [
        "update sessions set state=substr(state, 1, 40)",
        "update sessions set state='{}'",
        "update sessions set version=version+1",
        "update sessions set seq=seq+1",
        "update messages set body='not json' where place % 2 = 0",
        "update messages set body=x'ff' where place % 4294967296 = 3",
        "delete from messages where place % 4294967296 = 7",
        "update entries set at='yesterday' where place % 4294967296 = 5",
        "update entries set body='{\"kind\":\"turn.closed\"}' where kind = 'turn.closed'",
        "update entries set body=cast(x'80ff' as text) where place % 4294967296 = 5",
        "update entries set turn=cast(x'80ff' as text) where place % 4294967296 = 5",
        "delete from entries where place % 4294967296 = 9",
        "delete from entries where place % 4294967296 > 100",
    ],
)
async def test_rows_that_make_no_sense_are_told(tmp_path: Path, sql: str) -> None:
    """A sound file with wrong rows is damaged too: nothing is guessed, and the rest of the store works."""
    path = tmp_path / "x.db"
    await filled(path)
    meddle(path, sql)
    async with SqliteStore(path) as store:
        ends = [await outcome(lambda: store.load("s")), await outcome(lambda: record(store, "s"))]
        told = [end for end in ends if isinstance(end, StoreError)]
        assert {error.code for error in told} == {"store-corrupt"}
        assert all(CANARY not in f"{error} {error.hint}" for error in told)
        await store.commit(turn("another"))


@pytest.mark.parametrize(
    "sql",
    [
        "update sessions set state='{}'",
        "update sessions set state=7",
        "update sessions set seq=seq+1",
        "update sessions set seq='many'",
        "update sessions set seq=4294967295",
        "update sessions set seq=-1",
        "update sessions set generation='t', version='u', messages='v'",
        "update sessions set parent=x'ff'",
        "update messages set body=7",
        "delete from messages where place % 4294967296 = 7",
        "update entries set at='yesterday' where place % 4294967296 = 5",
        "update entries set at=-1, n='n', take='t', cause='c', path=x'ff', turn=x'ff' where place % 4294967296 = 5",
        "update entries set body=7, kind=x'ff' where place % 4294967296 = 5",
        "delete from entries where place % 4294967296 > 100",
    ],
)
async def test_what_makes_no_sense_can_be_erased(tmp_path: Path, sql: str) -> None:
    """With the whole session: nothing that it held is left, it begins anew, and no other session is touched."""
    path = tmp_path / "x.db"
    await filled(path)
    async with SqliteStore(path) as store:
        other = await store.commit(turn("another"))
    meddle(path, f"{sql}{' and' if 'where' in sql else ' where'} {'no' if 'sessions' in sql else 'place >> 32'}=1")
    async with SqliteStore(path) as store:
        await store.erase("s", why="asked")
        assert await store.load("another") == other
        assert [entry.seq for entry in await record(store, "another")] == list(range(other.seq))
        session = await store.commit(turn(await loaded(store, "s")))
        assert len(session.conversation.messages) == 2
    assert CANARY.encode() not in path.read_bytes()


async def test_a_name_of_a_table_that_is_no_text_is_told_everywhere(tmp_path: Path) -> None:
    """The driver would quote it in its own error, which is then no text either."""
    path = tmp_path / "x.db"
    await filled(path, 1)
    rename = "update sqlite_master set name=cast(x'73841ff1' as text) where name='sessions'"
    meddle(path, "pragma writable_schema=1", rename)
    store = SqliteStore(path)

    async def now(call: Callable[[], object]) -> object:
        return call()

    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: store.load("s"),
        lambda: store.commit(turn("another")),
        lambda: now(lambda: faults_of(str(path))),
        lambda: now(lambda: sessions_of(str(path))),
        lambda: now(lambda: backup(str(path), str(tmp_path / "copy.db"))),
        lambda: now(lambda: migrate(str(path))),
    )
    for end in [await outcome(call) for call in calls]:
        assert isinstance(end, StoreError)
        assert end.code == "store-corrupt"
    await store.close()


@pytest.mark.parametrize("size", [1, 600])
@pytest.mark.parametrize("count", ["'many'", "x'ff'"])
async def test_a_count_that_is_no_number_is_told(tmp_path: Path, count: str, size: int) -> None:
    """However long the session is."""
    path = tmp_path / "x.db"
    await filled(path, size)
    meddle(path, f"update sessions set messages={count}")  # noqa: S608 - a text of this test
    async with SqliteStore(path) as store:
        found = await outcome(lambda: store.load("s"))
        assert isinstance(found, StoreError)
        assert found.code == "store-corrupt"
