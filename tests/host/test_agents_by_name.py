"""A host of several agents: what belongs to an agent's turn is taken by that agent again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onrecord import Agent, Said, ToolContext, Woke, tool
from onrecord.conversation.inputs import Ask, approved
from onrecord.conversation.outgoing import Wake
from onrecord.errors import ModelError, UsageError
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, said
from tests.session.folds import Listing, mounted
from tests.turn.directing import Directed

pytestmark = pytest.mark.integration


@tool
async def pay(ctx: ToolContext[Any]) -> str:
    """Pays."""
    return "paid" if (await ctx.ask(Ask("Pay?", on_message="answer"))).approved else "not paid"


def sales(*replies: Any) -> dict[str, Agent[Any, Any]]:
    """One more agent, which asks before it pays."""
    return {"sales": Agent(ScriptedModel(*replies), tools=[pay])}


async def test_an_agent_is_chosen_by_name() -> None:
    """A name that nobody has parks the row: it would have none tomorrow either."""
    async with hosted(Agent(ScriptedModel("Main.")), agents={"sales": Agent(ScriptedModel("Sales."))}) as host:
        assert (await host.turn("s", Said("Hi", agent="sales"))).text == "Sales."
        with pytest.raises(UsageError) as told:
            await host.send("s", Said("Hi", agent="nobody"))
        assert told.value.code == "unknown-agent"


async def test_an_answer_goes_to_the_agent_that_asked() -> None:
    """The host's own agent knows nothing of that tool."""
    async with hosted(Agent(ScriptedModel()), agents=sales(call("pay"), "Paid it.")) as host:
        paused = await host.turn("s", Said("Pay", agent="sales"))
        assert paused.question is not None
        assert (await host.answer("s", approved(paused.question, by="ana"))).text == "Paid it."
        assert await host.pending("s") == []


async def test_a_message_that_answers_goes_to_the_agent_that_asked() -> None:
    """The person who writes back names no agent."""
    async with hosted(Agent(ScriptedModel()), agents=sales(call("pay"), "Then not.")) as host:
        await host.turn("s", Said("Pay", agent="sales"))
        assert (await host.turn("s", "What for?")).text == "Then not."


async def test_a_wake_goes_to_the_agent_that_armed_it() -> None:
    """Also one that a wake armed, and that a turn armed which had paused."""
    effects = FakeEffects()

    async def direct(turn: Turn, stage: Stage) -> None:
        if isinstance(turn.input, Woke):
            await stage.say(f"Sales, {turn.input.payload}.", key="up")
        if not isinstance(turn.input, Woke) or turn.input.payload == 1:
            at = turn.now + timedelta(minutes=5)
            stage.arm(Wake(key="tea", at=at, payload=2 if isinstance(turn.input, Woke) else 1))

    agents = {"sales": Agent(ScriptedModel(), director=Directed(direct))}
    async with hosted(Agent(ScriptedModel()), agents=agents, effects=effects) as host:
        await host.turn("s", Said("Later", agent="sales"))
        for _ in range(2):
            effects.advance(minutes=5)
            await host.work(once=True)
        assert await said(host) == ["Later", "Sales, 1.", "Sales, 2."]


async def test_an_agent_that_is_gone_parks_what_was_its_own() -> None:
    """Visible, and due again once a host has that agent."""
    async with hosted(Agent(ScriptedModel()), agents=sales(call("pay"))) as host:
        paused = await host.turn("s", Said("Pay", agent="sales"))
        assert paused.question is not None
        async with hosted(Agent(ScriptedModel()), store=host.store) as other:
            await other.send("s", approved(paused.question, by="ana"))
            await other.work(once=True)
            assert [row.dead for row in await other.pending("s")] == ["unknown-agent"]


async def test_a_turn_set_aside_is_read_by_the_folds_of_its_agent() -> None:
    """The state that the store holds is the one its record tells."""
    failures = mounted(Listing("turn.failed", unfinished=True))
    agents = {"sales": Agent(ScriptedModel(raises("invalid")), features=[failures])}
    async with hosted(Agent(ScriptedModel()), agents=agents) as host:
        with pytest.raises(ModelError):
            await host.turn("s", Said("Hi", agent="sales"))
        held = await host.store.load("s")
        assert held is not None
        assert "listing" in held.slots
