"""What each end of a turn leaves behind: in the store, in the inbox, and for who asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from onrecord import Agent, Deny, ModelError, Said, ToolContext, TurnError, on_input, tool
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Ask, approved
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import MessageDenied, StoreError, TurnParked, UsageError
from onrecord.host import Caller, Given
from onrecord.record.kinds import TurnFailed
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, kinds, said, settled, talk_is
from tests.turn.directing import Directed
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


async def rows(host: Any, box: Any = "in") -> list[Any]:
    """The rows of a box."""
    found: list[Any] = await host.store.rows(box)
    return found


async def test_a_model_that_failed_is_tried_again_after_a_while() -> None:
    """Nothing is stored, the sender learns of it, and the row is due again in a minute."""
    effects = FakeEffects()
    async with hosted(Agent(ScriptedModel(raises("overload"), "Back.")), effects=effects) as host:
        with pytest.raises(ModelError) as told:
            await host.turn("s", "Hi")
        assert told.value.result is None
        (row,) = await rows(host)
        assert (row.rung, row.due - effects.at) == (1, timedelta(seconds=60))
        assert await kinds(host) == []
        effects.advance(seconds=61)
        await settled(lambda: talk_is(host, ["Hi", "Back."]))


async def test_a_provider_that_says_when_is_not_asked_before() -> None:
    """Its wait is the floor of the next try, also for a new message that pulls it forward."""
    effects = FakeEffects()
    model = ScriptedModel(raises("rate", retry_after=600), "Both", "heard.")
    async with hosted(Agent(model), effects=effects) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "One")
        assert [row.due for row in await rows(host)] == [effects.at + timedelta(seconds=600)]
        await host.send("s", "Two")
        assert {row.due for row in await rows(host)} == {effects.at + timedelta(seconds=600)}
        effects.advance(seconds=601)
        await settled(lambda: talk_is(host, ["One", "Both", "Two", "heard."]))


@pytest.mark.parametrize("never", [1e20, float("inf"), float("nan")])
async def test_a_wait_that_is_no_instant_is_no_floor(never: float) -> None:
    """A model of an application may say anything: the row waits as after any failure, and nobody holds it."""
    effects = FakeEffects()
    async with hosted(Agent(ScriptedModel(raises("rate", retry_after=never), "Back.")), effects=effects) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "Hi")
        (row,) = await rows(host)
        assert (row.rung, row.due - effects.at, row.owner) == (1, timedelta(seconds=60), "")


async def test_a_new_message_pulls_a_waiting_one_forward_at_no_cost() -> None:
    """The provider is asked at once, and a failure climbs no rung."""
    effects = FakeEffects()
    model = ScriptedModel(raises("overload"), raises("overload"), "One.", "Two.")
    async with hosted(Agent(model), effects=effects) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "1")
        (first,) = await rows(host)
        await host.send("s", "2")
        await settled(lambda: len(model.requests) == 2)
        await settled(lambda: is_waiting(host, first.due))
        assert [row.rung for row in await rows(host)] == [1, 0]
        effects.advance(seconds=61)
        await settled(lambda: talk_is(host, ["1", "One.", "2", "Two."]))


async def is_waiting(host: Any, due: Any) -> bool:
    """Whether all rows are due then, and nobody has them."""
    return all(row.due == due and not row.owner for row in await rows(host))


async def test_a_turn_that_never_succeeds_is_set_aside() -> None:
    """Its row stays visible, its failure is in the record without its text, and the next message is taken."""
    effects = FakeEffects()
    model = ScriptedModel(raises("overload"), raises("overload"), "Yes.", "At last.")
    async with hosted(Agent(model), effects=effects, retry=[1.0]) as host:
        with pytest.raises(ModelError):
            await host.turn("s", Said("Hi", key="m"))
        effects.advance(seconds=2)
        await settled(lambda: has_parked(host))
        assert await kinds(host) == ["turn.failed"]
        assert (await host.turn("s", "Next")).text == "Yes."
        (row,) = await rows(host)
        assert row.dead == "retries-used-up"
        with pytest.raises(TurnParked):
            await host.turn("s", Said("Hi", key="m"))
        assert await host.store.revive("in", row.session) == 1
        await settled(lambda: talk_is(host, ["Next", "Yes.", "Hi", "At last."]))


async def has_parked(host: Any) -> bool:
    """Whether a row was set aside."""
    return any(row.dead for row in await rows(host))


@pytest.mark.parametrize("kind", ["invalid", "content", "context"])
async def test_an_input_that_no_wait_can_help_is_set_aside_at_once(kind: Any) -> None:
    """The person who wrote next is not kept waiting behind it."""
    async with hosted(Agent(ScriptedModel(raises(kind), "Fine."))) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "poison")
        assert [row.dead for row in await rows(host)] == [f"model-{kind}"]
        assert (await host.turn("s", "Hi")).text == "Fine."


async def test_a_turn_that_no_store_could_keep_is_set_aside() -> None:
    """It would not fit the next time either; the next message is taken."""

    async def direct(turn: Turn, stage: Stage) -> None:
        centuries = isinstance(turn.input, Said) and turn.input.content == "poison"
        await stage.say("Fine.", key="line", after_ms=10**13 if centuries else 0)

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        """Nothing is sent."""

    async with hosted(Agent(ScriptedModel(), director=Directed(direct)), deliver=deliver) as host:
        with pytest.raises(StoreError):
            await host.turn("s", "poison")
        assert [row.dead for row in await rows(host)] == ["store-row"]
        assert (await host.turn("s", "Hi")).text == "Fine."


async def test_without_retries_a_failure_is_the_end() -> None:
    """The message stays in the conversation, as in any turn that failed; no row is left."""
    async with hosted(Agent(ScriptedModel(raises("overload"))), retry=()) as host:
        with pytest.raises(ModelError) as told:
            await host.turn("s", "Hi")
        assert told.value.result is not None
        assert (await kinds(host))[-1] == "turn.failed"
        assert (await said(host), await rows(host)) == (["Hi"], [])


async def test_takes_that_nobody_heard_of_again_are_counted() -> None:
    """After six crashes the seventh lease parks the row, and no model is asked."""
    effects, model = FakeEffects(), ScriptedModel()
    store = MemoryStore(clock=effects.now)
    async with hosted(Agent(model), effects=effects, store=store) as host:
        await put(store, "Hi")
        for _ in range(6):
            assert len(await store.lease("in", "crashes", ttl=1)) == 1
            effects.advance(seconds=2)
        async with host:
            await settled(lambda: has_parked(host))
        assert [row.dead for row in await rows(host)] == ["out-of-attempts"]
        assert (await kinds(host), model.requests) == (["turn.failed"], [])


async def put(store: MemoryStore, text: str) -> Any:
    """A message accepted by somebody else."""
    from onrecord.conversation.identity import SessionKey
    from onrecord.session.inbox import Row

    return await store.put(Row(session=SessionKey("s"), box="in", key=f"said::{text}", body=Said(text, key=text)))


async def test_a_denied_message_leaves_its_verdict_and_no_row() -> None:
    """It raises, is stored as refused, and is not tried again."""

    @on_input
    async def never(turn: Turn, input: Any) -> Deny:
        return Deny("not today")

    async with hosted(Agent(ScriptedModel(), features=[never])) as host:
        with pytest.raises(MessageDenied):
            await host.turn("s", "Hi")
        assert (await kinds(host))[-2:] == ["verdict", "turn.failed"]
        assert await rows(host) == []


async def test_an_answer_resumes_the_turn_that_asked() -> None:
    """The question is stored with the session; the answer comes as any input, from whoever may give it."""

    @tool
    async def pay(ctx: ToolContext[Any], amount: int) -> Any:
        """Pays."""
        return "paid" if (await ctx.ask(Ask("Pay?", audience="approver"))).approved else "not paid"

    async with hosted(Agent(ScriptedModel(call("pay", amount=5), "Done."), tools=[pay])) as host:
        paused = await host.turn("s", "Pay 5")
        assert paused.question is not None
        yes = approved(paused.question, by="ana")
        for other in ({"caller": Caller("bob")}, {}):  # who is not named is the speaker
            with pytest.raises(UsageError) as told:
                await host.answer("s", yes, **other)
            assert told.value.code == "not-the-audience"
        done = await host.answer("s", yes, caller=Caller("ana", audiences=frozenset({"approver"})))
        assert (done.status, done.text) == ("answered", "Done.")
        again = await host.answer("s", yes)
        assert (again.status, again.lines[0].code) == ("ignored", "stale-answer")


async def test_an_answer_to_nothing_is_ignored() -> None:
    """Also where the session does not exist."""
    async with hosted(Agent(ScriptedModel())) as host:
        assert (await host.answer("s", Answered("x/q0", approved=True))).status == "ignored"
        assert await host.store.load("s") is None


async def test_what_a_turn_needs_comes_from_given_at_every_take() -> None:
    """Context for wakes and retries; what the sender gives wins."""
    effects, seen = FakeEffects(), list[Any]()

    @tool
    async def look(ctx: ToolContext[str]) -> str:
        """Looks."""
        seen.append(ctx.context)
        return "ok"

    async def given(key: Any, input: Any) -> Given[str]:
        return Given(context="from the host")

    model = ScriptedModel(call("look"), "a", call("look"), "b")
    async with hosted(Agent(model, tools=[look], context=str), effects=effects, given=given) as host:
        await host.turn("s", "1")
        await host.turn("s", "2", context="mine")
    assert seen == ["from the host", "mine"]


async def test_a_host_that_cannot_give_tries_again() -> None:
    """What `given` raises is told by its class, and costs a rung like a provider's failure."""
    effects, failing = FakeEffects(), [True]

    async def given(key: Any, input: Any) -> Given[str]:
        if failing.pop():
            raise OSError("database: secret words")
        return Given()

    async with hosted(Agent(ScriptedModel("Ok.")), effects=effects, given=given) as host:
        with pytest.raises(OSError, match="secret"):
            await host.turn("s", "Hi")
        failing.append(False)
        effects.advance(seconds=61)
        await settled(lambda: talk_is(host, ["Hi", "Ok."]))


