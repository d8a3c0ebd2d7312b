"""Where artifacts are kept: by scope, for as long as there is room, until somebody is forgotten."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError, StoreError
from onrecord.prompt import FileArtifacts, MemoryArtifacts
from onrecord.prompt.artifact_store import ArtifactScope, ArtifactStore
from onrecord.stores import SqliteArtifacts, SqliteStore
from onrecord.testing.conformance.artifacts import ANA, AT, HERS, SECOND, ArtifactConformance, MakeArtifacts, put, refs

pytestmark = pytest.mark.integration

CANARY = b"canary-7Q-of-a-result"


class TestMemory(ArtifactConformance):
    """In this process."""

    @pytest.fixture
    def make_artifacts(self) -> MakeArtifacts:
        return MemoryArtifacts


class TestFiles(ArtifactConformance):
    """In a folder."""

    @pytest.fixture
    def make_artifacts(self, tmp_path: Path) -> MakeArtifacts:
        return lambda: FileArtifacts(tmp_path / "artifacts")


class TestSqlite(ArtifactConformance):
    """In a SQLite file."""

    @pytest.fixture
    def make_artifacts(self, tmp_path: Path) -> MakeArtifacts:
        return lambda: SqliteArtifacts(tmp_path / "artifacts.db")


MAKES: dict[str, Callable[..., Any]] = {
    "memory": lambda _, **limits: MemoryArtifacts(**limits),
    "files": FileArtifacts,
    "sqlite": SqliteArtifacts,
}
STORED = ("files", "sqlite")


async def closed(store: Any) -> None:
    """Lets go of a file."""
    if hasattr(store, "close"):
        await store.close()


def traces(folder: Path, *words: bytes) -> list[str]:
    """The files below a folder that have one of these words in them, or its second half."""
    needles = [part for word in words for part in (word, word[len(word) // 2 :])]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if any(needle in file.read_bytes() for needle in needles)]


def within(folder: Path, pattern: str = "*") -> list[Path]:
    """What is in a folder."""
    return sorted(folder.glob(pattern))


# ---- room ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAKES)
async def test_the_oldest_make_room(tmp_path: Path, kind: str) -> None:
    """By size, by number, over all scopes; never the newest, however large."""
    other = ArtifactScope(session=SessionKey("other"))

    async def left(number: int, sizes: list[int], **limits: int) -> list[str]:
        store = MAKES[kind](tmp_path / f"{number}", **limits)
        for n, size in enumerate(sizes):
            await put(store, f"{n}", b"x" * size, other if n == 1 else HERS, seconds=n)
        found = [*await refs(store, other), *await refs(store)]
        await closed(store)
        return found

    assert await left(0, [4, 4, 4], max_bytes=10) == ["1", "2"]
    assert await left(1, [4, 4, 4, 4], max_count=2) == ["2", "3"]
    assert await left(2, [4, 40], max_bytes=10) == ["1"]
    assert await left(3, [4, 4, 40], max_bytes=10) == ["2"]
    assert await left(4, [5, 5], max_bytes=10, max_count=2) == ["1", "0"]
    store = MAKES[kind](tmp_path / "clock", max_count=1)
    await put(store, "first", seconds=9)
    await put(store, "newest, by a clock that was set back")
    assert await refs(store) == ["newest, by a clock that was set back"]
    await closed(store)
    for name in ("max_bytes", "max_count"):
        with pytest.raises(ConfigurationError, match=f"{name} of .*Artifacts"):
            MAKES[kind](tmp_path / "none", **{name: 0})


# ---- in files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("what", [HERS.session, ANA, "age", "over", "again"], ids=str)
async def test_what_is_let_go_of_is_in_no_file(tmp_path: Path, kind: str, what: Any) -> None:
    """Not in its place, not in free pages, not in a log; what others have is still there."""
    store: ArtifactStore = MAKES[kind](tmp_path / "kept")
    others = ArtifactScope(session=SessionKey("o"))
    for n in range(30):
        for length in (1, 400):
            about: dict[str, Any] = {"expires_at": AT + SECOND} if what == "over" else {}
            await put(store, f"a{n}-{length}", (CANARY + b"%d " % n) * length, label=CANARY.decode(), **about)
            await put(store, f"b{n}-{length}", b"marmalade " * length, others, seconds=60)
    assert traces(tmp_path, CANARY)
    if what == "age":
        await store.expire(AT + SECOND, AT + SECOND)
    elif what == "over":
        await store.expire(None, AT + SECOND)
    elif what == "again":
        for n in range(30):
            for length in (1, 400):
                await put(store, f"a{n}-{length}", b"nothing")
        await store.forget(SessionKey("nobody"))
    else:
        await store.forget(what)
    assert traces(tmp_path, CANARY) == []
    assert len(await refs(store, others)) == 60
    await closed(store)
    assert traces(tmp_path, CANARY) == []
    assert traces(tmp_path, b"marmalade")


@pytest.mark.parametrize("kind", STORED)
async def test_it_is_all_there_when_it_is_opened_again(tmp_path: Path, kind: str) -> None:
    """And two may use it at once."""
    one, other = MAKES[kind](tmp_path / "kept"), MAKES[kind](tmp_path / "kept")
    await put(one, "a", CANARY)
    await asyncio.gather(*(put(store, "b", b"x" * 99_999, seconds=1) for _ in range(20) for store in (one, other)))
    await closed(one)
    again = MAKES[kind](tmp_path / "kept")
    assert await refs(again) == await refs(other) == ["a", "b"]
    assert await again.get(HERS, "a") == CANARY
    for store in (other, again):
        await closed(store)
    assert "kept" in repr(again)


def _damage(folder: Path, kind: str, how: str) -> None:
    """Changes what is stored behind the store's back."""
    if kind == "sqlite":
        with sqlite3.connect(folder / "kept") as file:
            sql = "update artifacts set known=?" if how == "known" else "update artifacts set data=?"
            file.execute(sql, (b"{torn" if how != "short" else CANARY[:-1],))
        file.close()
        return
    (path,) = (folder / "kept").rglob("*.json" if how == "known" else "*.data")
    path.write_bytes(b"{torn" if how != "short" else CANARY[:-1])


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("how", ["known", "data", "short"])
async def test_what_is_damaged_is_named_and_not_handed_out(tmp_path: Path, kind: str, how: str) -> None:
    """The error says where, and nothing of what; everything else is fine, and it can be let go of."""
    store: ArtifactStore = MAKES[kind](tmp_path / "kept")
    await put(store, "a", CANARY)
    await closed(store)
    _damage(tmp_path, kind, how)
    store = MAKES[kind](tmp_path / "kept")
    await put(store, "b", seconds=1)
    with pytest.raises(StoreError, match="an artifact is damaged: ") as raised:
        await store.get(HERS, "a")
    assert raised.value.code == "artifact-damaged"
    assert ("kept" in str(raised.value), CANARY.decode() in str(raised.value)) == (True, False)
    if how == "known":
        with pytest.raises(StoreError, match="does not decode"):
            await store.head(HERS, "a")
    assert await refs(store) == (["b"] if how == "known" else ["a", "b"])
    await store.forget(ANA)
    assert await refs(store) == []
    await closed(store)
    assert traces(tmp_path, CANARY) == []


