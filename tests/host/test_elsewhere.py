"""A ticket's result when another process took the turn: told from the record, as far as the record tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from onrecord import Agent, Said, SessionKey, tool
from onrecord.conversation.inputs import Ask, Interruption, approved
from onrecord.conversation.outgoing import Wake
from onrecord.errors import ModelError, TurnParked
from onrecord.host import Host
from onrecord.record.entry import Entry
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, said, settled
from tests.turn.directing import Directed
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


@asynccontextmanager
async def full(store: Any = None, **more: Any) -> Any:
    """A host with no room for another turn: what it accepts is left to others."""
    model = Halting((WAIT, "Done."))
    async with hosted(Agent(model), turns=1, store=store, **more) as host:
        await host.send("other", "Hi")
        await model.waiting.wait()
        yield host


async def taken_by(host: Host[Any, Any], agent: Agent[Any, Any], input: Any = "Hi", **more: Any) -> Any:
    """The result that the full host tells of an input which another host takes."""
    ticket = await host.send("s", input)
    async with hosted(agent, store=host.store, **more) as other, other:
        return await ticket.result()


async def test_what_was_said_comes_with_its_keys() -> None:
    """Status, text, messages, entries and session are those of the one who took it."""
    async with full() as host:
        result = await taken_by(host, Agent(ScriptedModel("Hello.")))
        assert (result.status, result.text, result.llm_calls) == ("answered", "Hello.", 1)
        assert result.messages[0].key.endswith("/answer")
        assert result.session == await host.store.load("s")
        assert [entry.seq for entry in result.entries] == list(range(len(result.entries)))


async def test_wakes_come_as_the_turn_left_them() -> None:
    """One that it withdrew again is none; one of another session under that key is."""

    async def direct(turn: Turn, stage: Stage) -> None:
        at = turn.now + timedelta(minutes=5)
        stage.arm(Wake(key="tea", at=at))
        stage.arm(Wake(key="tea", at=at, session=SessionKey("t")))
        stage.arm(Wake(key="eggs", at=at))
        stage.disarm("tea")

    async with full() as host:
        result = await taken_by(host, Agent(ScriptedModel(), director=Directed(direct)))
        assert [(wake.key, wake.session) for wake in result.wakes] == [("tea", SessionKey("t")), ("eggs", None)]
        assert [row.key for row in await host.pending("s")] == ["woke::eggs"]
        assert [row.key for row in await host.pending("t")] == ["woke::tea"]


async def test_a_turn_that_paused_comes_with_its_question() -> None:
    """And the answer's ticket with the end of the turn that had asked."""

    @tool
    def pay() -> Ask:
        """Pays."""
        return Ask("Pay?")

    agent = Agent(ScriptedModel(call("pay"), "Paid."), tools=[pay])
    async with full() as host:
        paused = await taken_by(host, agent)
        assert (paused.status, paused.question.text) == ("paused", "Pay?")
        done = await taken_by(host, agent, approved(paused.question, by="ana"))
        assert (done.status, done.text) == ("answered", "Paid.")
        assert done.entries[0].turn == paused.entries[0].turn


@pytest.mark.parametrize("key", ["m2", None])
async def test_a_message_that_counts_as_an_answer_comes_with_the_turn_that_had_asked(key: str | None) -> None:
    """With the channel's id and without one; to the sender it is no different from an answer."""

    @tool
    def name() -> Ask:
        """Asks."""
        return Ask("Your name?", on_message="answer")

    agent = Agent(ScriptedModel(call("name"), "Hello Ana."), tools=[name])
    async with full() as host:
        await taken_by(host, agent, Said("Hi", key="m1"))
        done = await taken_by(host, agent, Said("Ana", key=key))
        assert (done.status, done.text) == ("answered", "Hello Ana.")


async def test_a_turn_that_failed_says_so() -> None:
    """Its error was told where it ran; here its status is."""
    async with full() as host:
        result = await taken_by(host, Agent(ScriptedModel(raises("overload"))), retry=())
        assert (result.status, result.text) == ("failed", "")


async def test_a_turn_set_aside_elsewhere_is_told_as_that() -> None:
    """With the reason."""
    async with full() as host:
        with pytest.raises(TurnParked) as told:
            await taken_by(host, Agent(ScriptedModel(raises("content"))))
        assert told.value.why == "model-content"


async def test_an_input_that_changed_nothing_is_ignored() -> None:
    """Also where it had been taken before."""
    async with full() as host:
        first = await taken_by(host, Agent(ScriptedModel("Hello.")), Said("Hi", key="m"))
        again = await taken_by(host, Agent(ScriptedModel()), Said("Hi", key="m"))
        assert (first.status, again.status, again.changed) == ("answered", "ignored", False)


async def test_who_sends_again_what_was_just_taken_elsewhere_leaves_the_first_ticket_its_result() -> None:
    """The second is a row of its own, and ignored; the first is told what became of it."""
    model = Halting((WAIT, "Done."))
    async with hosted(Agent(model), turns=1, poll_s=0.3) as host:
        busy = await host.send("other", "Hi")
        await model.waiting.wait()
        first = await host.send("s", Said("Hi", key="m"))
        async with hosted(Agent(ScriptedModel("Hello.")), store=host.store) as other, other:
            await other.work(once=True)
        model.gate.set()
        await busy.result()
        again = await host.send("s", Said("Hi", key="m"))
        assert ((await first.result()).text, (await again.result()).status) == ("Hello.", "ignored")


