"""Agents that remember, as these tests write them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory import Memory, MemoryKept, MemoryRecalled, PlainShelf
from onrecord.memory.ports import Shelf, Space
from onrecord.memory.strategies import Strategy
from onrecord.models.request import Request
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, shown
from onrecord.turn.result import TurnResult

__all__ = ("AT", "ana", "kept_by", "messages", "recalled_in", "remembering", "session", "shown_data", "told")

AT = datetime(2026, 5, 4, 9, tzinfo=UTC)


def session(id: str = "s", person: str = "ana", *, tenant: str = "", owner_tenant: str = "") -> Session:
    """A new session of a person; of nobody where the name is blank."""
    owner = Identity(tenant=owner_tenant, principal=person) if person else None
    return Session(key=SessionKey(id, tenant=tenant), owner=owner, digest_key="k")


ana = Identity(principal="ana")


async def messages(shelf: Shelf, space: Space = Space(owner=ana)) -> list[str]:  # noqa: B008 - an immutable value
    """The messages on a shelf, in order."""
    return [one.text for one in await shelf.newest(space, "message", limit=99)]


def remembering(
    *strategies: Strategy,
    answers: Sequence[Any] = (),
    consult: Sequence[Any] = (),
    shelf: Shelf | None = None,
    **about: Any,
) -> tuple[Agent[Any, str], ScriptedModel, Memory]:
    """An agent with one memory, its model, and the memory."""
    memory = Memory(shelf if shelf is not None else PlainShelf(), strategies, **about)
    model = ScriptedModel(*answers, consult=consult)
    return Agent(model, features=[memory]), model, memory


async def told(agent: Agent[Any, str], text: Any, of: Session | None, *, day: int = 0) -> TurnResult[Any]:
    """One turn, so many days later."""
    return await agent.turn(text, session=of, effects=FakeEffects(AT + timedelta(days=day)))


def shown_data(request: Request) -> list[str]:
    """What a request shows as data, in order."""
    return [m["content"] for m in shown(request)["messages"] if m["role"] == "data"]


def recalled_in(result: TurnResult[Any]) -> list[MemoryRecalled]:
    """What a turn says that it was shown."""
    return [entry.body for entry in result.entries if isinstance(entry.body, MemoryRecalled)]


def kept_by(result: TurnResult[Any]) -> list[MemoryKept]:
    """What a turn says that it left."""
    return [entry.body for entry in result.entries if isinstance(entry.body, MemoryKept)]