async def test_history_is_changed_ahead_of_what_waits() -> None:
    """The next turn reads it changed; a change that does not fit is told, and leaves nothing."""
    model = Halting((WAIT, "One."), ("Two.",))
    async with hosted(Agent(model)) as host:
        first = await host.send("s", "1")
        await model.waiting.wait()
        second = await host.send("s", "2")
        user = "s:said::" + first.key.rsplit(":", 1)[-1]
        removing = asyncio.ensure_future(host.remove("s", f"{user}~{first.number}/u", by="ana"))
        await settled(lambda: counted(host, 3))
        model.gate.set()
        await removing
        assert (await second.result()).text == "Two."
        assert await said(host) == ["One.", "2", "Two."]
        with pytest.raises(UsageError):
            await host.remove("s", "nothing", by="ana")
        assert await rows(host) == []


async def counted(host: Any, number: int) -> bool:
    """Whether so many rows are there."""
    return len(await rows(host)) == number


async def test_a_turn_that_runs_over_a_reset_stores_nothing() -> None:
    """What was asked before is of a conversation that is gone; the input is taken on the empty one."""
    model = Halting((WAIT, "Old."), ("New.",))
    async with hosted(Agent(model)) as host:
        warm = Agent(ScriptedModel("Hello."))
        first = await host.store.commit((await warm.turn("Hi", session="s")).change())
        ticket = await host.send("s", "Still there?")
        await model.waiting.wait()
        await host.reset("s", by="ana")
        model.gate.set()
        assert (await ticket.result()).text == "New."
        assert await said(host) == ["Still there?", "New."]
        assert first.generation == 0


