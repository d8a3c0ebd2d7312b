import asyncio
import os
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError, StoreError
from onrecord.memory.plain_shelf import PlainShelf
from onrecord.memory.ports import Near, Shown, Space
from onrecord.stores import SqliteShelf, SqliteStore
from onrecord.stores.sqlite_shelf import _Reading
from onrecord.testing.conformance.shelf import (
    ANA,
    AT,
    HERS,
    MakeShelf,
    ShelfConformance,
    found,
    kept,
    keys,
    vector,
)
from tests.memory.files import holding
from tests.stores.ciphers import KeystreamCipher

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


class TestSealedShelf(ShelfConformance):
    """The same with a cipher: it finds the same without an index."""

    @pytest.fixture
    def make_shelf(self, tmp_path: Path) -> MakeShelf:
        return lambda: SqliteShelf(tmp_path / "shelf.db", cipher=KeystreamCipher(b"key"))


def traces(folder: Path, *words: str) -> list[str]:
    """The files that have one of these words in them, whole or without its first letters, as an index cuts them."""
    needles = [word[cut:].encode() for word in words for cut in range(min(len(word) - 5, 4))]
    return holding(folder, *needles)


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


async def test_nothing_that_is_sealed_is_in_a_file(tmp_path: Path) -> None:
    """No text, no word of an index, no number of a vector, no digest of what a fact is about: they can be guessed."""
    shelf = SqliteShelf(tmp_path / "shelf.db", cipher=KeystreamCipher(b"key"))
    about = "fact-0123456789abcdef"
    near = vector(*(n / 7 for n in range(16)))
    for i in range(40):
        text = f"{CANARY} number {i}, quagmires and all"
        await shelf.put(HERS, [kept(f"k{i}", text), kept(about, CANARY, kind="fact")], vectors={f"k{i}": near})
    assert await found(shelf, "quagmires", limit=3) == ["k39", "k38", "k37"]
    assert await keys(shelf, kind="fact") == [about]
    assert traces(tmp_path, CANARY, "xylographer", "quagmires", about) == []
    assert holding(tmp_path, near.values) == []
    await shelf.put(HERS, [], drop=[about])
    assert await keys(shelf, kind="fact") == []
    await shelf.close()


async def test_a_sealed_file_is_opened_by_its_key_alone(tmp_path: Path) -> None:
    """Not by another, and not by none; and one that was written without is not sealed later."""
    for name, given in (("sealed.db", KeystreamCipher(b"key")), ("open.db", None)):
        shelf = SqliteShelf(tmp_path / name, cipher=given)
        await shelf.put(HERS, [kept("a")])
        await shelf.close()
    for name, other in (
        ("sealed.db", KeystreamCipher(b"yek")),
        ("sealed.db", None),
        ("open.db", KeystreamCipher(b"k")),
    ):
        shelf = SqliteShelf(tmp_path / name, cipher=other)
        with pytest.raises(StoreError) as told:
            await keys(shelf)
        await shelf.close()
        assert told.value.code == "store-key"


async def test_a_sealed_text_is_its_owners(tmp_path: Path) -> None:
    """Somebody who may write the file cannot show it to somebody else: it does not open there."""
    shelf = SqliteShelf(tmp_path / "shelf.db", cipher=KeystreamCipher(b"key"))
    await shelf.put(HERS, [kept("a")], vectors={"a": vector(1.0, 0.0)})
    with sqlite3.connect(tmp_path / "shelf.db") as file:
        file.execute("update kept set tenant='u'")
    file.close()
    other = Space(tenant="u", owner=ANA)
    for asks in (keys(shelf, other), found(shelf, "text", other), found(shelf, "", other, near=Near(vector(1.0, 0.0)))):
        with pytest.raises(StoreError) as told:
            await asks
        assert told.value.code == "store-key"
    await shelf.close()


