"""How every store accepts rows: one for each key, in the order of the rules, as they were given."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, get_args

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Interruption, Said, Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.session.inbox import LONGEST_DELAY_MS, Box, Lease, Row, RowBody
from onrecord.testing.conformance.asking import MakeStore, SetClock, accepted, keys, later, opened, stored, taken
from onrecord.testing.conformance.samples import AT, ELSEWHERE, examples, row, turn

__all__ = ("AcceptsRows", "KeepsRows", "RefusesRows")

CANARY = "canary-9d02"
MINUTE = 60_000
UNWRITABLE: Any = object()
ENDED: Any = iter(())
UNFIT: dict[str, Row] = {
    "a value that is no JSON": row(Happened("paid", key=CANARY, payload=UNWRITABLE)),
    "an iterator": row(Woke(CANARY, payload=ENDED)),
    "half a character": row(Said(f"{CANARY} \ud83d"), key="said::m"),
    "a key that is half a character": row(Said("ok"), key=f"{CANARY} \ud83d"),
    "a field of another type": row(replace(Said(CANARY), key=5), key="said::m"),
    "a body that no row holds": replace(row("ok"), body=turn("s").messages[0]),
    "a message out among inputs": row(Outgoing(key=CANARY, text=CANARY), box="in"),
    "an input among messages out": row(CANARY, box="out"),
    "a due time of no place": row(CANARY, due=datetime(2026, 1, 1)),  # noqa: DTZ001 - on purpose
    "a delay of less than nothing": row(Outgoing(key=CANARY, text=CANARY, after_ms=-1)),
    "a delay of more than a hundred years": row(Outgoing(key=CANARY, text=CANARY, after_ms=LONGEST_DELAY_MS + 1)),
}


def bodies() -> list[RowBody]:
    """Every kind of body a row may have, with every field set."""
    found = [body for kind in get_args(RowBody) for body in examples(kind)]
    return [replace(body, after_ms=MINUTE) if isinstance(body, Outgoing) else body for body in found]


@pytest.mark.asyncio
class KeepsRows:
    """A row is there once it is put, and comes back as it was given."""

    async def test_a_row_that_was_put_is_there(self, make_store: MakeStore) -> None:
        """It has a number and a due time, and nobody has it."""
        async with opened(make_store, SetClock()) as store:
            assert await store.rows("in") == []
            found = await accepted(store, row("hello"))
            assert found == replace(row("hello"), n=found.n, due=AT)
            assert found.n >= 1
            assert await store.rows("in") == [found]

    async def test_every_kind_of_body_comes_back_equal(self, make_store: MakeStore) -> None:
        """All inputs, interruptions, changes of history and messages out, from the put, the list and the lease."""
        async with opened(make_store, SetClock()) as store:
            for n, body in enumerate(bodies()):
                given = row(body, f"s{n}", key=f"k{n}")
                found = await accepted(store, given)
                assert (found.body, type(found.body)) == (body, type(body))
                assert await store.rows(given.box, given.session) == [found]

    async def test_a_leased_row_holds_what_was_put(self, make_store: MakeStore) -> None:
        """The body, the key and the options reach the taker as they were given."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for n, body in enumerate(bodies()):
                await accepted(store, row(body, f"s{n}", key=f"k{n}", options=Raw(b'[ {"at":1.0} ]')))
            clock.move(MINUTE)
            for box in get_args(Box):
                for found in await store.lease(box, "w1", ttl=30, limit=1000):
                    body = bodies()[int(found.key[1:])]
                    assert (found.body, bytes(found.options)) == (body, b'[ {"at":1.0} ]')

    @pytest.mark.parametrize("text", [*examples(str), " ", "'; drop table rows; --", "a/b:c~1", "部屋"])
    async def test_any_text_may_name_a_row_and_its_session(self, make_store: MakeStore, text: str) -> None:
        """Quotes, line ends, scripts and zero characters are kept."""
        async with opened(make_store) as store:
            given = row("hello", SessionKey(text, tenant=text), key=text)
            found = await accepted(store, given)
            assert (found.session, found.key) == (given.session, text)
            again = await store.put(given)
            assert (again.row, again.is_new) == (found, False)
            leased = await taken(store, owner=text, session=given.session)
            assert leased.owner == text
            assert await store.done(leased)

    async def test_instants_are_kept_to_the_microsecond(self, make_store: MakeStore) -> None:
        """Told with any offset, and given back in UTC."""
        async with opened(make_store, SetClock()) as store:
            due = ELSEWHERE + timedelta(hours=1, microseconds=7)
            found = await accepted(store, row(Woke("w"), due=due))
            assert found.due == due
            assert found.due.utcoffset() == timedelta(0)
            assert (await stored(store, found)) == found
            assert await store.next_due("in") == due

    async def test_rows_are_read_in_order_of_their_numbers(self, make_store: MakeStore) -> None:
        """Page by page, of one session or of all, of one box."""
        async with opened(make_store, SetClock()) as store:
            rows = [await accepted(store, row(Woke(f"{n}"), f"s{n % 2}", due=later(-n))) for n in range(10)]
            out = await accepted(store, row(Outgoing(key="m", text="hi"), "s0"))
            assert [one.n for one in rows] == sorted({one.n for one in rows})
            assert await store.rows("in") == rows
            assert await store.rows("out") == [out]
            assert await store.rows("in", SessionKey("s1")) == rows[1::2]
            assert await store.rows("in", limit=3) == rows[:3]
            assert await store.rows("in", after=rows[2].n, limit=3) == rows[3:6]
            assert await store.rows("in", SessionKey("s0"), after=rows[2].n) == rows[4::2]
            assert await store.rows("in", after=rows[-1].n) == []

    async def test_tenants_never_meet(self, make_store: MakeStore) -> None:
        """One session id and key under two tenants are two rows, leased, withdrawn and read apart."""
        async with opened(make_store, SetClock()) as store:
            mine, yours = SessionKey("s", tenant="a"), SessionKey("s", tenant="b")
            first = await accepted(store, row("hello", mine))
            second = await accepted(store, row("hello", yours))
            assert (await store.put(row("bye", mine), busy="supersede")).is_new
            assert await stored(store, second) == second
            assert keys(await store.lease("in", "w1", ttl=30, session=SessionKey("s"))) == []
            held = await taken(store, session=mine)
            assert held.n == first.n
            assert (await taken(store, owner="w2", session=yours)).n == second.n
            assert await store.cancel("in", mine) == 1
            assert keys(await store.rows("in", yours)) == [second.key]


