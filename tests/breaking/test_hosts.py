"""Hosts whose surroundings misbehave: leases that end under running turns, callers that leave, channels that hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from onrecord import Agent, Said
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import SessionBusy, StoreError, UsageError
from onrecord.host import Given
from onrecord.record.kinds import HistoryChanged
from onrecord.session.inbox import Accepted, Row
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel
from tests.host.hosting import hosted, kinds, said, settled
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration

S = SessionKey("s")


# ---- leases that end while their owner is busy ----------------------------------------------------------------------


async def test_a_host_that_slept_over_its_lease_takes_the_row_anew_and_once() -> None:
    """It leaves the old take, keeps the lease of the new one, and the text is stored once."""
    effects, model = FakeEffects(), Halting((WAIT, "Old."), (WAIT, "New."))
    async with hosted(Agent(model), effects=effects, lease_s=9.0) as host:
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        model.waiting.clear()
        effects.advance(seconds=10)
        await settled(lambda: model.closed)
        await model.waiting.wait()
        assert model.closed == ["CancelledError"]
        worker = host._desk.start()
        assert [running.row.attempt for running in worker.takes.running.values()] == [2]
        model.gate.set()
        assert (await ticket.result()).text == "New."
        assert await said(host) == ["Hi", "New."]


async def test_a_row_that_goes_ahead_ends_the_take_whose_lease_ended() -> None:
    """One session has one take: the older one is left when another row of its session was leased after it."""
    effects, model = FakeEffects(), Halting((WAIT, "Old."), ("New.",))
    async with hosted(Agent(model), effects=effects, lease_s=9.0) as host:
        warm = await Agent(ScriptedModel("Hello.")).turn("Before", session="s")
        await host.store.commit(warm.change())
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        effects.advance(seconds=10)
        message = warm.session.conversation.messages[0].id if warm.session is not None else ""
        await host.remove("s", message, by="ana")
        assert model.closed[:1] == ["CancelledError"]
        assert (await ticket.result()).text == "New."
        assert await said(host) == ["Hello.", "Hi", "New."]


async def test_a_message_whose_lease_ended_is_not_sent_twice_at_once() -> None:
    """The channel is left before it is asked again."""
    effects, opened, most = FakeEffects(), [0], [0]
    asked = list[str]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        asked.append(message.key)
        opened[0] += 1
        most[0] = max(most[0], opened[0])
        try:
            if len(asked) == 1:
                await asyncio.Event().wait()
        finally:
            opened[0] -= 1

    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, deliver=deliver, lease_s=9.0) as host:
        await host.turn("s", "Hi")
        await settled(lambda: asked)
        effects.advance(seconds=10)
        await settled(lambda: nothing_waits(host, "out"))
        assert (len(asked), len(set(asked)), most) == (2, 1, [1])


async def nothing_waits(host: Any, box: Any = "in") -> bool:
    """Whether a box is empty."""
    return bool(await host.store.rows(box) == [])


# ---- callers that leave ---------------------------------------------------------------------------------------------


class Slow(MemoryStore):
    """A store that has done what it was asked before its answer arrives, as all stores with a wire have."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock=clock)
        self.answer = asyncio.Event()
        self.answer.set()
        self.waiting = asyncio.Event()
        self.fails: Exception | None = None

    async def put(self, row: Row, /, **more: Any) -> Accepted:
        if self.fails is not None:
            raise self.fails
        accepted = await super().put(row, **more)
        self.waiting.set()
        await self.answer.wait()
        return accepted


async def test_an_input_whose_sender_left_while_it_was_stored_is_taken_at_once() -> None:
    """It was accepted and leased; nobody waits for that lease to end."""
    effects = FakeEffects()
    store = Slow(effects.now)
    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, store=store) as host:
        store.answer.clear()
        sending = asyncio.ensure_future(host.turn("s", "Hi"))
        await store.waiting.wait()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        store.answer.set()
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))


async def talk_is(host: Any, texts: list[str]) -> bool:
    """Whether the session holds these texts."""
    return await said(host) == texts


async def test_a_host_that_closes_while_an_input_is_stored_leaves_it_to_the_next() -> None:
    """The row was leased for a host that takes no more: it is given back, not kept until its lease ends."""
    effects = FakeEffects()
    store = Slow(effects.now)
    model = ScriptedModel("Never.")
    async with hosted(Agent(model), effects=effects, store=store) as host:
        store.answer.clear()
        sending = asyncio.ensure_future(host.send("s", "Hi"))
        await store.waiting.wait()
        await host.close()
        store.answer.set()
        with pytest.raises(UsageError) as told:
            await (await sending).result()
        assert told.value.code == "host-closed"
    (row,) = await store.rows("in")
    assert (row.owner, row.clean, model.requests) == ("", row.attempt, [])


