"""Histories and agents as tests of windows use them, and short ways to read what a request showed."""

from __future__ import annotations

from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.render import context_text
from onrecord.models.request import Request, Span
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.evicted import Evicted
from onrecord.testing import ScriptedModel
from onrecord.turn.result import TurnResult
from tests.turn.acting import bodies, read

__all__ = ("Record", "agent_with", "dialogue", "evictions", "looked", "shows", "spans")

Record = dict[str, Any]


def dialogue(items: int, chars: int = 36) -> list[Record]:
    """A history of so many items by turns of a person and the assistant, each of ``chars`` characters: 10 tokens."""
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": f"{i:03d}".ljust(chars, ".")} for i in range(items)]


def looked(id: str, result: str, text: str | None = None) -> list[Record]:
    """A round that asked for a call, and what it returned: an assistant's and a tool's record."""
    call = {"id": id, "name": "look", "arguments": {}}
    return [
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "name": "look", "content": result},
    ]


def agent_with(speaks: ScriptedModel, max_tokens: int = 100, /, **given: Any) -> Agent[Any, str]:
    """An agent whose history is kept below 80 tokens, unless told otherwise."""
    window = {name: given.pop(name) for name in tuple(given) if name in Compaction.__struct_fields__}
    features = [*given.pop("features", ()), Compaction(max_tokens, **window)]
    return Agent(speaks, features=features, **given)


def shows(request: Request) -> list[tuple[str, str]]:
    """The role and first words (or whole short text) of everything a request shows of the conversation."""
    return [(m["role"], m["content"].rstrip(".")) for m in read(request)["messages"]]


def spans(request: Request) -> list[Any]:
    """The view of a request: stretches of units, and the text of what is inserted."""
    return [(span.start, span.stop) if isinstance(span, Span) else context_text(span) for span in request.view.spans]


def evictions(result: TurnResult[Any]) -> list[tuple[str, int, int, int]]:
    """How, up to which unit, and the estimates before and after, of everything that left."""
    return [(e.how, e.upto, e.before, e.after) for e in bodies(result, Evicted)]