async def test_what_is_old_is_in_no_file(tmp_path: Path) -> None:
    """A whole memory's old things go as thoroughly as what is forgotten."""
    shelf = SqliteShelf(tmp_path / "shelf.db")
    for i in range(40):
        await shelf.put(HERS, [kept(f"k{i}", f"{CANARY} {i}"), kept(f"n{i}", "marmalade", at=AT + timedelta(days=9))])
    assert await shelf.expire(AT + timedelta(days=1), HERS.memory) == 40
    assert traces(tmp_path, CANARY, "xylographer") == []
    assert len(await found(shelf, "marmalade")) == 40
    await shelf.close()


async def test_what_is_damaged_can_be_forgotten(tmp_path: Path) -> None:
    """It cannot say which words of the index were its: the index is made anew of what is left."""
    shelf = SqliteShelf(tmp_path / "shelf.db")
    await shelf.put(HERS, [kept("a", CANARY), kept("b", "quagmires", sessions=("r",))])
    with sqlite3.connect(tmp_path / "shelf.db") as file:
        file.execute("update kept set body='no' where key='a'")
    file.close()
    assert await shelf.forget(SessionKey("s", tenant="t")) == 1
    assert traces(tmp_path, CANARY, "xylographer") == []
    assert await found(shelf, "quagmires") == ["b"]
    assert await found(shelf, CANARY) == []
    await shelf.close()


@pytest.mark.parametrize("in_file", [True, False])
async def test_a_vector_is_nowhere_once_its_text_is_gone(tmp_path: Path, in_file: bool) -> None:
    """A text can be guessed from it. Overwritten, dropped, forgotten or too old; in a file, or in memory."""
    shelf = SqliteShelf(tmp_path / "shelf.db") if in_file else PlainShelf()
    told = {key: vector(*(ord(key) / (n + 3) for n in range(24))) for key in "abcd"}
    for key, one in told.items():
        at = AT - timedelta(days=9) if key == "d" else AT
        await shelf.put(HERS, [kept(key, sessions=(key,), at=at)], vectors={key: one})
    assert in_file or all(repr(one) in repr(vars(shelf)) for one in told.values())
    await shelf.put(HERS, [kept("a")], drop=["b"])
    await shelf.expire(AT, HERS.memory)
    await shelf.forget(SessionKey("c", tenant="t"))
    assert holding(tmp_path, *(one.values for one in told.values())) == []
    assert not any(repr(one) in repr(vars(shelf)) for one in told.values())
    assert await keys(shelf) == ["a"]
    await shelf.close()


async def test_what_was_overwritten_is_in_no_file_once_it_is_closed(tmp_path: Path) -> None:
    """Without any forgetting: a fact that changed, a message that was let go of."""
    shelf = SqliteShelf(tmp_path / "shelf.db")
    for i in range(30):
        await shelf.put(HERS, [kept(f"f{i}", CANARY, kind="fact"), kept(f"m{i}", CANARY, kind="message")])
    await shelf.put(HERS, [kept(f"f{i}", "other", kind="fact") for i in range(30)], drop=[f"m{i}" for i in range(30)])
    await shelf.close()
    assert traces(tmp_path, CANARY) == []


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


@pytest.mark.parametrize("in_file", [False, True], ids=["plain", "sqlite"])
async def test_what_a_request_shows_anyway_is_passed_over_unread(
    tmp_path: Path, in_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long conversation that is nearly all: turns would cost more and more."""
    shelf = SqliteShelf(tmp_path / "shelf.db") if in_file else PlainShelf()
    owner, name = (_Reading, "_read") if in_file else (Shown, "covers")
    look, looked_at = getattr(owner, name), list[Any]()

    def counted(*given: Any) -> Any:
        looked_at.append(given)
        return look(*given)

    monkeypatch.setattr(owner, name, counted)
    await shelf.put(HERS, [kept("before", "a word", sessions=("other",))])
    await shelf.put(HERS, [kept(f"{i}", "a word") for i in range(200)])
    assert await keys(shelf, limit=1, apart=Shown("s")) == ["before"]
    assert await found(shelf, "word", limit=1, apart=Shown("s")) == ["before"]
    assert len(looked_at) == 2
    await shelf.close()


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
    for again in (shelf.forget(ANA), shelf.forget(SessionKey("of nothing")), shelf.expire(AT, HERS.memory)):
        with pytest.raises(StoreError, match="traces of it are left"):  # whoever asks once more is told once more
            await again
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
