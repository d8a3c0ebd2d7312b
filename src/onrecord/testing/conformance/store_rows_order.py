"""In which order every store hands out rows: by (due, number), one of a session at a time."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Interruption, Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.record.kinds import HistoryChanged
from onrecord.session.inbox import Box, Lease, Row
from onrecord.session.store import Store
from onrecord.testing.conformance.asking import (
    MakeStore,
    SetClock,
    accepted,
    keys,
    later,
    loaded,
    opened,
    stored,
    taken,
)
from onrecord.testing.conformance.samples import AT, row, turn

__all__ = ("LeasesInOrder", "LeasesWithPut", "OrdersMessages")

S = SessionKey("s")


async def emptied(store: Store, box: Box = "in") -> list[str]:
    """Takes one row of the session after the other; their keys in the order in which they came."""
    found: list[str] = []
    while rows := await store.lease(box, "w1", ttl=30, session=S):
        found += keys(rows)
        assert await store.done(rows[0])
    return found


async def due_of(store: Store, row: Row) -> object:
    """When a stored row is due."""
    found = await stored(store, row)
    assert found is not None
    return found.due


@pytest.mark.asyncio
class LeasesInOrder:
    """The row with the lowest (due, number) of those due, of a session that nobody has."""

    async def test_nothing_is_leased_before_it_is_due(self, make_store: MakeStore) -> None:
        """And at that very instant it is."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            assert await store.lease("in", "w1", ttl=30) == []
            await accepted(store, row(Woke("w"), due=later(10)))
            clock.at = later(9.999999)
            assert await store.lease("in", "w1", ttl=30) == []
            clock.at = later(10)
            assert keys(await store.lease("in", "w1", ttl=30)) == ["woke::w"]

    async def test_rows_come_by_due_time_then_by_number(self, make_store: MakeStore) -> None:
        """Whatever the order in which they were put."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for name, seconds in (("c", 30), ("a", 10), ("d", 30), ("b", 20), ("late", 99)):
                await accepted(store, row(Woke(name), due=later(seconds)))
            clock.at = later(40)
            assert await emptied(store) == ["woke::a", "woke::b", "woke::c", "woke::d"]

    async def test_interruptions_and_changes_of_history_come_first(self, make_store: MakeStore) -> None:
        """Ahead of everything that waits, however long, among themselves by number; their own due time is not asked."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("hello"))
            await accepted(store, row(Woke("w"), due=later(-99)))
            clock.move(60)
            await accepted(store, row(Interruption(id="i"), due=later(999)))
            await accepted(store, row(HistoryChanged(op="edit", by="owner"), key="history::h"))
            assert await emptied(store) == ["interruption::i", "history::h", "woke::w", "said::hello"]

    async def test_an_interruption_given_back_waits_like_any_row(self, make_store: MakeStore) -> None:
        """Until it is due again, messages go on without it."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("hello"))
            await accepted(store, row(Interruption(id="i")))
            assert await store.again(await taken(store), due=later(60))
            assert await emptied(store) == ["said::hello"]
            clock.at = later(60)
            assert await emptied(store) == ["interruption::i"]

    async def test_one_row_of_a_session_is_leased_at_a_time(self, make_store: MakeStore) -> None:
        """The next one only after the first was done, given back, parked or withdrawn."""
        async with opened(make_store, SetClock()) as store:
            for text in ("one", "two", "three"):
                await accepted(store, row(text))
            await accepted(store, row(Interruption(id="i")))
            held = await taken(store)
            assert held.key == "interruption::i"
            assert await store.lease("in", "w1", ttl=30) == []
            assert await store.lease("in", "w2", ttl=30, session=S) == []
            assert await store.done(held)
            assert (await taken(store)).key == "said::one"

    async def test_inbox_and_outbox_are_leased_apart(self, make_store: MakeStore) -> None:
        """A turn may run while a message of the session is being delivered."""
        async with opened(make_store) as store:
            await accepted(store, row("hello"))
            await accepted(store, row(Outgoing(key="m", text="hi")))
            assert keys(await store.lease("in", "w1", ttl=30)) == ["said::hello"]
            assert keys(await store.lease("out", "w1", ttl=30)) == ["m"]

    async def test_up_to_a_limit_of_sessions_are_leased_earliest_first(self, make_store: MakeStore) -> None:
        """One row of each; the rest is for whoever asks next."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for n in range(6):
                await accepted(store, row("one", f"s{n}"))
                await accepted(store, row("two", f"s{n}"))
                clock.move(1)
            await accepted(store, row(Interruption(id="i"), "s4"))
            first = await store.lease("in", "w1", ttl=30, limit=3)
            assert [one.session.id for one in first] == ["s4", "s0", "s1"]
            assert keys(first) == ["interruption::i", "said::one", "said::one"]
            rest = await store.lease("in", "w2", ttl=30, limit=99)
            assert [one.session.id for one in rest] == ["s2", "s3", "s5"]
            assert await store.lease("in", "w1", ttl=30, limit=0) == []

    async def test_a_lease_may_ask_for_one_session(self, make_store: MakeStore) -> None:
        """Others are left alone, and so are rows of a session of that name elsewhere."""
        async with opened(make_store) as store:
            for session in ("a", "b", SessionKey("a", tenant="t")):
                await accepted(store, row("hello", session))
            found = await store.lease("in", "w1", ttl=30, limit=9, session=SessionKey("a"))
            assert [one.session for one in found] == [SessionKey("a")]
            assert await store.lease("in", "w1", ttl=30, session=SessionKey("nobody")) == []

    async def test_a_late_or_leased_row_keeps_no_other_session_waiting(self, make_store: MakeStore) -> None:
        """Each session has its own head."""
        async with opened(make_store, SetClock()) as store:
            await accepted(store, row("one", "a"))
            await accepted(store, row("two", "a"))
            await taken(store)
            await accepted(store, row(Woke("w"), "b", due=later(60)))
            await accepted(store, row("hello", "c"))
            assert [one.session.id for one in await store.lease("in", "w1", ttl=30, limit=9)] == ["c"]


