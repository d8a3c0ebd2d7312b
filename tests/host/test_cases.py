"""Cases of the specification whose promise a host keeps; `test_case_table` says where the others stand.

From ``conversation-chat-cases.md`` F (queue, cancellation), ``loop-cases.md`` G and N (hosting), ``flows-cases.md``
H, O and P (replay, races) as far as they need no flows.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, Said, ToolContext, Woke, tool
from onrecord.conversation.inputs import Ask, Interruption, approved
from onrecord.conversation.messages import AssistantMessage
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.errors import SessionBusy, SessionConflict
from onrecord.session.memory_store import MemoryStore
from onrecord.session.store import Change
from onrecord.stores import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.director import Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, kinds, said, settled
from tests.turn.acting import Named
from tests.turn.acting import tool as made
from tests.turn.directing import Directed
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


# ---- the chat: queue and cancellation


async def test_f4_a_provider_that_hangs_holds_up_its_own_session_alone() -> None:
    """Another session is answered; a second message of the first waits (case F4)."""
    model = Halting((WAIT, "One."), ("Beside.",), ("Two.",))
    async with hosted(Agent(model)) as host:
        first = await host.send("a", "1")
        await model.waiting.wait()
        second = await host.send("a", "2")
        assert (await host.turn("b", "Hi")).text == "Beside."
        assert not second.is_done
        model.gate.set()
        assert [(await ticket.result()).text for ticket in (first, second)] == ["One.", "Two."]


async def test_f7_a_message_that_is_stored_already_calls_no_model() -> None:
    """Its ticket is accepted under its key and resolves (case F7)."""
    model = ScriptedModel("Hello.")
    async with hosted(Agent(model)) as host:
        first = await host.send("s", Said("Hi", key="m1"))
        await first.result()
        again = await host.send("s", Said("Hi", key="m1"))
        assert again.key == first.key
        assert (await again.result()).changed is False
        assert len(model.requests) == 1


async def test_f8_a_cancelled_reply_is_kept_as_far_as_it_was_seen() -> None:
    """Marked, with the time at which it stopped, and it settles as interrupted (case F8)."""
    model = Halting(("reply", WAIT))
    said_once = Said("Hi", key="m")
    async with hosted(Agent(model)) as host, host.turn_stream("s", said_once) as stream:
        text = stream.text
        assert await anext(text) == "reply"
        await model.waiting.wait()
        assert await (await host.send("s", said_once)).cancel()
        assert (await stream.result()).status == "interrupted"
        await text.aclose()
        session = await host.store.load("s")
        assert session is not None
        answer = session.conversation.messages[-1]
        assert isinstance(answer, AssistantMessage)
        assert (answer.text, answer.interrupted is not None, answer.completed_at is not None) == ("reply", True, True)
        assert "turn.closed" not in await kinds(host)


async def test_f9_a_session_that_is_erased_in_mid_stream_stores_nothing() -> None:
    """Not even what was seen, and no hook runs after it (case F9)."""
    model, settles = Halting(("So far", WAIT)), list[str]()

    async def settle(turn: Turn) -> None:
        settles.append(turn.id)

    agent = Agent(model, features=[Named("late", Hooks(on_settle=settle))])
    async with hosted(agent) as host, host.turn_stream("s", "Hi") as stream:
        text = stream.text
        assert await anext(text) == "So far"
        await host.erase("s", why="deleted")
        assert (await stream.result()).changed is False
        await text.aclose()
        assert (await said(host), settles, await host.pending("s")) == ([], [], [])


async def test_f11_an_empty_answer_is_silence() -> None:
    """No answer is stored and nothing is delivered; an answer that only called a tool is stored (case F11)."""
    sent = list[str]()

    async def deliver(session: Any, message: Any) -> None:
        sent.append(message.text)

    model = ScriptedModel("", call("lookup"), "")
    async with hosted(Agent(model, tools=[made()]), deliver=deliver) as host:
        await host.turn("s", "Hi")
        assert await said(host) == ["Hi"]
        await host.turn("s", "Look")
        await host.work(once=True)
        held = await host.store.load("s")
        assert held is not None
        answers = [m for m in held.conversation.messages if isinstance(m, AssistantMessage)]
        assert ([len(m.rounds) > 0 for m in answers], sent) == ([True], [])


async def test_f18_stopping_another_turn_leaves_the_running_one_alone() -> None:
    """It is unknown, and the reply goes on (case F18)."""
    model = Halting((WAIT, "Whole."))
    async with hosted(Agent(model)) as host:
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        stopping = asyncio.ensure_future(host.interrupt("s", Interruption(id="i", turn="s:said::other~9")))
        await asyncio.sleep(0.01)
        model.gate.set()
        assert (await ticket.result()).text == "Whole."
        assert await stopping == "unknown"


# ---- the loop: pausing and hosting


@tool
async def pay(ctx: ToolContext[Any]) -> str:
    """Pays."""
    return "paid" if (await ctx.ask(Ask("Pay?"))).approved else "not paid"


async def test_g81_an_answer_is_taken_once() -> None:
    """What comes for the same question afterwards is stale, and runs nothing (case 81: a message holds)."""
    model = ScriptedModel(call("pay"), "Done.")
    async with hosted(Agent(model, tools=[pay])) as host:
        paused = await host.turn("s", "Pay")
        assert paused.question is not None
        yes = approved(paused.question, by="ana")
        assert (await host.answer("s", yes)).text == "Done."
        again = await host.answer("s", yes)
        assert (again.status, again.lines[0].code, len(model.requests)) == ("ignored", "stale-answer", 2)


async def test_g82_another_process_goes_on_where_a_turn_paused(tmp_path: Path) -> None:
    """A new store over the file, a new agent built alike, a new host (case 82)."""

    def agent(*replies: Any) -> Agent[Any, Any]:
        return Agent(ScriptedModel(*replies), tools=[pay])

    effects = FakeEffects()
    path = tmp_path / "x.db"
    async with (
        SqliteStore(path, clock=effects.now) as store,
        hosted(agent(call("pay")), store=store, effects=effects) as host,
    ):
        question = (await host.turn("s", "Pay")).question
    assert question is not None
    async with (
        SqliteStore(path, clock=effects.now) as store,
        hosted(agent("Done."), store=store, effects=effects) as host,
    ):
        assert (await host.answer("s", approved(question, by="ana"))).text == "Done."


async def test_170_who_asked_is_told_after_the_commit() -> None:
    """When the result comes, the store has the turn, and its messages are in the outbox (case 170)."""
    order = list[str]()

    class Told(MemoryStore):
        async def commit(self, change: Change, /) -> Any:
            await asyncio.sleep(0.01)
            stored = await super().commit(change)
            order.append("stored")
            return stored

    effects = FakeEffects()
    async with hosted(Agent(ScriptedModel("Hello.")), store=Told(clock=effects.now), effects=effects) as host:
        result = await host.turn("s", "Hi")
        order.append("told")
        assert (order, result.session) == (["stored", "told"], await host.store.load("s"))


async def test_171_a_second_message_is_refused_or_reads_the_first() -> None:
    """``reject`` is told at once, ``queue`` sees the stored history; another session is never refused (case 171)."""
    model = Halting((WAIT, "One."), ("Beside.",), ("Two.",))
    async with hosted(Agent(model)) as host:
        first = await host.send("a", "1")
        await model.waiting.wait()
        with pytest.raises(SessionBusy):
            await host.turn("a", "no", busy="reject")
        second = await host.send("a", "2", busy="queue")
        assert (await host.turn("b", "Hi", busy="reject")).text == "Beside."
        model.gate.set()
        await first.result()
        result = await second.result()
        assert result.base is not None
        assert [getattr(m, "text", "") for m in result.base.conversation.messages] == ["1", "One."]


# ---- flows: replay, races, stores


async def test_h9_a_wake_for_nobody_leaves_nothing() -> None:
    """What its director ignores makes no session, and its row is gone (case H9: the line is the director's)."""

    async def direct(turn: Turn, stage: Stage) -> None:
        turn.ignore(Outcome(kind="wake", status="ignored", code="no-session", key=turn.key))

    async with hosted(Agent(ScriptedModel(), director=Directed(direct))) as host:
        result = await host.turn("s", Woke("w"))
        assert (result.changed, result.lines[0].code) == (False, "no-session")
        assert (await host.store.load("s"), await host.pending("s")) == (None, [])


async def test_h10_a_wake_and_a_message_that_race_are_two_turns_one_after_the_other() -> None:
    """In a host neither loses: whoever is second reads the first (case H10)."""
    effects, texts, gate = FakeEffects(), list[list[str]](), asyncio.Event()

    async def direct(turn: Turn, stage: Stage) -> None:
        texts.append([getattr(m, "text", "") for m in turn.session.conversation.messages])
        if isinstance(turn.input, Woke):
            await gate.wait()
            await stage.say("Still there?", key="nudge")
        elif not texts[1:]:
            stage.arm(Wake(key="w", at=turn.now + timedelta(hours=1)))

    async with hosted(Agent(ScriptedModel(), director=Directed(direct)), effects=effects) as host:
        await host.turn("s", "Hi")
        effects.advance(hours=1)
        await settled(lambda: len(texts) == 2)
        message = await host.send("s", "Yes")
        gate.set()
        session = (await message.result()).session
        assert (texts[2], session and session.version) == (["Hi", "Still there?"], 3)


async def test_h10_who_saves_by_hand_and_loses_replays_the_same_input() -> None:
    """The loser learns both versions; taken again from the newer session its turn is stored (case H10)."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("Hello.", "Wake.", "Lost.", "Kept."))
    store = MemoryStore()
    first = await store.commit((await agent.turn("Hi", session="s")).change())
    woke = await store.commit((await agent.turn(Woke("w"), session=first)).change())
    lost = await agent.turn(Said("Yes", key="m"), session=first)
    with pytest.raises(SessionConflict) as told:
        await store.commit(lost.change())
    assert (told.value.expected, told.value.found) == (1, 2)
    kept = await store.commit((await agent.turn(Said("Yes", key="m"), session=woke)).change())
    assert kept.version == 3


async def test_o1_a_streamed_turn_ends_with_what_a_turn_returns() -> None:
    """Same messages, entries and state (case O1)."""

    async def streamed(host: Any) -> Any:
        stream = host.turn_stream("s", Said("Hi", key="m"))
        async with stream:
            return await stream.result()

    results = list[Any]()
    for take in (streamed, lambda host: host.turn("s", Said("Hi", key="m"))):
        async with hosted(Agent(ScriptedModel(["Hel", "lo."]))) as host:
            results.append(await take(host))
    assert results[0].messages == results[1].messages
    assert results[0].session == results[1].session
    assert results[0].entries == results[1].entries
