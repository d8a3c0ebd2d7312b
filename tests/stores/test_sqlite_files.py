# ruff: noqa: ASYNC220, ASYNC240  these tests look at files and processes between two calls
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.errors import ConfigurationError, StoreError
from onrecord.stores import SqliteStore, sqlite_schema
from onrecord.stores.sqlite_schema import SCHEMA_VERSION, schema_version
from onrecord.stores.sqlite_upkeep import faults_of, sessions_of
from onrecord.testing.conformance.asking import unchanged
from onrecord.testing.conformance.samples import turn
from tests.stores.filled import CANARY, filled, intact, outcome

pytestmark = pytest.mark.integration


async def refused(file: Path, code: str) -> StoreError:
    """The error of opening this file, whose bytes stay what they were."""
    before = file.read_bytes() if file.is_file() else None
    store = SqliteStore(file)
    errors = [await outcome(call) for call in (store.sessions, lambda: store.commit(turn("s", CANARY)))]
    await store.close()
    for error in errors:
        assert isinstance(error, StoreError)
        assert (error.code, str(file) in str(error), error.hint != "") == (code, True, True)
        assert CANARY not in f"{error} {error.hint}"
    if before is not None:
        assert file.read_bytes() == before
        assert [p.name for p in file.parent.iterdir()] == [file.name]
    assert isinstance(errors[0], StoreError)
    return errors[0]


# ---- files that are not a store --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"x", b"just a text file\n" * 400, b"\0" * 8192, b"SQLite format 2\0" + b"\0" * 200]
)
async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """Whatever it holds, it is somebody's: no byte of it changes and nothing appears beside it."""
    (tmp_path / "notes.txt").write_bytes(content)
    await refused(tmp_path / "notes.txt", "store-foreign")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("application", [0, 0x0F055112])
async def test_another_applications_database_is_left_alone(tmp_path: Path, mode: str, application: int) -> None:
    """With or without an application id, even with tables of our names."""
    path = tmp_path / "theirs.db"
    theirs = sqlite3.connect(path)
    theirs.executescript(f"pragma journal_mode={mode}; create table sessions(id); insert into sessions values(1)")
    theirs.executescript(f"pragma application_id={application}; pragma user_version=1; pragma wal_checkpoint(truncate)")
    theirs.close()
    error = await refused(path, "store-foreign")
    assert "not touched" in str(error)


async def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """Both schemas are named, and what to do."""
    path = tmp_path / "x.db"
    await filled(path, 1)
    newer = sqlite3.connect(path)
    newer.execute("pragma journal_mode=delete")
    newer.execute("pragma user_version=7")
    newer.commit()
    newer.close()
    error = await refused(path, "store-newer")
    assert "schema 7" in str(error)
    assert "up to 2" in str(error)
    assert "update onrecord" in error.hint


async def test_a_store_without_its_tables_is_damaged(tmp_path: Path) -> None:
    """A file that says it is ours and is not whole is not mended in silence."""
    path = tmp_path / "x.db"
    await filled(path, 1)
    broken = sqlite3.connect(path)
    broken.execute("pragma journal_mode=delete")
    broken.execute("drop table entries")
    broken.close()
    assert "3 of 4 tables" in str(await refused(path, "store-corrupt"))


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """What `touch` or a temporary file makes is nobody's yet."""
    path = tmp_path / "x.db"
    path.touch()
    session = await filled(path)
    async with SqliteStore(path) as store:
        await unchanged(store, session)


async def test_paths_that_cannot_be_a_file(tmp_path: Path) -> None:
    """A folder, a missing folder, a file in place of the folder: each is told apart."""
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "file").write_text("")
    await refused(tmp_path / "folder.db", "store-is-folder")
    error = await refused(tmp_path / "missing" / "x.db", "store-no-folder")
    assert "does not exist" in str(error)
    error = await refused(tmp_path / "file" / "x.db", "store-no-folder")
    assert "is not a folder" in str(error)


async def test_a_folder_made_later_is_found(tmp_path: Path) -> None:
    """A store that could not be opened tries again at the next call."""
    store = SqliteStore(tmp_path / "later" / "x.db")
    with pytest.raises(StoreError):
        await store.sessions()
    (tmp_path / "later").mkdir()
    assert await store.sessions() == []
    await store.close()


@pytest.mark.parametrize("path", ["", ":memory:", "file:x.db?mode=ro", "a\0b"])
def test_names_that_are_no_path_are_refused_at_once(path: str) -> None:
    """SQLite gives some names a meaning of its own; here a path is a path."""
    with pytest.raises(ConfigurationError):
        SqliteStore(path)


