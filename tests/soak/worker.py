"""One worker of a soak: a host that works, and customers who make use of it through its door until all is calm."""

# ruff: noqa: S311  chance, not secrets
from __future__ import annotations

import asyncio
import logging
import random
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from onrecord import ModelError, Said, TurnError
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Interruption, approved, declined, row_key
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import SessionBusy, StoreError, TurnParked, UsageError
from onrecord.host import Given, Host
from onrecord.stores import SqliteStore
from tests.soak.agents import Till, agent_at
from tests.soak.diary import Diary

__all__ = ("LEASE_S", "SESSIONS", "work")

LEASE_S = 1.0
SESSIONS = (*(f"s{n}" for n in range(10)), "r0", "r1", "e0")
"""Those that begin with ``r`` are reset and cut now and then, those with ``e`` are erased."""

_EXPECTED = (ModelError, TurnError, TurnParked, SessionBusy)


class Customers:
    """People, webhooks and approvers, who act by chance and write down what they were told."""

    def __init__(self, host: Host[Any, Any], diary: Diary, chance: random.Random) -> None:
        self.host, self.diary, self.chance = host, diary, chance
        self.recent: list[tuple[str, Input]] = []
        self.count = 0
        self.acts: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (30, self.write), (8, self.read), (8, self.supersede), (4, self.refuse), (6, self.repeat), (6, self.remind),
            (6, self.happen), (4, self.webhook), (8, self.answer), (5, self.interrupt), (3, self.withdraw),
            (2, self.change),
        ]  # fmt: skip

    async def act(self) -> None:
        """One thing, and an unexpected error in the diary."""
        weights = [weight for weight, _ in self.acts]
        (_, act) = self.chance.choices(self.acts, weights)[0]
        try:
            await act()
        except _EXPECTED as error:
            self.diary.note("told", error=error.code)
        except StoreError as error:
            self.diary.note("store failed", error=error.code)
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            self.diary.note("oops", error=traceback.format_exc())

    def session(self) -> str:
        """Anybody."""
        return self.chance.choice(SESSIONS)

    def key(self) -> str:
        """A key that no other process uses, nor this one's next life."""
        self.count += 1
        return f"{time.time_ns():x}-{self.count}"

    async def send(self, session: str, input: Input, **more: Any) -> Any:
        """Sends, and notes before and after: what is accepted must not be lost."""
        told = {"session": session, "key": input.key, "row": row_key(input, "")}
        self.diary.note("asked", **told)
        ticket = await self.host.send(session, input, **more)
        self.diary.note("accepted", **told, n=ticket.number, new=ticket.is_new)
        self.recent = [*self.recent[-9:], (session, input)]
        return ticket

    async def write(self) -> None:
        """A message; half of its senders wait for the reply."""
        ticket = await self.send(self.session(), Said("Hello", key=self.key()))
        if self.chance.random() < 0.5:
            self.diary.note("replied", status=(await ticket.result()).status)

    async def read(self) -> None:
        """A message whose reply is read while it is made."""
        session, key = self.chance.choice(SESSIONS[:10]), self.key()
        self.diary.note("asked", session=session, key=key)
        async with self.host.turn_stream(session, Said("Tell me", key=key)) as stream:
            async for _ in stream.text:
                if self.chance.random() < 0.1:
                    return
            self.diary.note("replied", status=(await stream.result()).status)

    async def supersede(self) -> None:
        """A message instead of those before it."""
        await self.send(self.session(), Said("No, wait", key=self.key()), busy="supersede")

    async def refuse(self) -> None:
        """A message for idle sessions alone."""
        await self.send(self.session(), Said("Anybody there?", key=self.key()), busy="reject")

    async def repeat(self) -> None:
        """A channel that sends again what it sent."""
        if self.recent:
            await self.send(*self.chance.choice(self.recent))

    async def remind(self) -> None:
        """A message that arms a wake."""
        await self.send(self.session(), Said("Remind me", key=self.key()))

    async def happen(self) -> None:
        """An event."""
        await self.send(self.session(), Happened("paid", key=self.key()))

    async def webhook(self) -> None:
        """An event that all workers hear of at the same moment."""
        beat = int(time.time() * 2)
        await self.send(SESSIONS[beat % 10], Happened("beat", key=f"beat {beat}"))

    async def answer(self) -> None:
        """An approver looks at one session."""
        await self.answer_in(self.session())

    async def answer_in(self, session: str) -> None:
        """Answers what is open; two approvers may answer at once."""
        held = await self.host.store.load(session)
        if held is not None and held.question is not None:
            agree = approved if self.chance.random() < 0.7 else declined
            await self.host.answer(session, agree(held.question, by="ana"))

    async def interrupt(self) -> None:
        """Somebody talks over whatever runs, or over the last reply."""
        session, id = self.session(), self.key()
        held = await self.host.store.load(session)
        turn = ""
        if held is not None and held.conversation.messages and self.chance.random() < 0.5:
            turn = getattr(held.conversation.messages[-1], "turn", "") or ""
        by = Interruption(id=id, turn=turn, cause="barge-in", heard=3 if turn else None)
        self.diary.note("interrupted", told=await self.host.interrupt(session, by))

    async def withdraw(self) -> None:
        """A message that is taken back at once; it may be too late."""
        session, key = self.session(), self.key()
        ticket = await self.send(session, Said("Oh, never mind", key=key))
        self.diary.note("withdrawing", session=session, key=key)
        await ticket.cancel()

    async def change(self) -> None:
        """A conversation is reset, or loses a message, or is erased in part or as a whole."""
        session = self.chance.choice(SESSIONS[10:])
        held = await self.host.store.load(session)
        if held is None or not held.conversation.messages:
            return
        try:
            if session.startswith("e"):
                some = [held.conversation.messages[0].id] if self.chance.random() < 0.7 else None
                done = await self.host.erase(session, messages=some, why="asked")
                self.diary.note("erased", entries=done.entries)
            elif self.chance.random() < 0.5:
                await self.host.reset(session, by="ana")
            else:
                await self.host.remove(session, held.conversation.messages[0].id, by="ana")
        except UsageError as error:  # somebody else was faster
            self.diary.note("told", error=error.code)


