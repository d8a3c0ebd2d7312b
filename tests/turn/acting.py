"""Agents, tools and features as tests of the loop write them, and short ways to read what a turn left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from onrecord.agent import Agent
from onrecord.conversation.inputs import Input
from onrecord.conversation.messages import AssistantMessage, Round, ToolCall
from onrecord.models.request import Request
from onrecord.record.entry import Body, kind_of
from onrecord.record.kinds import ToolReturned, VerdictFiled
from onrecord.testing import FakeEffects, ScriptedModel, call, reply, shown
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Hooks
from onrecord.turn.result import TurnResult

__all__ = (
    "Named",
    "asked_once",
    "bodies",
    "call",
    "calls_of",
    "keeping",
    "kinds",
    "last_answer",
    "read",
    "reply",
    "results",
    "rounds_of",
    "texts",
    "told",
    "tool",
    "turn",
    "verdicts",
)

B = TypeVar("B", bound=Body)
Result = TurnResult[Any]


class Named(Struct, frozen=True):
    """A feature made of hooks: ``Named("mine", Hooks(on_reply=...))``."""

    name: str
    held: Hooks

    def hooks(self, spec: object) -> Hooks:
        return self.held


def tool(id: str = "lookup", handler: Callable[..., Any] | None = None, **fields: Any) -> Tool:
    """A tool; without a handler it returns its own id."""
    return Tool(id, handler or (lambda *_: id), f"About {id}.", **fields)


def keeping(kept: list[Any], what: Callable[[Mapping[str, Any]], Any] | str, told: str = "") -> Callable[..., str]:
    """A handler that keeps one thing of each call, a text or a function of the arguments, and says another."""

    def handler(args: Mapping[str, Any], ctx: object) -> str:
        kept.append(what if isinstance(what, str) else what(args))
        return told or str(kept[-1])

    return handler


async def turn(agent: Agent[Any, Any], input: str | Input = "hi", **given: Any) -> Result:
    """One turn under a clock that stands still."""
    return await agent.turn(input, **{"effects": FakeEffects(), **given})


async def asked_once(*tools: Tool, calls: Sequence[Any], **given: Any) -> tuple[Result, list[str]]:
    """One round of calls, then an answer: the result, and what the model read of each call."""
    model = ScriptedModel([*calls], "done")
    result = await turn(Agent(model, tools=tools, **given))
    return result, texts(model.requests[1])


def read(request: Request) -> Mapping[str, Any]:
    """What a request shows, as plain JSON."""
    return shown(request)


def texts(request: Request) -> list[str]:
    """The tool results that a request shows, in order."""
    return [m["content"] for m in shown(request)["messages"] if m["role"] == "tool"]


def kinds(result: Result) -> list[str]:
    """The kinds of a turn's entries, in order."""
    return [kind_of(entry.body) for entry in result.entries]


def bodies(result: Result, kind: type[B]) -> list[B]:
    """The bodies of one kind, in order."""
    return [entry.body for entry in result.entries if isinstance(entry.body, kind)]


def verdicts(result: Result) -> list[tuple[str, str, str, str]]:
    """Moment, rule, verdict and reason of each filed verdict."""
    return [(v.moment, v.by, v.verdict, v.why) for v in bodies(result, VerdictFiled)]


def results(result: Result) -> list[tuple[str, str]]:
    """Name and status of each call as it returned."""
    return [(r.name, r.status) for r in bodies(result, ToolReturned)]


def rounds_of(result: Result) -> list[Round]:
    """The rounds that the turn's session keeps, of all messages."""
    assert result.session is not None
    return [r for m in result.session.conversation.messages for r in getattr(m, "rounds", ())]


def told(result: Result) -> list[str]:
    """The words of each message in the turn's session."""
    assert result.session is not None
    return [getattr(m, "text", "") for m in result.session.conversation.messages]


def last_answer(result: Result) -> AssistantMessage:
    """The last message of the turn's session, which is an answer."""
    assert result.session is not None
    message = result.session.conversation.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


def calls_of(result: Result) -> list[ToolCall]:
    """Every call in the turn's session."""
    return [c for r in rounds_of(result) for c in r.calls]
