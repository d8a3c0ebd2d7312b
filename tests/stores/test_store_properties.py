import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import Message
from onrecord.record.entry import Body
from onrecord.session.folding import refold
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Change, Store
from onrecord.stores import SqliteStore
from onrecord.testing.conformance.asking import loaded, record
from onrecord.testing.conformance.samples import changed, entries_of
from tests.strategies import bodies, json_values, messages, sessions, takes

pytestmark = pytest.mark.integration

drawn = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
keys = st.builds(SessionKey, st.text(min_size=1, max_size=20), tenant=st.text(max_size=20))


@pytest.fixture(params=["memory", "sqlite"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[Store], Any]], None]:
    """Runs a coroutine function with a store that holds nothing."""

    async def opened(act: Callable[[Store], Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sqlite = request.param == "sqlite"
            store: Store = SqliteStore(Path(folder) / "x.db") if sqlite else MemoryStore()
            try:
                await act(store)
            finally:
                await store.close()

    return lambda act: asyncio.run(opened(act))


Run = Callable[[Callable[[Store], Any]], None]


@drawn
@given(data=st.data(), key=keys, count=st.integers(1, 6))
def test_a_stored_session_is_what_its_takes_made_and_its_record_tells(
    run: Run, data: st.DataObject, key: SessionKey, count: int
) -> None:
    """After takes that close, pause, fail, are interrupted or change the history: load and refold give one session."""

    async def act(store: Store) -> None:
        session, made = Session(key=key, digest_key="k"), 0
        for _ in range(count):
            entries = data.draw(takes(session))
            session = await store.commit(changed(session, entries))
            made += 1
            found = await loaded(store, key)
            assert found == session
            assert found.version == made
        told = refold(key, await record(store, key), digest_key="k")
        assert replace(told, version=made) == session

    run(act)


@drawn
@given(key=keys, said=st.lists(messages, max_size=3), filed=st.lists(bodies, min_size=1, max_size=4), state=sessions)
def test_anything_storable_comes_back_equal(
    run: Run, key: SessionKey, said: list[Message], filed: list[Body], state: Session
) -> None:
    """Any messages, any entry bodies and any small state, of sessions with any name."""

    async def act(store: Store) -> None:
        session = replace(state, key=key)
        entries = entries_of(session, filed)
        after = replace(session, seq=len(entries), conversation=Conversation.of(said))
        stored = await store.commit(Change.between(None, after, entries))
        assert await store.load(key) == stored
        assert await record(store, key) == list(entries)
        assert await store.sessions(tenant=key.tenant) == [key]

    run(act)


@drawn
@given(data=st.data(), first=st.lists(messages, max_size=4), patch=json_values)
def test_a_rewritten_history_is_the_one_that_is_read(
    run: Run, data: st.DataObject, first: list[Message], patch: object
) -> None:
    """However much of the old messages is kept, what follows is the new ones and nothing else."""

    async def act(store: Store) -> None:
        session = Session(key=SessionKey("s"))
        history: list[Message] = []
        for turns in range(4):
            kept = data.draw(st.integers(0, len(history)))
            history = [*history[:kept], *(data.draw(st.lists(messages, max_size=3)) if turns else first)]
            entries = entries_of(session, (data.draw(bodies),))
            told = Conversation.of(history)
            after = replace(session, seq=session.seq + 1, data={"v": patch}, conversation=told)
            change = Change(session=after, kept=kept, messages=tuple(history[kept:]), entries=entries)
            session = await store.commit(change)
            assert list((await loaded(store, "s")).conversation.messages) == history
            assert await loaded(store, "s") == session

    run(act)
