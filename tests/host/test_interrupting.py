"""Interrupting through a host: what is meant is stopped, nothing else, and the caller learns which it was."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord import Agent, Said, ToolContext, TurnError, tool
from onrecord.conversation.inputs import Ask, Interruption, approved
from onrecord.conversation.outgoing import Wake
from onrecord.host import Given
from onrecord.testing import ScriptedModel, call
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, kinds, said, settled
from tests.turn.directing import Directed
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


async def test_a_running_turn_is_interrupted_and_keeps_what_was_read() -> None:
    """The call returns once it is stored; the same interruption again was seen."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model)) as host:
        stream = host.turn_stream("s", "Hi")
        async with stream:
            await model.waiting.wait()
            assert await host.interrupt("s", Interruption(id="i1", cause="barge-in")) == "recorded"
            result = await stream.result()
        assert result.status == "interrupted"
        assert await said(host) == ["Hi", "So far"]
        assert await host.interrupt("s", Interruption(id="i1")) == "seen"


async def test_a_closed_turn_is_cut_where_it_was_heard() -> None:
    """A late interruption is a take of one entry; of a turn nobody knows nothing is stored."""
    async with hosted(Agent(ScriptedModel("A long answer."))) as host:
        result = await host.turn("s", "Hi")
        cut = Interruption(id="i1", turn=result.entries[0].turn, cause="barge-in", heard=6)
        assert await host.interrupt("s", cut) == "recorded"
        assert await host.interrupt("s", cut) == "seen"
        assert await host.interrupt("s", replace(cut, id="i2", turn="nobody")) == "unknown"
        session = await host.store.load("s")
        assert session is not None
        assert (session.conversation.messages[-1].heard, session.version) == (6, 2)  # type: ignore[union-attr]  # an answer


async def test_a_late_word_on_a_closed_turn_leaves_the_one_that_begins_alone() -> None:
    """The new message has been leased and has not opened its turn: the interruption is of another one."""
    held, asked = asyncio.Event(), asyncio.Event()

    async def given(key: Any, input: Any) -> Given[Any]:
        if isinstance(input, Said) and input.content == "Two":
            asked.set()
            await held.wait()
        return Given()

    async with hosted(Agent(ScriptedModel("A long answer.", "Whole.")), given=given) as host:
        first = await host.turn("s", "One")
        second = await host.send("s", "Two")
        await asked.wait()
        cut = Interruption(id="i1", turn=first.entries[0].turn, cause="barge-in", heard=6)
        late = asyncio.ensure_future(host.interrupt("s", cut))
        await asyncio.sleep(0.01)
        held.set()
        assert (await second.result()).status == "answered"
        assert await late == "recorded"
        session = await host.store.load("s")
        assert session is not None
        assert session.conversation.messages[1].heard == 6  # type: ignore[union-attr]  # the first answer


async def test_one_interruption_sent_twice_stops_one_turn_and_is_seen() -> None:
    """Both calls wait for the commit; the second is told that it was known."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model)) as host:
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        told = await asyncio.gather(*(host.interrupt("s", Interruption(id="i1")) for _ in range(2)))
        assert told == ["recorded", "seen"]
        assert (await ticket.result()).status == "interrupted"


async def test_what_was_seen_is_seen_while_another_turn_runs() -> None:
    """It stops nothing."""
    model = Halting(("One.",), (WAIT, "Two."))
    async with hosted(Agent(model)) as host:
        first = await host.turn("s", "1")
        cut = Interruption(id="i1", turn=first.entries[0].turn, heard=1)
        assert await host.interrupt("s", cut) == "recorded"
        second = await host.send("s", "2")
        await model.waiting.wait()
        assert await host.interrupt("s", cut) == "seen"
        model.gate.set()
        assert (await second.result()).text == "Two."


async def test_a_turn_that_runs_elsewhere_is_recorded_as_interrupted() -> None:
    """Who asks again, wherever, is told that it was seen."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model), lease_s=0.15) as there, hosted(Agent(ScriptedModel()), store=there.store) as here:
        ticket = await there.send("s", "Hi")
        await model.waiting.wait()
        assert await here.interrupt("s", Interruption(id="i1")) == "recorded"
        assert await here.interrupt("s", Interruption(id="i1")) == "seen"
        assert (await ticket.result()).status == "interrupted"