@pytest.mark.asyncio
class OrdersMessages:
    """No message overtakes another, in or out; wakes and events may pass."""

    async def test_messages_share_one_due_time_given_anew_with_each(self, make_store: MakeStore) -> None:
        """Now, whatever the row says; waiting and taken ones get it too, wakes, events and other sessions do not."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            first = await accepted(store, row("one", due=later(500)))
            assert first.due == AT
            event = await accepted(store, row(Happened("paid", key="e")))
            other = await accepted(store, row("elsewhere", "other"))
            held = await taken(store, session=S)
            clock.move(5)
            answer = await accepted(store, row(Answered("q", approved=True)))
            assert answer.due == later(5)
            assert [await due_of(store, one) for one in (first, event, other)] == [later(5), AT, AT]
            assert await store.done(held)
            assert await emptied(store) == ["happened::e", "answered::q"]

    async def test_a_message_given_back_takes_those_behind_with_it(self, make_store: MakeStore) -> None:
        """They wait as long as it does, while a wake of the session passes."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for text in ("one", "two", "three"):
                await accepted(store, row(text))
            await accepted(store, row(Woke("w"), due=later(20)))
            assert await store.again(await taken(store), due=later(60), rung=1)
            assert await store.lease("in", "w1", ttl=30) == []
            clock.at = later(20)
            assert await emptied(store) == ["woke::w"]
            clock.at = later(60)
            assert await emptied(store) == ["said::one", "said::two", "said::three"]

    async def test_a_message_given_back_moves_nobody_forward(self, make_store: MakeStore) -> None:
        """One behind it that is due later still is."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            rows = [await accepted(store, row(text)) for text in ("one", "two")]
            assert await store.again(await taken(store), due=later(60))
            clock.at = later(61)
            assert await store.again(await taken(store), due=later(61))
            assert [await due_of(store, one) for one in rows] == [later(61), later(61)]

    async def test_a_new_message_pulls_waiting_ones_forward(self, make_store: MakeStore) -> None:
        """Somebody writes again: what was to be tried later is tried now, in order."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            assert await store.again(await taken(store), due=later(600), rung=2)
            clock.move(5)
            await accepted(store, row("two"))
            held = await taken(store)
            assert (held.key, held.rung, held.retry_at) == ("said::one", 2, later(600))
            assert await store.done(held)
            assert await emptied(store) == ["said::two"]

    async def test_no_message_is_due_before_the_floor_of_one(self, make_store: MakeStore) -> None:
        """Before that instant the provider wants none, so a new message waits with the old one."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            first = await accepted(store, row("one"))
            assert await store.again(await taken(store), due=later(600), rung=1, floor=later(60))
            clock.move(5)
            assert (await accepted(store, row("two"))).due == later(60)
            assert await due_of(store, first) == later(60)
            assert await store.lease("in", "w1", ttl=30) == []
            assert (await accepted(store, row("elsewhere", "other"))).due == later(5)
            clock.at = later(60)
            assert await emptied(store) == ["said::one", "said::two"]

    async def test_messages_keep_their_order_when_the_clock_jumps_back(self, make_store: MakeStore) -> None:
        """Also past one that is being taken."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            await accepted(store, row("two"))
            await taken(store, ttl=5)
            clock.at = later(-3600)
            await accepted(store, row("three"))
            clock.at = later(6)
            assert await emptied(store) == ["said::one", "said::two", "said::three"]

    async def test_messages_out_are_due_one_after_the_other(self, make_store: MakeStore) -> None:
        """No earlier than the last one of the session, plus the own delay."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            delays = {"a": 0, "b": 2_000, "c": 0, "d": 1_500}
            found = [
                await accepted(store, row(Outgoing(key=key, text="hi", after_ms=ms))) for key, ms in delays.items()
            ]
            assert [one.due for one in found] == [AT, later(2), later(2), later(3.5)]
            assert (await accepted(store, row(Outgoing(key="a", text="hi"), "other"))).due == AT
            clock.at = later(10)
            assert (await accepted(store, row(Outgoing(key="e", text="hi", after_ms=500)))).due == later(10.5)
            clock.at = later(11)
            assert await emptied(store, "out") == ["a", "b", "c", "d", "e"]

    async def test_a_message_out_given_back_holds_up_those_behind(self, make_store: MakeStore) -> None:
        """Those of its session only, and a new one goes behind them all."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for key in ("a", "b"):
                await accepted(store, row(Outgoing(key=key, text="hi")))
            await accepted(store, row(Outgoing(key="c", text="hi"), "other"))
            assert await store.again(await taken(store, "out", session=S), due=later(60), rung=1)
            assert (await accepted(store, row(Outgoing(key="d", text="hi")))).due == later(60)
            assert keys(await store.lease("out", "w1", ttl=30, limit=9)) == ["c"]
            clock.at = later(60)
            assert await emptied(store, "out") == ["a", "b", "d"]


