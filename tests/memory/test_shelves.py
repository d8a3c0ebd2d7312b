import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError, StoreError
from onrecord.memory.ports import Space
from onrecord.memory.shelf import PlainShelf
from onrecord.stores import SqliteShelf, SqliteStore
from onrecord.testing.conformance.shelf import ANA, HERS, MakeShelf, ShelfConformance, found, kept, keys

pytestmark = pytest.mark.integration

CANARY = "xylographer-7731"


class TestPlainShelf(ShelfConformance):
    """The one in memory."""

    @pytest.fixture
    def make_shelf(self) -> MakeShelf:
        return PlainShelf


class TestSqliteShelf(ShelfConformance):
    """The one in a file."""

    @pytest.fixture
    def make_shelf(self, tmp_path: Path) -> MakeShelf:
        return lambda: SqliteShelf(tmp_path / "shelf.db")


def traces(folder: Path, *words: str) -> list[str]:
    """The files that have one of these words in them, whole or without its first letters, as an index cuts them."""
    needles = [word[cut:].encode() for word in words for cut in range(min(len(word) - 5, 4))]
    return [file.name for file in folder.iterdir() if any(needle in file.read_bytes() for needle in needles)]


@pytest.mark.parametrize("what", [SessionKey("s", tenant="t"), ANA], ids=["session", "person"])
async def test_what_is_forgotten_is_in_no_file(tmp_path: Path, what: SessionKey | Identity) -> None:
    """Not in its table, not in the index, not in pages that are free now, not in the log; others' words still are."""
    shelf = SqliteShelf(tmp_path / "shelf.db")
    space = HERS if isinstance(what, SessionKey) else Space(tenant="t", owner=Identity(principal="bo"))
    for i in range(60):
        await shelf.put(
            HERS, [kept(f"k{i}", f"{CANARY} number {i}, quagmires and all"), kept("fact", CANARY, kind="fact")]
        )
        await shelf.put(space, [kept(f"o{i}", f"harmless marmalade {i}", sessions=("r",))])
    await shelf.put(HERS, [kept("k1", "something else")])  # one that was overwritten is gone as well
    assert traces(tmp_path, CANARY, "xylographer", "quagmires")
    assert await shelf.forget(what) > 0
    assert traces(tmp_path, CANARY, "xylographer", "quagmires") == []
    assert traces(tmp_path, "marmalade")
    assert len(await found(shelf, "marmalade", space)) == 60
    await shelf.close()
    assert traces(tmp_path, CANARY, "xylographer", "quagmires") == []


async def test_it_is_all_there_when_it_is_opened_again(tmp_path: Path) -> None:
    """Numbers go on counting."""
    one = SqliteShelf(tmp_path / "shelf.db")
    await one.put(HERS, [kept("a", "grey heron")])
    await one.close()
    other = SqliteShelf(tmp_path / "shelf.db")
    await other.put(HERS, [kept("b")])
    assert await keys(other) == ["a", "b"]
    assert await found(other, "heron") == ["a"]
    await other.close()


async def test_two_use_one_file(tmp_path: Path) -> None:
    """As two processes would; a file that is new to both is made once."""
    one, other = SqliteShelf(tmp_path / "shelf.db"), SqliteShelf(tmp_path / "shelf.db")
    await asyncio.gather(
        *(shelf.put(HERS, [kept(f"{i}{j}")]) for i, shelf in enumerate((one, other)) for j in range(9))
    )
    assert len(await keys(one)) == len(await keys(other)) == 18
    await one.close()
    await other.close()


async def test_what_others_read_is_told(tmp_path: Path) -> None:
    """Somebody who keeps an old state in view keeps the words in the log: then `forget` says that it is not done."""
    shelf = SqliteShelf(tmp_path / "shelf.db")
    await shelf.put(HERS, [kept("a", CANARY)])
    reader = sqlite3.connect(tmp_path / "shelf.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from kept").fetchone()
    with pytest.raises(StoreError) as told:
        await shelf.forget(ANA)
    assert (told.value.code, CANARY in f"{told.value} {told.value.hint}") == ("store-unswept", False)
    assert await keys(shelf) == []
    reader.close()
    assert await shelf.forget(ANA) == 0
    assert traces(tmp_path, CANARY) == []
    assert await shelf.sweep()
    await shelf.close()


@pytest.mark.parametrize("path", ["", ":memory:", "file:x", "a\0b"])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigurationError):
        SqliteShelf(path)


async def test_a_file_of_others_is_not_touched(tmp_path: Path) -> None:
    """A store of sessions, a text, a folder, a schema of tomorrow: each is told, and stays as it was."""
    store = SqliteStore(tmp_path / "store.db")
    async with store:
        pass
    (tmp_path / "text.db").write_text("not a database at all, " * 99)
    (tmp_path / "folder.db").mkdir()
    newer = SqliteShelf(tmp_path / "newer.db")
    await newer.put(HERS, [kept("a")])
    await newer.close()
    with sqlite3.connect(tmp_path / "newer.db") as file:
        file.execute("pragma user_version=99")
    file.close()
    codes = {"store": "store-foreign", "text": "store-foreign", "folder": "store-is-folder", "newer": "store-newer"}
    for name, code in codes.items():
        path = tmp_path / f"{name}.db"
        before = path.read_bytes() if path.is_file() else b""
        shelf = SqliteShelf(path)
        with pytest.raises(StoreError) as told:
            await shelf.put(HERS, [kept("a")])
        await shelf.close()
        assert told.value.code == code
        assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_body_that_does_not_decode_is_damage(tmp_path: Path) -> None:
    """And the error quotes nothing of it."""
    shelf = SqliteShelf(tmp_path / "shelf.db")
    await shelf.put(HERS, [kept("a", CANARY)])
    with sqlite3.connect(tmp_path / "shelf.db") as file:
        file.execute("update kept set body=?", (b'{"key": "' + CANARY.encode(),))
    file.close()
    with pytest.raises(StoreError) as told:
        await keys(shelf)
    assert (told.value.code, CANARY in str(told.value)) == ("store-corrupt", False)
    assert repr(shelf) == f"SqliteShelf({os.fspath(tmp_path / 'shelf.db')!r})"
    await shelf.close()
