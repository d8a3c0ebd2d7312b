"""A cipher at the store: what is written cannot be read without it, changed, or put elsewhere."""

import sqlite3
from pathlib import Path

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Said, row_key
from onrecord.errors import StoreError
from onrecord.session.codec import dumps_session
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.asking import MakeStore, loaded, record
from onrecord.testing.conformance.erasable import Canary, everything, folds, waiting
from onrecord.testing.conformance.samples import turn
from onrecord.testing.conformance.store import StoreConformance
from tests.stores.ciphers import KeystreamCipher
from tests.stores.test_sqlite_erase import found

pytestmark = pytest.mark.integration

KEY = SessionKey("s", tenant="t")


def sealed(folder: Path, key: bytes = b"right") -> SqliteStore:
    """A store in that folder, opened with that key."""
    return SqliteStore(folder / "s.db", cipher=KeystreamCipher(key))


class TestSealed(StoreConformance):
    """A sealed store keeps every promise of the suite."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return lambda clock=None: SqliteStore(
            tmp_path / "s.db", cipher=KeystreamCipher(b"right"), **({} if clock is None else {"clock": clock})
        )


async def test_no_text_is_readable_in_the_file(tmp_path: Path) -> None:
    """Of messages, entries, states, rows, their options and marks; names, kinds and times are."""
    canary = Canary()
    async with sealed(tmp_path) as store:
        session = await store.commit(everything(Session(key=KEY, digest_key="canary-digest-key"), canary))
        await waiting(store, KEY, canary)
        await store.cancel("in", KEY, by=Interruption(id="i", cause=canary("cause")))
        assert found(tmp_path, [*canary.made, "canary-digest-key"]) == set()
        assert found(tmp_path, ["said::m0", "turn.input", "2026-11-29"]) == {"said::m0", "turn.input", "2026-11-29"}
    async with sealed(tmp_path) as store:
        assert dumps_session(await loaded(store, KEY)) == dumps_session(session)
        assert "woke::wake" in {row.key for row in await store.rows("in", KEY)}


async def test_another_key_opens_nothing(tmp_path: Path) -> None:
    """It is told at once, without the cipher's own words, and nothing is written."""
    async with sealed(tmp_path) as store:
        await store.commit(turn("s"))
    before = (tmp_path / "s.db").read_bytes()
    for wrong in (sealed(tmp_path, b"wrong"), SqliteStore(tmp_path / "s.db")):
        with pytest.raises(StoreError) as told:
            await wrong.load("s")
        assert told.value.code == "store-key"
        assert told.value.hint
        assert "wrong'" not in str(told.value)
        await wrong.close()
    assert (tmp_path / "s.db").read_bytes() == before


async def test_a_file_written_without_a_cipher_is_not_sealed_halfway(tmp_path: Path) -> None:
    """Opened with one it is refused; one that holds nothing yet may be sealed."""
    async with SqliteStore(tmp_path / "s.db"):
        pass
    async with sealed(tmp_path) as store:
        await store.commit(turn("s"))
    async with SqliteStore(tmp_path / "plain.db") as store:
        await store.commit(turn("s"))
    plain = SqliteStore(tmp_path / "plain.db", cipher=KeystreamCipher(b"right"))
    with pytest.raises(StoreError, match="without a cipher") as told:
        await plain.load("s")
    assert told.value.code == "store-key"
    await plain.close()


async def reading(store: SqliteStore, what: str) -> object:
    """Entries, rows, or a session."""
    if what == "entries":
        return await record(store, "b")
    return await store.rows("in") if what == "rows" else await loaded(store, what)


@pytest.mark.parametrize(
    ("swap", "read"),
    [
        ("update sessions set state=(select state from sessions where id='a') where id='b'", "b"),
        ("update messages set body=(select body from messages order by place limit 1)", "b"),
        ("update entries set body=(select body from entries order by place limit 1)", "entries"),
        ("update rows set body=(select body from rows order by n limit 1)", "rows"),
        ("update rows set options=(select options from rows order by n desc limit 1)", "rows"),
        ("update messages set body=x'00'", "b"),
    ],
)
async def test_a_cell_opens_in_its_own_place_only(tmp_path: Path, swap: str, read: str) -> None:
    """Whoever can write the file cannot put one text in the place of another."""
    async with sealed(tmp_path) as store:
        for id in ("a", "b"):
            session = await store.commit(turn(id, f"from {id}"))
            said = Said(f"to {id}", key="k")
            await store.put(Row(session=session.key, box="in", key=row_key(said, ""), body=said))
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute(swap)
    db.commit()
    db.close()
    async with sealed(tmp_path) as store:
        with pytest.raises(StoreError) as told:
            await reading(store, read)
        assert told.value.code == "store-corrupt"
        assert "from" not in str(told.value)


async def test_sealed_cells_are_erased_too(tmp_path: Path) -> None:
    """An erasure of messages keeps the others sealed and readable."""
    async with sealed(tmp_path) as store:
        session = await store.commit(turn(KEY, "one"))
        session = await store.commit(turn(session, "two"))
        await store.erase(KEY, messages=[session.conversation.messages[0].id], why="asked")
        left = await folds(store, KEY)
        assert [getattr(m, "text", "") for m in left.conversation.messages] == ["two", "80 euros."]
        assert found(tmp_path, ["80 euros", "asked"]) == set()
