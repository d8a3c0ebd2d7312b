"""What becomes of rows that no turn takes, with every store: parked, withdrawn, or waited for."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import UsageError
from onrecord.record.kinds import HistoryChanged
from onrecord.testing.conformance.asking import (
    MakeStore,
    SetClock,
    accepted,
    keys,
    later,
    opened,
    refused,
    stored,
    taken,
)
from onrecord.testing.conformance.samples import AT, row

__all__ = ("ParksRows", "TellsWhatIsDue", "WithdrawsRows")

S = SessionKey("s")
STOP = Interruption(id="stop", cause="stopped")


@pytest.mark.asyncio
class ParksRows:
    """A row that cannot be handled is set aside: visible, in nobody's way, and to be had again."""

    async def test_a_parked_row_is_there_and_blocks_nobody(self, make_store: MakeStore) -> None:
        """It tells why, is never leased, and the rows behind it go on."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            await accepted(store, row("two"))
            held = await taken(store)
            assert await store.park(held, why="attempts")
            await refused(store, held)
            found = await stored(store, held)
            assert found == replace(held, dead="attempts", owner="", lease_until=None)
            assert (await taken(store)).key == "said::two"
            clock.move(86_400)
            assert keys(await store.lease("in", "w2", ttl=30, limit=9)) == ["said::two"]
            assert keys(await store.rows("in")) == ["said::one", "said::two"]

    async def test_a_parked_key_is_still_known(self, make_store: MakeStore) -> None:
        """The same input sent again is not taken a second time."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            assert await store.park(await taken(store), why="attempts")
            found = await store.put(row("one"))
            assert found.is_new is False
            assert found.row is not None
            assert found.row.dead == "attempts"

    async def test_a_row_is_parked_for_a_reason(self, make_store: MakeStore) -> None:
        """Without one it stays leased."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            with pytest.raises(UsageError, match="reason"):
                await store.park(held, why="")
            assert await store.done(held)

    async def test_a_revived_row_is_due_as_if_never_tried(self, make_store: MakeStore) -> None:
        """No attempt counts against it, it stands at the foot of the ladder, and no mark stops it."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            await store.cancel("in", S, by=STOP)
            assert await store.again(held, due=later(10), rung=3, floor=later(10))
            clock.at = later(10)
            await store.lease("in", "w1", ttl=30)
            clock.at = later(40)
            held = await taken(store)
            assert await store.park(held, why="attempts")
            clock.at = later(50)
            assert await store.revive("in", S) == 1
            found = await stored(store, held)
            fresh = replace(held, owner="", lease_until=None, due=later(50), clean=3, rung=0, retry_at=None, floor=None)
            assert found == replace(fresh, cancel=None)
            assert (await taken(store)).attempt == 4
            await refused(store, held)

    async def test_parked_rows_are_revived_by_key_or_all(self, make_store: MakeStore) -> None:
        """Of one session and box; rows that are not parked are left alone."""
        async with opened(make_store, SetClock()) as store:
            for session in ("s", "other"):
                for text in ("one", "two", "three"):
                    await accepted(store, row(text, session))
                    assert await store.park(await taken(store, session=session), why="attempts")
            waiting = await accepted(store, row(Woke("w"), due=later(60)))
            assert await store.revive("in", S, keys=[]) == 0
            assert await store.revive("out", S) == 0
            assert await store.revive("in", S, keys=["said::two", "said::nobody", waiting.key]) == 1
            assert await store.revive("in", S) == 2
            assert await store.revive("in", S) == 0
            assert [one.dead for one in await store.rows("in", S)] == ["", "", "", ""]
            assert await stored(store, waiting) == waiting
            assert all(one.dead for one in await store.rows("in", SessionKey("other")))

    async def test_rows_are_asked_for_by_a_plain_name_too(self, make_store: MakeStore) -> None:
        """A text names a session of no tenant, as it does for `load`."""
        async with opened(make_store, SetClock()) as store:
            for name in ("s", "other"):
                await accepted(store, row("one", name))
                assert await store.park(await taken(store, session=name), why="attempts")
            assert [one.session for one in await store.rows("in", "s")] == [S]
            assert await store.revive("in", "s") == 1
            assert await store.cancel("in", "s") == 1
            assert await store.rows("in", "s") == []
            assert len(await store.rows("in")) == 1

    async def test_revived_messages_go_ahead_of_later_ones(self, make_store: MakeStore) -> None:
        """Numbers decide, as if they had been put again."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            assert await store.park(await taken(store), why="attempts")
            await accepted(store, row("two"))
            clock.move(60)
            assert await store.revive("in", S) == 1
            assert (await taken(store)).key == "said::one"

    async def test_a_revived_message_waits_for_the_floor_of_others(self, make_store: MakeStore) -> None:
        """A provider that wants no call before an instant gets none, whichever message is revived."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            assert await store.park(await taken(store), why="attempts")
            await accepted(store, row("two"))
            assert await store.again(await taken(store), due=later(10), rung=1, floor=later(600))
            assert await store.revive("in", S) == 1
            assert [one.due for one in await store.rows("in", S)] == [later(600)] * 2

    async def test_revived_messages_out_keep_their_order(self, make_store: MakeStore) -> None:
        """They wait for those before them, and those behind wait for them."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            for name in ("a", "b", "c", "d"):
                await accepted(store, row(Outgoing(key=name, text="hi")))
            first = await taken(store, "out")
            assert await store.park(first, why="gone")
            second = await taken(store, "out")
            assert await store.again(second, due=later(0), rung=1)
            clock.at = later(60)
            assert await store.revive("out", S) == 1
            assert [one.due for one in await store.rows("out")] == [later(60)] * 4
            assert (await taken(store, "out")).n == first.n
            clock.at = later(100)
            held = await taken(store, "out")
            assert await store.again(held, due=later(200), rung=1)
            assert await store.cancel("out", S, keys=["b"]) == 1
            clock.at = later(200)
            assert await store.done(await taken(store, "out"))
            last = await taken(store, "out")
            assert await store.park(last, why="gone")
            assert await store.again(await taken(store, "out"), due=later(300), rung=1)
            assert await store.revive("out", S) == 1
            assert [(one.key, one.due) for one in await store.rows("out")] == [("c", later(200)), ("d", later(300))]

    async def test_a_revived_interruption_comes_first_again(self, make_store: MakeStore) -> None:
        """So does a change of history."""
        async with opened(make_store) as store:
            await accepted(store, row("one"))
            for body in (Interruption(id="i"), HistoryChanged(op="edit", by="owner")):
                await accepted(store, row(body, key="first"))
                assert await store.park(await taken(store), why="attempts")
                assert await store.revive("in", S) == 1
                held = await taken(store)
                assert held.key == "first"
                assert await store.done(held)


@pytest.mark.asyncio
class WithdrawsRows:
    """Rows are withdrawn while nobody has them, and marked when somebody has."""

    async def test_rows_that_nobody_has_are_deleted(self, make_store: MakeStore) -> None:
        """By key or all of a session and box, parked ones too; what is leased stays."""
        async with opened(make_store) as store:
            await accepted(store, row("parked"))
            assert await store.park(await taken(store), why="attempts")
            for text in ("one", "two", "three"):
                await accepted(store, row(text))
            await accepted(store, row("one", "other"))
            await accepted(store, row(Outgoing(key="m", text="hi")))
            held = await taken(store, session=S)
            assert held.key == "said::one"
            assert await store.cancel("in", S, keys=[]) == 0
            assert await store.cancel("in", S, keys=["said::one", "said::two", "said::nobody"]) == 1
            assert await store.cancel("in", S) == 2
            assert keys(await store.rows("in", S)) == ["said::one"]
            assert len(await store.rows("in")) == 2
            assert len(await store.rows("out")) == 1
            assert await store.done(held)

    async def test_a_lease_that_ended_keeps_no_row(self, make_store: MakeStore) -> None:
        """The row is deleted, and who had it is out."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            held = await taken(store)
            clock.at = later(30)
            assert await store.cancel("in", S) == 1
            assert await store.rows("in") == []
            await refused(store, held)

    async def test_a_mark_deletes_nothing_and_the_first_one_stays(self, make_store: MakeStore) -> None:
        """Leased and waiting rows get it, parked ones do not; the holder sees it and keeps its lease."""
        async with opened(make_store) as store:
            await accepted(store, row("parked"))
            assert await store.park(await taken(store), why="attempts")
            for text in ("one", "two", "three"):
                await accepted(store, row(text))
            held = await taken(store)
            assert await store.cancel("in", S, keys=["said::one"], by=STOP) == 1
            other = Interruption(id="other", turn="t", cause="barge-in", heard=3, receipt={"a": [1]})
            assert await store.cancel("in", S, by=other) == 3
            marks = {one.key: one.cancel for one in await store.rows("in")}
            assert marks == {"said::parked": None, "said::one": STOP, "said::two": other, "said::three": other}
            (seen,) = await store.extend([held], ttl=30)
            assert seen is not None
            assert seen.cancel == STOP
            assert await store.done(held)
            assert (await taken(store)).cancel == other