async def test_text_that_people_read_is_not_said_again_after_a_conflict() -> None:
    """Somebody else wrote the session meanwhile: the turn ends interrupted on the newer one."""
    model = Halting(("I said this.", WAIT))
    async with hosted(Agent(model)) as host:
        session = await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
        stream = host.turn_stream("s", "And?")
        async with stream:
            reading = stream.text
            assert await anext(reading) == "I said this."
            other = await Agent(ScriptedModel("Beside.")).turn("Meanwhile", session=session)
            await host.store.commit(other.change())
            model.gate.set()
            result = await stream.result()
            await reading.aclose()
        assert (result.status, result.messages) == ("interrupted", ())
        assert await said(host) == ["Hi", "Hello.", "Meanwhile", "Beside.", "And?", "I said this."]


@pytest.mark.parametrize("how", ["reset", "erased"])
async def test_text_that_people_read_of_a_history_that_is_gone_is_not_kept(how: str) -> None:
    """The session was reset, or erased by another process, under the turn: nothing of it is stored in the new one."""
    model = Halting(("I said this.", WAIT))
    async with hosted(Agent(model)) as host:
        await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
        async with host.turn_stream("s", "And?") as stream:
            reading = stream.text
            assert await anext(reading) == "I said this."
            await (host.reset("s", by="ana") if how == "reset" else host.store.erase("s", why="asked"))
            model.gate.set()
            result = await stream.result()
            await reading.aclose()
        assert (result.status, result.changed) == ("ignored", False)
        assert (await said(host), await rows(host)) == ([], [])


async def test_what_nobody_read_is_taken_again_after_a_conflict() -> None:
    """The sender of the input notices nothing."""
    model = Halting((WAIT, "Old."), ("New.",))
    async with hosted(Agent(model)) as host:
        session = await host.store.commit((await Agent(ScriptedModel("Hello.")).turn("Hi", session="s")).change())
        ticket = await host.send("s", "And?")
        await model.waiting.wait()
        await host.store.commit((await Agent(ScriptedModel("Beside.")).turn("Meanwhile", session=session)).change())
        model.gate.set()
        assert (await ticket.result()).text == "New."
        assert await said(host) == ["Hi", "Hello.", "Meanwhile", "Beside.", "And?", "New."]


async def test_failures_that_are_no_model_s_do_not_stop_the_host() -> None:
    """A tool's own crash is a tool result; a director's is FeatureFailed, stored and told."""

    async def direct(turn: Turn, stage: Stage) -> None:
        raise ZeroDivisionError

    async with hosted(Agent(ScriptedModel(), director=Directed(direct))) as host:
        for _ in range(2):
            with pytest.raises(TurnError):
                await host.turn("s", "Hi")
        bodies = [e.body async for e in host.store.entries("s")]
        assert sum(isinstance(body, TurnFailed) for body in bodies) == 2