@pytest.mark.asyncio
class AcceptsRows:
    """A row is accepted once, and what was accepted before is not touched."""

    async def test_a_key_is_accepted_once(self, make_store: MakeStore) -> None:
        """The second put gives the first row and changes nothing of it, whatever it holds."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            first = await accepted(store, row("hello", options=Raw(b"[1]")))
            clock.move(5)
            other = row("bye", key=first.key, options=Raw(b"[2]"), due=later(60))
            found = await store.put(other)
            assert (found.row, found.is_new, found.leased) == (first, False, False)
            assert await store.rows("in") == [first]

    async def test_a_repeat_does_nothing_else_either(self, make_store: MakeStore) -> None:
        """It moves no message, supersedes nothing, is not refused and leases nothing."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            first, second = await accepted(store, row("one")), await accepted(store, row("two"))
            clock.move(5)
            for given in (row("one"), row("two")):
                assert (await store.put(given, busy="supersede")).is_new is False
                assert (await store.put(given, busy="reject")).row is not None
                found = await store.put(given, lease=Lease(owner="w1", ttl=30))
                assert (found.leased, found.session) == (False, None)
            assert await store.rows("in") == [first, second]

    async def test_a_key_is_one_of_its_session_and_box(self, make_store: MakeStore) -> None:
        """Elsewhere the same key is another row."""
        async with opened(make_store) as store:
            rows = [
                await accepted(store, row("hello", "a", key="k")),
                await accepted(store, row("hello", "b", key="k")),
                await accepted(store, row(Outgoing(key="k", text="hi"), "a")),
            ]
            assert len({one.n for one in rows}) == 3

    async def test_a_number_is_never_used_again(self, make_store: MakeStore) -> None:
        """Not after its row was done, withdrawn, dropped or sent, not under the same key, not for another session."""
        async with opened(make_store) as store:
            numbers: list[int] = []
            for turns in range(4):
                numbers.append((await accepted(store, row("hello"))).n)
                assert await store.done(await taken(store))
                numbers.append((await accepted(store, row("hello", f"s{turns}"))).n)
                assert await store.cancel("in", SessionKey(f"s{turns}")) == 1
                numbers.append((await accepted(store, row(Outgoing(key="m", text="hi")))).n)
                assert await store.done(await taken(store, "out"))
            assert numbers == sorted(set(numbers))

    async def test_a_row_may_wait_for_its_time(self, make_store: MakeStore) -> None:
        """Events, starts and wakes are due when they say; without a time, at once."""
        async with opened(make_store, SetClock()) as store:
            assert (await accepted(store, row(Woke("w"), due=later(60)))).due == later(60)
            assert (await accepted(store, row(Happened("paid", key="e"), due=later(30)))).due == later(30)
            assert (await accepted(store, row(Happened("paid", key="f")))).due == AT

    async def test_reject_refuses_while_a_row_is_due_or_leased(self, make_store: MakeStore) -> None:
        """Nothing of the refused row is stored; parked and later rows do not count, nor those of other sessions."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("elsewhere", "other"))
            await accepted(store, row(Outgoing(key="m", text="hi")))
            await accepted(store, row(Woke("w"), due=later(60)))
            first = await store.put(row("one"), busy="reject")
            assert first.is_new
            for _ in range(2):
                refused = await store.put(row("two"), busy="reject", lease=Lease(owner="w2", ttl=30))
                assert (refused.row, refused.is_new, refused.leased) == (None, False, False)
                await store.lease("in", "w1", ttl=30, session=SessionKey("s"))
            clock.move(31)
            assert (await store.put(row("two"), busy="reject")).row is None
            held = await taken(store, session="s")
            assert await store.park(held, why="attempts")
            assert (await store.put(row("two"), busy="reject")).is_new

    async def test_supersede_marks_what_people_said_before(self, make_store: MakeStore) -> None:
        """Waiting or taken, once, by the key of the newer one; wakes, events and interruptions stay as they are."""
        async with opened(make_store, SetClock()) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            await accepted(store, row("two"))
            for body in (Woke("w"), Happened("paid", key="e"), Interruption(id="i")):
                await accepted(store, row(body))
            await accepted(store, row("elsewhere", "other"))
            found = await store.put(row("three"), busy="supersede")
            assert found.row is not None
            assert found.row.cancel is None
            await store.put(row("four"), busy="supersede")
            marks = {one.key: one.cancel for one in await store.rows("in")}
            by_three = Interruption(id="superseded:said::three", cause="superseded")
            by_four = Interruption(id="superseded:said::four", cause="superseded")
            assert {key: mark for key, mark in marks.items() if mark is not None} == {
                "said::one": by_three, "said::two": by_three, "said::three": by_four,
            }  # fmt: skip
            (extended,) = await store.extend([held], ttl=30)
            assert extended is not None
            assert extended.cancel == by_three

    async def test_supersede_leaves_parked_messages_alone(self, make_store: MakeStore) -> None:
        """Revived, such a message is taken as if nothing had come after it."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            assert await store.park(await taken(store), why="attempts")
            await store.put(row("two"), busy="supersede")
            (parked, _) = await store.rows("in")
            assert parked.cancel is None


