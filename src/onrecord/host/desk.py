"""Desk: where a host accepts: inputs, interruptions and changes become rows, and tickets for who waits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Collection, Sequence
from functools import partial
from typing import Any, Literal, cast, get_args

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.inputs import (
    Answered,
    Input,
    Interruption,
    Said,
    Woke,
    as_input,
    check_interruption,
    row_key,
    turn_id,
)
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import SessionBusy, StoreError, UsageError
from onrecord.host.hot import HotSessions
from onrecord.host.leased import name_of
from onrecord.host.live import Draft, Live, LiveItem, Place
from onrecord.host.questions import check_fit
from onrecord.host.row_options import encode_options
from onrecord.host.running import Asked, Ticket
from onrecord.host.setup import Setup
from onrecord.host.taking import as_history
from onrecord.host.tickets import Tickets
from onrecord.host.worker import Worker
from onrecord.jsonio import writable
from onrecord.record.leaving import leaves_by, leaving
from onrecord.session.inbox import Busy, Row, superseded
from onrecord.session.session import Session, resumed
from onrecord.turn.options import checked_options
from onrecord.turn.result import TurnResult

__all__ = ("Desk", "Told", "named", "turn_of")

Told = Literal["recorded", "seen", "unknown"]
"""What became of an interruption."""


class Desk:
    """The accepting side of a host, with its worker behind it."""

    def __init__(self, setup: Setup, hot: HotSessions) -> None:
        self.setup, self.hot, self._store = setup, hot, setup.store
        self._live = Live(setup.store, setup.poll_s)
        self._tickets = Tickets(setup.store, hot)
        self._worker: Worker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self.closed = asyncio.Event()

    @property
    def worker(self) -> Worker | None:
        """The worker, or None before anything was asked of the host."""
        return self._worker

    def start(self) -> Worker:
        """The worker, serving. UsageError on another loop than the host's, or when it is closed."""
        loop = asyncio.get_running_loop()
        if self._closed:
            raise UsageError("this host is closed", code="host-closed", hint="make a new one on the same store")
        if self._loop is None:
            self._loop = loop
            self._worker = Worker(self.setup, self.hot, self._live, self._tickets)
        if self._loop is not loop or self._worker is None:
            raise UsageError(
                "this host belongs to another event loop",
                code="host-loop",
                hint="use it from the loop that used it first, or make one host for each; they may share a store",
            )
        self._worker.start()
        return self._worker

    # ---- inputs

    async def send(self, session: SessionKey | str, input: str | Input, busy: Busy, asked: Asked) -> Ticket[Any]:
        """Accepts an input. SessionBusy when it was to be refused while the session is busy."""
        given, to = as_input(input), named(session)
        if busy not in get_args(Busy):
            raise UsageError(f"busy={busy!r} is unknown", hint="use 'queue', 'supersede' or 'reject'")
        if asked.history is not None:
            asked = replace(asked, history=as_history(asked.history))
        plan = self.setup.plan_of(given, None)
        if asked.options and not isinstance(given, Answered):  # whose question that is, the store knows
            checked_options(asked.options, plan.options)
        if isinstance(given, Answered):
            self.start()  # a host that is closed asks its store nothing
            await check_fit(self._store, to, given, self.hot.get(to))
        key = row_key(given, "" if given.key else self.setup.effects.nonce())
        due = given.at if isinstance(given, Woke) else None
        row = Row(session=to, box="in", key=key, body=given, due=due, options=encode_options(asked.options))
        return await self.put(row, busy, asked)

    async def put(self, row: Row, busy: Busy, asked: Asked) -> Ticket[Any]:
        worker = self.start()
        known = self.hot.get(row.session)
        name = name_of(row)
        self._tickets.expect(name, asked)
        try:
            accepted = await self._store.put(row, busy=busy, lease=worker.takes.lease(known))
            if isinstance(row.body, Answered) and accepted.row is not None and accepted.row.dead:
                # It was set aside, and whoever answers the same question now is not to hear of that one.
                await self._store.cancel("in", row.session, keys=[row.key])
                accepted = await self._store.put(row, busy=busy, lease=worker.takes.lease(known))
        except asyncio.CancelledError:
            worker.takes.find_left(name)
            raise
        except StoreError:
            worker.takes.find_left(name)  # an answer that was lost on its way may have been yes
            raise
        stored = accepted.row
        if stored is None:
            self._tickets.withhold(name)
            raise SessionBusy(
                f"a turn of session {row.session.id!r} runs or waits",
                hint="try again later, or send with busy='queue' or busy='supersede'",
            )
        ended = self._tickets.of(stored, known.seq if known is not None else 0, asked)
        if accepted.leased:
            worker.takes.begin(stored, accepted.session, is_loaded=True)
        elif accepted.is_new or name not in worker.takes.running:
            if accepted.is_new and busy == "supersede":
                self._supersede(worker, stored)
            worker.tell(gone=not accepted.is_new)
        return Ticket(stored, ended, partial(self._withdraw, stored), is_new=accepted.is_new)

    def _supersede(self, worker: Worker, row: Row) -> None:
        """Tells a message that runs here at once; elsewhere its heartbeat does."""
        running = worker.takes.running_in(row.session)
        if running is not None and isinstance(running.row.body, Said) and running.row.key != row.key:
            running.interrupt(superseded(row))

    async def _withdraw(self, row: Row) -> bool:
        worker = self.start()
        running = worker.takes.running.get(name_of(row))
        by = Interruption(id=f"cancelled:{row.key}~{row.n}", cause="cancelled")
        if running is not None and running.row.n == row.n:
            return running.interrupt(by)
        found = await self._store.rows("in", row.session, after=row.n - 1, limit=1)
        if not any(one.n == row.n for one in found):
            return False
        if await self._store.cancel("in", row.session, keys=[row.key]) == 0:
            return await self._store.cancel("in", row.session, keys=[row.key], by=by) > 0
        line = Outcome(kind="input", status="cancelled", code="cancelled", key=row.key, message="taken back")
        session = await self._store.load(row.session, known=self.hot.get(row.session))
        self._tickets.settle(
            row, TurnResult(status="ignored", session=session, changed=False, base=session, lines=(line,))
        )
        return True

    # ---- interruptions

    async def interrupt(self, session: SessionKey | str, by: Interruption) -> Told:
        """Stops the turn where it runs; else files a row that cuts the closed one."""
        check_interruption(by)
        worker, key, stops = self.start(), named(session), False
        held = await self._store.load(key, known=self.hot.get(key))
        running = worker.takes.running_in(key)
        if held is not None and by.id in held.interruptions:
            return "seen"
        if running is None:
            stops = await self._mark_elsewhere(key, by, held)
        elif not by.turn or by.turn == turn_of(running.row, held):
            stops = running.interrupt(by)
            if (stops or running.is_stopped_by(by)) and running.task is not None:
                await asyncio.wait([running.task])
        held = await self._store.load(key, known=self.hot.get(key))
        if held is not None and by.id in held.interruptions:
            return "recorded" if stops else "seen"
        if not by.turn:
            return "unknown"
        row = Row(session=key, box="in", key=f"interruption::{by.id}", body=by)
        result = await (await self.put(row, "queue", Asked())).result()
        code = result.lines[0].code if result.lines else ""
        return "recorded" if not code else "seen" if code == "seen" else "unknown"

    async def _mark_elsewhere(self, key: SessionKey, by: Interruption, held: Session | None) -> bool:
        """Marks the row that another process takes, and waits until nobody takes it. Whether it had no mark before."""
        taken = [r for r in await self._store.rows("in", key) if r.owner and not r.dead]
        meant = next((r for r in taken if not by.turn or by.turn == turn_of(r, held)), None)
        if meant is None or (meant.cancel is not None and meant.cancel.id != by.id):
            return False
        if meant.cancel is None:
            await self._store.cancel("in", key, keys=[meant.key], by=by)
        while True:
            found = await self._store.rows("in", key, after=meant.n - 1, limit=1)
            if not any(r.n == meant.n and r.owner for r in found):
                return meant.cancel is None
            await asyncio.sleep(self.setup.poll_s / 4)

    # ---- what waits

    async def pending(self, session: SessionKey | str) -> list[Row]:
        """All rows of a session's inbox."""
        return await self._store.rows("in", named(session))

    async def cancel(self, session: SessionKey | str, keys: Sequence[str] | None) -> int:
        """Deletes what nobody has leased."""
        worker, key = self.start(), named(session)
        given: object = keys
        if given is not None and (isinstance(given, str) or not _are_texts(given)):
            raise UsageError("keys= takes several keys of rows", hint="write keys=[row.key]")
        count = await self._store.cancel("in", key, keys=keys)
        worker.tell(gone=True)  # whoever waits for one of them learns that it is gone
        return count

    def live(
        self, session: SessionKey | str, after: int, place: Place | None, *, redacted: bool
    ) -> AsyncGenerator[LiveItem, None]:
        """What happens in a session. ``redacted``: by every agent of the host, since any may have spoken in it."""
        worker, key = self.start(), named(session)
        told: tuple[object, object] = (after, place)
        if not isinstance(told[0], int) or not isinstance(told[1], Place | None):
            raise UsageError(
                "live takes after= as a number and place= as a Place",
                hint="give entry.seq of the last Committed, and place of the last Progress",
            )

        def running() -> Draft | None:
            taken = worker.takes.running_in(key)
            return None if taken is None else taken.draft

        leaves = leaves_by(plan.redact for plan in self.setup.every_plan) if redacted else leaving
        return self._live.follow(key, running, after=after, place=place, leaves=leaves)

    # ---- its end

    async def close(self, drain_s: float) -> None:
        """Ends the worker. UsageError, and it goes on, for a time that is none."""
        told: object = drain_s
        if not isinstance(told, (int, float)) or math.isnan(told):
            raise UsageError("drain_s= of a host is a number of seconds", hint="close(drain_s=0) waits for nothing")
        self._closed = True
        if self._worker is not None and not self.closed.is_set():
            await self._worker.close(drain_s)
        self.closed.set()


def _are_texts(given: object) -> bool:
    return isinstance(given, Collection) and all(isinstance(one, str) for one in given)


def named(session: SessionKey | str) -> SessionKey:
    """The key of a session. UsageError for a blank one, and for one that nobody could store."""
    key = session_key(session)
    if writable(key.id) != key.id or writable(key.tenant) != key.tenant:
        raise UsageError("the name of a session is not valid Unicode", hint="it holds half of a surrogate pair")
    if not key.id.strip():
        raise UsageError("a session needs a name that is not blank", hint='such as "whatsapp:+55 11 5555"')
    return key


def turn_of(row: Row, session: Session | None) -> str:
    """The name of the turn that a row of an input begins, or goes on with; of other rows that of no turn."""
    if not isinstance(row.body, get_args(Input)):
        return ""
    paused = None if session is None else resumed(session, cast(Input, row.body))
    return turn_id(row.session, row.key, row.n) if paused is None else paused.turn