def test_an_unknown_durability_is_refused_at_once(tmp_path: Path) -> None:
    """Only the two that are documented."""
    with pytest.raises(ConfigurationError, match="unknown"):
        SqliteStore(tmp_path / "x.db", synchronous="off")  # type: ignore[arg-type]  # wrong on purpose


async def test_the_folder_may_change_behind_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which file a store means is settled when it is made."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("x.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.commit(turn("s"))
    await store.close()
    assert (tmp_path / "x.db").is_file()


async def test_a_link_leads_where_it_leads_when_the_store_is_opened(tmp_path: Path) -> None:
    """Not where it led when the store was made."""
    (link := tmp_path / "link.db").symlink_to(tmp_path / "old.db")
    store = SqliteStore(link)
    link.unlink()
    link.symlink_to(tmp_path / "new.db")
    await store.commit(turn("s"))
    await store.close()
    assert ((tmp_path / "new.db").is_file(), (tmp_path / "old.db").exists()) == (True, False)


# ---- disks that fail -------------------------------------------------------------------------------------------------


async def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """The commit that does not fit stores nothing; with room again the same change is stored."""
    path = tmp_path / "x.db"
    async with SqliteStore(path) as store:
        session = await store.commit(turn("s"))
        pages = await store._file.run(lambda db: db.execute("pragma page_count").fetchone()[0])
        await store._file.run(lambda db: db.execute(f"pragma max_page_count={pages}").fetchone())
        change = turn(session, CANARY * 20_000)
        with pytest.raises(StoreError, match="disk is full") as told:
            await store.commit(change)
        assert (told.value.code, CANARY in str(told.value)) == ("store-full", False)
        await unchanged(store, session)
        await store._file.run(lambda db: db.execute("pragma max_page_count=1000000").fetchone())
        await unchanged(store, await store.commit(change))
    assert intact(path)


AS_NOBODY = """
import asyncio, os, sqlite3, sys
from onrecord.errors import StoreError
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.samples import turn

async def tried(call):
    try:
        return await call()
    except StoreError as error:
        return error.code

async def main():
    store = SqliteStore(sys.argv[1])
    session = await tried(lambda: store.load("s"))
    loaded = getattr(session, "version", session)
    print(loaded, await tried(lambda: store.commit(turn(session if loaded == 20 else "s"))))
    await store.close()

if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
asyncio.run(main())
"""


def _as_nobody(path: Path) -> str:
    """What a process sees that may not do everything, as root may."""
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", AS_NOBODY, str(path)],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert not ran.stderr, ran.stderr
    return ran.stdout.strip()


def copied(path: Path, folder: Path) -> Path:
    """A copy of a store's file alone, in a folder of its own."""
    folder.mkdir()
    (folder / "x.db").write_bytes(path.read_bytes())
    return folder / "x.db"


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
async def test_a_store_is_read_where_nothing_may_be_written() -> None:
    """A file without a log in a folder that is read-only, as on a medium or in a backup: no log is made there."""
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        await filled(Path(outer) / "x.db")
        for file_mode in (0o444, 0o666):
            path = copied(Path(outer) / "x.db", Path(outer) / f"{file_mode:o} ?mode=rw#%41")
            path.chmod(file_mode)
            path.parent.chmod(0o555)
            assert _as_nobody(path) == "20 store-readonly"
            assert [p.name for p in path.parent.iterdir()] == ["x.db"]
            path.parent.chmod(0o755)


def no_writing(path: Path, monkeypatch: pytest.MonkeyPatch, said: str = "SQLITE_READONLY_DIRECTORY") -> SqliteStore:
    """A store whose folder takes no log: whoever runs this, root too, gets what SQLite says then."""
    opened: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect(where: str, **how: Any) -> sqlite3.Connection:
        if "immutable" not in where:
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorname = said
            raise error
        return opened(where, **how)

    monkeypatch.setattr(sqlite3, "connect", connect)
    return SqliteStore(path)