@pytest.mark.asyncio
class RefusesRows:
    """What cannot be stored is refused by name, before anything changes."""

    @pytest.mark.parametrize("what", UNFIT)
    async def test_a_row_that_cannot_be_stored_is_refused(self, make_store: MakeStore, what: str) -> None:
        """The error has a code and a hint and none of its content; no due time moves and nothing is marked."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            waiting = await accepted(store, row("waiting"))
            clock.move(5)
            with pytest.raises(StoreError) as told:
                await store.put(UNFIT[what], busy="supersede", lease=Lease(owner="w1", ttl=30))
            assert told.value.code == "store-row"
            assert told.value.hint
            assert CANARY not in f"{told.value} {told.value.hint}"
            assert await store.rows("in") == [waiting]
            assert await store.rows("out") == []

    async def test_a_mark_that_cannot_be_stored_is_refused(self, make_store: MakeStore) -> None:
        """No row is marked then."""
        async with opened(make_store) as store:
            waiting = await accepted(store, row("waiting"))
            for mark in (Interruption(id="i", receipt=UNWRITABLE), Interruption(id=f"{CANARY} \ud83d")):
                with pytest.raises(StoreError) as told:
                    await store.cancel("in", SessionKey("s"), by=mark)
                assert told.value.code == "store-row"
                assert CANARY not in str(told.value)
            assert await store.rows("in") == [waiting]

    async def test_a_time_of_no_place_is_refused(self, make_store: MakeStore) -> None:
        """A row cannot be given back for it, and stays leased."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            for due, floor in ((datetime(2026, 1, 1), None), (AT, datetime(2026, 1, 1))):  # noqa: DTZ001 - on purpose
                with pytest.raises(StoreError, match="UTC offset"):
                    await store.again(held, due=due, floor=floor)
            assert await stored(store, held) == held
            assert await store.done(held)
