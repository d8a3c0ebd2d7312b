"""What a lease is worth with every store: one holder, a fence behind it, and an orderly end."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Said
from onrecord.errors import UsageError
from onrecord.session.inbox import FIRST, Lease
from onrecord.testing.conformance.asking import (
    MakeStore,
    SetClock,
    accepted,
    keys,
    later,
    loaded,
    opened,
    refused,
    stored,
    taken,
)
from onrecord.testing.conformance.samples import row, turn

__all__ = ("GivesBack", "HoldsLeases", "SharesRows")

S = SessionKey("s")
STOP = Interruption(id="stop", cause="stopped")


@pytest.mark.asyncio
class HoldsLeases:
    """A leased row is its owner's while the lease runs, and who lost it stores nothing."""

    async def test_a_leased_row_names_its_owner_its_end_and_its_attempt(self, make_store: MakeStore) -> None:
        """And so does the stored one."""
        async with opened(make_store, SetClock()) as store:
            waiting = await accepted(store, row("hello"))
            held = await taken(store, owner="w1", ttl=30)
            assert held == replace(waiting, owner="w1", lease_until=later(30), attempt=1)
            assert await stored(store, held) == held

    @pytest.mark.parametrize(("owner", "ttl"), [("", 30), ("w1", 0), ("w1", -1), ("w1", float("nan")), ("w1", 1e300)])
    async def test_a_lease_that_nobody_could_hold_is_refused(
        self, make_store: MakeStore, owner: str, ttl: float
    ) -> None:
        """It needs an owner and an end; the row waits on, and one to be put is not."""
        async with opened(make_store) as store:
            waiting = await accepted(store, row("hello"))
            with pytest.raises(UsageError, match="lease"):
                await store.lease("in", owner, ttl=ttl)
            with pytest.raises(UsageError, match="lease"):
                await store.put(row("two"), lease=Lease(owner=owner, ttl=ttl))
            assert await store.rows("in") == [waiting]

    async def test_a_lease_that_ended_is_taken_over(self, make_store: MakeStore) -> None:
        """At its very end and not before, as the next attempt; the first holder is out, even if it is the same one."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("hello"))
            first = await taken(store, owner="w1")
            clock.at = later(29.999999)
            assert await store.lease("in", "w2", ttl=30) == []
            clock.at = later(30)
            second = await taken(store, owner="w2")
            assert (second.n, second.attempt, second.clean, second.owner) == (first.n, 2, 0, "w2")
            await refused(store, first)
            clock.at = later(60)
            third = await taken(store, owner="w2")
            await refused(store, second)
            assert (third.attempt, third.clean) == (3, 0)
            assert await store.done(third)

    async def test_a_lease_that_ended_holds_until_somebody_takes_over(self, make_store: MakeStore) -> None:
        """A holder that was only slow may go on."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("hello"))
            held = await taken(store)
            clock.at = later(300)
            assert await store.extend([held], ttl=30) == [replace(held, lease_until=later(330))]
            clock.at = later(600)
            session = await store.commit(replace(turn("s"), taken=held))
            assert (session.version, await store.rows("in")) == (1, [])

    async def test_a_session_taken_over_with_another_row_is_lost_too(self, make_store: MakeStore) -> None:
        """An interruption came first: whoever had the message is out, and the message waits behind it."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("hello"))
            zombie = await taken(store, owner="w1")
            await accepted(store, row(Interruption(id="i")))
            clock.at = later(30)
            held = await taken(store, owner="w2")
            assert held.key == "interruption::i"
            await refused(store, zombie)
            assert await store.done(held)
            again = await taken(store, owner="w2")
            assert (again.key, again.attempt, again.clean) == ("said::hello", 2, 0)

    @pytest.mark.parametrize("field", ["n", "owner", "attempt"])
    async def test_number_owner_and_attempt_are_the_fence(self, make_store: MakeStore, field: str) -> None:
        """Whoever has one of them wrong has no lease."""
        async with opened(make_store) as store:
            await accepted(store, row("hello"))
            held = await taken(store)
            wrong = {"n": held.n + 1, "owner": "w2", "attempt": 2}[field]
            await refused(store, replace(held, **{field: wrong}))
            assert await store.done(held)
            await refused(store, held)

    async def test_a_row_that_nobody_leased_is_nobodys(self, make_store: MakeStore) -> None:
        """Neither before its first lease nor after it was given back."""
        async with opened(make_store) as store:
            await refused(store, await accepted(store, row("hello")))
            held = await taken(store)
            assert await store.again(held, due=FIRST)
            await refused(store, held)
            found = await stored(store, held)
            assert found is not None
            await refused(store, found)

    async def test_a_row_of_the_same_key_is_another_row(self, make_store: MakeStore) -> None:
        """A lease of one that is gone is none of the one that came after it."""
        async with opened(make_store) as store:
            await accepted(store, row("hello"))
            held = await taken(store)
            assert await store.done(held)
            await accepted(store, row("hello"))
            newer = await taken(store)
            await refused(store, held)
            assert await store.done(newer)

    async def test_leases_are_made_longer_from_now(self, make_store: MakeStore) -> None:
        """Of many rows at once, and None where one was lost, in the order of the rows."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for session in ("a", "b", "c"):
                await accepted(store, row("hello", session))
            held = await store.lease("in", "w1", ttl=30, limit=3)
            assert await store.done(held[1])
            clock.at = later(20)
            found = await store.extend(held, ttl=30)
            assert found == [replace(held[0], lease_until=later(50)), None, replace(held[2], lease_until=later(50))]
            clock.at = later(49)
            assert await store.lease("in", "w2", ttl=30, limit=9) == []
            assert await store.extend([], ttl=30) == []
            assert await store.done(held[0])  # number, owner and attempt are what they were

    async def test_a_clock_that_jumps_back_ends_no_lease(self, make_store: MakeStore) -> None:
        """It runs longer then; a later jump ahead hands the row over, and only once."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("hello"))
            first = await taken(store, owner="w1")
            for at in (-86_400, -1, 29):
                clock.at = later(at)
                assert await store.lease("in", "w2", ttl=30) == []
            clock.at = later(86_400)
            second = await taken(store, owner="w2")
            clock.at = later(0)
            assert await store.lease("in", "w1", ttl=30) == []
            await refused(store, first)
            assert await store.done(second)


@pytest.mark.asyncio
class GivesBack:
    """A row that could not be handled is given back for later, and counts as heard of."""

    async def test_a_row_given_back_is_taken_again_when_due(self, make_store: MakeStore) -> None:
        """It keeps its number, its place on the ladder, its floor, and the count of clean ends."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            waiting = await accepted(store, row("hello"))
            held = await taken(store)
            assert await store.again(held, due=later(60), rung=1, floor=later(45))
            given = replace(waiting, due=later(60), retry_at=later(60), rung=1, floor=later(45), attempt=1, clean=1)
            assert await stored(store, held) == given
            clock.at = later(59)
            assert await store.lease("in", "w1", ttl=30) == []
            clock.at = later(60)
            held = await taken(store, owner="w2")
            assert held == replace(given, owner="w2", lease_until=later(90), attempt=2)
            assert await store.again(held, due=later(0), rung=2)
            found = await stored(store, held)
            assert found is not None
            assert (found.rung, found.floor, found.attempt, found.clean) == (2, None, 2, 2)
            assert await taken(store)

    async def test_a_mark_stays_with_a_row_given_back(self, make_store: MakeStore) -> None:
        """The next take is told to stop as well."""
        async with opened(make_store) as store:
            await accepted(store, row("hello"))
            held = await taken(store)
            await store.cancel("in", S, by=STOP)
            assert await store.again(held, due=FIRST)
            assert (await taken(store)).cancel == STOP

    async def test_a_row_that_is_done_is_gone(self, make_store: MakeStore) -> None:
        """And the next of its session may be leased."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            await accepted(store, row("two"))
            held = await taken(store)
            assert await store.done(held)
            assert await store.done(held) is False
            assert keys(await store.rows("in")) == ["said::two"]
            assert (await taken(store)).key == "said::two"


@pytest.mark.asyncio
class SharesRows:
    """Many callers at once neither lose a row nor have one twice."""

    async def test_many_puts_of_one_key_are_one_row(self, make_store: MakeStore) -> None:
        """One of them is told that it is new, and one lease is given."""
        async with opened(make_store) as store:
            wanted = [store.put(row("hello"), lease=Lease(owner=f"w{n}", ttl=30)) for n in range(20)]
            found = await asyncio.gather(*wanted)
            assert Counter((one.is_new, one.leased) for one in found) == {(True, True): 1, (False, False): 19}
            assert len({one.row.n for one in found if one.row is not None}) == 1

    async def test_many_puts_of_one_session_are_many_rows_and_one_lease(self, make_store: MakeStore) -> None:
        """Each has its own number."""
        async with opened(make_store) as store:
            wanted = [store.put(row(f"{n}"), lease=Lease(owner=f"w{n}", ttl=30)) for n in range(20)]
            found = await asyncio.gather(*wanted)
            assert sum(one.leased for one in found) == 1
            assert len({one.row.n for one in found if one.row is not None}) == 20
            assert len(await store.rows("in")) == 20

    async def test_many_workers_have_no_row_twice(self, make_store: MakeStore) -> None:
        """Fifty sessions with three rows each, ten workers: each row is done once, each session in order."""
        async with opened(make_store) as store:
            for text in ("a", "b", "c"):
                await asyncio.gather(*(store.put(row(text, f"s{n}")) for n in range(50)))
            told: list[tuple[str, str]] = []
            holding: set[str] = set()

            async def work(owner: str) -> None:
                while rows := await store.lease("in", owner, ttl=3600, limit=3):
                    for one in rows:
                        assert one.session.id not in holding
                        holding.add(one.session.id)
                    await asyncio.sleep(0)
                    for one in rows:
                        told.append((one.session.id, one.key))
                        holding.remove(one.session.id)
                        assert await store.done(one)

            while await store.rows("in", limit=1):
                await asyncio.gather(*(work(f"w{n}") for n in range(10)))
            assert len(told) == 150
            for n in range(50):
                assert [key for id, key in told if id == f"s{n}"] == ["said::a", "said::b", "said::c"]

    async def test_a_cancelled_call_is_whole_or_absent(self, make_store: MakeStore) -> None:
        """Whenever its task is cancelled, the row is there or not, and the store goes on working."""
        async with opened(make_store) as store:
            for turns in range(12):
                task = asyncio.ensure_future(store.put(row(Said(f"{turns}"), f"s{turns}", key="k")))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                found = await store.put(row(Said(f"{turns}"), f"s{turns}", key="k"))
                assert found.row is not None
                assert found.row.attempt == 0
            assert len(await store.rows("in")) == 12
            for turns in range(12):
                leasing = asyncio.ensure_future(store.lease("in", "w1", ttl=30, limit=1))
                for _ in range(turns):
                    await asyncio.sleep(0)
                leasing.cancel()
                await asyncio.wait([leasing])
            rows = await store.rows("in")
            assert len(rows) == 12
            assert all((one.attempt, one.owner) in {(0, ""), (1, "w1")} for one in rows)

    async def test_a_worker_may_hold_rows_of_a_thousand_sessions(self, make_store: MakeStore) -> None:
        """One heartbeat makes all their leases longer, in the order in which they were given."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await asyncio.gather(*(store.put(row("hello", f"s{n}")) for n in range(1_000)))
            held = await store.lease("in", "w1", ttl=30, limit=1_000)
            assert len({one.session.id for one in held}) == 1_000
            clock.move(10)
            found = await store.extend(held[::-1], ttl=30)
            assert found == [replace(one, lease_until=later(40)) for one in reversed(held)]

    async def test_a_worker_may_hold_rows_of_many_sessions(self, make_store: MakeStore) -> None:
        """Each is committed with its own turn."""
        async with opened(make_store) as store:
            for n in range(5):
                await accepted(store, row("hello", f"s{n}"))
            held = await store.lease("in", "w1", ttl=30, limit=5)
            await asyncio.gather(*(store.commit(replace(turn(one.session), taken=one)) for one in held))
            assert await store.rows("in") == []
            assert [(await loaded(store, f"s{n}")).version for n in range(5)] == [1] * 5
