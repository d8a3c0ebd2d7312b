"""How a host looks for what is due: at once where there may be something, and hardly ever where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from onrecord import Agent, Happened
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Woke, row_key
from onrecord.errors import StoreError
from onrecord.session.inbox import Box, Row
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel
from tests.host.hosting import hosted, settled
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


class Watched(MemoryStore):
    """Counts what a host that serves asks; ``failures`` are how often asking what is due next fails first."""

    def __init__(self, clock: FakeEffects, failures: int = 0) -> None:
        super().__init__(clock=clock.now)
        self.asked, self.failures = list[str](), failures

    async def lease(
        self, box: Box, owner: str, /, *, ttl: float, limit: int = 1, session: SessionKey | None = None
    ) -> list[Row]:
        self.asked.append("lease")
        return await super().lease(box, owner, ttl=ttl, limit=limit, session=session)

    async def rows(
        self, box: Box, session: SessionKey | str | None = None, /, *, after: int = 0, limit: int = 1000
    ) -> list[Row]:
        self.asked.append("rows")
        return await super().rows(box, session, after=after, limit=limit)

    async def next_due(self, box: Box, /) -> datetime | None:
        self.asked.append("next due")
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is full", code="store-full")
        return await super().next_due(box)


def wake(session: str, at: datetime) -> Row:
    """A wake of that session."""
    body = Woke("ring", at=at)
    return Row(session=SessionKey(session), box="in", key=row_key(body, ""), body=body, due=at)


async def put_events(store: MemoryStore, keys: Sequence[str]) -> None:
    """Events for one session, as another process accepts them."""
    for key in keys:
        body = Happened("rang", key=key)
        await store.put(Row(session=SessionKey("s"), box="in", key=row_key(body, ""), body=body))


async def test_a_host_with_nothing_due_asks_one_thing_a_poll() -> None:
    """However many sessions sleep, it leases nothing and lists nothing."""
    clock = FakeEffects()
    store = Watched(clock)
    for n in range(100):
        await store.put(wake(f"session {n}", clock.now() + timedelta(days=1)))
    async with hosted(Agent(ScriptedModel()), effects=clock, store=store, poll_s=0.001) as host:
        await host.__aenter__()
        await settled(lambda: store.asked.count("next due") > 20)
    assert store.asked.count("lease") == 1
    assert "rows" not in store.asked


async def test_rows_of_one_session_are_taken_one_right_after_another() -> None:
    """What a session has waiting is no matter of polls."""
    clock = FakeEffects()
    store = Watched(clock)
    await put_events(store, "abcd")
    model = ScriptedModel("1", "2", "3", "4")
    async with hosted(Agent(model), effects=clock, store=store, poll_s=600) as host:
        await host.__aenter__()

        async def is_empty() -> bool:
            return not await MemoryStore.rows(store, "in")

        await settled(is_empty)
    assert len(model.requests) == 4


async def test_tickets_that_wait_here_are_not_looked_for_after_each_turn() -> None:
    """A long queue is listed once a poll, not once a turn: its rows are this host's to take."""
    clock = FakeEffects()
    store = Watched(clock)
    model = Halting((WAIT, "first"), *[("next",)] * 9)
    async with hosted(Agent(model), effects=clock, store=store, poll_s=600) as host:
        tickets = [await host.send("s", str(n)) for n in range(10)]
        await model.waiting.wait()
        model.gate.set()
        for ticket in tickets:
            await ticket.result()
    assert store.asked.count("rows") <= 1


async def test_a_store_that_fails_when_asked_for_the_next_row_does_not_end_the_host() -> None:
    """It is asked again, and what is put afterwards is taken."""
    clock = FakeEffects()
    store = Watched(clock, failures=1)
    async with hosted(Agent(ScriptedModel("Hello.")), effects=clock, store=store) as host:
        await host.__aenter__()
        await settled(lambda: store.failures == 0)
        await store.put(wake("s", datetime(2000, 1, 1, tzinfo=UTC)))

        async def is_stored() -> bool:
            return await store.load("s") is not None

        await settled(is_stored)
