"""Takes that meet what is rare: an ended lease, a sender who left, a full host, one conflict after another."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onrecord import Agent, ModelError, Said
from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import Wake
from onrecord.errors import SessionConflict
from onrecord.host import Progress
from onrecord.record.kinds import HistoryChanged
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, said, settled
from tests.turn.directing import Directed
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


class Contended(MemoryStore):
    """A store in which somebody else is faster, for as many turns as it is told."""

    conflicts = 0

    async def commit(self, change: Change, /) -> Session:
        if change.taken is not None and self.conflicts:
            self.conflicts -= 1
            raise SessionConflict(change.session.key.id, expected=1, found=2)
        return await super().commit(change)


async def test_a_take_whose_session_is_taken_anew_is_left_at_once() -> None:
    """Its lease ended while the process slept: it must not go on beside the next one of its session."""
    effects = FakeEffects()
    model = Halting(("Hello.",), (WAIT, "Too late"), ("In time",))
    async with hosted(Agent(model), effects=effects) as host:
        first = await host.turn("s", "Hi")
        assert first.session is not None
        ticket = await host.send("s", "Two")
        await model.waiting.wait()
        effects.advance(seconds=20)
        await host.remove("s", first.session.conversation.messages[0].id, by="ana")
        assert (await ticket.result()).text == "In time"
        assert model.closed == ["done", "CancelledError", "done"]
        assert await said(host) == ["Hello.", "Two", "In time"]


async def test_messages_from_elsewhere_stand_behind_those_of_the_session() -> None:
    """Given to a host that serves it: the next turn is asked with both, and the record says who did it."""
    elsewhere = (await Agent(ScriptedModel("Long ago.")).turn("Once", session="other")).session
    assert elsewhere is not None
    model = ScriptedModel("Hello.", "Both.")
    async with hosted(Agent(model)) as host:
        await host.turn("s", "Hi")
        result = await host.import_history("s", elsewhere.conversation.messages, by="ana")
        assert [entry.body.by for entry in result.entries if isinstance(entry.body, HistoryChanged)] == ["ana"]
        assert (await host.turn("s", "And now?")).text == "Both."
        assert await said(host) == ["Hi", "Hello.", "Once", "Long ago.", "And now?", "Both."]
    assert len(model.requests[1].conversation.units) == 5


async def test_a_row_that_comes_back_to_the_host_that_lost_it_runs_there_anew() -> None:
    """The new take is the one that readers follow and that an interruption stops, whenever the old one ends."""
    effects = FakeEffects()
    model = Halting((WAIT, "Old"), ("New", WAIT))
    async with hosted(Agent(model), effects=effects) as host:
        reader = host.live("s")
        shown = asyncio.ensure_future(anext(reader))
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        effects.advance(seconds=20)
        item = await shown
        assert isinstance(item, Progress)
        assert (item.text, item.take) == ("New", 2)
        async with asyncio.timeout(2):
            assert await host.interrupt("s", Interruption(id="i1")) == "recorded"
            assert (await ticket.result()).status == "interrupted"
        await reader.aclose()
        assert await said(host) == ["Hi", "New"]


async def test_a_full_host_takes_what_waits_elsewhere_once_it_has_room() -> None:
    """As soon as a turn ends, not at its next look."""
    model = Halting((WAIT, "One"), ("Two",))
    async with hosted(Agent(model), turns=1, poll_s=60) as host:
        await host.send("a", "Hi")
        await model.waiting.wait()
        other = await host.send("b", "Hi")
        model.gate.set()
        async with asyncio.timeout(5):
            assert (await other.result()).text == "Two"


async def test_a_message_whose_sender_left_waits_for_its_turn_like_any() -> None:
    """It is stored, so it is taken: behind the one that runs, which is not disturbed."""
    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    put = store.put

    async def slowly(row: Any, /, **more: Any) -> Any:
        accepted = await put(row, **more)
        if row.body == Said("Two"):
            await asyncio.Event().wait()
        return accepted

    store.put = slowly  # type: ignore[method-assign]  # a store that is some way off
    model = Halting((WAIT, "One."), ("Two.",))
    async with hosted(Agent(model), effects=effects, store=store) as host:
        first = await host.send("s", "One")
        await model.waiting.wait()
        leaving = asyncio.ensure_future(host.send("s", "Two"))
        await settled(lambda: _waits(host, 2))
        leaving.cancel()
        await settled(leaving.done)
        model.gate.set()
        assert (await first.result()).text == "One."
        await host.work(once=True)
        assert await said(host) == ["One", "One.", "Two", "Two."]


async def _waits(host: Any, rows: int) -> bool:
    return len(await host.pending("s")) == rows


async def test_a_turn_that_is_overtaken_again_and_again_ends() -> None:
    """It is begun anew three times, then it ends interrupted: the session belongs to whoever writes so much."""
    effects = FakeEffects()
    store = Contended(clock=effects.now)
    model = ScriptedModel("Hello.", *["Never"] * 4)
    async with hosted(Agent(model), effects=effects, store=store) as host:
        await host.turn("s", "Hi")
        store.conflicts = 4
        result = await host.turn("s", "And?")
        assert (result.status, result.messages) == ("interrupted", ())
        assert len(model.requests) == 5
        assert await host.pending("s") == []


async def test_what_a_closing_host_gives_back_keeps_its_place_on_the_ladder() -> None:
    """Or a host that restarts often would try for ever."""
    effects = FakeEffects()
    model = Halting((ModelError("busy", kind="rate", retry_after=90),), (WAIT, "Late"))
    async with hosted(Agent(model), effects=effects, retry=(60, 300)) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "Hi")
        (before,) = await host.pending("s")
        effects.advance(seconds=100)
        await settled(model.waiting.is_set)
        await host.close(drain_s=0)
        (row,) = await host.store.rows("in")
        assert (row.owner, row.rung, row.floor, row.clean) == ("", 1, before.floor, 2)


async def test_a_wake_that_replaces_another_is_the_only_one() -> None:
    """Also one with another key."""
    at = datetime(2030, 1, 1, tzinfo=UTC)
    wakes = [Wake(key="first", at=at), Wake(key="second", at=at + timedelta(days=1), replaces="first")]

    async def direct(turn: Turn, stage: Stage) -> None:
        stage.arm(wakes.pop(0))

    async with hosted(Agent(ScriptedModel(), director=Directed(direct))) as host:
        await host.turn("s", "Hi")
        await host.turn("s", "Later, please")
        assert [row.key for row in await host.pending("s")] == ["woke::second"]


async def test_who_waits_for_what_is_cancelled_is_told_at_once() -> None:
    """Not at the host's next look."""
    model = Halting((WAIT, "One."))
    async with hosted(Agent(model), poll_s=60) as host:
        await host.send("s", "One")
        await model.waiting.wait()
        ticket = await host.send("s", "Two")
        assert await host.cancel_pending("s") == 1
        async with asyncio.timeout(5):
            assert (await ticket.result()).status == "ignored"
