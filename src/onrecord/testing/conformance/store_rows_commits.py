"""What a commit does with rows in every store: all of it together with the turn, or nothing."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Interruption, Woke
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import LeaseLost, SessionConflict, StoreError
from onrecord.session.inbox import Row, outgoing_row, wake_row
from onrecord.session.store import Change
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
    unchanged,
)
from onrecord.testing.conformance.samples import AT, row, turn

__all__ = ("ArmsWakes", "CommitsRows", "SendsMessages")

S = SessionKey("s")
CANARY = "canary-11b8"
UNWRITABLE: Any = object()


def wake(key: str, seconds: float, **fields: Any) -> Row:
    """A wake that a turn of the session arms."""
    return wake_row(S, Wake(key=key, at=later(seconds), **fields))


def out(key: str, after_ms: int = 0, text: str = "hi") -> Row:
    """A message that a turn of the session sends."""
    return outgoing_row(S, Outgoing(key=key, text=text, after_ms=after_ms))


@pytest.mark.asyncio
class CommitsRows:
    """The commit that ends a take does everything with rows that the take wanted, or stores nothing."""

    async def test_the_row_that_was_taken_is_gone_with_the_commit(self, make_store: MakeStore) -> None:
        """The turn is stored, and the next row of the session may be taken."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            await accepted(store, row("two"))
            held = await taken(store)
            session = await store.commit(replace(turn("s"), taken=held))
            await unchanged(store, session)
            assert keys(await store.rows("in")) == ["said::two"]
            assert (await taken(store)).key == "said::two"

    async def test_a_take_that_changed_nothing_ends_too(self, make_store: MakeStore) -> None:
        """Without entries the row goes, rows are put, and no session is written."""
        async with opened(make_store, SetClock()) as store:
            session = await store.commit(turn("s"))
            for text in ("one", "two"):
                await accepted(store, row(text))
            idle = Change(session=session, kept=2, taken=await taken(store), put=(wake("w", 60), out("m")))
            assert await store.commit(idle) is session
            await unchanged(store, session)
            assert keys(await store.rows("in")) == ["said::two", "woke::w"]
            assert keys(await store.rows("out")) == ["m"]

    async def test_a_session_in_conflict_keeps_its_row(self, make_store: MakeStore) -> None:
        """Nothing is deleted, withdrawn or put, and the row is still its taker's."""
        async with opened(make_store, SetClock()) as store:
            session = await store.commit(turn("s"))
            await store.commit(replace(turn(session), put=(wake("kept", 60),)))
            await accepted(store, row("one"))
            held = await taken(store)
            change = replace(turn(session), taken=held, drop=("woke::kept",), put=(wake("w", 60), out("m")))
            for parked in ("", "conflict"):
                with pytest.raises(SessionConflict):
                    await store.commit(replace(change, parked=parked))
            assert keys(await store.rows("in")) == ["woke::kept", "said::one"]
            assert await store.rows("out") == []
            assert await store.done(held)

    async def test_a_lease_that_was_lost_is_told_before_a_conflict(self, make_store: MakeStore) -> None:
        """Whoever lost the row is not to load the session and try again."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            zombie = await taken(store)
            clock.move(30)
            held = await taken(store, owner="w2")
            await store.commit(replace(turn("s"), taken=held))
            with pytest.raises(LeaseLost):
                await store.commit(replace(turn("s"), taken=zombie))
            await refused(store, zombie)

    async def test_of_many_commits_of_one_take_one_is_stored(self, make_store: MakeStore) -> None:
        """The others find the row gone."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            wanted = [store.commit(replace(turn("s", f"{n}"), taken=held, put=(out(f"m{n}"),))) for n in range(10)]
            ends = await asyncio.gather(*wanted, return_exceptions=True)
            assert sum(isinstance(end, LeaseLost) for end in ends) == 9
            assert len(await store.rows("out")) == 1
            assert (await loaded(store, "s")).version == 1

    async def test_a_commit_may_park_the_row_it_took(self, make_store: MakeStore) -> None:
        """With its reason, beside what is stored, or with nothing."""
        async with opened(make_store) as store:
            for text in ("one", "two"):
                await accepted(store, row(text))
            session = await store.commit(replace(turn("s"), taken=await taken(store), parked="attempts"))
            await unchanged(store, session)
            idle = Change(session=session, kept=2, taken=await taken(store), parked="ladder")
            assert await store.commit(idle) is session
            assert [(one.key, one.dead, one.owner) for one in await store.rows("in")] == [
                ("said::one", "attempts", ""), ("said::two", "ladder", ""),
            ]  # fmt: skip
            assert await store.lease("in", "w1", ttl=30) == []
            assert await store.revive("in", S) == 2

    async def test_rows_of_children_come_with_their_parent(self, make_store: MakeStore) -> None:
        """Wakes and messages of sub-turns are put, and dropped, with those of the turn."""
        async with opened(make_store, SetClock()) as store:
            below = SessionKey("s/a")
            old = wake_row(below, Wake(key="old", at=later(60)))
            child = replace(turn(below), put=(old, wake("up", 9)))
            session = await store.commit(replace(turn("s"), children=(child,)))
            assert keys(await store.rows("in")) == ["woke::old", "woke::up"]
            new = wake_row(below, Wake(key="new", at=later(60)))
            child = replace(turn(await loaded(store, below)), drop=("woke::old", "woke::up"), put=(new,))
            await store.commit(replace(turn(session), children=(child,)))
            assert keys(await store.rows("in")) == ["woke::up", "woke::new"]

    @pytest.mark.parametrize("what", ["child", "another session", "not taken", "event", "interruption"])
    async def test_a_change_whose_rows_contradict_it_is_refused(self, make_store: MakeStore, what: str) -> None:
        """Before anything is stored."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            change = turn("s")
            wrong = {
                "child": replace(change, children=(replace(turn("s/a"), taken=held),)),
                "another session": replace(turn("other"), taken=held),
                "not taken": replace(change, parked="attempts"),
                "event": replace(change, put=(row(Happened("paid", key="e")),)),
                "interruption": replace(change, put=(row(Interruption(id="i")),)),
            }[what]
            with pytest.raises(StoreError) as told:
                await store.commit(wrong)
            assert (told.value.code, bool(told.value.hint)) == ("store-change", True)
            assert await store.sessions() == []
            assert await store.rows("in") == [held]

    @pytest.mark.parametrize("body", [Woke(CANARY, payload=UNWRITABLE), Outgoing(key=CANARY, text="\ud83d")])
    async def test_a_row_that_cannot_be_stored_takes_the_commit_with_it(
        self, make_store: MakeStore, body: Woke | Outgoing
    ) -> None:
        """Rows before it, the session and the row that was taken are as they were."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            with pytest.raises(StoreError) as told:
                await store.commit(replace(turn("s"), taken=held, put=(out("m"), row(body))))
            assert told.value.code == "store-row"
            assert CANARY not in f"{told.value} {told.value.hint}"
            assert (await store.sessions(), await store.rows("in"), await store.rows("out")) == ([], [held], [])

    async def test_a_cancelled_commit_has_done_with_its_rows_or_has_not(self, make_store: MakeStore) -> None:
        """Whenever its task is cancelled: session, row taken and rows put agree."""
        async with opened(make_store) as store:
            for turns in range(12):
                key = f"s{turns}"
                await accepted(store, row("one", key))
                held = await taken(store, session=key)
                sent = outgoing_row(held.session, Outgoing(key="m", text="hi"))
                task = asyncio.ensure_future(store.commit(replace(turn(key), taken=held, put=(sent,))))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                there = await store.load(key) is not None
                assert (await stored(store, held) is None) is there
                assert (await stored(store, sent) is not None) is there


