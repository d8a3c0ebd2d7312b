"""What a store that outlives its process promises on top: subclass it beside `StoreConformance`, with the same fixture.

``make_store`` is called several times in one test here, and opens the same store each time.
"""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.session.inbox import Box, Row
from onrecord.session.store import Store
from onrecord.testing.conformance.asking import (
    MakeStore,
    SetClock,
    accepted,
    keys,
    later,
    opened,
    refused,
    taken,
    unchanged,
)
from onrecord.testing.conformance.samples import row, turn

__all__ = ("ReopenedStoreConformance",)

S = SessionKey("s")
BOXES: tuple[Box, Box] = ("in", "out")


async def everything(store: Store) -> list[Row]:
    """All rows of both boxes."""
    return [one for box in BOXES for one in await store.rows(box)]


@pytest.mark.asyncio
class ReopenedStoreConformance:
    """What is stored is there when the store is opened again, by this process or another one."""

    async def test_sessions_and_rows_outlive_the_store(self, make_store: MakeStore) -> None:
        """Waiting, leased, given back, marked and parked ones, with every field."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            session = await store.commit(replace(turn("s"), put=(row(Outgoing(key="m", text="hi", after_ms=1_500)),)))
            for name in ("leased", "back", "parked", "marked"):
                await accepted(store, row("hello", name, options=Raw(b"[ 1]")))
            held = {one.session.id: one for one in await store.lease("in", "w1", ttl=30, limit=4)}
            assert await store.again(held["back"], due=later(60), rung=2, floor=later(45))
            assert await store.park(held["parked"], why="attempts")
            assert await store.cancel("in", SessionKey("marked"), by=Interruption(id="i", heard=3)) == 1
            await accepted(store, row(Woke("w", payload={"n": [1.0]}), due=later(90)))
            before = await everything(store)
            assert len(before) == 6
        async with opened(make_store, clock) as store:
            assert await everything(store) == before
            await unchanged(store, session)

    async def test_a_lease_outlives_the_store(self, make_store: MakeStore) -> None:
        """Nobody else gets the row before it ends, and its holder may end it."""
        clock = SetClock()
        async with opened(make_store, clock) as store:
            await accepted(store, row("one"))
            held = await taken(store)
        async with opened(make_store, clock) as store:
            assert await store.lease("in", "w2", ttl=30) == []
            assert await store.next_due("in") == later(30)
            await store.commit(replace(turn("s"), taken=held))
            assert await store.rows("in") == []
            await refused(store, held)

    async def test_a_number_is_never_used_again_after_opening(self, make_store: MakeStore) -> None:
        """Though nothing is left of the row that had it."""
        numbers: list[int] = []
        for _ in range(3):
            async with opened(make_store, SetClock()) as store:
                numbers.append((await accepted(store, row("hello"))).n)
                assert await store.done(await taken(store))
                assert await store.rows("in") == []
        assert numbers == sorted(set(numbers))

    async def test_two_open_stores_are_one(self, make_store: MakeStore) -> None:
        """What one accepts the other leases, and a lease of one is a lease for both."""
        clock = SetClock()
        async with opened(make_store, clock) as one, opened(make_store, clock) as other:
            await accepted(one, row("hello"))
            assert (await other.put(row("hello"))).is_new is False
            zombie = await taken(other, owner="w1")
            assert await one.lease("in", "w2", ttl=30) == []
            clock.at = later(30)
            held = await taken(one, owner="w2")
            await refused(other, zombie)
            session = await one.commit(replace(turn("s"), taken=held, put=(row(Outgoing(key="m", text="hi")),)))
            await unchanged(other, session)
            assert keys(await other.lease("out", "w1", ttl=30)) == ["m"]
