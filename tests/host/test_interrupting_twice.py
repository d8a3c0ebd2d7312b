"""Interruptions that come twice: each stops one turn, whatever comes too late, or in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from onrecord import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption, Said
from onrecord.host import Host, LiveItem, Progress, Ticket
from onrecord.record.kinds import TurnInterrupted
from onrecord.session.inbox import Row
from onrecord.testing import ScriptedModel
from tests.host.hosting import hosted, said
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration

STOP = Interruption(id="i1")


async def overtaken(host: Host[Any, Any], model: Halting) -> Ticket[Any]:
    """A turn that runs over a session which somebody else has written meanwhile."""
    session = await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
    ticket = await host.send("s", "And?")
    await model.waiting.wait()
    await host.store.commit((await Agent(ScriptedModel("Beside.")).turn("Meanwhile", session=session)).change())
    return ticket


async def ends(host: Host[Any, Any]) -> list[tuple[str, str]]:
    """The interruptions on the record: their ids and causes."""
    bodies = [entry.body async for entry in host.store.entries("s")]
    return [(body.id, body.cause) for body in bodies if isinstance(body, TurnInterrupted)]


async def test_an_interruption_that_comes_twice_stops_one_turn() -> None:
    """A retry after the reply was lost does not stop the next turn: it was seen."""
    model = Halting(("So far", WAIT), (WAIT, "Second"))
    async with hosted(Agent(model)) as host:
        async with host.turn_stream("s", "Hi") as stream:
            await model.waiting.wait()
            assert await host.interrupt("s", STOP) == "recorded"
            turn = (await stream.result()).entries[0].turn
        model.waiting.clear()
        ticket = await host.send("s", "Again")
        await model.waiting.wait()
        assert await host.interrupt("s", STOP) == "seen"
        assert await host.interrupt("s", Interruption(id="i1", turn=turn)) == "seen"
        model.gate.set()
        assert (await ticket.result()).text == "Second"


async def test_two_who_stop_a_turn_at_once_with_one_id_are_both_heard() -> None:
    """The second waits for what the first began."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model)) as host:
        await host.send("s", "Hi")
        await model.waiting.wait()
        told = await asyncio.gather(host.interrupt("s", STOP), host.interrupt("s", STOP))
        assert [*told] == ["recorded", "seen"]


async def test_an_interruption_that_was_seen_does_not_stop_a_turn_elsewhere() -> None:
    """Neither by a mark on its row, nor where a marked row is taken later."""
    model = Halting(("So far", WAIT), (WAIT, "Second"), ("Third",))
    async with hosted(Agent(model), lease_s=0.15) as there, hosted(Agent(ScriptedModel()), store=there.store) as here:
        await there.send("s", "Hi")
        await model.waiting.wait()
        assert await there.interrupt("s", STOP) == "recorded"
        model.waiting.clear()
        ticket = await there.send("s", "Again")
        await model.waiting.wait()
        assert await here.interrupt("s", STOP) == "seen"
        assert [row.cancel for row in await here.pending("s")] == [None]
        model.gate.set()
        assert (await ticket.result()).text == "Second"
        await there.store.put(Row(session=SessionKey("s"), box="in", key="said::m3", body=Said("Third?")))
        await there.store.cancel("in", SessionKey("s"), by=STOP)
        await there.work(once=True)
        assert (await said(there))[-1] == "Third"


async def test_who_stopped_a_turn_that_a_conflict_ended_is_on_the_record() -> None:
    """It was read, so it is not taken anew; and it ends as the person stopped it."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model)) as host:
        reader = host.live("s")
        following = asyncio.create_task(_until_text(reader))
        ticket = await overtaken(host, model)
        assert await following == "So far"
        assert await host.interrupt("s", STOP) == "recorded"
        assert (await ticket.result()).status == "interrupted"
        assert await ends(host) == [("i1", "stopped")]
        assert (await said(host))[-2:] == ["And?", "So far"]
        await reader.aclose()


async def _until_text(reader: AsyncGenerator[LiveItem, None]) -> str:
    async for item in reader:
        if isinstance(item, Progress):
            return item.text
    return ""