@pytest.mark.asyncio
class ArmsWakes:
    """A turn arms wakes and withdraws them; one key is one wake."""

    async def test_a_wake_is_a_row_due_at_its_time(self, make_store: MakeStore) -> None:
        """In the turn's session or in another one, with its payload."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            elsewhere = SessionKey("other", tenant="t")
            put = (wake("w", 60, payload={"n": 1}), wake("v", 30, session=elsewhere))
            await store.commit(replace(turn("s"), put=put))
            assert await store.lease("in", "w1", ttl=30) == []
            clock.at = later(60)
            found = await store.lease("in", "w1", ttl=30, limit=9)
            assert [(one.session, one.body) for one in found] == [
                (elsewhere, Woke("v", at=later(30))), (S, Woke("w", at=later(60), payload={"n": 1})),
            ]  # fmt: skip

    async def test_a_wake_armed_again_while_it_waits_is_replaced(self, make_store: MakeStore) -> None:
        """It keeps its number and gets the new time, payload and options; nothing is left of retries and marks."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            session = await store.commit(replace(turn("s"), put=(wake("w", 0),)))
            first = await taken(store)
            assert await store.again(first, due=later(500), rung=2, floor=later(400))
            await store.cancel("in", S, by=Interruption(id="stop"))
            for seconds in (90, 30):
                again = replace(wake("w", seconds, payload=seconds), options=Raw(b"[1]"))
                session = await store.commit(replace(turn(session), put=(again,)))
                assert await store.rows("in") == [replace(again, n=first.n, attempt=1, clean=1)]
            clock.at = later(30)
            assert (await taken(store)).body == Woke("w", at=later(30), payload=30)

    async def test_a_wake_armed_again_while_it_runs_takes_the_row_from_its_runner(self, make_store: MakeStore) -> None:
        """What it was to do has been replaced: the runner stores nothing, and the new wake comes."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            session = await store.commit(replace(turn("s"), put=(wake("w", 0),)))
            runner = await taken(store)
            session = await store.commit(replace(turn(session), put=(wake("w", 10),)))
            await refused(store, runner)
            clock.at = later(10)
            held = await taken(store, owner=runner.owner)
            assert (held.n, held.attempt, held.clean) == (runner.n, runner.attempt + 1, runner.attempt)
            await refused(store, runner)
            await store.commit(replace(turn(session), taken=held))
            assert await store.rows("in") == []

    async def test_a_wake_armed_again_by_the_turn_it_started_is_a_new_row(self, make_store: MakeStore) -> None:
        """With a number of its own, so that its turn has a name of its own."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            session = await store.commit(replace(turn("s"), put=(wake("w", 0),)))
            held = await taken(store)
            await store.commit(replace(turn(session), taken=held, put=(wake("w", 10),)))
            (found,) = await store.rows("in")
            assert found.n > held.n
            assert (found.due, found.attempt, found.clean, found.owner) == (later(10), 0, 0, "")
            clock.at = later(10)
            assert (await taken(store)).n == found.n

    async def test_a_parked_wake_armed_again_lives(self, make_store: MakeStore) -> None:
        """At its new time, with nothing held against it."""
        async with opened(make_store, SetClock()) as store:
            session = await store.commit(replace(turn("s"), put=(wake("w", 0),)))
            assert await store.park(await taken(store), why="attempts")
            await store.commit(replace(turn(session), put=(wake("w", -5),)))
            held = await taken(store)
            assert (held.dead, held.due, held.attempt - held.clean) == ("", later(-5), 1)

    async def test_wakes_are_withdrawn_by_a_commit(self, make_store: MakeStore) -> None:
        """Waiting and parked ones of the session; one that runs stays, and one armed by the same commit comes."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            put = (wake("runs", 0), wake("waits", 60), wake("anew", 60), wake("stays", 60))
            session = await store.commit(replace(turn("s"), put=put))
            other = await accepted(store, row(Woke("waits"), "other", due=later(60)))
            held = await taken(store)
            drop = ("woke::runs", "woke::waits", "woke::anew", "woke::nobody")
            session = await store.commit(replace(turn(session), drop=drop, put=(wake("anew", 90),)))
            rows = await store.rows("in", S)
            assert keys(rows) == ["woke::runs", "woke::stays", "woke::anew"]
            assert rows[-1].due == later(90)
            assert await stored(store, other) == other
            assert await store.park(held, why="attempts")
            await store.commit(replace(turn(session), drop=("woke::runs",)))
            assert keys(await store.rows("in", S)) == ["woke::stays", "woke::anew"]

    async def test_a_turn_may_arm_and_withdraw_thousands(self, make_store: MakeStore) -> None:
        """In one commit each, and a person may withdraw as many by their keys."""
        async with opened(make_store, SetClock()) as store:
            names = [f"{n:04}" for n in range(2_500)]
            session = await store.commit(replace(turn("s"), put=tuple(wake(name, 60) for name in names)))
            assert keys(await store.rows("in", limit=9_999)) == [f"woke::{name}" for name in names]
            drop = tuple(f"woke::{name}" for name in names[:1_200])
            await store.commit(replace(turn(session), drop=drop))
            assert len(await store.rows("in", limit=9_999)) == 1_300
            assert await store.cancel("in", S, keys=[f"woke::{name}" for name in names[:2_400]]) == 1_200
            assert keys(await store.rows("in")) == [f"woke::{name}" for name in names[2_400:]]

    async def test_the_wake_that_a_turn_came_of_may_be_withdrawn_by_it(self, make_store: MakeStore) -> None:
        """It is gone in any case."""
        async with opened(make_store, SetClock()) as store:
            session = await store.commit(replace(turn("s"), put=(wake("w", 0),)))
            held = await taken(store)
            await store.commit(replace(turn(session), taken=held, drop=("woke::w",)))
            assert await store.rows("in") == []


@pytest.mark.asyncio
class SendsMessages:
    """Messages leave with the commit, in order, each key once."""

    async def test_messages_are_due_one_after_the_other(self, make_store: MakeStore) -> None:
        """Each with its delay behind the last one, also of turns before."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            session = await store.commit(replace(turn("s"), put=(out("a"), out("b", 2_000), out("c", 500))))
            assert [one.due for one in await store.rows("out")] == [AT, later(2), later(2.5)]
            clock.move(1)
            await store.commit(replace(turn(session), put=(out("d"), out("e", 100))))
            assert [one.due for one in await store.rows("out")][3:] == [later(2.5), later(2.6)]

    async def test_a_key_that_waits_already_stays_as_it_is(self, make_store: MakeStore) -> None:
        """Its text is not replaced, it adds no delay to those that are new, and it stays parked if it is."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            session = await store.commit(replace(turn("s"), put=(out("a", 1_000), out("b"))))
            first = await store.rows("out")
            clock.move(1)
            assert await store.park(await taken(store, "out"), why="gone")
            session = await store.commit(replace(turn(session), put=(out("a", 60_000, CANARY), out("c"))))
            rows = await store.rows("out")
            assert keys(rows) == ["a", "b", "c"]
            assert [one.body for one in rows[:2]] == [one.body for one in first]
            assert (rows[0].dead, rows[2].due) == ("gone", later(1))

    async def test_a_message_may_go_again_once_it_was_delivered(self, make_store: MakeStore) -> None:
        """The store remembers no keys; a channel that was told twice sees the same one."""
        async with opened(make_store) as store:
            session = await store.commit(replace(turn("s"), put=(out("a"),)))
            held = await taken(store, "out")
            assert await store.done(held)
            await store.commit(replace(turn(session), put=(out("a"),)))
            assert (await taken(store, "out")).n > held.n

    async def test_a_delivered_row_may_end_with_a_commit(self, make_store: MakeStore) -> None:
        """A row out is fenced and deleted as one in."""
        async with opened(make_store) as store:
            session = await store.commit(replace(turn("s"), put=(out("a"), out("b"))))
            held = await taken(store, "out")
            await store.commit(replace(turn(session), taken=held))
            assert keys(await store.rows("out")) == ["b"]
            await refused(store, held)
