"""Conversations with an agent that can explain itself, and questions about what it did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.content import plain_text
from onrecord.conversation.inputs import Input
from onrecord.errors import TurnError
from onrecord.honesty import SelfExplain
from onrecord.record.kinds import ToolReturned
from onrecord.session import Session
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Feature
from tests.turn.acting import tool, turn

__all__ = ("Talk", "asked", "everything", "first")


class Talk:
    """A conversation of an agent that can explain itself, stored turn by turn."""

    def __init__(self, *script: Any, features: Sequence[Feature] = (), **more: Any) -> None:
        self.store = MemoryStore()
        explains = more.pop("explains", SelfExplain(entries=self.store.entries))
        tools = more.pop("tools", [tool("price", lambda *_: "47 euros", read_only=True)])
        self.agent = Agent(ScriptedModel(*script), tools=tools, features=[explains, *features], **more)
        self.session: Session | None = None

    async def say(self, what: str | Input = "hi", **given: Any) -> Any:
        """One turn, committed; also one that failed."""
        result: Any
        try:
            result = await turn(self.agent, what, session=self.session or "s", **given)
        except TurnError as failed:
            result = failed.result
        self.session = await self.store.commit(result.change())
        return result

    async def keep(self, change: Any) -> None:
        """A change of history, committed."""
        self.session = await self.store.commit(change)


async def asked(talk: Talk) -> list[dict[str, Any]]:
    """What the tools of the next turn returned."""
    result = await talk.say("why?")
    return [json.loads(plain_text(body.result)) for e in result.entries if isinstance(body := e.body, ToolReturned)]


def first(*calls: Any, answer: str = "Because.") -> tuple[Any, ...]:
    """A turn that looks up a price, and one that explains itself with these calls."""
    return [call("price", city="Lisbon")], "It costs 47 euros.", [*calls], answer


def everything() -> list[Any]:
    """Every tool, over every entry that the first turn can have."""
    calls = [call("run_overview"), call("find_context_errors"), call("read_narrative"), call("backtrack", text="i")]
    calls += [call("find_in_trace", text=text) for text in "ae"]
    calls += [call("who_wrote", name=name) for name in ("history", "answer", "data", "question")]
    calls += [call("inspect_tool_run", tool="price")]
    for name in ("trace_node", "trace_slice", "get_value", "inspect_tool_call"):
        calls += [call(name, entry=seq) for seq in range(24)]
    return calls
