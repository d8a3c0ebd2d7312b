"""What a handler is given (seed 001, ``ToolCtx``)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import Round, UserMessage
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.tools.tool import ToolContext, ToolResult
from onrecord.turn.director import Brief, Scope, Stage
from onrecord.turn.options import Silenced
from onrecord.turn.turn import Turn
from tests.turn.acting import tool, turn

pytestmark = pytest.mark.unit

Seen = list[Any]


def watching(seen: Seen, what: str, result: object = None) -> Any:
    """A handler that keeps one attribute of its context."""

    def handler(args: object, ctx: ToolContext[Any]) -> object:
        seen.append(getattr(ctx, what))
        return result

    return handler


async def test_context_is_what_the_host_gave_for_this_turn() -> None:
    """The very object, untouched."""
    seen, crm = Seen(), object()
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(call("lookup"), "done"), tools=[tool("lookup", watching(seen, "context"))]
    )
    await turn(agent, context=crm)
    assert seen == [crm]


async def test_now_is_the_agents_clock() -> None:
    """Time comes through Effects, cut to milliseconds, and stands still within a turn."""
    seen = Seen()
    clock = FakeEffects(datetime(2026, 9, 20, 10, 0, 0, 123456, tzinfo=UTC))

    def handler(args: object, ctx: ToolContext[Any]) -> None:
        seen.append(ctx.now)
        clock.advance(hours=1)

    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("lookup"), call("lookup")], "done"), tools=[tool("lookup", handler)]
    )
    await turn(agent, effects=clock)
    assert seen == [datetime(2026, 9, 20, 10, 0, 0, 123000, tzinfo=UTC)] * 2


async def test_data_holds_the_session_and_the_patches_of_earlier_rounds() -> None:
    """Calls of one round see the same data, whatever their neighbours of that round wrote."""
    seen = Seen()

    def handler(args: Any, ctx: ToolContext[Any]) -> ToolResult:
        seen.append(dict(ctx.data))
        return ToolResult("ok", data={f"n{args['n']}": args["n"]})

    model = ScriptedModel("first", [call("put", n=1), call("put", n=2)], call("put", n=3), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool("put", handler)])
    first = await turn(agent)
    assert first.session is not None
    second = await turn(agent, session=replace(first.session, data={"kept": True}))
    assert seen == [{"kept": True}, {"kept": True}, {"kept": True, "n1": 1, "n2": 2}]
    assert second.session is not None
    assert second.session.data == {"kept": True, "n1": 1, "n2": 2, "n3": 3}


async def test_history_is_what_the_model_saw() -> None:
    """The conversation so far and the earlier rounds of this turn, not the round that is running."""
    seen = Seen()

    def handler(args: object, ctx: ToolContext[Any]) -> str:
        seen.append(list(ctx.history))
        return "result"

    model = ScriptedModel("hello", reply("Let me see", call("lookup")), call("lookup"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool("lookup", handler)])
    first = await turn(agent, "hi")
    await turn(agent, "price?", session=first.session)
    one, two = seen
    assert [type(u) for u in one] == [UserMessage, Round, UserMessage]
    assert [u.text for u in one] == ["hi", "hello", "price?"]
    assert [u.text for u in two] == ["hi", "hello", "price?", "Let me see"]
    assert [c.status for c in two[3].calls] == ["returned"]


async def test_c43_identity_is_the_owner_of_the_session_or_none() -> None:
    """Nobody is made up: a session without an owner gives none (case C43)."""
    seen = Seen()
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(call("l"), "a", call("l"), "b"), tools=[tool("l", watching(seen, "identity"))]
    )
    await turn(agent, session="s")
    owner = Identity(tenant="acme", principal="ana")
    await turn(agent, session=Session(key=SessionKey("s2"), owner=owner))
    assert seen == [None, owner]


async def test_c43_a_turn_without_a_session_gets_a_fresh_one() -> None:
    """Two of them never share a conversation (case C43)."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("a", "b"))
    effects = FakeEffects()
    one, two = await turn(agent, effects=effects), await turn(agent, effects=effects)
    assert one.session is not None
    assert two.session is not None
    assert one.session.key != two.session.key
    named = await turn(Agent(ScriptedModel("a")), session="s")
    assert named.session is not None
    assert named.session.key == SessionKey("s")


async def test_a_plain_agent_has_no_run_and_is_not_silenced() -> None:
    """``run``, ``input``, ``dedupe_key`` and ``silenced`` are for flows; the plain speaker leaves them empty."""
    seen = Seen()

    def handler(args: object, ctx: ToolContext[Any]) -> None:
        seen.append((ctx.run, ctx.input, ctx.dedupe_key, ctx.silenced))

    await turn(Agent(ScriptedModel(call("lookup"), "done"), tools=[tool("lookup", handler)]))
    assert seen == [(None, None, "", None)]


async def test_a_director_says_where_a_tool_runs() -> None:
    """Through the scope of its brief, or of its act."""
    seen, scope = Seen(), Scope(run="run-1", input={"a": 1}, dedupe_key="k", silenced="muted")

    def handler(args: object, ctx: ToolContext[Any]) -> None:
        seen.append((ctx.run, ctx.input, ctx.dedupe_key, ctx.silenced))

    class Scoped:
        async def direct(self, turn: Turn, stage: Stage, /) -> None:
            await stage.act(held, {}, key="first", scope=scope)
            if not turn.option(Silenced):
                await stage.speak(Brief(key="answer", scope=scope))

    held = tool("lookup", handler)
    await turn(Agent(ScriptedModel(call("lookup"), "done"), tools=[held], director=Scoped()))
    assert seen == [("run-1", {"a": 1}, "k", "muted")] * 2


async def test_once_runs_an_outside_effect_once_per_key_of_its_call() -> None:
    """Its key is the call's and the name given; a journal can hold it."""
    effects, made = FakeEffects(), Seen()

    async def book() -> str:
        made.append("booked")
        return "RES-1"

    async def handler(args: object, ctx: ToolContext[Any]) -> list[str]:
        return [await ctx.once("book", str, book), await ctx.once("book", str, book), ctx.key]

    result = await turn(Agent(ScriptedModel(call("b"), "done"), tools=[tool("b", handler)]), effects=effects)
    assert made == ["booked"]
    key = effects.made[0]
    assert key.endswith("/book")
    assert key.startswith(f"{result.entries[0].turn}/answer/b:")


async def test_data_is_a_view_that_a_handler_does_not_write_through() -> None:
    """Only ``set`` and the result change the session: neighbours see neither."""
    seen = Seen()

    def handler(args: object, ctx: ToolContext[Any]) -> None:
        ctx.set({"a": 1})
        seen.append(dict(ctx.data))

    held = tool("lookup", handler)
    result = await turn(Agent(ScriptedModel([call("lookup"), call("lookup")], "done"), tools=[held]))
    assert seen == [{}, {}]
    assert result.session is not None
    assert result.session.data == {"a": 1}