@pytest.mark.asyncio
class TellsWhatIsDue:
    """A worker may sleep until the store says that something is due."""

    async def test_nothing_waits_is_none(self, make_store: MakeStore) -> None:
        """Parked rows and those of the other box do not count."""
        async with opened(make_store) as store:
            assert await store.next_due("in") is None
            await accepted(store, row(Outgoing(key="m", text="hi")))
            await accepted(store, row("one"))
            assert await store.park(await taken(store), why="attempts")
            assert await store.next_due("in") is None

    async def test_the_earliest_head_of_any_session_is_told(self, make_store: MakeStore) -> None:
        """In the future for a wake, in the past for what waits already."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row(Woke("w"), "a", due=later(60)))
            assert await store.next_due("in") == later(60)
            await accepted(store, row(Woke("w"), "b", due=later(30)))
            assert await store.next_due("in") == later(30)
            await accepted(store, row("one", "c"))
            clock.move(10)
            assert await store.next_due("in") == AT
            await accepted(store, row(Interruption(id="i"), "c"))
            found = await store.next_due("in")
            assert found is not None
            assert found <= AT

    async def test_a_leased_session_is_due_when_its_lease_ends(self, make_store: MakeStore) -> None:
        """Whatever waits behind the row; another session's rows are told as ever."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            await accepted(store, row("two"))
            held = await taken(store, ttl=30)
            assert await store.next_due("in") == later(30)
            await accepted(store, row(Woke("w"), "other", due=later(20)))
            assert await store.next_due("in") == later(20)
            clock.at = later(10)
            await store.extend([held], ttl=5)
            assert await store.next_due("in") == later(15)
            clock.at = later(15)
            found = await store.next_due("in")
            assert found is not None
            assert found <= later(15)
            assert keys([await taken(store)]) == ["said::one"]
