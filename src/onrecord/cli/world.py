"""The world of a simulation: a real host over a store, for one session, with a clock that is moved by hand."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from onrecord.agent import Agent
from onrecord.cli.sim_words import cause_text
from onrecord.cli.simulated_time import SimulatedTime
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Interruption, row_key
from onrecord.errors import OnrecordError
from onrecord.flows.direct import Flows
from onrecord.flows.state import FlowState
from onrecord.host import Give, Given, Host, Ticket
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.session.store import Store

__all__ = ("Taken", "World", "WorldStuck")

MOST_AT_ONCE = 500
"""How many turns may be taken while the clock stands still."""


class WorldStuck(OnrecordError):
    """Turns follow each other without end, and no time passes."""

    default_code = "simulation-stuck"


class Taken(Struct, frozen=True):
    """A turn that was taken: of what, when, why it began (empty: it was asked for just now), and what it comes to."""

    input: Input
    at: datetime
    cause: str
    ticket: Ticket[Any]


class World:
    """Everything that happens in the simulated session. ``session`` is what is stored; None before the first turn."""

    def __init__(
        self, agent: Agent[Any, Any], flows: Flows, store: Store, key: SessionKey, clock: SimulatedTime,
        given: Give | None = None,
    ) -> None:  # fmt: skip
        self.flows, self.store, self.key, self.clock = flows, store, key, clock
        self.host: Host[Any, Any] = Host(agent, store=store, only=key, given=self._given, effects=clock)
        self.session: Session | None = None
        self.is_stopped = False
        self._given_by = given
        self._taken = list[Taken]()
        self._asked_for = ""
        self._turns = 0
        self._stuck = asyncio.Event()

    @property
    def state(self) -> FlowState:
        """The flows' part of the session."""
        return FlowState() if self.session is None else self.flows.state(self.session)

    async def open(self) -> None:
        """Loads what is stored. A clock that stands before what the session remembers is moved to there."""
        self.session = await self.store.load(self.key)
        if self.session is not None:
            for at in (self.session.last_user_at, self.session.last_assistant_at):
                self.clock.move(at or self.clock.at)

    async def put(self, input: Input) -> Sequence[Taken]:
        """Takes an input now, and what is due besides."""
        self._asked_for = row_key(input, "")
        await self.host.send(self.key, input)
        return await self.serve()

    async def serve(self) -> Sequence[Taken]:
        """Takes everything that is due now. WorldStuck when there is no end of it."""
        self._turns = 0
        ends = [asyncio.ensure_future(self.host.work(once=True)), asyncio.ensure_future(self._stuck.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._stuck.is_set():
                told = f"{MOST_AT_ONCE} turns were taken and no time has passed"
                raise WorldStuck(told, hint="a flow waits for no time at all, again and again: give its wait a length")
            await ends[0]
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        self.session = await self.store.load(self.key, known=self.session)
        taken, self._taken, self._asked_for = self._taken, [], ""
        return taken

    async def due(self) -> Row | None:
        """What is due next, by the clock or later."""
        rows = [row for row in await self.rows() if not row.dead and not row.owner]
        return min(rows, key=lambda row: (row.due or self.clock.at, row.n), default=None)

    async def rows(self) -> list[Row]:
        """All that waits in the session's inbox."""
        return await self.host.pending(self.key)

    async def stop(self) -> None:
        """Ends the turn that runs, and lets no more time pass."""
        self.is_stopped = True
        await self.host.interrupt(self.key, Interruption(id=f"left:{secrets.token_hex(8)}", cause="left"))

    async def close(self) -> None:
        """Lets go of the session and of its store."""
        await self.host.close(drain_s=0 if self._stuck.is_set() else 1.0)
        await self.store.close()

    async def _given(self, session: SessionKey, input: Input) -> Given[Any]:
        """What a host asks before it takes a turn: the moment at which every turn can be seen, and its row is there.

        An input with the key of one that waits is that one: what is sent here is only a second ticket for it.
        """
        self._turns += 1
        if self._turns > MOST_AT_ONCE:
            self._stuck.set()
            await asyncio.Event().wait()  # until the host closes
        name = row_key(input, "")
        if not any(row_key(one.input, "") == name and not one.ticket.is_done for one in self._taken):
            stored = await self.store.load(session, known=self.session)
            state = FlowState() if stored is None else self.flows.state(stored)
            cause = "" if name == self._asked_for else cause_text(input, state, session.id)
            self._taken.append(Taken(input, self.clock.at, cause, await self.host.send(session, input)))
        return Given() if self._given_by is None else await self._given_by(session, input)
