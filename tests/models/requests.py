"""Units, conversations and requests as tests of models write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from onrecord.conversation.content import Part, Refusal, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import (
    AssistantMessage,
    ContextMessage,
    Continuation,
    Message,
    Round,
    ToolCall,
    UserMessage,
)
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Offer, Piece, Request, Span, ToolSpec, View
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from onrecord.tools.tool import Tool

CARD = ModelCard(provider="acme", model="m", protocol=PROTOCOL, base_url="http://localhost:1/v1", audio=True)


PLAIN = Dialect()


def projection(card: ModelCard = CARD, dialect: Dialect = PLAIN, **extra: Any) -> ChatProjection:
    """Chat Completions for a card."""
    return ChatProjection(card, dialect, extra)


def user(*parts: Part | str, id: str = "u0", **fields: Any) -> UserMessage:
    """A user message; strings are texts."""
    return UserMessage(id=id, content=tuple(Text(p) if isinstance(p, str) else p for p in parts), **fields)


def context(text: str, authority: Any = "data", id: str = "c0") -> ContextMessage:
    """A context message of one text."""
    return ContextMessage(id=id, content=(Text(text),), authority=authority)


def call(round_id: str, index: int, name: str = "price", args: str = '{"n":1}', **fields: Any) -> ToolCall:
    """A call that returned ``sunny``, unless fields say otherwise."""
    given: dict[str, Any] = {"wire_id": f"w{index}", "result": (Text("sunny"),), "status": "returned"} | fields
    return ToolCall(id=f"{round_id}/c{index}", name=name, raw_args=args, **given)


def settled(id: str, *words: str | Refusal, calls: Sequence[ToolCall] = (), **fields: Any) -> Round:
    """A round with these words and calls."""
    content = tuple(Text(w) if isinstance(w, str) else w for w in words)
    return Round(id=id, content=content, calls=tuple(calls), **fields)


def said(*rounds: Round, id: str = "a0") -> AssistantMessage:
    """An assistant message of these rounds."""
    return AssistantMessage(id=id, rounds=rounds)


def talk(turns: int) -> Conversation:
    """So many questions, each with a round that calls and one that answers."""
    held = Conversation()
    for n in range(turns):
        held = held.add(user(f"question {n}", id=f"u{n}"))
        rounds = (settled(f"r{n}a", calls=[call(f"r{n}a", 0)]), settled(f"r{n}b", f"answer {n}"))
        held = held.add(said(*rounds, id=f"a{n}"))
    return held


def native(*items: bytes, scope: str = "s", protocol: str = PROTOCOL) -> Continuation:
    """A continuation of these items."""
    return Continuation(protocol=protocol, scope=scope, items=tuple(Raw(item) for item in items))


def offer(name: str = "price", description: str = "The price.") -> Offer:
    """A tool in a request."""
    tool = Tool(name, lambda _args, _ctx: None, description)
    return Offer(tool=tool, spec=ToolSpec(name=name, description=description, schema=tool.parameters))


class NoModel:
    """Stands in a request where no model is asked."""

    card = CARD


def request(*messages: Message, conversation: Conversation | None = None, **fields: Any) -> Request:
    """A request that shows the whole conversation and belongs to no brief's rounds."""
    held = conversation or Conversation.of(messages)
    size = len(held.units)
    model: Model = fields.pop("model", NoModel())
    given: dict[str, Any] = {"own": size, "view": View(spans=(Span(0, size),)), "pieces": ()} | fields
    return Request(purpose="speak", where="main/r0", conversation=held, model=model, **given)


def system(text: str, rank: int = 0) -> Piece:
    """A system piece."""
    return Piece(source="test", text=text, rank=rank)
