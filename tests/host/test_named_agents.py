"""Hosts of several agents: which of them takes an input."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord import Agent, Said, UsageError, tool
from onrecord.conversation.inputs import Ask, approved
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from tests.host.hosting import hosted, said

pytestmark = pytest.mark.integration


@tool
def pay() -> Ask:
    """Pays."""
    return Ask("Pay?", on_message="answer")


@tool
def refund() -> Ask:
    """Pays back."""
    return Ask("Pay back?", on_message="drop")


def paying(name: str) -> Agent[Any, Any]:
    """An agent that asks before it does what this tool does."""
    one = {"pay": pay, "refund": refund}[name]
    return Agent(ScriptedModel(call(name), "Paid."), tools=[one])


async def test_an_agent_is_chosen_by_name() -> None:
    """A name that nobody has is refused: nobody would have it tomorrow either."""
    async with hosted(Agent(ScriptedModel("Main.")), agents={"sales": Agent(ScriptedModel("Sales."))}) as host:
        assert (await host.turn("s", Said("Hi", agent="sales"))).text == "Sales."
        with pytest.raises(UsageError) as told:
            await host.send("s", Said("Hi", agent="nobody"))
        assert told.value.code == "unknown-agent"


@pytest.mark.parametrize("words", [False, True])
async def test_whoever_asked_goes_on_with_the_answer(words: bool) -> None:
    """Also on another host, and where the answer is a message that names no agent, or another one."""
    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    agents = {"sales": paying("pay")}
    async with hosted(Agent(ScriptedModel()), agents=agents, store=store, effects=effects) as host:
        paused = await host.turn("s", Said("Hi", agent="sales"))
        assert paused.question is not None
    async with hosted(Agent(ScriptedModel()), agents=agents, store=store, effects=FakeEffects()) as host:
        done = await host.turn("s", "yes" if words else approved(paused.question, by="ana"))
        assert (done.status, done.text) == ("answered", "Paid.")


async def test_a_message_that_drops_a_question_is_for_whom_it_names() -> None:
    """The one who asked is out of it."""
    async with hosted(Agent(ScriptedModel("Main.")), agents={"sales": paying("refund")}) as host:
        assert (await host.turn("s", Said("Hi", agent="sales"))).status == "paused"
        assert (await host.turn("s", "Never mind")).text == "Main."
        assert (await said(host))[-1] == "Main."
