"""One worker of the days: a host that works, and a door through which customers, warehouse and staff come in."""

# ruff: noqa: S311  chance, not secrets
from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import traceback
from pathlib import Path
from typing import Any

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Interruption, Said, Started, Woke, approved, declined
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import ModelError, StoreError, TurnError, UsageError
from onrecord.host import Caller, Given, Host
from onrecord.stores import SqliteStore
from onrecord.turn.options import Silenced
from tests.days.customers import Act
from tests.days.shop import Clock, Days, shop
from tests.soak.diary import Diary

__all__ = ("LEASE_S", "input_of", "work")

LEASE_S = 1.0
STAFF = Caller("the staff", audiences=frozenset({"staff"}))


def input_of(act: Act) -> Input:
    """The input that an act is."""
    if act.kind == "said":
        return Said(act.text, key=act.key)
    return Started(act.text, key=act.key) if act.kind == "started" else Happened(act.text, key=act.key)


class Door:
    """Takes acts from the outside, and tells it once they are accepted."""

    def __init__(self, host: Host[Any, Any], diary: Diary, chance: random.Random, told: int) -> None:
        self.host, self.diary, self.chance, self.told = host, diary, chance, told
        self.busy = set[asyncio.Task[None]]()

    async def serve(self, asked: int) -> None:
        """Until the outside is gone."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(asked, "rb")
        )
        while line := await reader.readline():
            task = asyncio.create_task(self.take(line))
            self.busy.add(task)
            task.add_done_callback(self.busy.discard)

    async def take(self, line: bytes) -> None:
        """One act. Whatever goes wrong is in the diary."""
        told = json.loads(line)
        place = [told["session"], told["key"]]
        acting = asyncio.create_task(self.act(told))
        await asyncio.wait([acting], timeout=0.1)
        self.tell("begun", *place)  # what waits for a later hour must not keep the clock from moving
        await acting
        self.tell("done", *place)

    def tell(self, *words: str) -> None:
        """The outside reads it."""
        os.write(self.told, json.dumps(words).encode() + b"\n")

    async def act(self, told: dict[str, Any]) -> None:
        """Does it, to the end that its sender sees."""
        try:
            if told["kind"] == "answer":
                await self.answer(told["session"])
            else:
                await self.accept(Act(**told))
        except (ModelError, TurnError, StoreError, UsageError) as error:
            self.diary.note("told", error=error.code)
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            self.diary.note("oops", error=traceback.format_exc())

    async def accept(self, act: Act) -> None:
        """An input; some senders wait for its turn, or read it while it is made."""
        options = []
        if act.silenced:
            options = [Silenced(act.silenced, understand="understand" in act.silenced, skip="skip" in act.silenced)]
        input, fate = input_of(act), self.chance.random()
        if fate < 0.2 and act.busy == "queue":
            async with self.host.turn_stream(act.session, input, options=options) as stream:
                text = "".join([piece async for piece in stream.text])
                await stream.result()
            if any(mark in text for mark in ('{"', '":')):
                self.diary.note("oops", error=f"a delta shows an envelope: {text!r}")
            return
        ticket = await self.host.send(act.session, input, busy=act.busy, options=options)  # type: ignore[arg-type]  # one of three
        if fate < 0.5:
            await ticket.result()

    async def answer(self, session: str) -> None:
        """Somebody of the staff decides."""
        held = await self.host.store.load(session)
        if held is not None and held.question is not None:
            agree = approved if self.chance.random() < 0.6 else declined
            await self.host.answer(session, agree(held.question, by="ana"), caller=STAFF)


class _Log(logging.Handler):
    def __init__(self, diary: Diary) -> None:
        super().__init__(logging.INFO)
        self.diary = diary

    def emit(self, record: logging.LogRecord) -> None:
        self.diary.note("log", level=record.levelname, text=record.getMessage())


def work(folder: Path, life: str, asked: int, told: int) -> None:
    """Works until it is killed."""
    diary, chance, clock = Diary(folder / "diary"), random.Random(life), Clock(folder / "clock")
    logging.getLogger("onrecord").addHandler(_Log(diary))
    agent = shop(clock, life, chance, diary)
    hosts, stopping = list[Host[Any, Any]](), list[asyncio.Task[None]]()

    async def given(session: SessionKey, input: Input) -> Given[Any]:
        if isinstance(input, Woke):
            diary.note("woke", session=session.id, key=input.key, at=clock.now().isoformat())
            if chance.random() < 0.01:
                raise ConnectionError
        if isinstance(input, (Said, Woke)) and chance.random() < 0.02:
            stopping.append(asyncio.create_task(stop(session)))
        return Given(context={"customer": session.id})

    async def stop(session: SessionKey) -> None:
        """Somebody talks over whatever is being said."""
        await asyncio.sleep(chance.expovariate(300))
        told = await hosts[0].interrupt(session, Interruption(id=os.urandom(6).hex(), cause="barge-in"))
        diary.note("stopped", outcome=told)

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        if chance.random() < 0.02:
            raise ConnectionError
        diary.note("delivered", session=session.id, key=message.key, text=message.text)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, told: diary.note("oops", error=f"{told.get('exception')!r} {told}"))
        store = SqliteStore(folder / "days.db", clock=clock.now, bodies=agent.plan.codec.kinds.values())
        host = Host(
            agent, store=store, effects=Days(clock, life), given=given, deliver=deliver, lease_s=LEASE_S, poll_s=0.02,
            turns=16,
        )  # fmt: skip
        hosts.append(host)
        serving = asyncio.create_task(host.work())
        door = asyncio.create_task(Door(host, diary, chance, told).serve(asked))
        await asyncio.wait([serving, door], return_when=asyncio.FIRST_COMPLETED)
        diary.note("oops", error=f"a worker stopped: {serving!r} {door!r}")

    asyncio.run(run())
