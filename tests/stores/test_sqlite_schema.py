# ruff: noqa: ASYNC221, ASYNC240  these tests look at files between two calls
import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onrecord.errors import StoreError
from onrecord.session.session import Session
from onrecord.stores import SqliteStore, sqlite_schema
from onrecord.stores.sqlite_schema import SCHEMA_VERSION, migrate, schema_version
from onrecord.testing.conformance.asking import accepted, unchanged
from onrecord.testing.conformance.samples import row, turn
from tests.stores.filled import TO_FIRST_SCHEMA, filled, intact

pytestmark = pytest.mark.integration


async def _old(path: Path, journal: str = "wal") -> Session:
    """A store as the first schema left it: sessions, messages and entries, and no rows."""
    session = await filled(path)
    db = sqlite3.connect(path)
    db.executescript(TO_FIRST_SCHEMA)
    db.execute(f"pragma journal_mode={journal}")
    db.close()
    return session


def _tables(path: Path) -> set[str]:
    db = sqlite3.connect(path)
    try:
        return {name for (name,) in db.execute("select name from sqlite_master where name not like 'sqlite_%'")}
    finally:
        db.close()


FIRST = {"sessions", "messages", "entries"}


async def test_an_older_store_is_brought_up_to_date_when_it_is_used(tmp_path: Path) -> None:
    """Everything in it stays, and it keeps rows from then on."""
    path = tmp_path / "x.db"
    session = await _old(path)
    assert (schema_version(str(path)), _tables(path)) == (1, FIRST)
    async with SqliteStore(path) as store:
        await unchanged(store, session)
        held = await accepted(store, row("hello"))
        await store.commit(turn(session))
        assert await store.rows("in") == [held]
    assert schema_version(str(path)) == SCHEMA_VERSION
    assert intact(path)


async def test_a_store_is_brought_up_to_date_by_command(tmp_path: Path) -> None:
    """It says which schema was there; done again it changes nothing, and where there is no file it makes one."""
    path = tmp_path / "x.db"
    assert schema_version(str(path)) == 0
    assert list(tmp_path.iterdir()) == []
    session = await _old(path)
    assert migrate(str(path)) == 1
    assert migrate(str(path)) == SCHEMA_VERSION
    assert migrate(str(tmp_path / "new.db")) == 0
    assert schema_version(str(tmp_path / "new.db")) == SCHEMA_VERSION
    async with SqliteStore(path) as store:
        await unchanged(store, session)


async def test_old_and_new_files_have_the_same_tables(tmp_path: Path) -> None:
    """Whichever way a store came to its schema, its tables and indices are declared alike."""
    declared = []
    await _old(tmp_path / "old.db")
    for name in ("old.db", "new.db"):
        migrate(str(tmp_path / name))
        db = sqlite3.connect(tmp_path / name)
        declared.append(sorted(db.execute("select name, sql from sqlite_master where sql is not null").fetchall()))
        db.close()
    assert declared[0] == declared[1]


async def test_a_migration_that_fails_leaves_the_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is one transaction: the next attempt begins where this one did."""
    path = tmp_path / "x.db"
    session = await _old(path)
    with monkeypatch.context() as broken:
        broken.setitem(sqlite_schema._SCHEMAS, 2, (*sqlite_schema._ROWS, "create table rows(n)"))
        with pytest.raises(StoreError):
            migrate(str(path))
        assert (schema_version(str(path)), _tables(path)) == (1, FIRST)
    async with SqliteStore(path) as store:
        await unchanged(store, session)
        await accepted(store, row("hello"))


async def test_several_may_bring_one_file_up_to_date_at_once(tmp_path: Path) -> None:
    """The first one does it, and the others find it done."""
    path = tmp_path / "x.db"
    await _old(path)
    stores = [SqliteStore(path) for _ in range(4)]
    await asyncio.gather(*(accepted(store, row(f"hello {n}")) for n, store in enumerate(stores)))
    assert len(await stores[0].rows("in")) == 4
    for store in stores:
        await store.close()
    assert intact(path)


@pytest.mark.parametrize("ask", [schema_version, migrate])
def test_a_file_of_somebody_else_is_not_asked(tmp_path: Path, ask: object) -> None:
    """Nor is it migrated."""
    path = tmp_path / "notes.txt"
    path.write_text("just a text file")
    with pytest.raises(StoreError) as told:
        ask(str(path))  # type: ignore[operator]  # one of the two functions
    assert told.value.code == "store-foreign"
    assert path.read_text() == "just a text file"


async def test_a_newer_store_is_not_migrated(tmp_path: Path) -> None:
    """Its schema can be asked for all the same."""
    path = tmp_path / "x.db"
    await filled(path, 1)
    db = sqlite3.connect(path)
    db.executescript("pragma user_version=9")
    db.close()
    assert schema_version(str(path)) == 9
    with pytest.raises(StoreError) as told:
        migrate(str(path))
    assert told.value.code == "store-newer"


AS_NOBODY = """
import asyncio, os, sqlite3, sys
from onrecord.conversation.identity import SessionKey
from onrecord.errors import StoreError
from onrecord.stores import SqliteStore
from onrecord.stores.sqlite_schema import migrate
from onrecord.testing.conformance.samples import row, turn

async def main():
    store = SqliteStore(sys.argv[1])
    session = await store.load("s")
    print(session.version, len([entry async for entry in store.entries("s")]) == session.seq)
    for call in (
        lambda: store.rows("in"), lambda: store.next_due("in"), lambda: store.put(row("hello")),
        lambda: store.lease("in", "w", ttl=5), lambda: store.cancel("in", SessionKey("s")),
        lambda: store.commit(turn(session)),
    ):
        try:
            print(await call())
        except StoreError as error:
            print(error.code, bool(error.hint), "schema 1" in str(error))
    await store.close()
    try:
        migrate(sys.argv[1])
    except StoreError as error:
        print("migrate", error.code)

if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
asyncio.run(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "journal"),
    # SQLite itself reads no file with a write-ahead log in a folder where it may not put one.
    [(0o777, 0o444, "wal"), (0o777, 0o444, "delete"), (0o555, 0o444, "delete"), (0o555, 0o666, "delete")],
)
async def test_an_older_store_that_may_not_be_written_is_read_as_it_is(
    folder_mode: int, file_mode: int, journal: str
) -> None:
    """Sessions and records are there; rows say why they are not; no byte of the file changes."""
    with tempfile.TemporaryDirectory() as outer:  # pytest's own folders may be entered by their owner alone
        Path(outer).chmod(0o755)
        path = Path(outer) / "folder" / "x.db"
        path.parent.mkdir()
        await _old(path, journal)
        before = path.read_bytes()
        path.chmod(file_mode)
        path.parent.chmod(folder_mode)
        ran = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", AS_NOBODY, str(path)],
            capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip
        path.parent.chmod(0o777)
        assert path.read_bytes() == before
    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    assert lines[0] == "20 True"
    assert lines[1:6] == ["store-readonly True True"] * 5
    assert lines[6].startswith("store-readonly True")
    assert lines[7] == "migrate store-readonly"
