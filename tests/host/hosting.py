"""Hosts for tests: a store in memory on a clock that moves when told, and questions to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.host import Host
from onrecord.record.entry import kind_of
from onrecord.session.memory_store import MemoryStore
from onrecord.session.store import Store
from onrecord.testing import FakeEffects

__all__ = ("hosted", "kinds", "said", "settled", "talk_is")

S = SessionKey("s")


@asynccontextmanager
async def hosted(
    agent: Agent[Any, Any], *, effects: FakeEffects | None = None, store: Store | None = None, **more: Any
) -> AsyncIterator[Host[Any, Any]]:
    """A host on a clock of its own, closed at the end."""
    clock = effects or FakeEffects()
    held = store or MemoryStore(clock=clock.now)
    host = Host(agent, store=held, effects=clock, **{"poll_s": 0.02, **more})
    try:
        yield host
    finally:
        await host.close(drain_s=0)


async def kinds(host: Host[Any, Any], session: str = "s") -> list[str]:
    """The kinds of a session's entries."""
    return [kind_of(entry.body) async for entry in host.store.entries(session)]


async def said(host: Host[Any, Any], session: str = "s") -> list[str]:
    """The texts of a session's messages."""
    held = await host.store.load(session)
    messages = () if held is None else held.conversation.messages
    return [m.text for m in messages if isinstance(m, (UserMessage, AssistantMessage))]


async def talk_is(host: Host[Any, Any], texts: list[str], session: str = "s") -> bool:
    """Whether a session holds these texts."""
    return await said(host, session) == texts


async def settled(is_so: Callable[[], Any]) -> None:
    """Waits until something is so, which the host does in tasks of its own."""
    async with asyncio.timeout(5):
        while True:
            found = is_so()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.001)
