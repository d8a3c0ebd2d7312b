"""How every store lets go of what is older than it has to be kept."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said, Woke, row_key
from onrecord.errors import UsageError
from onrecord.record.kinds import Erased
from onrecord.session.codec import dumps_session
from onrecord.session.erasure import Retention
from onrecord.session.history import remove_message
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.testing.conformance.asking import MakeStore, loaded, opened, record
from onrecord.testing.conformance.erasable import Canary, canaries, everything, folds
from onrecord.testing.conformance.samples import turn

__all__ = ("Expires",)

LONG_AGO = datetime(2001, 2, 3, 4, 5, tzinfo=UTC)
FAR_OFF = datetime(2222, 2, 3, 4, 5, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.asyncio
class Expires:
    """Retention by age and kind. The store's clock is between what is long ago and what is far off."""

    async def test_turns_older_than_their_age_are_erased(self, make_store: MakeStore) -> None:
        """Their texts go, and states that repeat them; what else the session knows, and younger turns, stay."""
        async with opened(make_store) as store:
            canary = Canary()
            old = await store.commit(everything(Session(key=SessionKey("s")), canary, at=LONG_AGO))
            young = turn(old, "young", at=FAR_OFF)
            session = await store.commit(young)
            done = await store.expire(Retention(entries=DAY))
            assert (done.sessions, done.entries, done.gone) == (0, old.seq, ())
            stays = {f"canary-{name}-51c9" for name in ("data", "slot", "wake", "outgoing", "media")}
            assert set(await canaries(store, old.key, canary.made)) == stays
            left = await folds(store, "s")
            assert (left.data, left.inputs, left.last_user_at) == (session.data, session.inputs, session.last_user_at)
            assert [m.turn for m in left.conversation.messages] == [young.messages[0].turn] * 2
            assert (await store.expire(Retention(entries=DAY))).entries == 0
            assert await loaded(store, "s") == left

    async def test_a_removed_message_does_not_come_back(self, make_store: MakeStore) -> None:
        """The removal is older than its age, the message's turn is not over yet: the removal stays."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s", at=LONG_AGO))
            session = await store.commit(turn(session, "young", at=FAR_OFF))
            id = session.conversation.messages[2].id
            session = await store.commit(remove_message(session, id, by="o", at=LONG_AGO))
            await store.expire(Retention(entries=DAY))
            assert len((await folds(store, "s")).conversation.messages) == 1

    async def test_single_kinds_have_ages_of_their_own(self, make_store: MakeStore) -> None:
        """Verdicts and notes go while the session stays as it is."""
        async with opened(make_store) as store:
            session = await store.commit(everything(Session(key=SessionKey("s")), Canary(), at=LONG_AGO))
            done = await store.expire(Retention(kinds={"verdict": DAY, "note": timedelta(days=90_000)}))
            assert done.entries == 1
            assert [e.body.was for e in await record(store, "s") if isinstance(e.body, Erased)] == ["verdict"]
            assert dumps_session(await loaded(store, "s")) == dumps_session(session)

    async def test_kinds_that_sessions_are_built_of_are_refused(self, make_store: MakeStore) -> None:
        """Without them no session could be folded."""
        async with opened(make_store) as store:
            for kind in ("turn.input", "model.replied", "piece.filed", "erased"):
                with pytest.raises(UsageError, match=kind):
                    await store.expire(Retention(kinds={kind: DAY}))
        with pytest.raises(UsageError):
            Retention(entries=-DAY)

    async def test_sessions_in_which_nothing_happens_are_erased(self, make_store: MakeStore) -> None:
        """Unless something waits in them; a young one stays."""
        async with opened(make_store) as store:
            idle = await store.commit(turn("idle", at=LONG_AGO))
            busy = await store.commit(turn("busy", at=LONG_AGO))
            young = await store.commit(turn("young", at=FAR_OFF))
            said = Said("hi", key="k")
            await store.put(Row(session=busy.key, box="in", key=row_key(said, ""), body=said))
            done = await store.expire(Retention(sessions=DAY))
            assert (done.sessions, done.entries, done.gone) == (1, idle.seq, (idle.key,))
            assert not (await folds(store, "idle")).conversation.messages
            assert await loaded(store, "busy") == busy
            assert await loaded(store, "young") == young
            assert (await store.expire(Retention(sessions=DAY))).sessions == 0

    async def test_parked_rows_are_dropped_by_age(self, make_store: MakeStore) -> None:
        """Those that wait stay, however old."""
        async with opened(make_store) as store:
            key = SessionKey("s")
            for name in ("one", "two"):
                wake = Woke(name, at=LONG_AGO)
                await store.put(Row(session=key, box="in", key=row_key(wake, ""), body=wake, due=LONG_AGO))
                if name == "one":
                    (leased,) = await store.lease("in", "worker", ttl=60)
                    assert await store.park(leased, why="poison")
            assert (await store.expire(Retention(rows=timedelta(days=90_000)))).rows == 0
            assert (await store.expire(Retention(rows=DAY))).rows == 1
            assert [row.key for row in await store.rows("in", key)] == ["woke::two"]

    async def test_everything_is_kept_unless_said_otherwise(self, make_store: MakeStore) -> None:
        """A policy without ages erases nothing."""
        async with opened(make_store) as store:
            session = await store.commit(turn("s", at=LONG_AGO))
            assert (await store.expire(Retention())).entries == 0
            assert await loaded(store, "s") == session

    async def test_many_sessions_are_gone_through(self, make_store: MakeStore) -> None:
        """More than one step takes."""
        async with opened(make_store) as store:
            for n in range(450):
                await store.commit(turn(f"s{n:03}", at=LONG_AGO))
            assert (await store.expire(Retention(sessions=DAY))).sessions == 450
