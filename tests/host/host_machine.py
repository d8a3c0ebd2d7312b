"""Random work with two hosts on one store, whose processes may die at any moment, judged by what must never happen."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from onrecord import Agent, Ask, ModelError, Said, ToolContext, TurnError, tool
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Interruption, approved, declined, row_key
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import SessionBusy, TurnParked, UsageError
from onrecord.host import Host, Ticket
from onrecord.host.heartbeat import renew
from onrecord.host.leased import Leased
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.record.kinds import TextSaid, TurnClosed, TurnOpened, TurnPaused
from onrecord.session.store import Store
from onrecord.testing import FakeEffects
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.soak.checks import Told, session_problems

__all__ = ("HostMachine",)

SESSIONS = ("s", "t", "r", "e")
"""``r`` is the one that is reset and cut, ``e`` the one that is erased."""

sessions, keys, places = st.sampled_from(SESSIONS), st.sampled_from("klmnop"), st.sampled_from((0, 1))
replies = st.sampled_from(("text", "text", "text", "book", "pay", "both", "overload", "invalid"))
# What is drawn never depends on what is there: a file answers in a thread, and so not always at the same moment.
whichever = st.integers(0, 5)
EXPECTED = (ModelError, TurnError, TurnParked, SessionBusy, UsageError)


class Gated:
    """A vendor that answers when the machine says so, and from some moment on at once."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[str]] = []
        self.is_calm, self.count = False, 0

    @property
    def card(self) -> ModelCard:
        return ModelCard(provider="gated", model="script", protocol="scripted")

    def wire(self, request: Request, /) -> Wire:
        return Wire(body=b"{}")

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """One reply, of the kind the machine chose."""
        kind = "text"
        if not self.is_calm:
            gate = asyncio.get_running_loop().create_future()
            self.waiting.append(gate)
            try:
                kind = await gate
            finally:
                self.waiting.remove(gate)
        self.count += 1
        if kind in {"overload", "invalid"}:
            raise ModelError("told by a test", kind=kind)  # type: ignore[arg-type]  # both are kinds
        for n, name in enumerate({"book": ["book"], "pay": ["pay"], "both": ["book", "pay"]}.get(kind, [])):
            yield CallChunk(wire_id=f"c{self.count}{n}", name=name, raw_args="{}")
        if kind == "text":
            yield TextChunk(f"Reply {self.count}.")
        yield Finished(finish="stop" if kind == "text" else "tool_calls")


@tool
async def book() -> str:
    """Books."""
    return "booked"


@tool
async def pay(ctx: ToolContext[Any]) -> str:
    """Asks, then pays."""
    return "paid" if (await ctx.ask(Ask("Pay?"))).approved else "not paid"


