"""Agents that ask a person, and answers given to a session that was only bytes in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.conversation import units_of
from onrecord.conversation.inputs import Answered, Ask, Question
from onrecord.conversation.messages import ToolCall
from onrecord.governance.rules import Rule, before_tool
from onrecord.jsonio import Json
from onrecord.record.entry import Entry
from onrecord.session import pack, refold, unpack
from onrecord.session.session import Session
from onrecord.tools.tool import ToolContext
from onrecord.turn.director import Stage
from onrecord.turn.moments import Allow, Deny
from onrecord.turn.turn import Turn
from tests.turn.acting import Result, turn

__all__ = ("Acting", "answered", "approve", "asks", "checked", "open_question", "over", "sizes", "statuses", "waiting")

Handler = Callable[[Mapping[str, Json], ToolContext[Any]], Awaitable[object]]


def approve(*names: str, **fields: Any) -> Rule:
    """A rule that asks before any of these tools runs."""

    @before_tool
    async def approval(turn: Turn, call: ToolCall) -> Allow[Mapping[str, Json]] | Deny | Ask:
        return Ask(f"Run {call.name}?", **fields) if call.name in names else Allow()

    return approval


def asks(text: str = "Which size?", **fields: Any) -> Handler:
    """A handler that asks in its middle and returns the answer's value."""

    async def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
        return (await ctx.ask(Ask(text, **fields))).value

    return handler


async def sizes(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
    """A handler that asks twice."""
    first = await ctx.ask(Ask("Which size?"))
    second = await ctx.ask(Ask(f"Which colour for {first.value}?"))
    return f"{first.value}, {second.value}"


class Acting:
    """A director made of one function."""

    def __init__(self, act: Callable[[Turn, Stage], Awaitable[None]]) -> None:
        self.act = act

    async def direct(self, turn: Turn, stage: Stage) -> None:
        await self.act(turn, stage)


def open_question(result: Result) -> Question:
    """What a paused turn asks; its session says the same."""
    assert result.status == "paused"
    assert result.question is not None
    assert result.session is not None
    assert result.session.question == result.question
    return result.question


async def answered(agent: Agent[Any, Any], paused: Result, *, key: str = "", **answer: Any) -> Result:
    """The turn goes on, from a session that was packed and unpacked."""
    question = open_question(paused)
    assert paused.session is not None
    given: dict[str, Any] = {}
    for name in ("context", "options", "history", "effects"):
        if name in answer:
            given[name] = answer.pop(name)
    held = unpack(pack(paused.session))
    return await turn(agent, Answered(key or question.key, **answer), session=held, **given)


def over(later: Result, paused: Result) -> Result:
    """The paused turn, in the session as a later turn left it."""
    return replace(paused, session=later.session)


def statuses(session: Session | None) -> list[str]:
    """The status of each call of the rounds that wait, else of the last message."""
    assert session is not None
    if session.pending is not None:
        return [c.status for r in session.pending.rounds for c in r.calls]
    last = session.conversation.messages[-1]
    return [c.status for r in getattr(last, "rounds", ()) for c in r.calls]


def waiting(result: Result) -> Session:
    """The session of a paused turn."""
    open_question(result)
    assert result.session is not None
    return result.session


def checked(agent: Agent[Any, Any], *results: Result) -> list[Entry]:
    """Every entry of these turns of one session: numbered without a gap, named once, folding to the last session."""
    entries = [entry for result in results for entry in result.entries]
    session = results[-1].session
    assert session is not None
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    places = [(entry.turn, entry.n) for entry in entries]
    assert len(set(places)) == len(places)
    messages = list(session.conversation.messages)
    assert len({m.id for m in messages}) == len(messages)
    assert list(session.conversation.units) == [unit for m in messages for unit in units_of(m)]
    told = refold(session.key, entries, agent.plan.folds, digest_key=session.digest_key)
    assert told == session
    return entries