async def test_what_waits_behind_a_turn_that_is_stopped_elsewhere_is_taken() -> None:
    """The interruption was of the turn that ran when it came, and of no later one."""
    model = Halting(("So far", WAIT), (WAIT, "Next."))
    async with hosted(Agent(model), lease_s=0.15) as there, hosted(Agent(ScriptedModel()), store=there.store) as here:
        ticket = await there.send("s", "One")
        await model.waiting.wait()
        behind = await there.send("s", "Two")
        assert await here.interrupt("s", Interruption(id="i1")) == "recorded"
        assert (await ticket.result()).status == "interrupted"
        await settled(lambda: len(model.requests) == 2)
        model.gate.set()
        assert (await behind.result()).text == "Next."


@pytest.mark.parametrize("how", ["interrupted", "failed"])
async def test_a_turn_that_breaks_off_sends_nothing_and_arms_nothing(how: str) -> None:
    """Its entries say what it meant to; no row comes of them, and none goes."""
    sent, model = list[str](), Halting((WAIT,))

    async def deliver(session: Any, message: Any) -> None:
        sent.append(message.text)

    async def direct(turn: Turn, stage: Stage) -> None:
        at = turn.now + timedelta(minutes=5)
        if isinstance(turn.input, Said) and turn.input.content == "Later":
            stage.arm(Wake(key="old", at=at))
            return
        await stage.say("One moment.", key="moment")
        stage.arm(Wake(key="new", at=at))
        stage.disarm("old")
        if how == "failed":
            raise ZeroDivisionError
        await stage.speak(turn.spec.brief)

    async with hosted(Agent(model, director=Directed(direct)), deliver=deliver) as host:
        await host.turn("s", "Later")
        ticket = await host.send("s", "Hi")
        if how == "failed":
            with pytest.raises(TurnError):
                await ticket.result()
        else:
            await model.waiting.wait()
            await host.interrupt("s", Interruption(id="i1"))
            assert (await ticket.result()).status == how
        assert (await kinds(host))[-1] == f"turn.{how}"
        assert [row.key for row in await host.pending("s")] == ["woke::old"]
        assert (sent, await host.store.rows("out")) == ([], [])


async def test_an_interruption_outlives_a_conflict() -> None:
    """The take is begun anew because its session changed; that it was to stop still holds."""
    model = Halting((WAIT, "Old."), ("New.",))
    async with hosted(Agent(model)) as host:
        session = await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
        ticket = await host.send("s", "And?")
        await model.waiting.wait()
        await host.store.commit((await Agent(ScriptedModel("Beside.")).turn("Meanwhile", session=session)).change())
        assert await host.interrupt("s", Interruption(id="i1")) == "recorded"
        assert (await ticket.result()).status == "interrupted"
        assert len(model.requests) == 1


@tool
async def pay(ctx: ToolContext[Any]) -> str:
    """Pays."""
    return "paid" if (await ctx.ask(Ask("Pay?"))).approved else "not paid"


@pytest.mark.parametrize("is_here", [True, False])
async def test_a_turn_that_was_answered_is_stopped_under_its_own_name(is_here: bool) -> None:
    """Its row is the answer's, its name that of the message it began with."""
    model = Halting((call("pay"),), ("So far", WAIT))
    async with (
        hosted(Agent(model, tools=[pay]), lease_s=0.15) as there,
        hosted(Agent(ScriptedModel()), store=there.store) as other,
    ):
        paused = await there.turn("s", "Pay")
        assert paused.question is not None
        ticket = await there.send("s", approved(paused.question, by="ana"))
        await model.waiting.wait()
        host = there if is_here else other
        assert await host.interrupt("s", Interruption(id="i1", turn=paused.entries[0].turn)) == "recorded"
        assert (await ticket.result()).status == "interrupted"
        assert (await said(there))[0] == "Pay"