class Floor:
    """Messages and events are answered; a message may arm a wake, which says one line and arms one more."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        if isinstance(turn.input, (Said, Happened)):
            if isinstance(turn.input, Said) and turn.input.content == "Remind me":
                stage.arm(Wake(key=f"tick {turn.id}", at=turn.first_now + timedelta(seconds=3)))
            await stage.speak(turn.spec.brief)
        else:
            await stage.say("Tick.", key="tick")


class HostMachine(RuleBasedStateMachine):
    """What was accepted and what was delivered, kept beside the hosts; in the end all must have come to its end."""

    make: Callable[..., Store]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.effects, self.model = FakeEffects(), Gated()
        self.store = type(self).make(clock=self.effects.now)
        self.agent: Agent[Any, Any] = Agent(self.model, tools=[book, pay], director=Floor())
        self.hosts = [self.host(), self.host()]
        self.tickets: list[tuple[int, Ticket[Any]]] = []
        self.lives = [0, 0]
        self.accepted, self.withdrawn = set[tuple[str, str]](), set[tuple[str, str]]()
        self.delivered: dict[tuple[str, str], set[str]] = {}
        self.fails = self.count = 0
        self.acts = set[asyncio.Task[Any]]()

    # ---- the world

    def host(self) -> Host[Any, Any]:
        return Host(
            self.agent, store=self.store, effects=self.effects, deliver=self.deliver, lease_s=9.0, poll_s=30.0,
            retry=(5.0, 5.0), turns=4,
        )  # fmt: skip

    async def deliver(self, session: SessionKey, message: Outgoing) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError
        self.delivered.setdefault((session.id, message.key), set()).add(message.text)

    def run(self, act: Coroutine[Any, Any, Any]) -> Any:
        """Does it, and lets everything come to rest; the errors that people are told are theirs."""

        async def both() -> Any:
            task = asyncio.ensure_future(act)
            await self.rest()
            if not task.done():  # it waits for a turn
                self.acts.add(task)
                return None
            try:
                return task.result()
            except EXPECTED:
                return None

        return self.loop.run_until_complete(both())

    async def rest(self) -> None:
        """Until nothing moves but by the clock or the vendor."""
        for _ in range(6):
            for host in self.hosts:
                worker = host._desk.worker
                if worker is not None:
                    worker.tell(gone=True)
            for _ in range(4):
                await self.store.rows("in")
                for _ in range(6):
                    await asyncio.sleep(0)

    # ---- people

    def send(self, place: int, session: str, input: Input, **more: Any) -> None:
        ticket = self.run(self.hosts[place].send(session, input, **more))
        if ticket is not None:
            self.accepted.add((session, row_key(input, "")))
            self.tickets.append((self.lives[place] * 2 + place, ticket))

    @rule(place=places, session=sessions, key=keys, text=st.sampled_from(("Hi", "Hi", "Remind me")))
    def write(self, place: int, session: str, key: str, text: str) -> None:
        """A message, perhaps one that was sent before."""
        self.send(place, session, Said(text, key=key))

    @rule(place=places, session=sessions, key=keys, busy=st.sampled_from(("supersede", "reject")))
    def write_over(self, place: int, session: str, key: str, busy: Any) -> None:
        """A message instead of those before it, or for an idle session alone."""
        self.send(place, session, Said("No", key=key), busy=busy)

    @rule(place=places, session=sessions, key=keys)
    def happen(self, place: int, session: str, key: str) -> None:
        """An event."""
        self.send(place, session, Happened("paid", key=key))

    @rule(which=whichever)
    def withdraw(self, which: int) -> None:
        """A message that is taken back, perhaps too late, perhaps at a host that is gone."""
        if not self.tickets:
            return
        _, ticket = self.tickets[which % len(self.tickets)]
        self.withdrawn.add((ticket.session.id, ticket.key))
        self.run(ticket.cancel())

    @rule(place=places, session=sessions)
    def interrupt(self, place: int, session: str) -> None:
        """Somebody talks over what runs."""
        self.count += 1
        self.run(self.hosts[place].interrupt(session, Interruption(id=f"i{self.count}", cause="barge-in")))

    @rule(place=places, session=sessions, agree=st.booleans())
    def answer(self, place: int, session: str, agree: bool) -> None:
        """The answer to what is open."""
        held = self.loop.run_until_complete(self.store.load(session))
        if held is not None and held.question is not None:
            given = (approved if agree else declined)(held.question, by="ana")
            self.run(self.hosts[place].answer(session, given))

    @rule(place=places, is_reset=st.booleans())
    def change(self, place: int, is_reset: bool) -> None:
        """A conversation is reset, or loses its first message."""
        held = self.loop.run_until_complete(self.store.load("r"))
        if held is not None and is_reset:
            self.run(self.hosts[place].reset("r", by="ana"))
        elif held is not None and held.conversation.messages:
            self.run(self.hosts[place].remove("r", held.conversation.messages[0].id, by="ana"))

    @rule(place=places, is_whole=st.booleans())
    def erase(self, place: int, is_whole: bool) -> None:
        """Somebody asks to be forgotten, or for one message to be."""
        held = self.loop.run_until_complete(self.store.load("e"))
        some = [] if held is None else [message.id for message in held.conversation.messages[:1]]
        if is_whole or some:
            self.run(self.hosts[place].erase("e", messages=None if is_whole else some, why="asked"))

    # ---- the vendor, the channel, time

    @rule(kind=replies, which=whichever)
    def reply(self, kind: str, which: int) -> None:
        """One of the calls that wait is answered."""
        waiting = [gate for gate in self.model.waiting if not gate.done()]
        if not waiting:
            return
        waiting[which % len(waiting)].set_result(kind)
        self.run(asyncio.sleep(0))

    @rule()
    def channel_fails(self) -> None:
        """The next message is not delivered at once."""
        self.fails += 1

    @rule(seconds=st.sampled_from((1, 4, 10, 20)))
    def advance(self, seconds: int) -> None:
        """Time passes: leases may end, wakes may come due."""
        self.effects.advance(seconds=seconds)
        self.run(asyncio.sleep(0))

    @rule(place=places)
    def beat(self, place: int) -> None:
        """A host renews its leases and learns of marks."""
        self.run(self.renewed(place))

    async def renewed(self, place: int) -> None:
        worker = self.hosts[place]._desk.worker
        if worker is not None:
            held: list[Leased] = [*worker.takes.running.values(), *worker.delivery.running.values()]
            await renew(worker.setup, held)

    # ---- ends of processes

    @rule(place=places)
    def crash(self, place: int) -> None:
        """A process dies: its tasks are gone, its leases stay until they end."""
        self.loop.run_until_complete(self.killed(place))
        self.lives[place] += 1
        self.hosts[place] = self.host()
        self.run(self.started(place))

    async def killed(self, place: int) -> None:
        worker = self.hosts[place]._desk.worker
        if worker is None:
            return
        takes = [running.task for running in worker.takes.running.values()]
        sent = [sending.task for sending in worker.delivery.running.values()]
        tasks = [task for task in (*worker._tasks, *takes, *sent, *worker.takes._besides) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def started(self, place: int) -> None:
        self.hosts[place]._desk.start()

    @rule(place=places)
    def close(self, place: int) -> None:
        """A process ends in order, at once."""
        self.loop.run_until_complete(self.hosts[place].close(drain_s=0))
        self.lives[place] += 1
        self.hosts[place] = self.host()
        self.run(self.started(place))

    # ---- the end

    def teardown(self) -> None:
        try:
            self.loop.run_until_complete(self.drained())
            self.loop.run_until_complete(self.judged())
        finally:
            self.loop.run_until_complete(self.ended())
            self.loop.close()

    async def drained(self) -> None:
        """Vendor and channel are well, everybody answers, parked rows are tried again: everything comes to its end."""
        self.model.is_calm, self.fails = True, 0
        for _ in range(60):
            for gate in list(self.model.waiting):
                if not gate.done():
                    gate.set_result("text")
            for place in (0, 1):
                self.hosts[place]._desk.start()
                await self.renewed(place)
            await self.rest()
            is_open = False
            for session in SESSIONS:
                await self.store.revive("in", SessionKey(session))
                await self.store.revive("out", SessionKey(session))
                held = await self.store.load(session)
                if held is not None and held.question is not None:
                    is_open = True
                    self.acts.add(asyncio.ensure_future(self.hosts[0].answer(session, approved(held.question, by="a"))))
            if not is_open and not await self.store.rows("in") and not await self.store.rows("out"):
                return
            self.effects.advance(seconds=5)
        raise AssertionError(f"stuck: {await self.store.rows('in')} {await self.store.rows('out')}")

    async def judged(self) -> None:
        """Every promise."""
        await self.rest()
        turns, said = Counter[tuple[str, str]](), dict[tuple[str, str], str]()
        for session in SESSIONS:
            held = await self.store.load(session)
            if held is None:
                continue
            told = Told(held, [entry async for entry in self.store.entries(session)])
            broken = list(session_problems(told))
            assert not broken, broken
            if told.is_erased:
                continue
            bodies = [entry.body for entry in told.entries]
            turns.update((session, b.input_key) for b in bodies if isinstance(b, TurnOpened) and b.input_key)
            for taken in told.takes:
                if isinstance(taken[-1].body, (TurnClosed, TurnPaused)):
                    texts = [e.body for e in taken if isinstance(e.body, TextSaid) and e.body.text]
                    said.update(((session, body.key), body.text) for body in texts)
        delivered = {name: texts for name, texts in self.delivered.items() if name[0] != "e"}
        assert delivered == {name: {text} for name, text in said.items()}
        lost = {name for name in self.accepted if name[0] != "e"} - set(turns) - self.withdrawn
        assert not lost, lost
        twice = [name for name, count in turns.items() if count > 1 and name[0] != "r"]
        assert not twice, twice
        living = {life * 2 + place for place, life in enumerate(self.lives)}
        waiting = [ticket for life, ticket in self.tickets if life in living and not ticket.is_done]
        assert not waiting, waiting

    async def ended(self) -> None:
        for place in (0, 1):
            await self.hosts[place].close(drain_s=0)
        for act in self.acts:
            act.cancel()
        await asyncio.gather(*self.acts, return_exceptions=True)
        await self.store.close()
