"""Code of an application that does not end when it is told to: the host does, and others take what it held."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption
from onrecord.governance import before_tool
from onrecord.host import Host, leased, running
from onrecord.record.kinds import TurnClosed
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.moments import Allow
from tests.host.hosting import said, settled

pytestmark = pytest.mark.integration

STUCK = "does not end"


async def deaf(until: asyncio.Event) -> None:
    """Hears no cancellation until it is let go."""
    while not until.is_set():
        try:
            await until.wait()
        except asyncio.CancelledError:
            continue


def paying(keys: list[str], until: asyncio.Event | None = None) -> Agent[Any, Any]:
    """An agent that pays; its rule is deaf until then."""

    @before_tool
    async def looks(turn: Any, call: Any) -> Any:
        if until is not None:
            await deaf(until)
        return Allow()

    def pay(args: Any, ctx: ToolContext[Any]) -> str:
        keys.append(ctx.key)
        return "paid"

    return Agent(ScriptedModel(call("pay"), "Done."), tools=[Tool("pay", pay, "Pay.")], features=[looks])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits ten seconds for what does not end."""
    for module in (leased, running):
        monkeypatch.setattr(module, "STOPPING_S", 0.05)


async def test_a_turn_that_does_not_end_keeps_no_host_from_closing(caplog: pytest.LogCaptureFixture) -> None:
    """Its row goes to the next host; what comes of it later is not stored, and its effect has the same key."""
    keys, until, store = list[str](), asyncio.Event(), MemoryStore()
    host = Host(paying(keys, until), store=store, poll_s=0.01)
    await host.send("s", "Pay")
    await settled(lambda: host._desk.worker is not None and host._desk.worker.takes.running)
    async with asyncio.timeout(5):
        await host.close(drain_s=0.01)
    assert STUCK in caplog.text
    async with Host(paying(keys), store=store, poll_s=0.01) as next_host:
        await settled(lambda: _said_done(next_host))
        until.set()
        await settled(lambda: len(keys) == 2)
        await asyncio.sleep(0.02)
        assert len(set(keys)) == 1
        assert await said(next_host) == ["Pay", "Done."]
        entries = [entry async for entry in store.entries("s")]
        assert sum(isinstance(entry.body, TurnClosed) for entry in entries) == 1
        assert await store.rows("in") == []


async def _said_done(host: Host[Any, Any]) -> bool:
    return await said(host) == ["Pay", "Done."]


async def test_an_interruption_that_is_not_heard_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever interrupted waits, and the log says for what; once it is heard, the turn ends as interrupted."""
    keys, until = list[str](), asyncio.Event()
    async with Host(paying(keys, until), poll_s=0.01) as host:
        ticket = await host.send("s", "Pay")
        await settled(lambda: any(one.turn for one in host._desk.start().takes.running.values()))
        told = asyncio.create_task(host.interrupt("s", Interruption(id="i", cause="user")))
        await settled(lambda: STUCK in caplog.text)
        assert not told.done()
        until.set()
        assert (await told, (await ticket.result()).status, keys) == ("recorded", "interrupted", [])


async def test_a_channel_that_does_not_end_keeps_no_host_from_closing(caplog: pytest.LogCaptureFixture) -> None:
    """Its message is delivered by the next host, under the same key."""
    until, store, sent = asyncio.Event(), MemoryStore(), list[str]()

    async def stuck(session: SessionKey, message: Any) -> None:
        sent.append(message.key)
        await deaf(until)

    async def deliver(session: SessionKey, message: Any) -> None:
        sent.append(message.key)

    host = Host(Agent(ScriptedModel("Hello.")), store=store, deliver=stuck, poll_s=0.01)
    await host.turn("s", "Hi")
    await settled(lambda: sent)
    async with asyncio.timeout(5):
        await host.close(drain_s=0.01)
    assert STUCK in caplog.text
    async with Host(Agent(ScriptedModel()), store=store, deliver=deliver, poll_s=0.01) as next_host:
        await next_host.work(once=True)
        assert len(sent) == 2
        assert len(set(sent)) == 1
    until.set()
