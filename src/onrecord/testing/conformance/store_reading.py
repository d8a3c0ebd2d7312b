"""What every store keeps: sessions as they were committed, and every entry as it was filed."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import fields, replace

from onrecord.conversation.content import Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import AssistantMessage, Message, UserMessage
from onrecord.record.entry import Body, UnknownBody
from onrecord.record.kinds import CORE_KINDS, Noted
from onrecord.session.codec import slot_value
from onrecord.session.folding import refold
from onrecord.session.session import Session, SlotState
from onrecord.session.store import Change
from onrecord.testing.conformance.asking import MakeStore, loaded, opened, record
from onrecord.testing.conformance.samples import ELSEWHERE, entries_of, examples, turn, with_history

__all__ = ("KeepsRecords", "KeepsSessions")


class Undeclared(Body, frozen=True, kw_only=True, tag="conformance.undeclared"):
    """A feature's body that no store under test was told of."""

    rooms: int


@pytest.mark.asyncio
class KeepsSessions:
    """What goes in comes out equal, and cheaply when nothing changed."""

    async def test_a_session_nobody_stored_is_none(self, make_store: MakeStore) -> None:
        """A key that is not there is no error."""
        async with opened(make_store) as store:
            assert await store.load("nobody") is None
            assert await store.sessions() == []

    async def test_every_kind_of_message_comes_back_equal(self, make_store: MakeStore) -> None:
        """All messages with every field set: text in several scripts, media as bytes, native items verbatim."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            messages = [*session.conversation.messages, *examples(Message)]
            stored = await store.commit(with_history(session, messages, kept=2))
            found = await loaded(store, "s")
            assert list(found.conversation.messages) == messages
            assert found == stored

    async def test_the_small_state_comes_back_equal(self, make_store: MakeStore) -> None:
        """Every field of a session, a paused turn among them."""
        async with opened(make_store) as store:
            change = turn("s")
            names = ("owner", "parent", "data", "inputs", "interruptions", "pending", "digest_key", "filed")
            given: dict[str, Any] = {f.name: examples(f.type)[0] for f in fields(Session) if f.name in names}
            assert len(given) == len(names)
            stored = await store.commit(replace(change, session=replace(change.session, **given)))
            assert await store.load("s") == stored

    async def test_states_of_folds_come_back_as_their_folds_declare_them(self, make_store: MakeStore) -> None:
        """A slot keeps its version, and its value reads as the type that its fold names."""
        async with opened(make_store) as store:
            change = turn("s")
            slots = {"rooms": SlotState(3, {"double": 2})}
            await store.commit(replace(change, session=replace(change.session, slots=slots)))
            held = (await loaded(store, "s")).slots["rooms"]
            assert (held.version, slot_value(held, dict[str, int])) == (3, {"double": 2})

    async def test_the_store_alone_counts_versions(self, make_store: MakeStore) -> None:
        """Each commit is one version, on what it returns and on what is loaded."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            assert session.version == 1
            session = await store.commit(turn(session))
            assert session.version == 2
            assert (await loaded(store, "s")).version == 2

    async def test_a_known_session_is_given_back_itself(self, make_store: MakeStore) -> None:
        """The very object while it is what is stored, another one after somebody else's commit."""
        async with opened(make_store) as store:
            known = await store.commit(turn("s"))
            assert await store.load("s", known=known) is known
            newer = await store.commit(turn(known))
            loaded = await store.load("s", known=known)
            assert loaded is not known
            assert loaded == newer

    async def test_only_the_stored_state_counts_as_known(self, make_store: MakeStore) -> None:
        """Another session's state, and work that was never committed, are not given back."""
        async with opened(make_store) as store:
            known = await store.commit(turn("s"))
            other = await store.commit(turn("other"))
            ahead = turn(known).session
            assert await store.load("s", known=other) == known
            assert await store.load("s", known=ahead) == known
            assert await store.load("nobody", known=known) is None

    async def test_an_edit_in_the_middle_replaces_what_follows(self, make_store: MakeStore) -> None:
        """Messages behind the kept ones are written anew; the kept ones and the record stay."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            session = await store.commit(turn(session))
            messages = list(session.conversation.messages)
            assert isinstance(messages[1], AssistantMessage)
            messages[1] = replace(messages[1], shown=(Text("edited"),))
            stored = await store.commit(with_history(session, messages, kept=1))
            found = await loaded(store, "s")
            assert found == stored
            assert [m.id for m in found.conversation.messages] == [m.id for m in messages]

    async def test_a_shorter_history_leaves_nothing_behind(self, make_store: MakeStore) -> None:
        """Removed messages are gone, all of them after a reset, and the next turn goes on from there."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            session = await store.commit(turn(session))
            session = await store.commit(with_history(session, list(session.conversation.messages)[:3], kept=3))
            assert len((await loaded(store, "s")).conversation.messages) == 3
            session = await store.commit(with_history(session, [], kept=0, generation=1))
            assert await store.load("s") == session
            session = await store.commit(turn(session))
            assert await store.load("s") == session

    async def test_tenants_share_nothing(self, make_store: MakeStore) -> None:
        """One id under two tenants is two sessions, each with its own record and its own version."""
        async with opened(make_store) as store:
            mine, yours = SessionKey("s", tenant="a"), SessionKey("s", tenant="b")
            first = await store.commit(turn(mine, "mine"))
            first = await store.commit(turn(first))
            second = await store.commit(turn(yours, "yours"))
            assert (await store.load(mine), await store.load(yours)) == (first, second)
            assert await store.load("s") is None
            assert len(await record(store, mine)) == 2 * len(await record(store, yours))

    async def test_sessions_are_listed_by_tenant_in_order(self, make_store: MakeStore) -> None:
        """Sorted by id, whatever the order of commits; another tenant's are not among them."""
        async with opened(make_store) as store:
            for id in ("b", "ä", "a", "部屋", "B"):
                await store.commit(turn(id))
            await store.commit(turn(SessionKey("c", tenant="t")))
            assert [key.id for key in await store.sessions()] == ["B", "a", "b", "ä", "部屋"]
            assert await store.sessions(tenant="t") == [SessionKey("c", tenant="t")]

    async def test_a_message_of_5_mb_comes_back(self, make_store: MakeStore) -> None:
        """Large texts are stored like small ones."""
        async with opened(make_store) as store:
            large = "0123456789 部屋 " * 300_000
            stored = await store.commit(turn("s", large))
            first = (await loaded(store, "s")).conversation.messages[0]
            assert isinstance(first, UserMessage)
            assert first.text == large
            assert await store.load("s") == stored