async def test_what_could_not_be_accepted_leaves_nothing_behind() -> None:
    """The sender is told, and the next input with that key starts from nothing."""
    effects = FakeEffects()
    store = Slow(effects.now)
    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, store=store) as host:
        store.fails = StoreError("full", code="store-full")
        with pytest.raises(StoreError):
            await host.send("s", Said("Hi", key="m"), context="old")
        await settled(lambda: not host._desk._tickets._asked)
        store.fails = None
        assert (await host.turn("s", Said("Hi", key="m"))).text == "Hello."


async def test_a_refused_input_takes_nobody_s_ticket() -> None:
    """Who waits for a row of that key, taken elsewhere meanwhile, still learns what became of it."""
    effects, model = FakeEffects(), Halting((WAIT, "One."))
    async with hosted(Agent(model), effects=effects, poll_s=0.2) as host:
        running = await host.send("s", "One")
        await model.waiting.wait()
        waiting = await host.send("s", Said("Two", key="m"))
        await host.store.cancel("in", S, keys=["said::m"])
        with pytest.raises(SessionBusy):
            await host.send("s", Said("Two", key="m"), busy="reject")
        model.gate.set()
        await running.result()
        async with asyncio.timeout(4):
            assert (await waiting.result()).status == "ignored"


async def test_nobody_is_told_of_a_long_queue_that_his_input_is_gone() -> None:
    """More inputs of one session than a store lists at a time still wait, and their tickets too."""
    effects, model = FakeEffects(), Halting((WAIT, "One."))
    async with hosted(Agent(model), effects=effects, retry=()) as host:
        await host.send("s", "first")
        await model.waiting.wait()
        tickets = [await host.send("s", Said("next", key=f"m{n}")) for n in range(1002)]
        looked = asyncio.ensure_future(host._desk._tickets.look(host._desk.start().takes.running))
        await looked
        assert not any(ticket.is_done for ticket in tickets)


# ---- what is called and fails ---------------------------------------------------------------------------------------


async def test_a_host_closes_although_a_channel_hangs() -> None:
    """The message is given back to be delivered by the next host."""
    begun = asyncio.Event()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with hosted(Agent(ScriptedModel("Hello.")), deliver=deliver) as host:
        await host.turn("s", "Hi")
        await begun.wait()
        async with asyncio.timeout(5):
            await host.close(drain_s=0.01)
        (row,) = await host.store.rows("out")
        assert (row.owner, row.attempt - row.clean) == ("", 0)


async def test_a_channel_s_own_trouble_with_a_store_is_trouble_of_the_channel() -> None:
    """A StoreError that `deliver` raises costs a rung like any other; the message is not held until its lease ends."""
    effects, tries = FakeEffects(), list[int]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise StoreError("its own", code="store-io")

    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, deliver=deliver, retry=[1.0]) as host:
        await host.turn("s", "Hi")
        await settled(lambda: waits_at_rung(host, 1))
        effects.advance(seconds=1)
        await settled(lambda: nothing_waits(host, "out"))


async def waits_at_rung(host: Any, rung: int) -> bool:
    """Whether the one message waits to be tried again."""
    return [(row.rung, row.owner) for row in await host.store.rows("out")] == [(rung, "")]


@pytest.mark.parametrize("box", ["in", "out"])
async def test_what_ends_the_process_each_time_is_set_aside(box: Any) -> None:
    """Six takes, or deliveries, that nobody heard of again: the row is parked, and the next one has its turn."""
    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    delivered = list[str]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        delivered.append(message.text)

    change = HistoryChanged(op="remove", by="ana", message="m")
    poison: Callable[[], Row] = lambda: (  # noqa: E731 - one of two values
        Row(session=S, box="in", key="history::1", body=change)
        if box == "in"
        else Row(session=S, box="out", key="k", body=Outgoing(key="k", text="poison"))
    )
    await store.put(poison())
    for _ in range(7):
        assert await store.lease(box, "killed", ttl=1)
        effects.advance(seconds=2)
    async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, store=store, deliver=deliver) as host:
        assert (await host.turn("s", "Hi")).text == "Hello."
        await settled(lambda: delivered)
        (row,) = await store.rows(box)
        assert (row.dead, delivered) == ("out-of-attempts", ["Hello."])


