"""Flows under a host: several hosts on one store and one clock, and a model that always has something to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Woke
from onrecord.conversation.outgoing import Outcome, Outgoing
from onrecord.flows import Flow, Flows
from onrecord.flows.state import FlowState
from onrecord.host import Host
from onrecord.jsonio import Json, dumps
from onrecord.models.chunks import Chunk
from onrecord.models.request import Request
from onrecord.record.entry import Entry
from onrecord.record.kinds import OutcomeFiled, TextSaid, TurnInput
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.stores import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.testing.scripted import Failing
from tests.flows.playing import FIELDS, NOTHING, T0, notify_tool
from tests.host.hosting import settled

__all__ = ("House", "Talkative", "house")


class Talkative(ScriptedModel):
    """A scripted model that, once its script is used up, understands nothing and says a line of its own."""

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """What the script says, else ``Reply N.`` where N counts requests."""
        name = "judge" if request.purpose == "judge" else "speak"
        if not self._queues[name]:
            told = NOTHING if name == "judge" else {"message": f"Reply {len(self.requests) + 1}."}
            self._queues[name].append(dumps(told).decode())
        async for chunk in super().stream(request):
            yield chunk

    def given(self, judge: Mapping[str, Json] | Failing | None, speak: Sequence[Any]) -> None:
        """What the next understand call replies, if there is one, and what the next speak calls do."""
        if judge is not None:
            self._queues["judge"].append(dumps(judge).decode() if isinstance(judge, Mapping) else judge)
        self._queues["speak"] += speak


class House:
    """A store, a clock, and as many hosts as a test opens; each with the same agent.

    ``out`` is what was delivered, ``notified`` are the calls of the action ``notify``.
    """

    def __init__(self, flows: Flows, notified: list[Any], stack: AsyncExitStack, path: Path | None, **agent: Any):
        self.clock, self.flows, self.notified, self.path = FakeEffects(T0), flows, notified, path
        self.model = Talkative()
        self.agent: Agent[Any, str] = Agent(self.model, name="Ana", director=flows, **agent)
        self.out: list[Outgoing] = []
        self._stack = stack
        self._memory = MemoryStore(clock=self.clock.now, bodies=self.agent.plan.codec.kinds.values())

    # ---- hosts

    async def opened(self, **more: Any) -> Host[Any, str]:
        """One more host, which serves until it is closed or the test ends."""
        store: Store = self._memory
        if self.path is not None:
            own = SqliteStore(self.path, clock=self.clock.now, bodies=self.agent.plan.codec.kinds.values())
            self._stack.push_async_callback(own.close)
            store = own
        host = Host(self.agent, store=store, effects=self.clock, **{"poll_s": 0.01, **more})
        self._stack.push_async_callback(host.close, drain_s=0)
        await self._stack.enter_async_context(host)
        return host

    async def deliver(self, session: SessionKey, message: Outgoing) -> None:
        """A channel."""
        self.out.append(message)

    # ---- what happens

    async def wakes(self, host: Host[Any, str], session: str = "s1") -> dict[str, datetime | None]:
        """The timers of a session, which are rows of its inbox: when each key is due."""
        return {row.body.key: row.due for row in await host.pending(session) if isinstance(row.body, Woke)}

    async def quiet(self, host: Host[Any, str]) -> None:
        """Until nothing is due and nothing runs."""
        async with asyncio.timeout(10):
            await host.work(once=True)

    async def later(self, host: Host[Any, str], **by: float) -> None:
        """The clock moves, and what has come due is done."""
        self.clock.advance(**by)
        await self.quiet(host)

    async def fired(self, host: Host[Any, str], session: str = "s1", **by: float) -> Any:
        """The result of the only timer of a session, which comes due after so long."""
        (key,) = await self.wakes(host, session)
        ticket = await host.send(session, Woke(key))
        assert not ticket.is_new
        self.clock.advance(**by)
        async with asyncio.timeout(10):
            return await ticket.result()

    # ---- what is kept

    async def session(self, host: Host[Any, str], id: str = "s1") -> Session:
        """A session that is stored."""
        held = await host.store.load(id)
        assert held is not None
        return held

    async def state(self, host: Host[Any, str], id: str = "s1") -> FlowState:
        """Its runs and claims."""
        return self.flows.state(await self.session(host, id))

    async def entries(self, host: Host[Any, str], id: str = "s1") -> list[Entry]:
        """Its record."""
        return [entry async for entry in host.store.entries(id)]

    async def said(self, host: Host[Any, str], id: str = "s1") -> list[tuple[str, str]]:
        """Key and text of everything that was said in it."""
        bodies = [entry.body for entry in await self.entries(host, id)]
        return [(body.key, body.text) for body in bodies if isinstance(body, TextSaid) and body.text]

    async def inputs(self, host: Host[Any, str], id: str = "s1") -> list[Input]:
        """The inputs that left something, in order."""
        return [e.body.input for e in await self.entries(host, id) if isinstance(e.body, TurnInput)]

    async def lines(self, host: Host[Any, str], id: str = "s1") -> list[Outcome]:
        """Every outcome line of it."""
        return [e.body.line for e in await self.entries(host, id) if isinstance(e.body, OutcomeFiled)]

    async def holds(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Waits until something is so."""
        await settled(is_so)


@asynccontextmanager
async def house(
    *flows: Flow, path: Path | None = None, agent: dict[str, Any] | None = None, actions: Sequence[Any] = (),
    **given: Any,
) -> AsyncIterator[House]:  # fmt: skip
    """A house with these flows, on a file or in memory; what was opened is closed at the end."""
    notified: list[Any] = []
    director = Flows(*flows, actions=[notify_tool(notified), *actions], **{"fields": FIELDS, **given})
    async with AsyncExitStack() as stack:
        yield House(director, notified, stack, path, **(agent or {}))