async def test_upkeep_reads_where_nothing_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store on a disk that is only read is checked as any other."""
    path = tmp_path / "x.db"
    session = await filled(path, 1)
    no_writing(path, monkeypatch)
    assert schema_version(str(path)) == SCHEMA_VERSION
    assert (faults_of(str(path)), sessions_of(str(path))) == ([], [session.key])


async def test_what_others_change_meanwhile_is_seen_by_the_next_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is read as one that nobody changes is looked at anew each time; to be written it is refused."""
    path = tmp_path / "x.db"
    first = await filled(path, 1)
    second = await filled(tmp_path / "y.db", 2)
    async with no_writing(path, monkeypatch) as store:
        assert await store.load("s") == first
        path.write_bytes((tmp_path / "y.db").read_bytes())
        await unchanged(store, second)
        error = await outcome(lambda: store.commit(turn(second)))
        assert isinstance(error, StoreError)
        assert (error.code, "may be read and not written" in str(error)) == ("store-readonly", True)


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
async def test_a_log_that_cannot_be_read_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Without it the file is not what was stored last: that is told, with what to do. An empty one holds nothing."""
    path = tmp_path / "x.db"
    session = await filled(path, 1)
    log = Path(f"{path}{ending}")
    log.touch()
    store = no_writing(path, monkeypatch)
    assert await store.load("s") == session
    log.write_bytes(b"changes")
    with pytest.raises(StoreError, match="its log beside it holds changes") as told:
        await store.load("s")
    assert (told.value.code, "copy the file" in told.value.hint) == ("store-readonly", True)
    await store.close()


@pytest.mark.parametrize("said", ["SQLITE_CANTOPEN", "SQLITE_BUSY"])
async def test_a_store_that_may_be_written_is_not_opened_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Out of file descriptors, or held by another process: that is told, and permissions are not blamed."""
    await filled(tmp_path / "x.db", 1)
    store = no_writing(tmp_path / "x.db", monkeypatch, said)
    with pytest.raises(StoreError) as told:
        await store.load("s")
    assert told.value.code in {"store-unreachable", "store-busy"}
    await store.close()


async def test_where_nothing_may_be_written_no_store_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file is none yet."""
    (tmp_path / "x.db").touch()
    store = no_writing(tmp_path / "x.db", monkeypatch)
    with pytest.raises(StoreError) as told:
        await store.sessions()
    assert told.value.code == "store-readonly"
    await store.close()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
async def test_what_may_not_be_written_is_told() -> None:
    """What may only be read is still read, file or folder; what may not be entered says so; nothing is changed."""
    with tempfile.TemporaryDirectory() as outer:  # pytest's own folders may be entered by their owner alone
        Path(outer).chmod(0o755)
        path = Path(outer) / "folder" / "x.db"
        path.parent.mkdir()
        await filled(path)
        before = path.read_bytes()
        ends = []
        for folder_mode, file_mode in ((0o777, 0o444), (0o777, 0o000), (0o555, 0o666), (0o000, 0o666)):
            path.chmod(file_mode)
            path.parent.chmod(folder_mode)
            ends.append(_as_nobody(path))
        path.parent.chmod(0o555)
        ends.append(_as_nobody(path.parent / "new.db"))
        path.parent.chmod(0o777)
        assert path.read_bytes() == before
    neither = "store-readonly store-readonly"
    assert ends == ["20 store-readonly", neither, "20 store-readonly", neither, neither]


async def test_a_connection_that_may_only_read_is_told(tmp_path: Path) -> None:
    """Where the disk itself refuses to be written, the commit says so and the reader goes on."""
    async with SqliteStore(tmp_path / "x.db") as store:
        session = await store.commit(turn("s"))
        await store._file.run(lambda db: db.execute("pragma query_only=1"))
        with pytest.raises(StoreError) as told:
            await store.commit(turn(session))
        assert told.value.code == "store-readonly"
        await unchanged(store, session)


async def test_a_file_held_by_another_process_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the store waits, then it says who is to be found; reading goes on all the time."""
    monkeypatch.setattr(sqlite_schema, "BUSY_S", 0.2)
    path = tmp_path / "x.db"
    async with SqliteStore(path) as store:
        session = await store.commit(turn("s"))
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdin is not None
        assert holder.stdout is not None
        with holder.stdin, holder.stdout:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StoreError) as told:
                await store.commit(turn(session))
            assert told.value.code == "store-busy"
            await unchanged(store, session)
            holder.stdin.write("go\n")
            holder.stdin.flush()
            holder.wait()
        await unchanged(store, await store.commit(turn(session)))


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin immediate")
print("held", flush=True)
sys.stdin.readline()
db.execute("rollback")
"""


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
async def test_a_file_that_goes_away_is_noticed(tmp_path: Path, how: str) -> None:
    """What would be written to a file that nobody finds again is refused; then the store works with what is there."""
    path = tmp_path / "x.db"
    other = await filled(tmp_path / "other.db", 2)
    async with SqliteStore(path) as store:
        session = await store.commit(turn("s"))
        if how == "deleted":
            path.unlink()
        elif how == "moved":
            path.rename(tmp_path / "y.db")
        else:
            (tmp_path / "other.db").replace(path)
        with pytest.raises(StoreError) as told:
            await store.commit(turn(session))
        assert told.value.code == "store-moved"
        found = await store.load("s")
        assert found == (other if how == "replaced" else None)
        await store.commit(turn(found or "s"))