@pytest.mark.asyncio
class LeasesWithPut:
    """A row may be put, leased and its session loaded in one hop."""

    async def test_a_row_comes_back_leased_with_its_session(self, make_store: MakeStore) -> None:
        """As by `lease` and `load`."""
        async with opened(make_store, SetClock()) as store:
            session = await store.commit(turn("s"))
            found = await store.put(row("hello"), lease=Lease(owner="w1", ttl=30))
            assert (found.is_new, found.leased, found.session) == (True, True, session)
            assert found.row is not None
            assert (found.row.owner, found.row.lease_until, found.row.attempt) == ("w1", later(30), 1)
            assert await store.rows("in") == [found.row]
            assert await store.lease("in", "w2", ttl=30) == []
            assert await store.done(found.row)

    async def test_a_known_session_is_not_loaded_again(self, make_store: MakeStore) -> None:
        """The very object comes back while it is what is stored, another one when it is not."""
        async with opened(make_store) as store:
            known = await store.commit(turn("s"))
            found = await store.put(row("one"), lease=Lease(owner="w1", ttl=30, known=known))
            assert found.session is known
            assert found.row is not None
            newer = await store.commit(turn(known))
            assert await store.done(found.row)
            found = await store.put(row("two"), lease=Lease(owner="w1", ttl=30, known=known))
            assert (found.leased, found.session) == (True, newer)

    async def test_a_session_that_is_not_stored_yet_is_none(self, make_store: MakeStore) -> None:
        """Its first row is leased all the same."""
        async with opened(make_store) as store:
            found = await store.put(row("hello"), lease=Lease(owner="w1", ttl=30))
            assert (found.leased, found.session) == (True, None)

    @pytest.mark.parametrize("why", ["waiting", "leased", "floor", "late"])
    async def test_a_row_that_is_not_next_is_only_accepted(self, make_store: MakeStore, why: str) -> None:
        """One is ahead of it, one of its session is leased, the provider wants to be left alone, or it is for later."""
        async with opened(make_store, SetClock()) as store:
            await store.commit(turn("s"))
            given = row("two")
            if why == "late":
                given = row(Woke("w"), due=later(60))
            else:
                await accepted(store, row("one"))
            if why == "leased":
                await taken(store)
            if why == "floor":
                held = await taken(store)
                assert await store.again(held, due=later(60), floor=later(30))
            found = await store.put(given, lease=Lease(owner="w2", ttl=30))
            assert (found.is_new, found.leased, found.session) == (True, False, None)
            assert found.row == await stored(store, given)
            assert found.row is not None
            assert (found.row.owner, found.row.attempt) == ("", 0)

    async def test_an_interruption_is_next_at_once(self, make_store: MakeStore) -> None:
        """Even while messages wait."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            found = await store.put(row(Interruption(id="i")), lease=Lease(owner="w1", ttl=30))
            assert found.leased

    async def test_what_other_sessions_do_is_nothing_to_it(self, make_store: MakeStore) -> None:
        """Earlier rows of others are not in its way, and are not leased with it."""
        async with opened(make_store) as store:
            other = await accepted(store, row("elsewhere", "other"))
            assert (await store.put(row("hello"), lease=Lease(owner="w1", ttl=30))).leased
            assert await stored(store, other) == other
            assert await store.load("s") is None
            assert (await loaded(store, (await store.commit(turn("s"))).key)).version == 1