async def test_files_cannot_be_led_astray(tmp_path: Path) -> None:
    """Names are digests; a disk that fails is a StoreError without a path."""
    store = FileArtifacts(tmp_path / "artifacts")
    wild = ArtifactScope(session=SessionKey("..", tenant="../.."), owner=Identity(principal="/etc"))
    await put(store, "../../x", scope=wild)
    assert await store.get(wild, "../../x") == b"one"
    assert within(tmp_path) == [tmp_path / "artifacts"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="artifacts cannot be kept in 'file': NotADirectoryError") as raised:
        await put(FileArtifacts(tmp_path / "file"), "a")
    assert str(tmp_path) not in str(raised.value)


async def test_a_folder_holds_what_is_of_others_too(tmp_path: Path) -> None:
    """It is not looked at, and nothing of it is deleted."""
    store = FileArtifacts(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    await put(store, "a")
    await store.expire(AT + timedelta(days=99_999), AT)
    await store.forget(ANA)
    assert [path.name for path in within(tmp_path, "**/*")] == ["notes.txt", "photos", "cat.json"]


async def test_what_a_crash_left_half_written_goes_too(tmp_path: Path) -> None:
    """Bytes without what is known of them, a file on its way: with their session, or by their age."""
    store = FileArtifacts(tmp_path)
    await put(store, "a", seconds=10**9)
    (folder,) = within(tmp_path)

    def half() -> list[str]:
        (folder / f"{'1' * 32}.data").write_bytes(CANARY)
        (folder / f"{'2' * 32}.json.77-1.new").write_bytes(CANARY)
        for path in folder.glob("[12]*"):
            os.utime(path, (AT.timestamp(), AT.timestamp()))
        return traces(tmp_path, CANARY)

    assert len(half()) == 2
    await store.expire(AT + SECOND, AT)
    assert traces(tmp_path, CANARY) == []
    assert await refs(store) == ["a"]
    half()
    await store.forget(HERS.session)
    assert within(tmp_path) == []


async def test_a_deletion_that_was_cut_short_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What says whose a folder is goes last."""
    store = FileArtifacts(tmp_path)
    await put(store, "a", CANARY)
    unlink = Path.unlink

    def fails(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".json":
            raise PermissionError(13, "in use")
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", fails)
        with pytest.raises(StoreError, match="PermissionError"):
            await store.forget(ANA)
    await store.forget(ANA)
    assert within(tmp_path) == []


async def test_a_folder_that_nothing_was_written_to_yet_is_in_nobodys_way(tmp_path: Path) -> None:
    """A crash came before the file that says whose it is: it goes with whatever goes next."""
    store = FileArtifacts(tmp_path)
    await put(store, "a")
    (folder,) = within(tmp_path)
    await store.forget(ANA)
    folder.mkdir()
    await store.forget(Identity(principal="somebody"))
    assert within(tmp_path) == []


async def test_a_folder_that_does_not_say_whose_it_is_is_named(tmp_path: Path) -> None:
    """After all others: what may be theirs must not stay without a word."""
    store = FileArtifacts(tmp_path)
    await put(store, "a", scope=ArtifactScope(session=SessionKey("o")))
    (folder,) = within(tmp_path)
    await put(store, "a")
    (folder / "scope").write_bytes(b"{torn")
    with pytest.raises(StoreError, match=f"/{folder.name} does not say whose it is"):
        await store.forget(ANA)
    assert await refs(store) == []
    assert within(tmp_path) == [folder]


async def test_a_file_of_others_is_not_touched(tmp_path: Path) -> None:
    """A store of sessions, a text, a schema of tomorrow: each is told, and stays as it was."""
    async with SqliteStore(tmp_path / "store.db"):
        pass
    (tmp_path / "text.db").write_text("not a database at all, " * 99)
    newer = SqliteArtifacts(tmp_path / "newer.db")
    await put(newer, "a")
    await newer.close()
    with sqlite3.connect(tmp_path / "newer.db") as file:
        file.execute("pragma user_version=99")
    file.close()
    for name, code in {"store": "store-foreign", "text": "store-foreign", "newer": "store-newer"}.items():
        path = tmp_path / f"{name}.db"
        before = path.read_bytes()
        store = SqliteArtifacts(path)
        with pytest.raises(StoreError) as told:
            await put(store, "a")
        await store.close()
        assert (told.value.code, path.read_bytes()) == (code, before)
    for none in ("", ":memory:", "file:x", "a\0b"):
        with pytest.raises(ConfigurationError, match="does not name a file"):
            SqliteArtifacts(none)


@pytest.mark.parametrize("anew", [False, True], ids=["at-once", "by-another-process"])
async def test_what_others_read_is_told(tmp_path: Path, anew: bool) -> None:
    """Somebody who keeps an old state in view keeps the bytes in the log: then `forget` says that it is not done.

    Asked again it does it, though nothing is there to be deleted any more, and nobody remembers that there was.
    """
    store = SqliteArtifacts(tmp_path / "kept")
    await put(store, "a", CANARY)
    reader = sqlite3.connect(tmp_path / "kept", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from artifacts").fetchone()
    with pytest.raises(StoreError) as told:
        await store.forget(ANA)
    assert told.value.code == "store-unswept"
    assert await refs(store) == []
    if anew:
        await store.close()
        store = SqliteArtifacts(tmp_path / "kept")
    reader.execute("commit")
    assert traces(tmp_path, CANARY)
    await store.forget(ANA)
    assert traces(tmp_path, CANARY) == []
    assert await store.sweep()
    reader.close()
    await store.close()


class Xor:
    """No cipher for anybody, but nothing stays readable."""

    def seal(self, data: bytes, about: bytes, /) -> bytes:
        return bytes(b ^ 0x5A for b in about[:40] + b"|" + data)

    def open(self, data: bytes, about: bytes, /) -> bytes:
        plain = bytes(b ^ 0x5A for b in data)
        if not plain.startswith(about[:40] + b"|"):
            raise ValueError("another cell")
        return plain[len(about[:40]) + 1 :]


async def test_a_sealed_file_is_not_readable(tmp_path: Path) -> None:
    """Nor is a cell that was put elsewhere, and a file that was begun without a cipher stays so."""
    store = SqliteArtifacts(tmp_path / "kept", cipher=Xor())
    await put(store, "a", CANARY, label=CANARY.decode())
    assert await store.get(HERS, "a") == CANARY
    assert traces(tmp_path, CANARY) == []
    await store.close()
    plain = SqliteArtifacts(tmp_path / "kept")
    with pytest.raises(StoreError, match="is sealed"):
        await plain.head(HERS, "a")
    await plain.close()