class _Told(logging.Handler):
    """The host's own log, as codes."""

    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self.diary = diary

    def emit(self, record: logging.LogRecord) -> None:
        self.diary.note("log", level=record.levelname, text=record.getMessage())


def work(folder: Path, seed: str) -> None:
    """Works until it is killed. Once the file ``calm`` is there, no customer comes any more."""
    diary, chance = Diary(folder / "diary"), random.Random(seed)
    port = int((folder / "port").read_text(encoding="utf-8"))
    logging.getLogger("onrecord").addHandler(_Told(diary))

    async def given(session: SessionKey, input: Input) -> Given[Till]:
        return Given(context=Till(port))

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        if chance.random() < 0.03 and not (folder / "calm").exists():
            raise ConnectionError
        diary.note("delivered", session=session.id, key=message.key, text=message.text)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, told: diary.note("oops", error=f"{told.get('exception')!r} {told}"))
        host = Host(
            agent_at(port), store=SqliteStore(folder / "soak.db"), given=given, deliver=deliver, lease_s=LEASE_S,
            poll_s=0.1, retry=(0.1, 0.2, 0.3, 0.5, 0.8), turns=8,
        )  # fmt: skip
        serving = asyncio.create_task(host.work())
        customers = Customers(host, diary, chance)
        acts = set[asyncio.Task[None]]()
        while not (folder / "calm").exists():
            await asyncio.sleep(chance.expovariate(12))
            acts = {act for act in acts if not act.done()}
            if len(acts) < 40:
                acts.add(asyncio.create_task(customers.act()))
        while True:
            await asyncio.sleep(0.2)
            if serving.done():
                diary.note("oops", error=f"the host stopped working: {serving!r}")
            for session in SESSIONS:
                await host.store.revive("in", SessionKey(session))
                await host.store.revive("out", SessionKey(session))
                acts.add(asyncio.create_task(_quietly(customers.answer_in(session))))

    asyncio.run(run())


async def _quietly(act: Awaitable[object]) -> None:
    try:
        await act
    except _EXPECTED:
        return