async def test_a_turn_that_runs_elsewhere_is_interrupted_there() -> None:
    """Its row is marked, the heartbeat of its host sees that, and the call waits for the commit."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model), lease_s=0.15) as there, hosted(Agent(ScriptedModel()), store=there.store) as here:
        stream = there.turn_stream("s", "Hi")
        async with stream:
            await model.waiting.wait()
            assert await here.interrupt("s", Interruption(id="i1")) == "recorded"
            assert (await stream.result()).status == "interrupted"
        assert await said(here) == ["Hi", "So far"]


async def test_a_message_that_waits_elsewhere_is_taken_back_there() -> None:
    """Nobody takes it, and its ticket says so."""
    async with full() as host:
        ticket = await host.send("s", "Hi")
        assert await host.store.cancel("in", ticket.session) == 1
        assert (await ticket.result()).lines[0].code == "not-taken"


async def test_who_sent_a_failing_input_is_told_by_the_host_that_tries() -> None:
    """The sender elsewhere waits on: the row is due again, and its end is what counts."""
    async with full() as host:
        ticket = await host.send("s", "Hi")
        agent = Agent(ScriptedModel(raises("overload"), "Back."))
        async with hosted(agent, store=host.store, retry=[0.0]) as other, other:
            assert (await ticket.result()).text == "Back."


class Reading(MemoryStore):
    """Counts the entries that are read."""

    count = 0

    async def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        async for entry in super().entries(key, after=after):
            self.count += 1
            yield entry


async def test_of_a_long_talk_only_the_turn_is_read() -> None:
    """A process that accepts and leaves the turns to others costs no more for a history."""
    store, counts = Reading(clock=FakeEffects().now), list[int]()
    async with full(store) as host, hosted(Agent(ScriptedModel(*["x"] * 5)), store=store) as other, other:
        for number in range(5):
            before = store.count
            await (await host.send("s", str(number))).result()
            counts.append(store.count - before)
    assert counts == [counts[0]] * 5


async def test_two_hosts_share_the_sessions_of_a_store() -> None:
    """Each session is with one of them at a time, whoever sent; nothing is taken twice."""
    agents = [Agent(ScriptedModel(*["x"] * 40)) for _ in range(2)]
    async with hosted(agents[0]) as one, hosted(agents[1], store=one.store) as two:
        tickets = []
        for number in range(20):
            for name in ("a", "b"):
                host = (one, two)[number % 2]
                tickets.append(await host.send(name, Said(f"{name}{number}", key=str(number))))
        results = [await ticket.result() for ticket in tickets]
        assert {r.status for r in results} == {"answered"}
        for name in ("a", "b"):
            texts = [text for text in await said(one, name) if text != "x"]
            assert texts == [f"{name}{number}" for number in range(20)]
        await settled(lambda: is_done(one))


async def is_done(host: Any) -> bool:
    """Whether the inbox holds nothing."""
    found: list[Any] = await host.store.rows("in")
    return found == []


async def test_a_model_error_is_told_where_the_turn_ran() -> None:
    """The host that took it may have sent it as well."""
    async with hosted(Agent(ScriptedModel(raises("overload")))) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "Hi")


async def test_a_closed_turn_that_is_cut_elsewhere_is_cut() -> None:
    """Whoever files it, the caller is told that it is recorded; of one that came before that it was seen."""
    async with full() as host:
        turn = (await taken_by(host, Agent(ScriptedModel("Hello there.")))).entries[0].turn
        told = [
            asyncio.create_task(host.interrupt("s", Interruption(id=id, turn=of, heard=5)))
            for id, of in (("i1", turn), ("i2", f"{turn}0"))
        ]
        await settled(lambda: row_waits(host, "interruption::i2"))
        async with hosted(Agent(ScriptedModel()), store=host.store) as other, other:
            assert [await one for one in told] == ["recorded", "unknown"]


async def test_a_history_that_is_changed_elsewhere_is_changed() -> None:
    """With the entries that say so."""
    async with full() as host:
        first = await taken_by(host, Agent(ScriptedModel("Hello.")))
        change = asyncio.create_task(host.remove("s", first.session.conversation.messages[0].id, by="ana"))
        await settled(lambda: row_waits(host, "history"))
        async with hosted(Agent(ScriptedModel()), store=host.store) as other, other:
            done = await change
        assert (done.status, done.changed, done.lines) == ("silent", True, ())
        assert await said(host) == ["Hello."]


async def test_a_message_that_was_taken_as_the_answer_comes_with_what_it_led_to() -> None:
    """It has no turn of its own, but is what the paused one went on with; whether or not its channel gave it an id."""

    @tool
    def pay() -> Ask:
        """Pays."""
        return Ask("Pay?", on_message="answer")

    for key in (None, "m2"):
        agent = Agent(ScriptedModel(call("pay"), "Paid."), tools=[pay])
        async with full() as host:
            paused = await taken_by(host, agent)
            done = await taken_by(host, agent, Said("yes", key=key))
            assert (done.status, done.text, done.lines) == ("answered", "Paid.", ())
            assert done.entries[0].turn == paused.entries[0].turn


async def row_waits(host: Host[Any, Any], kind: str) -> bool:
    """Whether a row of this kind waits in the inbox."""
    return any(row.key.startswith(kind) for row in await host.pending("s"))
