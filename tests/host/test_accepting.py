"""What a host does with inputs: accepted once, taken in order, one turn at a time in a session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord import Agent, Happened, Host, Said, Started
from onrecord.errors import ConfigurationError, SessionBusy, UsageError
from onrecord.testing import ScriptedModel
from tests.host.hosting import hosted, kinds, said, settled
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


async def test_a_turn_is_taken_and_stored() -> None:
    """The result holds the session as the store has it, and the row is gone."""
    async with hosted(Agent(ScriptedModel("Hello.", "Again."))) as host:
        first = await host.turn("s", "Hi")
        second = await host.turn("s", "And?")
        assert (first.text, second.text) == ("Hello.", "Again.")
        assert second.session is not None
        assert second.session.version == 2
        assert await host.store.load("s") == second.session
        assert await host.pending("s") == []


async def test_messages_of_a_session_are_taken_in_the_order_they_came() -> None:
    """Three sent at once make three turns, one after another."""
    async with hosted(Agent(ScriptedModel("1", "2", "3"))) as host:
        tickets = [await host.send("s", Said(text, key=text)) for text in "abc"]
        results = [await ticket.result() for ticket in tickets]
        assert [r.text for r in results] == ["1", "2", "3"]
        assert await said(host) == ["a", "1", "b", "2", "c", "3"]


async def test_sessions_do_not_wait_for_each_other() -> None:
    """A provider that answers nobody in one session leaves the others alone."""
    model = Halting((WAIT, "Late."), ("Quick.",))
    async with hosted(Agent(model)) as host:
        slow = await host.send("a", "Hi")
        await model.waiting.wait()
        assert (await host.turn("b", "Hi")).text == "Quick."
        model.gate.set()
        assert (await slow.result()).text == "Late."


async def test_a_message_sent_twice_is_one_turn() -> None:
    """While it waits both tickets are of one row; afterwards the session knows its key."""
    model = Halting((WAIT, "Once."))
    async with hosted(Agent(model)) as host:
        first = await host.send("s", Said("Hi", key="m1"))
        await model.waiting.wait()
        again = await host.send("s", Said("Hi", key="m1"))
        assert (first.is_new, again.is_new) == (True, False)
        model.gate.set()
        assert (await first.result()).text == (await again.result()).text == "Once."
        later = await host.turn("s", Said("Hi", key="m1"))
        assert (later.status, later.lines[0].code) == ("ignored", "duplicate-input")
        assert await said(host) == ["Hi", "Once."]


async def test_events_with_one_key_are_one_turn() -> None:
    """An event that is sent again while its row waits is accepted once."""
    async with hosted(Agent(ScriptedModel("Noted."))) as host:
        sent = [await host.send("s", Happened("paid", key="e1")) for _ in range(3)]
        assert {ticket.number for ticket in sent} == {1}
        await sent[0].result()
        assert (await kinds(host)).count("turn.opened") == 1


async def test_a_busy_session_refuses_where_it_was_asked_to() -> None:
    """``reject`` names the session, and nothing is accepted."""
    model = Halting((WAIT, "Done."))
    async with hosted(Agent(model)) as host:
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        with pytest.raises(SessionBusy) as told:
            await host.send("s", "Me too", busy="reject")
        assert "'s'" in str(told.value)
        model.gate.set()
        await ticket.result()
        assert await host.pending("s") == []


async def test_a_message_supersedes_the_ones_before_it() -> None:
    """The running one ends interrupted, the waiting one is admitted unanswered; the new one reads both."""
    model = Halting(("So far", WAIT), ("Only this.",))
    async with hosted(Agent(model), lease_s=3600) as host:  # at once, and not when its lease is next renewed
        running = await host.send("s", "One")
        await model.waiting.wait()
        waiting = await host.send("s", "Two")
        last = await host.turn("s", "Three", busy="supersede")
        assert (await running.result()).status == (await waiting.result()).status == "interrupted"
        assert last.text == "Only this."
        assert await said(host) == ["One", "Two", "Three", "Only this."]


async def test_events_are_not_superseded() -> None:
    """What happened would be lost with its row."""
    model = Halting((WAIT, "Noted."), ("Yes.",))
    async with hosted(Agent(model)) as host:
        event = await host.send("s", Happened("paid", key="e1"))
        await model.waiting.wait()
        message = await host.send("s", "Hi", busy="supersede")
        model.gate.set()
        assert (await event.result()).text == "Noted."
        assert (await message.result()).text == "Yes."


async def test_an_input_that_waits_can_be_taken_back() -> None:
    """Its row goes, and who waits for it is told; one that runs ends interrupted."""
    model = Halting((WAIT, "Never."))
    async with hosted(Agent(model)) as host:
        running = await host.send("s", "One")
        await model.waiting.wait()
        waiting = await host.send("s", "Two")
        assert await waiting.cancel()
        assert ((await waiting.result()).status, (await waiting.result()).lines[0].code) == ("ignored", "cancelled")
        assert await running.cancel()
        assert (await running.result()).status == "interrupted"
        assert await said(host) == ["One"]


async def test_an_old_ticket_takes_back_nothing_new() -> None:
    """What was sent later under the same key is another input."""
    model = Halting(("Once.",), (WAIT, "Twice."))
    async with hosted(Agent(model)) as host:
        first = await host.send("s", Started("tour", key="k"))
        await first.result()
        second = await host.send("s", Started("tour", key="k"))
        await model.waiting.wait()
        assert not await first.cancel()
        third = await host.send("s", Started("tour", key="l"))
        assert await third.cancel()
        model.gate.set()
        assert (await second.result()).text == "Twice."
        assert not await third.cancel()


async def test_a_policy_that_nobody_knows_is_refused() -> None:
    """Before anything is accepted."""
    async with hosted(Agent(ScriptedModel())) as host:
        with pytest.raises(UsageError, match="'drop'"):
            await host.send("s", "Hi", busy="drop")  # type: ignore[arg-type]  # what is tested
        assert await host.pending("s") == []


async def test_cancel_pending_deletes_what_nobody_has_begun() -> None:
    """The running turn is not touched."""
    model = Halting((WAIT, "Done."))
    async with hosted(Agent(model)) as host:
        running = await host.send("s", "One")
        await model.waiting.wait()
        others = [await host.send("s", text) for text in ("Two", "Three")]
        assert await host.cancel_pending("s") == 2
        model.gate.set()
        assert (await running.result()).text == "Done."
        assert [(await ticket.result()).status for ticket in others] == ["ignored", "ignored"]


async def test_who_leaves_early_does_not_stop_the_turn() -> None:
    """The turn belongs to the host."""
    model = Halting((WAIT, "Still here."))
    async with hosted(Agent(model)) as host:
        asked = asyncio.ensure_future(host.turn("s", "Hi"))
        await model.waiting.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        model.gate.set()
        await settled(lambda: said_is(host, ["Hi", "Still here."]))


async def said_is(host: object, texts: list[str]) -> bool:
    """Whether the session holds these texts."""
    return await said(host) == texts  # type: ignore[arg-type]  # any host


async def test_no_more_turns_run_at_once_than_was_said() -> None:
    """The others wait in their rows."""
    model = Halting((WAIT, "a"), ("b",), ("c",))
    async with hosted(Agent(model), turns=1) as host:
        tickets = [await host.send(name, "Hi") for name in "abc"]
        await model.waiting.wait()
        assert len(model.requests) == 1
        model.gate.set()
        assert sorted([(await ticket.result()).text for ticket in tickets]) == ["a", "b", "c"]


async def test_a_closed_host_accepts_nothing() -> None:
    """It says so, and what to do."""
    async with hosted(Agent(ScriptedModel())) as host:
        await host.close()
        await host.close()
        with pytest.raises(UsageError) as told:
            await host.send("s", "Hi")
        assert told.value.code == "host-closed"


async def test_what_waits_when_a_host_closes_is_taken_by_the_next() -> None:
    """The running turn is given back without an attempt held against it; nothing of it is stored twice."""
    model = Halting((WAIT, "Never."), ("Now.",), ("Then.",))
    async with hosted(Agent(model)) as host:
        running = await host.send("s", Said("One", key="1"))
        await model.waiting.wait()
        waiting = await host.send("s", Said("Two", key="2"))
        await host.close(drain_s=0)
        for ticket in (running, waiting):
            with pytest.raises(UsageError) as told:
                await ticket.result()
            assert told.value.code == "host-closed"
        async with hosted(Agent(model), store=host.store) as other:
            await other.send("s", Said("Two", key="2"))
            await settled(lambda: said_is(other, ["One", "Now.", "Two", "Then."]))


def plain(session: object, about: object) -> None:
    """A function that nobody can await."""


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"agent": "offline"}, "a host runs an Agent, not str"),
        ({"store": "talk.db"}, "in a store, not in str"),
        ({"given": plain}, "given= of a host is no async function"),
        ({"deliver": plain}, "deliver= of a host is no async function"),
        ({"deliver": "module:send"}, "deliver= of a host is no async function"),
    ],
)
def test_what_cannot_be_a_part_of_a_host_is_refused_when_it_is_made(parts: dict[str, Any], told: str) -> None:
    """Not by the first turn, whose row would be set aside, nor by the first message, tried again for hours."""
    with pytest.raises(ConfigurationError, match=told) as refused:
        Host(**{"agent": Agent(ScriptedModel()), **parts})
    assert refused.value.hint


async def test_a_channel_may_be_any_object_whose_call_can_be_awaited() -> None:
    """A lambda before an async function, as well as an object."""
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message.text)

    async with hosted(Agent(ScriptedModel("Yes.")), deliver=lambda _, message: send(message)) as host:
        await host.turn("s", "Hello?")
        await host.work(once=True)
    assert sent == ["Yes."]
