"""How every store commits: once and whole, or not at all."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.errors import SessionConflict, StoreError
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.testing.conformance.asking import MakeStore, loaded, opened, record, unchanged
from onrecord.testing.conformance.samples import turn, with_history

__all__ = ("CommitsWhole",)

CANARY = "canary-7f3a"


@pytest.mark.asyncio
class CommitsWhole:
    """A commit happens once and whole, or not at all."""

    async def test_the_second_of_two_writers_is_refused(self, make_store: MakeStore) -> None:
        """The loser learns both versions, and nothing of its change is stored."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            winner = await store.commit(turn(session, "first"))
            with pytest.raises(SessionConflict) as told:
                await store.commit(turn(session, CANARY))
            assert (told.value.expected, told.value.found) == (1, 2)
            assert CANARY not in str(told.value)
            await unchanged(store, winner)

    async def test_a_session_is_created_once(self, make_store: MakeStore) -> None:
        """Two first turns of one session: the second is a conflict, and so is a later turn of one never stored."""
        async with opened(make_store) as store:
            winner = await store.commit(turn("s", "first"))
            with pytest.raises(SessionConflict) as told:
                await store.commit(turn("s", "second"))
            assert (told.value.expected, told.value.found) == (0, 1)
            with pytest.raises(SessionConflict) as told:
                await store.commit(turn(replace(winner, key=SessionKey("other"))))
            assert (told.value.expected, told.value.found) == (1, 0)
            await unchanged(store, winner)
            assert await store.load("other") is None

    async def test_an_older_generation_stores_nothing(self, make_store: MakeStore) -> None:
        """After a reset no work that began before it gets in, even with the right version."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            reset = await store.commit(with_history(session, [], kept=0, generation=1))
            with pytest.raises(SessionConflict) as told:
                await store.commit(turn(replace(reset, generation=0)))
            assert "reset" in told.value.hint
            await unchanged(store, reset)

    async def test_the_record_goes_on_where_it_ends(self, make_store: MakeStore) -> None:
        """Entries that leave a gap or repeat a number are refused."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            for seq in (session.seq - 1, session.seq + 1):
                with pytest.raises(StoreError) as told:
                    await store.commit(turn(replace(session, seq=seq)))
                assert told.value.code == "store-change"
            await unchanged(store, session)

    async def test_a_change_that_contradicts_itself_is_refused(self, make_store: MakeStore) -> None:
        """Messages, numbers and sessions of a change must fit one another and what is stored."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            good = turn(session)
            wrong = (
                replace(good, kept=1),
                replace(good, kept=3, messages=good.messages[:1]),
                replace(good, kept=-1, messages=(good.messages[0], *good.session.conversation.messages)),
                replace(good, messages=()),
                replace(good, entries=()),
                replace(good, entries=good.entries[1:]),
                replace(good, entries=good.entries[:2] + good.entries[3:]),
                replace(good, children=(turn("s"),)),
            )
            for change in wrong:
                with pytest.raises(StoreError) as told:
                    await store.commit(change)
                assert told.value.code == "store-change"
                assert told.value.hint
            await unchanged(store, session)

    async def test_a_session_without_new_entries_is_not_written(self, make_store: MakeStore) -> None:
        """Its state comes back as it was given, under no new version."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            idle = replace(session, data={"changed": True})
            assert await store.commit(Change(session=idle, kept=2)) is idle
            await unchanged(store, session)

    async def test_children_are_stored_with_their_parent(self, make_store: MakeStore) -> None:
        """Sub-turns of any depth are one commit with the turn that asked for them."""
        async with opened(make_store) as store:
            below = replace(turn("s/a"), children=(turn("s/a/b"),))
            session = await store.commit(replace(turn("s"), children=(below, turn("s/c"))))
            assert session.version == 1
            assert [key.id for key in await store.sessions()] == ["s", "s/a", "s/a/b", "s/c"]
            assert (await loaded(store, "s/a/b")).version == 1

    async def test_a_child_in_conflict_takes_its_parent_with_it(self, make_store: MakeStore) -> None:
        """Nothing of the whole change is stored, neither parent nor siblings."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            child = await store.commit(turn("s/b"))
            with pytest.raises(SessionConflict):
                await store.commit(replace(turn(session), children=(turn("s/a"), turn("s/b"))))
            await unchanged(store, session)
            await unchanged(store, child)
            assert await store.load("s/a") is None

    @pytest.mark.parametrize("value", [object(), {CANARY: {1, 2}.__iter__()}, f"{CANARY} \ud83d"])
    async def test_what_json_cannot_keep_is_refused(self, make_store: MakeStore, value: object) -> None:
        """The error names the session and not its content, and nothing is stored."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            change = turn(session)
            with pytest.raises(StoreError, match="'s'") as told:
                await store.commit(replace(change, session=replace(change.session, data={"v": value})))
            assert CANARY not in f"{told.value} {told.value.hint}"
            await unchanged(store, session)

    async def test_many_sessions_are_written_at_once(self, make_store: MakeStore) -> None:
        """Fifty conversations side by side lose nothing and mix nothing up."""
        async with opened(make_store) as store:

            async def talk(id: str) -> Session:
                session = await store.commit(turn(id, f"{id} says"))
                for n in range(4):
                    session = await store.commit(turn(session, f"{id} says {n}"))
                return session

            talks = await asyncio.gather(*(talk(f"s{n}") for n in range(50)))
            for session in talks:
                await unchanged(store, session)
                assert all(m.id.startswith(f"{session.key.id}:") for m in session.conversation.messages)

    async def test_of_many_writers_exactly_one_wins(self, make_store: MakeStore) -> None:
        """Ten commits from one version: one is stored, nine are told of the conflict."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            changes = [turn(session, f"writer {n}") for n in range(10)]
            ends = await asyncio.gather(*(store.commit(change) for change in changes), return_exceptions=True)
            (winner,) = [end for end in ends if isinstance(end, Session)]
            assert sum(isinstance(end, SessionConflict) for end in ends) == 9
            await unchanged(store, winner)

    async def test_a_cancelled_commit_is_whole_or_absent(self, make_store: MakeStore) -> None:
        """Whenever its task is cancelled, the session is the old or the new one, and the store goes on working."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            for turns in range(12):
                task = asyncio.ensure_future(store.commit(turn(session)))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                found = await loaded(store, "s")
                assert found.version in {session.version, session.version + 1}
                assert len(await record(store, "s")) == found.seq
                session = await store.commit(turn(found))

    async def test_a_closed_store_says_so(self, make_store: MakeStore) -> None:
        """Closing twice is fine; afterwards every call is refused with a hint."""
        store = make_store()
        session = await store.commit(turn("s"))
        await store.close()
        await store.close()
        calls = (
            lambda: store.load("s"),
            lambda: store.commit(turn(session)),
            store.sessions,
            lambda: record(store, "s"),
        )
        for call in calls:
            with pytest.raises(StoreError) as told:
                await call()
            assert told.value.code == "store-closed"
            assert told.value.hint
        unused = make_store()
        await unused.close()
