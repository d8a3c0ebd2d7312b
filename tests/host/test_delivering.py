"""Messages leave after the commit that said them: in order, leased, repeated under their keys, set aside at last."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from onrecord import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.host.delivery import AT_ONCE
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, settled
from tests.turn.directing import Directed

pytestmark = pytest.mark.integration


class Channel:
    """A channel that keeps what it was given, and fails as often as it is told."""

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.tries = 0
        self.got: list[tuple[str, str, str]] = []

    async def __call__(self, session: SessionKey, message: Outgoing) -> None:
        self.tries += 1
        await asyncio.sleep(0)
        if self.fails:
            self.fails -= 1
            raise OSError("the words of the customer")
        self.got.append((session.id, message.key, message.text))


async def test_what_was_said_is_delivered_once() -> None:
    """Under the key of the message, and the row is gone."""
    channel = Channel()
    async with hosted(Agent(ScriptedModel("Hello.")), deliver=channel) as host:
        result = await host.turn("s", "Hi")
        await settled(lambda: channel.got)
        assert channel.got == [("s", result.messages[0].key, "Hello.")]
        await settled(lambda: is_empty(host))


async def is_empty(host: Any) -> bool:
    """Whether the outbox holds nothing."""
    found: list[Any] = await host.store.rows("out")
    return found == []


async def test_without_a_channel_nothing_is_put_into_the_outbox() -> None:
    """The result holds the messages, and whoever asked delivers them."""
    async with hosted(Agent(ScriptedModel("Hello."))) as host:
        assert [m.text for m in (await host.turn("s", "Hi")).messages] == ["Hello."]
        assert await host.store.rows("out") == []


async def test_messages_keep_their_order_and_their_delays() -> None:
    """A later message of the same session waits for the delay of the one before it, also over turns."""
    effects, channel = FakeEffects(), Channel()

    async def direct(turn: Turn, stage: Stage) -> None:
        await stage.say("one", key="1")
        await stage.say("two", key="2", after_ms=5000)
        await stage.say("three", key="3")

    async with hosted(Agent(ScriptedModel(), director=Directed(direct)), effects=effects, deliver=channel) as host:
        await host.turn("s", "Hi")
        await settled(lambda: [text for _, _, text in channel.got] == ["one"])
        assert {row.due for row in await host.store.rows("out")} == {effects.at + timedelta(seconds=5)}
        effects.advance(seconds=5)
        await settled(lambda: [text for _, _, text in channel.got] == ["one", "two", "three"])


async def test_a_channel_that_fails_gets_the_same_message_again() -> None:
    """Later, under the same key; those behind it wait, and other sessions do not."""
    effects, channel = FakeEffects(), Channel(fails=1)
    async with hosted(Agent(ScriptedModel("1", "2", "3")), effects=effects, deliver=channel) as host:
        first = await host.turn("s", "a")
        await settled(lambda: channel.tries == 1)
        await settled(lambda: is_waiting(host))
        second = await host.turn("s", "b")
        other = await host.turn("t", "c")
        await settled(lambda: len(channel.got) == 1)
        effects.advance(seconds=61)
        await settled(lambda: len(channel.got) == 3)
        keys = [r.messages[0].key for r in (other, first, second)]
        assert [key for _, key, _ in channel.got] == keys


async def is_waiting(host: Any) -> bool:
    """Whether the outbox holds rows that nobody has."""
    found = await host.store.rows("out")
    return bool(found) and all(not row.owner for row in found)


async def test_a_message_that_cannot_be_delivered_is_set_aside(caplog: pytest.LogCaptureFixture) -> None:
    """It names the class of the failure, never its words, and the next message goes out."""
    effects, channel = FakeEffects(), Channel(fails=2)
    async with hosted(Agent(ScriptedModel("1", "2")), effects=effects, deliver=channel, retry=[1.0]) as host:
        await host.turn("s", "a")
        await settled(lambda: channel.tries == 1)
        await settled(lambda: is_waiting(host))
        effects.advance(seconds=2)
        await settled(lambda: channel.tries == 2)
        await host.turn("s", "b")
        await settled(lambda: [text for _, _, text in channel.got] == ["2"])
        (row,) = await host.store.rows("out")
        assert row.dead == "undelivered: OSError"
    assert "customer" not in caplog.text


async def test_a_delivery_whose_host_died_is_repeated_by_the_next() -> None:
    """Its lease ends; the key is the same, so a channel that knows its keys sends it once."""
    effects, channel = FakeEffects(), Channel()
    store = MemoryStore(clock=effects.now)
    hanging = asyncio.Event()

    async def hangs(session: SessionKey, message: Outgoing) -> None:
        await hanging.wait()

    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, store=store, deliver=hangs) as first:
        result = await first.turn("s", "Hi")
        await settled(lambda: is_leased(first))
        effects.advance(seconds=60)
        async with hosted(Agent(ScriptedModel()), effects=effects, store=store, deliver=channel) as second, second:
            await settled(lambda: channel.got)
        hanging.set()
    assert [key for _, key, _ in channel.got] == [result.messages[0].key]


async def is_leased(host: Any) -> bool:
    """Whether somebody has the row of the outbox."""
    return any(row.owner for row in await host.store.rows("out"))


async def test_a_channel_may_fail_more_often_than_a_process_may_die() -> None:
    """Failures that were seen are counted by the ladder; takes that nobody heard of again are something else."""
    channel = Channel(fails=8)
    async with hosted(Agent(ScriptedModel("Hello.")), deliver=channel, retry=(0.0,) * 9) as host:
        await host.turn("s", "Hi")
        await settled(lambda: channel.got)
        assert (channel.tries, len(channel.got)) == (9, 1)


async def test_no_more_messages_are_on_their_way_at_once_than_was_said() -> None:
    """However many sessions have one: the rest goes when these are through."""
    gate, begun = asyncio.Event(), list[str]()

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        begun.append(session.id)
        await gate.wait()

    sessions = [f"s{n}" for n in range(AT_ONCE + 8)]
    async with hosted(Agent(ScriptedModel(*["Hello."] * len(sessions))), deliver=deliver) as host:
        for name in sessions:
            await host.turn(name, "Hi")
        await settled(lambda: len(begun) >= AT_ONCE)
        assert len(await host.store.lease("out", "another", ttl=5, limit=99)) == 8
        gate.set()
        await settled(lambda: delivered(host, AT_ONCE))


async def delivered(host: Any, count: int) -> bool:
    """Whether so many messages have left."""
    return bool((await host.health()).delivered == count)
