"""Sub-agents that wait: none is left waiting for an answer that cannot come, and one that was changed is no trap."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.host import Host
from onrecord.record.kinds import ToolReturned
from onrecord.session.erasure import Retention
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel
from tests.agent.children import Effects, ask, clerk
from tests.host.hosting import hosted
from tests.turn.acting import texts

pytestmark = pytest.mark.unit

MONTH = timedelta(days=30)
Below = list[Session]


def says(request: Any) -> Any:
    """The boss calls two clerks once, however often that take begins anew."""
    return "Done." if texts(request) else ask("pay:a order:A", "order:B")


async def drops(args: Any, ctx: Any) -> str:
    """A question that the next message drops."""
    return str((await ctx.ask(Ask("Which?", on_message="drop"))).value)


def boss(effects: Effects, *levels: str, asks: Any = None) -> Agent[Any, str]:
    """Two clerks side by side below it, each below as many agents as there are ``levels``."""
    below = clerk(effects) if asks is None else clerk(effects, ask_with=asks)
    for name in levels:
        passes = [lambda request, to=below.name: "Passed." if texts(request) else ask("order:A", of=to)] * 4
        below = Agent(ScriptedModel(*passes), name=name, tools=[below.as_tool(concurrency_safe=True)])
    low = below.as_tool(id="clerk", concurrency_safe=True)
    return Agent(ScriptedModel(*[says] * 9), name="boss", tools=[low])


async def below(host: Host[Any, Any]) -> Below:
    """The sessions of sub-turns, as they are stored."""
    found = [await host.store.load(key) for key in await host.store.sessions()]
    return [held for held in found if held is not None and held.parent is not None]


@asynccontextmanager
async def asked(*levels: str, asks: Any = None) -> AsyncIterator[tuple[Host[Any, Any], Effects, FakeEffects]]:
    """A host in which two clerks wait for an answer, and what ran and its clock."""
    clock, effects = FakeEffects(), Effects()
    agent = boss(effects, *levels, asks=asks)
    async with hosted(agent, store=MemoryStore(clock=clock.now), effects=clock) as host:
        assert (
            await host.turn(
                "s",
                "Go",
            )
        ).status == "paused"
        assert all(child.question is not None for child in await below(host))
        yield host, effects, clock


async def question(host: Host[Any, Any]) -> str:
    """The key of the open question."""
    held = await host.store.load("s")
    assert held is not None
    assert held.question is not None
    return held.question.key


@pytest.mark.parametrize("levels", [(), ("desk",), ("desk", "shop")])
async def test_whoever_waits_below_is_closed_with_the_question(levels: tuple[str, ...]) -> None:
    """A message drops it, or the talk begins anew: no sub-agent at any depth stays paused for ever."""
    async with asked(*levels, asks=drops) as (host, _, _clock):
        await host.turn("s", "Never mind")
        assert len(await below(host)) == 2 * (1 + len(levels))
        assert [child.question for child in await below(host) if child.question is not None] == []
    async with asked(*levels) as (host, _, _clock):
        await host.reset("s", by="ana")
        assert [child.question for child in await below(host) if child.question is not None] == []


async def erased(host: Host[Any, Any], child: Session) -> None:
    """The whole session is erased."""
    await host.erase(child.key, why="asked")


async def emptied(host: Host[Any, Any], child: Session) -> None:
    """The turn of one of its messages is erased."""
    await host.erase(child.key, messages=[child.conversation.messages[0].id], why="asked")


async def begun_anew(host: Host[Any, Any], child: Session) -> None:
    """Its talk begins anew."""
    await host.reset(child.key, by="ana")


Change = Callable[[Host[Any, Any], Session], Coroutine[Any, Any, None]]


@pytest.mark.parametrize("change", [erased, emptied, begun_anew])
async def test_a_sub_agent_whose_session_was_changed_cannot_go_on_and_the_turn_can(change: Change) -> None:
    """Its call failed; nothing is asked of a model twice, nothing is done twice, and the answers of people count."""
    async with asked() as (host, effects, _):
        for child in await below(host):
            await change(host, child)
        result = await host.answer("s", Answered(await question(host), value="L"))
        assert (result.status, result.text, result.llm_calls) == ("answered", "Done.", 1)
        returned = [entry.body for entry in result.entries if isinstance(entry.body, ToolReturned)]
        assert [body.status for body in returned] == ["failed", "failed"]
        assert effects.done == ["a"]


@pytest.mark.parametrize("change", [erased, emptied, begun_anew])
async def test_a_message_is_answered_although_what_it_drops_is_gone(change: Change) -> None:
    """Closing what somebody else has changed would be a conflict for ever."""
    async with asked(asks=drops) as (host, _, _clock):
        for child in await below(host):
            await change(host, child)
        result = await host.turn("s", "Never mind")
        assert (result.status, result.llm_calls) == ("answered", 1)


@pytest.mark.parametrize("policy", [Retention(sessions=MONTH), Retention(entries=MONTH)])
async def test_who_waits_below_is_as_old_as_the_turn_that_waits_with_it(policy: Retention) -> None:
    """The first answer came late, so the second question is young, however long its sub-agent has been waiting."""
    async with asked() as (host, effects, clock):
        clock.advance(days=40)
        assert (await host.answer("s", Answered(await question(host), value="L"))).status == "paused"
        await host.expire(policy)
        result = await host.answer("s", Answered(await question(host), value="M"))
        assert result.status == "answered"
        statuses = [entry.body.status for entry in result.entries if isinstance(entry.body, ToolReturned)]
        assert statuses == ["returned"]
        assert effects.done == ["a"]
        clock.advance(days=40)
        await host.expire(policy)
        assert [child.conversation.messages for child in await below(host) if child.conversation.messages] == []
