"""Long sessions are read in pages: others who wait for the file have their turn, and what changes is read anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, Said
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import row_key
from onrecord.host import Host
from onrecord.session.inbox import Lease, Row
from onrecord.session.session import Session
from onrecord.stores import SqliteStore, sqlite_sessions
from onrecord.testing import ScriptedModel
from onrecord.testing.conformance.samples import turn

pytestmark = pytest.mark.integration

KEY = SessionKey("long")


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    """A store with a session of 24 messages, where a page holds ten."""
    monkeypatch.setattr(sqlite_sessions, "PAGE", 10)
    async with SqliteStore(tmp_path / "s.db") as opened:
        session: Session | SessionKey = KEY
        for number in range(12):
            session = await opened.commit(turn(session, f"question {number}"))
        yield opened


def counted(store: SqliteStore, before: Any = None) -> list[str]:
    """The acts of the store's file from now on; ``before`` is awaited in front of each further page."""
    acts, run = list[str](), store._file.run

    async def counting(act: Any, *, shares: bool = False) -> Any:
        name = act.func.__name__ if hasattr(act, "func") else "other"
        acts.append(name)
        if before is not None and name == "_read_on":
            await before(run)
        return await run(act, shares=shares)

    store._file.run = counting  # type: ignore[method-assign]  # the place where every act goes through
    return acts


@pytest.mark.parametrize("messages", [18, 20, 22, 24])
async def test_a_long_session_is_whole_however_its_pages_end(store: SqliteStore, tmp_path: Path, messages: int) -> None:
    """One more or less than a page, and full pages alone."""
    key = SessionKey(f"of {messages}")
    session: Session | SessionKey = key
    for number in range(messages // 2):
        session = await store.commit(turn(session, f"question {number}"))
    acts = counted(store)
    assert await store.load(key) == session
    assert acts == ["_load", *["_read_on"] * -(-messages // 10)]


async def test_a_short_session_is_read_at_once(store: SqliteStore) -> None:
    """And so is one that is known."""
    short = await store.commit(turn("short"))
    long = await store.load(KEY)
    acts = counted(store)
    assert await store.load("short") == short
    assert await store.load(KEY, known=long) is long
    assert acts == ["_load", "_load"]


async def test_others_have_their_turn_between_two_pages(store: SqliteStore) -> None:
    """What is asked while a long session is read does not wait for all of it."""
    done = list[str]()

    async def load() -> None:
        await store.load(KEY)
        done.append("loaded")

    async def commit() -> None:
        await store.commit(turn("other"))
        done.append("committed")

    await asyncio.gather(load(), commit())
    assert done == ["committed", "loaded"]


async def test_a_session_that_changes_meanwhile_is_read_anew(store: SqliteStore) -> None:
    """What comes back is of one moment."""
    held = await store.load(KEY)
    assert held is not None
    change, changed = turn(held, "one more"), list[Session]()

    async def once(run: Any) -> None:
        if not changed:
            changed.append(held)
            changed.append(await store.commit(change))

    acts = counted(store, once)
    assert await store.load(KEY) == changed[1]
    assert acts.count("_load") == 2


async def test_a_session_that_never_rests_is_read_in_one_piece(store: SqliteStore) -> None:
    """After three beginnings."""
    held = await store.load(KEY)
    assert held is not None
    last = [held]

    async def always(run: Any) -> None:
        last.append(await store.commit(turn(last[-1], "one more")))

    acts = counted(store, always)
    assert await store.load(KEY) == last[-1]
    assert (acts.count("_load"), acts[-1]) == (3, "_load_whole")


async def test_a_message_of_a_long_session_is_left_to_a_lease(store: SqliteStore) -> None:
    """Where the session is known it is leased at once; a host takes it either way."""
    held, lease = await store.load(KEY), Lease(owner="me", ttl=5)
    rows = [
        Row(session=KEY, box="in", key=row_key(said, ""), body=said)
        for said in (Said("a", key="1"), Said("b", key="2"))
    ]
    assert not (await store.put(rows[0], lease=lease)).leased
    (row,) = await store.lease("in", "me", ttl=5)
    assert await store.done(row)
    accepted = await store.put(rows[1], lease=Lease(owner="me", ttl=5, known=held))
    assert accepted.leased
    assert accepted.session is held
    assert accepted.row is not None
    assert await store.done(accepted.row)
    async with Host(Agent(ScriptedModel("Hello.")), store=store, poll_s=0.02) as host:
        assert (await host.turn(KEY, "Hi")).text == "Hello."