async def test_a_store_with_a_bug_of_its_own_stops_neither_loop() -> None:
    """Whatever it raises is logged by its class; the host goes on once it is over."""
    effects = FakeEffects()

    class Odd(MemoryStore):
        broken = True

        async def lease(self, *args: Any, **more: Any) -> list[Row]:
            if self.broken:
                raise RuntimeError("a bug")
            return await super().lease(*args, **more)

        async def extend(self, *args: Any, **more: Any) -> list[Row | None]:
            if self.broken:
                raise RuntimeError("a bug")
            return await super().extend(*args, **more)

    store = Odd(clock=effects.now)
    model = Halting((WAIT, "One."), ("Two.",))
    async with hosted(Agent(model), effects=effects, store=store, lease_s=0.03) as host:
        first = await host.send("s", "1")
        second = await host.send("s", "2")
        await model.waiting.wait()
        await asyncio.sleep(0.05)
        store.broken = False
        model.gate.set()
        assert [(await ticket.result()).text for ticket in (first, second)] == ["One.", "Two."]


async def test_what_nobody_read_of_a_take_is_not_shown_before_the_next_one() -> None:
    """After a conflict the turn is taken anew; a reader who comes then reads one reply."""
    model = Halting(("Old.", WAIT), ("New.", WAIT))
    async with hosted(Agent(model)) as host:
        session = await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
        ticket = await host.send("s", "And?")
        await model.waiting.wait()
        await host.store.commit((await Agent(ScriptedModel("Beside.")).turn("Meanwhile", session=session)).change())
        running = host._desk.start().takes.running_in(S)
        assert running is not None
        model.waiting.clear()
        model.gate.set()
        await model.waiting.wait()
        assert "".join(getattr(delta, "text", "") for delta in running.draft.deltas) in {"", "New."}
        assert (await ticket.result()).text == "New."


async def test_given_that_hangs_is_left_when_the_host_closes() -> None:
    """Its row is given back in order, and costs no attempt."""
    begun = asyncio.Event()

    async def given(key: Any, input: Any) -> Given[Any]:
        begun.set()
        await asyncio.Event().wait()
        return Given()

    async with hosted(Agent(ScriptedModel()), given=given) as host:
        ticket = await host.send("s", "Hi")
        await begun.wait()
        async with asyncio.timeout(5):
            await host.close(drain_s=0.01)
        with pytest.raises(UsageError):
            await ticket.result()
        (row,) = await host.store.rows("in")
        assert (row.owner, row.attempt - row.clean) == ("", 0)


async def test_a_model_that_hangs_is_left_when_the_host_closes() -> None:
    """The next host on the store takes the input."""
    effects, model = FakeEffects(), Halting(("So", WAIT), ("Hello.",))
    store = MemoryStore(clock=effects.now)
    async with hosted(Agent(model), effects=effects, store=store) as host:
        await host.send("s", "Hi")
        await model.waiting.wait()
        async with asyncio.timeout(5):
            await host.close(drain_s=0.01)
    async with hosted(Agent(model), effects=effects, store=store) as host:
        host._desk.start()
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))
        assert "turn.interrupted" not in await kinds(host)


async def test_a_host_that_closes_at_once_gives_back_what_it_had_not_begun() -> None:
    """An input that was leased a moment ago does not wait for its lease to end."""
    effects, model = FakeEffects(), ScriptedModel("Never.")
    store = MemoryStore(clock=effects.now)
    async with hosted(Agent(model), effects=effects, store=store) as host:
        await host.send("s", "Hi")
        await host.close(drain_s=0)
    (row,) = await store.rows("in")
    assert (row.owner, row.attempt - row.clean, model.requests) == ("", 0, [])


async def test_an_interruption_of_a_turn_that_is_taken_anew_is_not_lost() -> None:
    """Between two takes of one row nobody is told that it is too late."""
    model = Halting((WAIT, "Old."), ("New.", WAIT))
    begun, go = asyncio.Event(), asyncio.Event()
    calls = list[int]()

    async def given(key: Any, input: Any) -> Given[Any]:
        calls.append(1)
        if len(calls) == 2:
            begun.set()
            await go.wait()
        return Given()

    async with hosted(Agent(model), given=given) as host:
        session = await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
        ticket = await host.send("s", "And?")
        await model.waiting.wait()
        await host.store.commit((await Agent(ScriptedModel("Beside.")).turn("Meanwhile", session=session)).change())
        model.gate.set()
        await begun.wait()
        interrupting = asyncio.ensure_future(host.interrupt("s", Interruption(id="i1")))
        await asyncio.sleep(0)
        go.set()
        assert await interrupting == "recorded"
        assert (await ticket.result()).status == "interrupted"
