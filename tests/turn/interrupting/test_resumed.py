"""A paused turn that goes on and ends before its round did: what ran before the pause is not forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord import Agent, Ask, ToolContext, tool
from onrecord.conversation.inputs import Answered, Interruption, approved
from onrecord.conversation.messages import AssistantMessage
from onrecord.errors import MessageDenied
from onrecord.record.kinds import ToolReturned, ToolStarted
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Allow, Deny, Hooks
from onrecord.turn.take import Order, take
from tests.turn.acting import Named

pytestmark = pytest.mark.unit


@tool
async def book() -> str:
    """Books."""
    return "booked"


@tool
async def pay(ctx: ToolContext[Any]) -> str:
    """Asks, then pays."""
    return "paid" if (await ctx.ask(Ask("Pay?"))).approved else "not paid"


async def no_answers(turn: Any, input: Any) -> Any:
    """Lets no answer pass."""
    return Deny("no") if isinstance(input, Answered) else Allow()


def told(session: Any) -> list[tuple[str, str]]:
    """The calls in the conversation, and what became of them."""
    messages = [m for m in session.conversation.messages if isinstance(m, AssistantMessage)]
    rounds = [r for m in messages for r in m.rounds]
    return [(c.name, c.status) for r in rounds for c in r.calls]


async def paused(agent: Agent[Any, Any]) -> Any:
    """The result of a turn that booked, and waits for an answer before it pays."""
    result = await agent.turn("Book and pay", session="s", effects=FakeEffects())
    assert result.question is not None
    return result


def calls() -> ScriptedModel:
    """A model that asks for both, then for two that nobody asks about."""
    return ScriptedModel([call("book"), call("pay"), call("book")], "Done.")


async def test_an_interruption_before_the_answer_is_heard_keeps_what_ran() -> None:
    """The first call is in the conversation with its result; the others are settled, each once."""
    agent: Agent[Any, Any] = Agent(calls(), tools=[book, pay])
    before = await paused(agent)
    by = Interruption(id="i1", cause="barge-in")
    order = Order(input=approved(before.question, by="ana"), session=before.session, interrupted=by)
    result = await take(agent.plan, order, FakeEffects())
    assert result.status == "interrupted"
    assert told(result.session) == [("book", "returned"), ("pay", "cancelled"), ("book", "not_run")]
    entries = [*before.entries, *result.entries]
    started = [e.body.call for e in entries if isinstance(e.body, ToolStarted)]
    returned = [e.body.call for e in entries if isinstance(e.body, ToolReturned)]
    assert set(started) <= set(returned)
    assert len(returned) == len(set(returned)) == 3


async def test_an_answer_that_is_denied_keeps_what_ran() -> None:
    """The turn is refused, and a later one knows that the room is booked."""
    agent: Agent[Any, Any] = Agent(calls(), tools=[book, pay], features=[Named("deaf", Hooks(on_input=no_answers))])
    before = await paused(agent)
    with pytest.raises(MessageDenied) as refused:
        await agent.turn(approved(before.question, by="ana"), session=before.session, effects=FakeEffects())
    assert refused.value.result is not None
    assert told(refused.value.result.session) == [("book", "returned"), ("pay", "cancelled"), ("book", "not_run")]
