"""How every store erases: nothing of it is left, what is left still folds, and the record says that it happened."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Answered, Interruption, Said, row_key
from onrecord.conversation.messages import AssistantMessage, Round, ToolCall
from onrecord.conversation.outgoing import Wake
from onrecord.errors import LeaseLost, SessionConflict, UsageError
from onrecord.record import kinds
from onrecord.record.entry import kind_of
from onrecord.record.kinds import Erased, HistoryChanged
from onrecord.session.codec import dumps_session
from onrecord.session.erasure import Retention
from onrecord.session.history import edit_result, import_messages, remove_message
from onrecord.session.inbox import Row, wake_row
from onrecord.session.session import Session
from onrecord.testing.conformance.asking import MakeStore, loaded, opened, record
from onrecord.testing.conformance.erasable import Canary, canaries, cut_short, everything, folds, waiting, where
from onrecord.testing.conformance.samples import AT, changed, entries_of, turn

__all__ = ("ErasesMessages", "ErasesSessions")

OWNER = Identity(tenant="t", principal="ana")


@pytest.mark.asyncio
class ErasesSessions:
    """Whole sessions, with what runs and waits in them, and all of a person."""

    async def test_nothing_of_an_erased_session_is_left(self, make_store: MakeStore) -> None:
        """Texts of every kind of entry, of state, features and rows; what else the store holds stays."""
        async with opened(make_store) as store:
            canary, kept = Canary(), Canary()
            key = SessionKey("s", tenant="t")
            session = await store.commit(cut_short(Session(key=key, digest_key="secret-key"), canary))
            session = await store.commit(everything(session, canary))
            await waiting(store, key, canary)
            other = await store.commit(everything(Session(key=SessionKey("other", tenant="t")), kept))
            assert sorted(await canaries(store, key, canary.made)) == sorted(canary.made)
            done = await store.erase(key, why="asked")
            assert (done.sessions, done.messages, done.entries, done.rows) == (
                1,
                len(session.conversation.messages),
                session.seq,
                4,
            )
            assert await canaries(store, key, [*canary.made, "secret-key"]) == []
            assert dumps_session(await loaded(store, other.key)) == dumps_session(other)
            assert await canaries(store, other.key, kept.made) == kept.made

    async def test_a_wake_that_waits_in_another_session_goes_too(self, make_store: MakeStore) -> None:
        """It was armed with words of this one. By age it stays: what a turn armed is still to happen."""
        async with opened(make_store) as store:
            canary, there = Canary(), SessionKey("there")
            for name in ("asked", "old"):
                wake = Wake(key=name, at=AT + timedelta(days=9000), payload=canary(name), session=there)
                session = Session(key=SessionKey(name), digest_key="k1")
                opens = kinds.TurnOpened(input_kind="said", row="said::m", now=AT)
                bodies = (opens, kinds.WakeArmed(wake=wake), kinds.TurnClosed(status="silent"))
                change = changed(session, entries_of(session, bodies))
                await store.commit(replace(change, put=(wake_row(session.key, wake),)))
            assert (await store.erase(SessionKey("asked"), why="asked")).rows == 1
            assert [one.key for one in await store.rows("in")] == ["woke::old"]
            assert (await store.expire(Retention(sessions=timedelta(0)))).sessions == 1
            assert [one.key for one in await store.rows("in")] == ["woke::old"]

    async def test_places_and_kinds_of_what_was_erased_stay(self, make_store: MakeStore) -> None:
        """Each body says what it was, why and since when; at the end the record says that it happened."""
        async with opened(make_store) as store:
            await store.commit(turn("s"))
            before = await record(store, "s")
            await store.erase(SessionKey("s"), why="asked")
            *erased, told, end = await record(store, "s")
            assert [where(entry) for entry in erased] == [where(entry) for entry in before]
            for entry, was in zip(erased, before, strict=True):
                assert isinstance(entry.body, Erased)
                assert (entry.body.was, entry.body.why) == (kind_of(was.body), "asked")
            assert isinstance(told.body, HistoryChanged)
            assert (told.body.op, kind_of(end.body)) == ("erase", "turn.closed")
            empty = await folds(store, "s")
            assert (empty.data, empty.inputs, empty.filed, len(empty.conversation.messages)) == ({}, (), (), 0)

    async def test_an_erased_session_goes_on_anew(self, make_store: MakeStore) -> None:
        """A later turn starts from nothing, under another key of digests and behind the old entries."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            await store.erase(SessionKey("s"), why="asked")
            empty = await loaded(store, "s")
            assert empty.digest_key not in {"", session.digest_key}
            again = await store.commit(turn(empty))
            assert again.seq > session.seq
            assert [m.turn for m in (await folds(store, "s")).conversation.messages] == [
                f"s:said::m{empty.seq}~{empty.seq}"
            ] * 2

    async def test_work_that_began_before_is_refused(self, make_store: MakeStore) -> None:
        """A running take loses its lease; a change made from the old state is a conflict; a cache is not believed."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            said = Said("hi", key="k")
            await store.put(Row(session=session.key, box="in", key=row_key(said, ""), body=said))
            (leased,) = await store.lease("in", "worker", ttl=60)
            await store.erase(session.key, why="asked")
            assert await store.extend([leased], ttl=60) == [None]
            with pytest.raises(LeaseLost):
                await store.commit(replace(turn(session), taken=leased))
            with pytest.raises(SessionConflict):
                await store.commit(turn(session))
            found = await store.load("s", known=session)
            assert found is not None
            assert found.generation == session.generation + 1

    async def test_rows_of_a_session_that_is_not_stored_yet_are_erased(self, make_store: MakeStore) -> None:
        """Its first message waits: that goes too."""
        async with opened(make_store) as store:
            canary, key = Canary(), SessionKey("new")
            await waiting(store, key, canary)
            done = await store.erase(key, why="asked")
            assert (done.sessions, done.rows) == (0, 2)
            assert await canaries(store, key, canary.made) == []

    async def test_erasing_twice_does_nothing_more(self, make_store: MakeStore) -> None:
        """So an erasure of which nobody knows whether it happened can be repeated."""
        async with opened(make_store) as store:
            await store.commit(turn("s"))
            await store.erase(SessionKey("s"), why="asked")
            first = await loaded(store, "s")
            done = await store.erase(SessionKey("s"), why="asked again")
            assert (done.sessions, done.entries, done.rows) == (0, 0, 0)
            assert await store.load("s") == first
            assert (await store.erase(SessionKey("nobody"), why="asked")).sessions == 0

    async def test_sub_turns_go_with_their_session(self, make_store: MakeStore) -> None:
        """Of any depth, by their parent links; a session whose name only looks like one of them stays."""
        async with opened(make_store) as store:
            below = Session(key=SessionKey("s/a/b"), parent="s/a")
            child = replace(turn(Session(key=SessionKey("s/a"), parent="s")), children=(turn(below),))
            await store.commit(replace(turn("s"), children=(child,)))
            stranger = await store.commit(turn("s/c"))
            assert (await store.erase(SessionKey("s"), why="asked")).sessions == 3
            for key in ("s", "s/a", "s/a/b"):
                assert not (await folds(store, key)).conversation.messages
            assert (await loaded(store, "s/a")).parent == "s"
            assert await loaded(store, "s/c") == stranger

    async def test_a_person_is_erased_in_all_their_sessions(self, make_store: MakeStore) -> None:
        """By tenant and principal, whichever the ids; afterwards no session names them."""
        async with opened(make_store) as store:
            mine = [Session(key=SessionKey(id, tenant="t"), owner=OWNER) for id in ("a", "b")]
            others = (None, replace(OWNER, principal="bo"), replace(OWNER, tenant="u"))
            for session in mine:
                await store.commit(turn(session))
            kept = [
                await store.commit(turn(Session(key=SessionKey(f"o{n}", tenant="t"), owner=who)))
                for n, who in enumerate(others)
            ]
            done = await store.erase(OWNER, why="asked")
            assert (done.sessions, done.messages) == (2, 4)
            for session in mine:
                assert (await folds(store, session.key)).owner is None
            for session in kept:
                assert await loaded(store, session.key) == session
            assert (await store.erase(OWNER, why="asked")).sessions == 0

    async def test_a_session_erased_before_still_forgets_its_owner(self, make_store: MakeStore) -> None:
        """A session that was erased alone is still theirs, until they are erased."""
        async with opened(make_store) as store:
            session = await store.commit(turn(Session(key=SessionKey("s"), owner=OWNER)))
            await store.erase(session.key, why="asked")
            assert (await loaded(store, "s")).owner == OWNER
            await store.erase(OWNER, why="asked")
            assert (await folds(store, "s")).owner is None


@pytest.mark.asyncio
class ErasesMessages:
    """Messages, with the turns they belong to."""

    async def test_a_message_goes_with_its_turn_and_what_that_left(self, make_store: MakeStore) -> None:
        """Its texts everywhere, its data, its question, its wake and its message out; other turns stay."""
        async with opened(make_store) as store:
            canary, kept, key = Canary(), Canary(), SessionKey("s")
            first = await store.commit(turn(key, kept("one"), kept("two")))
            paused = await store.commit(everything(first, canary))
            assert paused.question is not None
            answer = Answered(paused.question.key, note=canary("answer"))
            await store.put(Row(session=key, box="in", key=row_key(answer, ""), body=answer))
            last = await store.commit(turn(paused, kept("three"), kept("four")))
            (message,) = [m for m in last.conversation.messages if m.turn == paused.question.key[:-3] and "/u" in m.id]
            done = await store.erase(key, messages=[message.id], why="asked")
            assert await canaries(store, key, canary.made) == []
            assert await canaries(store, key, kept.made) == kept.made
            assert (done.sessions, done.messages, done.rows) == (0, 3, 3)
            assert done.entries == paused.seq - first.seq
            session = await folds(store, key)
            assert (session.question, session.slots, session.generation) == (None, {}, 1)
            assert session.inputs == last.inputs
            assert [m.turn for m in session.conversation.messages] == [
                m.turn for m in last.conversation.messages if m.turn != message.turn
            ]

    async def test_later_entries_lose_what_they_hold_of_an_erased_turn(self, make_store: MakeStore) -> None:
        """What later requests showed of history, native items of later replies, and previews of the message."""
        async with opened(make_store) as store:
            canary, key = Canary(), SessionKey("s")
            first = await store.commit(turn(key))
            again = await store.commit(everything(first, canary))
            await store.erase(key, messages=[first.conversation.messages[1].id], why="asked")
            gone = {f"canary-{name}-51c9" for name in ("native", "insert", "swap", "preview", "slot", "summary")}
            assert set(await canaries(store, key, canary.made)) == set(canary.made) - gone
            session = await folds(store, key)
            assert session.question == again.question
            (requested,) = [e.body for e in await record(store, key) if isinstance(e.body, kinds.ModelRequested)]
            assert requested.receipt is not None
            assert requested.receipt.erased

    async def test_a_preview_of_a_message_that_stays_is_kept(self, make_store: MakeStore) -> None:
        """A later message may go on quoting what is not erased."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s", "one"))
            session = await store.commit(turn(session, "two"))
            name = "s:said::late~9"
            said = Said("three", reply_to=session.conversation.messages[3].id, reply_preview="80 euros.")
            bodies = (
                kinds.TurnOpened(input_kind="said", row="said::late", now=AT),
                kinds.TurnInput(input=said, now=AT),
                kinds.TurnClosed(status="silent"),
            )
            last = await store.commit(changed(session, entries_of(session, bodies, turn=name)))
            await store.erase(last.key, messages=[last.conversation.messages[0].id], why="asked")
            left = (await folds(store, "s")).conversation.messages
            assert getattr(left[-1], "reply_preview", "") == "80 euros."

    async def test_a_waiting_message_loses_its_preview_of_an_erased_one(self, make_store: MakeStore) -> None:
        """Whoever is taking it loses the lease, since they have read it; a preview of what stays is kept."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s", "one"))
            session = await store.commit(turn(session, "two"))
            ids = [m.id for m in session.conversation.messages]
            for id, preview in ((ids[0], "canary-preview"), (ids[2], "kept-preview")):
                said = Said("indeed", key=preview, reply_to=id, reply_preview=f"{preview}-text")
                await store.put(Row(session=session.key, box="in", key=row_key(said, ""), body=said))
            (leased,) = await store.lease("in", "worker", ttl=60)
            await store.erase(session.key, messages=[ids[0]], why="asked")
            waiting = [getattr(row.body, "reply_preview", None) for row in await store.rows("in", session.key)]
            assert waiting == ["", "kept-preview-text"]
            assert await store.extend([leased], ttl=60) == [None]
            assert len(await store.lease("in", "worker", ttl=60)) == 1

    async def test_a_removed_message_can_still_be_erased(self, make_store: MakeStore) -> None:
        """Long gone from the conversation, it is on the record until then; other removed ones do not come back."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s", "canary-removed-1"))
            session = await store.commit(turn(session, "canary-removed-2"))
            ids = [m.id for m in session.conversation.messages]
            for id in (ids[0], ids[2]):
                session = await store.commit(remove_message(session, id, by="owner", at=AT))
            await store.erase(session.key, messages=[ids[0]], why="asked")
            assert await canaries(store, session.key, ["canary-removed-1"]) == []
            assert [m.id for m in (await folds(store, "s")).conversation.messages] == [ids[3]]

    async def test_an_edit_of_an_erased_result_goes_too(self, make_store: MakeStore) -> None:
        """A change of history that is about an erased turn holds its text as well."""
        async with opened(make_store) as store:
            canary = Canary()
            session = await store.commit(everything(Session(key=SessionKey("s")), canary))
            closed = changed(session, entries_of(session, (kinds.TurnClosed(status="answered"),)))
            session = await store.commit(closed)
            session = await store.commit(turn(session))
            call = ToolCall(id="c", wire_id="w", name="look", status="returned", result=(Text("was"),))
            told = import_messages(
                session, [AssistantMessage(id="m", rounds=(Round(id="r", calls=(call,)),))], by="owner", at=AT
            )  # fmt: skip
            session = await store.commit(told)
            session = await store.commit(edit_result(session, "m", "c", [Text("canary-edit")], by="owner", at=AT))
            assert await canaries(store, session.key, ["canary-edit"]) == ["canary-edit"]
            await store.erase(session.key, messages=["m"], why="asked")
            assert await canaries(store, session.key, ["canary-edit"]) == []
            _ = await folds(store, "s")

    async def test_an_interruption_of_an_erased_turn_goes_too(self, make_store: MakeStore) -> None:
        """Recorded or still waiting, with its receipt."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            heard = Interruption(id="i", turn=session.conversation.messages[0].turn, receipt="canary-heard")
            await store.put(Row(session=session.key, box="in", key="interruption:i", body=heard))
            done = await store.erase(session.key, messages=[session.conversation.messages[0].id], why="asked")
            assert (done.rows, await canaries(store, session.key, ["canary-heard"])) == (1, [])

    async def test_a_message_that_nobody_knows_is_passed_over(self, make_store: MakeStore) -> None:
        """Nothing is rewritten; the counts say so."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            done = await store.erase(session.key, messages=["unknown"], why="asked")
            assert (done.messages, done.entries) == (0, 0)
            assert await loaded(store, "s") == session
            assert (await store.erase(SessionKey("nobody"), messages=["m"], why="asked")).entries == 0

    async def test_messages_are_erased_again_and_again(self, make_store: MakeStore) -> None:
        """Each time the record folds, generations rise, and data that stayed is still there."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s", "m0"))
            for n in range(1, 4):
                session = await store.commit(turn(session, f"m{n}"))
            for round_ in range(4):
                session = await loaded(store, "s")
                await store.erase(session.key, messages=[session.conversation.messages[0].id], why="asked")
                left = await folds(store, "s")
                assert (left.generation, len(left.conversation.messages)) == (round_ + 1, 6 - 2 * round_)
            await store.erase(session.key, why="all of it")
            assert (await folds(store, "s")).generation == 5

    async def test_what_could_mean_more_than_was_asked_is_refused(self, make_store: MakeStore) -> None:
        """No reason, nobody's identity, messages of a person, one id for several."""
        wrong: list[tuple[Any, Any, Any]] = [
            (SessionKey("s"), None, ""),
            (Identity(tenant="t"), None, "asked"),
            (OWNER, ["m"], "asked"),
            (SessionKey("s"), "m", "asked"),
            (7, None, "asked"),
        ]
        async with opened(make_store) as store:
            session = await store.commit(turn("s"))
            for what, messages, why in wrong:
                with pytest.raises(UsageError) as told:
                    await store.erase(what, messages=messages, why=why)
                assert told.value.hint
            assert await loaded(store, "s") == session
