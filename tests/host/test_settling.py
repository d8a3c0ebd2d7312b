"""A host that serves until nothing is due, one that serves a single session, and what it says of its health."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from onrecord import Agent, Said, Woke
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.record.kinds import TurnFailed
from onrecord.session.inbox import Box, Row
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, raises
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, said
from tests.turn.directing import Directed

pytestmark = pytest.mark.integration


async def test_once_ends_when_nothing_is_due_and_everything_was_delivered() -> None:
    """Rows of several sessions, their messages in order; a later wake stays."""
    effects = FakeEffects()
    store, got = MemoryStore(clock=effects.now), list[str]()

    async def direct(turn: Turn, stage: Stage) -> None:
        await stage.say("one", key="1")
        await stage.say("two", key="2")

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        await asyncio.sleep(0)
        got.append(f"{session.id} {message.text}")

    for name in "ab":
        await store.put(Row(session=SessionKey(name), box="in", key=f"said::{name}", body=Said("Hi", key=name)))
    later = Row(session=SessionKey("a"), box="in", key="woke::w", body=Woke("w"), due=effects.at + timedelta(days=1))
    await store.put(later)
    agent = Agent(ScriptedModel(), director=Directed(direct))
    async with hosted(agent, effects=effects, store=store, deliver=deliver, poll_s=60) as host:
        async with asyncio.timeout(5):  # far less than a poll: a message does not wait for the next look
            await host.work(once=True)
        assert sorted(got) == ["a one", "a two", "b one", "b two"]
        assert [text for text in got if text.startswith("a")] == ["a one", "a two"]
        assert [row.key for row in await store.rows("in")] == ["woke::w"]
        assert await store.rows("out") == []


async def test_once_tells_when_the_store_fails() -> None:
    """A job for cron fails, instead of trying for ever."""

    class Broken(MemoryStore):
        async def lease(
            self, box: Box, owner: str, /, *, ttl: float, limit: int = 1, session: SessionKey | None = None
        ) -> list[Row]:
            raise StoreError("the disk reported an error", hint="check the disk")

    async with hosted(Agent(ScriptedModel()), store=Broken()) as host:
        with pytest.raises(StoreError):
            await host.work(once=True)


async def test_a_host_of_one_session_leaves_others_alone() -> None:
    """Neither their inputs nor their messages are touched."""
    effects = FakeEffects()
    store, got = MemoryStore(clock=effects.now), list[str]()

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        got.append(session.id)

    for name in "ab":
        key = SessionKey(name)
        await store.put(Row(session=key, box="in", key=f"said::{name}", body=Said("Hi", key=name)))
        await store.put(Row(session=key, box="out", key=name, body=Outgoing(key=name, text="earlier")))
    agent = Agent(ScriptedModel("Hello."))
    async with hosted(agent, effects=effects, store=store, deliver=deliver, only="a") as host:
        await host.work(once=True)
        assert await said(host, "a") == ["Hi", "Hello."]
        assert await said(host, "b") == []
        assert got == ["a", "a"]
        assert [(row.session.id, row.box) for box in ("in", "out") for row in await store.rows(box)] == [
            ("b", "in"), ("b", "out"),
        ]  # fmt: skip


async def test_health_counts_what_waits_and_what_was_done() -> None:
    """In numbers only: due, later, parked, and for how long the first has been due."""
    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, store=store, only="a") as host:
        await host.turn("a", "Hi")
        wake = Row(session=SessionKey("a"), box="in", key="woke::w", body=Woke("w"), due=effects.at + timedelta(days=1))
        await store.put(wake)
        await store.put(Row(session=SessionKey("a"), box="out", key="m", body=Outgoing(key="m", text="secret")))
        effects.advance(seconds=90)
        health = await host.health()
        assert (health.taken, health.due, health.waiting, health.parked, health.oldest_s) == (1, 1, 1, 0, 90.0)
        (row,) = await store.lease("out", "other", ttl=5)
        await store.park(row, why="undelivered")
        health = await host.health()
        assert (health.due, health.parked, health.is_whole) == (0, 1, True)
        assert str(health) == (
            "taken 1, delivered 0, running 0, due 0, waiting 1, parked 1, oldest due for 0 s"
        )  # fmt: skip


async def test_places_of_a_turn_stay_unique_however_often_its_row_was_parked() -> None:
    """Each park files an entry, and the retried row is taken as the same turn: causes still name one entry."""
    agent = Agent(ScriptedModel(raises("invalid"), raises("invalid"), "Now."))
    async with hosted(agent) as host:
        await host.send("s", "Hi")
        for _ in range(3):
            await host.work(once=True)
            await host.store.revive("in", SessionKey("s"))
        entries = [entry async for entry in host.store.entries("s")]
        assert [isinstance(e.body, TurnFailed) for e in entries[:3]] == [True, True, False]
        assert len({entry.turn for entry in entries}) == 1
        assert len({entry.n for entry in entries}) == len(entries)
        assert await said(host) == ["Hi", "Now."]