@pytest.mark.asyncio
class KeepsRecords:
    """Every entry is kept as it was filed, in order."""

    async def test_every_core_kind_comes_back_equal(self, make_store: MakeStore) -> None:
        """All entry bodies with every field set, and each entry's place and time with its offset."""
        async with opened(make_store) as store:
            session = Session(key=SessionKey("s"))
            bodies = [body for kind in CORE_KINDS for body in examples(kind)]
            entries = entries_of(session, bodies, at=ELSEWHERE)
            await store.commit(Change(session=replace(session, seq=len(entries)), entries=entries))
            found = await record(store, "s")
            assert found == list(entries)
            assert [entry.at.utcoffset() for entry in found] == [entry.at.utcoffset() for entry in entries]

    async def test_unknown_kinds_are_kept_byte_for_byte(self, make_store: MakeStore) -> None:
        """A body of a kind that nobody declares comes back with the very bytes, spaces and all."""
        async with opened(make_store) as store:
            raw = b'{ "kind":"later.kind", "b" : 1.0e2,\t"a":["\\u00e9", {}], "a":2 }'
            session = Session(key=SessionKey("s"))
            entries = entries_of(session, (UnknownBody(was="later.kind", raw=Raw(raw)),))
            await store.commit(Change(session=replace(session, seq=1), entries=entries))
            (found,) = await record(store, "s")
            assert isinstance(found.body, UnknownBody)
            assert (found.body.was, bytes(found.body.raw)) == ("later.kind", raw)

    async def test_a_feature_body_that_was_not_declared_survives(self, make_store: MakeStore) -> None:
        """What was filed typed comes back unknown, with its content."""
        async with opened(make_store) as store:
            session = Session(key=SessionKey("s"))
            entries = entries_of(session, (Undeclared(rooms=3),))
            await store.commit(Change(session=replace(session, seq=1), entries=entries))
            (found,) = await record(store, "s")
            assert isinstance(found.body, UnknownBody)
            assert (found.body.was, bytes(found.body.raw)) == (
                "conformance.undeclared",
                b'{"kind":"conformance.undeclared","rooms":3}',
            )

    async def test_the_record_is_read_from_behind_any_entry(self, make_store: MakeStore) -> None:
        """``after`` names the last entry that the reader has."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            session = await store.commit(turn(session))
            whole = await record(store, "s")
            assert [entry.seq for entry in whole] == list(range(session.seq))
            for after in (-1, 0, 6, session.seq - 2, session.seq - 1, session.seq + 5):
                assert await record(store, "s", after=after) == whole[after + 1 :]
            assert await record(store, "nobody") == []

    async def test_a_long_record_is_read_whole(self, make_store: MakeStore) -> None:
        """Thousands of entries in one commit come back in order, and a reader may stop early."""
        async with opened(make_store) as store:
            session = Session(key=SessionKey("s"))
            entries = entries_of(session, [Noted(by="suite", text=f"{n}") for n in range(2_500)])
            await store.commit(Change(session=replace(session, seq=len(entries)), entries=entries))
            assert await record(store, "s") == list(entries)
            reading = store.entries("s")
            assert await anext(reading) == entries[0]
            await reading.aclose()

    async def test_folding_the_record_gives_the_session(self, make_store: MakeStore) -> None:
        """What the store keeps of a session is what its record tells of it."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            for _ in range(3):
                session = await store.commit(turn(session))
            told = refold(session.key, await record(store, "s"), digest_key=session.digest_key)
            assert replace(told, version=session.version) == await store.load("s")
