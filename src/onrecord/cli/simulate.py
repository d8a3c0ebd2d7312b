"""A simulation while it runs: lines in, turns out, over a clock that the customer moves."""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.asking import Lines, answer_to, form_of, put
from onrecord.cli.failure import FAILED, INTERRUPTED, OK, Wrong, debugging, said_of, tell
from onrecord.cli.flow_lines import flows_of
from onrecord.cli.flows import COMMANDS
from onrecord.cli.interrupts import Stopping, on_interrupt
from onrecord.cli.loading import agent_named, function_named
from onrecord.cli.outcome_words import outcome_texts
from onrecord.cli.sim_words import data_lines, row_lines, run_lines, script_lines
from onrecord.cli.simulated_time import SimulatedTime, instant_named, length_named
from onrecord.cli.terminal import Keyboard, Screen
from onrecord.cli.world import Taken, World, WorldStuck
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Said, Started, row_key
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import FlowInvalid, StoreError
from onrecord.flows.captions import lasting
from onrecord.flows.invalid import nearest
from onrecord.jsonio import Json, loads
from onrecord.session.memory import MemoryStore
from onrecord.session.store import Store
from onrecord.turn.result import TurnResult

__all__ = ("simulate",)

PATIENCE_S = 2.0
"""After this time without a word the screen says whom one waits for."""


def simulate(args: argparse.Namespace) -> int:
    """The whole command: returns its exit code."""
    if not args.session.strip():
        raise Wrong("--session needs a name", hint="leave it out for the session 'customer'")
    agent = agent_named(args.agent, model=args.model)
    flows = flows_of(agent, args.agent)
    given = None if args.given is None else function_named(args.given, "--given")
    clock = SimulatedTime(instant_named(args.at))
    screen = Screen()
    lines: Lines = Keyboard(screen) if args.script is None else _Script(args.script, screen)
    if not debugging(args):  # what the host would log is told in lines of the simulation
        logging.getLogger("onrecord").addHandler(logging.NullHandler())
    store = _opened(args.store, agent, clock)
    world = World(agent, flows, store, SessionKey(args.session), clock, given)
    simulation = Simulation(agent, world, screen, lines, is_kept=args.store is not None, debug=debugging(args))
    with asyncio.Runner() as runner:
        simulation.runner = runner
        try:
            simulation.begin(args.store)
            simulation.go_on()
        finally:
            runner.run(world.close())
    return simulation.code


def _opened(path: str | None, agent: Agent[Any, Any], clock: SimulatedTime) -> Store:
    bodies = agent.plan.codec.kinds.values()
    if path is None:
        return MemoryStore(bodies=bodies, clock=clock.now)
    from onrecord.stores.sqlite import SqliteStore

    return SqliteStore(path, bodies=bodies, clock=clock.now)


class _Script:
    """Lines of a file, written out behind the prompt as they are read."""

    live = False

    def __init__(self, path: str, screen: Screen) -> None:
        if not Path(path).is_file():
            raise Wrong(f"there is no script {path!r}", hint="name a text file: a message or a command on each line")
        self._lines = script_lines(Path(path).read_text(encoding="utf-8", errors="replace"))
        self._screen = screen

    def line(self, prompt: str) -> str:
        """The next one. EOFError behind the last."""
        line = next(self._lines, None)
        if line is None:
            raise EOFError
        self._screen.line(f"{prompt}{line}")
        return line


class _Left(Exception):
    """The customer ended the simulation with a command."""


class Simulation:
    """One simulation at a terminal, or over a script."""

    runner: asyncio.Runner

    def __init__(
        self, agent: Agent[Any, Any], world: World, screen: Screen, lines: Lines, *, is_kept: bool, debug: bool
    ) -> None:
        self.agent, self.world, self.screen, self.lines, self.debug = agent, world, screen, lines, debug
        self.private: dict[str, str] = {}
        self.failed = self.interrupted = False
        # A store may hold inputs of an earlier simulation, and theirs must not be taken for ours.
        self._prefix = f"{secrets.token_hex(3)}-" if is_kept else "m"
        self._count = 0

    @property
    def code(self) -> int:
        """At a terminal a failed turn was seen; a script has to be told."""
        if self.interrupted:
            return INTERRUPTED
        return FAILED if self.failed and not self.lines.live else OK

    def begin(self, path: str | None) -> None:
        """Says who talks, when, and where it is kept."""
        screen, model, world = self.screen, self.agent.plan.fixed_model(), self.world
        self.runner.run(world.open())
        name = self.agent.name if model is None else f"{self.agent.name} ({model.card.name})"
        kept = f"session {world.key.id!r} in {path}" if path else "nothing is kept"
        screen.line(f"{name} · a simulation from {self._now()} on · {kept}", bold=True)
        if model is not None and model.card.honest:
            screen.line(model.card.honest)
        if self.lines.live:
            screen.line("/wait 24h lets time pass, /help lists commands, Ctrl-D ends it", dim=True)

    def go_on(self) -> None:
        """Messages, commands and questions, until the input ends. Where nobody types, Ctrl-C ends it too."""
        left_open = ""
        while not self.interrupted:
            try:
                question = None if self.world.session is None else self.world.session.question
                if question is not None and question.key != left_open:
                    left_open = "" if self._ask() else question.key
                    continue
                line = self.lines.line(f"{self._now()} > ").strip()
                if line == "/answer":
                    left_open = ""
                elif line:
                    self._line(line)
            except (EOFError, _Left):
                break
            except KeyboardInterrupt:
                self.interrupted = not self.lines.live
                break
        self.screen.fresh()

    def _now(self) -> str:
        return self.world.clock.told(self.world.clock.at)

    def _line(self, line: str) -> None:
        if line.startswith("/") and not line.startswith("//"):
            self._command(line)
        else:
            self._take(Said(line.removeprefix("/"), key=self._key()))

    def _key(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _ask(self) -> bool:
        """The open question; False when it is left for later."""
        session = self.world.session
        question = None if session is None else session.question
        if session is None or question is None:
            return True
        form = form_of(session)
        put(self.screen, session, form, self.private)
        answer = answer_to(self.screen, self.lines, question, form, self._command)
        if answer is None:
            self.screen.line("  left open: /answer comes back to it", dim=True)
            return False
        self._take(answer)
        return True

    # ---- commands

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        rest, world = rest.strip(), self.world
        match name:
            case "/quit" | "/exit" | "/q":
                raise _Left
            case "/wait":
                self._wait(rest)
            case "/next":
                self._next()
            case "/event" | "/start":
                self._report(name, rest)
            case "/data":
                known = {} if world.session is None else world.session.data
                self._list(data_lines(known, world.flows.fields), "nothing is known yet")
            case "/runs":
                self._list(run_lines(world.state, world.clock), "no run is live")
            case "/wakes":
                rows = self.runner.run(world.rows())
                self._list(row_lines(rows, world.state, world.key.id, world.clock), "nothing is due later")
            case "/help" | "/?":
                self.screen.line(COMMANDS, dim=True)
            case _:
                self._refuse(f"there is no {name}; /help lists the commands")

    def _list(self, lines: Iterator[str], otherwise: str) -> None:
        for line in list(lines) or [otherwise]:
            self.screen.line(f"  {line}", dim=True)

    def _refuse(self, told: str) -> None:
        self.failed = True
        self.screen.line(f"  {told}", dim=True)

    def _report(self, command: str, rest: str) -> None:
        """An event, or a start by hand, with the JSON behind its name."""
        what, _, text = rest.partition(" ")
        flows = {flow.id for flow in self.world.flows.declared}
        if not what:
            self._refuse(f"{command} needs {'an event' if command == '/event' else 'a flow'}, and JSON if there is any")
            return
        if command == "/start" and what not in flows:
            self._refuse(f"there is no flow {what!r}: {nearest(what, sorted(flows))}")
            return
        try:
            value: Json = loads(text) if text.strip() else None
        except ValueError as error:
            self._refuse(f"what stands behind {what} is no JSON: {said_of(error)[0]}")
            return
        key = self._key()
        self._take(
            Happened(what, key=key, payload=value) if command == "/event" else Started(what, key=key, input=value)
        )

    # ---- time

    def _wait(self, text: str) -> None:
        try:
            until = self.world.clock.at + length_named(text)
        except FlowInvalid as error:
            self._refuse(f"{error}; {error.hint}" if error.hint else f"{error}")
        except OverflowError:
            self._refuse("the calendar ends before that")
        else:
            self._guarded(self._move(until))

    def _next(self) -> None:
        row = self.runner.run(self.world.due())
        if row is None:
            self.screen.line("  nothing is due later", dim=True)
        else:
            self._guarded(self._move(max(row.due or self.world.clock.at, self.world.clock.at)))

    async def _move(self, until: datetime) -> None:
        """Lets time pass until then; what comes due on the way is taken at its own time."""
        world, began, seen, has_shown = self.world, self.world.clock.at, set[int](), False
        while not world.is_stopped:
            row = await world.due()
            if row is None or (row.due is not None and row.due > until) or row.n in seen:
                break
            world.clock.move(row.due or world.clock.at)
            with self._interruptible():
                taken = await world.serve()
            if not taken:
                seen.add(row.n)
            for one in taken:
                await self._show(one)
                has_shown = True
        if not world.is_stopped:
            world.clock.move(until)
        if not has_shown:
            passed = lasting(world.clock.at - began)
            self.screen.line(f"  {passed} later, at {self._now()}, nothing has happened", dim=True)

    # ---- turns

    def _take(self, input: Input) -> None:
        self._guarded(self._put(input))

    async def _put(self, input: Input) -> None:
        with self._interruptible():
            taken = await self.world.put(input)
        for one in taken:
            await self._show(one)

    def _guarded(self, work: Any) -> None:
        """Does it; what fails is told, and the simulation goes on where it can."""
        self.world.is_stopped = False
        try:
            self.runner.run(work)
        except (BrokenPipeError, KeyboardInterrupt, WorldStuck):
            raise
        except Exception as error:  # noqa: BLE001 - told in a line; the next message may do better
            self._tell(error)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Inside, Ctrl-C stops the turn that runs, and time. Where nobody types, the simulation as well."""
        stopping, screen = Stopping(self.world.stop, self.screen), self.screen
        is_told = False

        def interrupt() -> None:
            self.interrupted = not self.lines.live
            stopping.stop()

        def wait() -> None:
            nonlocal is_told
            if screen.styled and screen.at_start:
                screen.write("  waiting for the model …", dim=True)
                is_told = True

        waiting = asyncio.get_running_loop().call_later(PATIENCE_S, wait)
        with on_interrupt(interrupt):
            try:
                yield
            finally:
                waiting.cancel()
                if is_told:
                    screen.erase()

    async def _show(self, taken: Taken) -> None:
        """What a turn said, what its steps came to, and how it failed if it did."""
        if taken.cause:
            self.screen.line(f"{self.world.clock.told(taken.at)} · {taken.cause}", bold=True)
        if not taken.ticket.is_done:  # it was left in the middle, and is taken again
            return
        failure: Exception | None = None
        result: TurnResult[Any] | None
        try:
            result = await taken.ticket.result()
        except Exception as error:  # noqa: BLE001 - whatever ended the turn is told
            failure, result = error, getattr(error, "result", None)
        if result is not None:
            self._show_result(result)
        if failure is not None:
            self._tell(failure)
            await self._tell_later(taken)

    def _show_result(self, result: TurnResult[Any]) -> None:
        screen = self.screen
        for message in result.messages:
            screen.line(_message_text(message))
        if result.status == "interrupted":
            screen.line("  interrupted", dim=True)
        for told in outcome_texts(result, self.world.clock.told):
            screen.line(f"    {told}", dim=True)
        self.private = dict(result.private)

    async def _tell_later(self, taken: Taken) -> None:
        """Whether an input whose turn failed is taken again, as a host does it."""
        key = row_key(taken.input, "")
        for row in await self.world.rows():
            if row.key == key and not row.dead:
                told = self.world.clock.told(row.due or self.world.clock.at)
                self.screen.line(f"  it is tried again at {told}", dim=True)

    def _tell(self, error: Exception) -> None:
        self.failed = True
        if self.debug or not self.screen.live or isinstance(error, StoreError):
            self.screen.fresh()
            self.screen.out.flush()
            tell(error, debug=self.debug)
            return
        told, hint = said_of(error)
        self.screen.line(f"! {told}", bold=True)
        if hint:
            self.screen.line(f"  hint: {hint}", dim=True)


def _message_text(message: Outgoing) -> str:
    """A message as it arrives: after which delay, its text, its media."""
    delay = f"(after {lasting(timedelta(milliseconds=message.after_ms))}) " if message.after_ms else ""
    media = f"[{message.media}]" if message.media else ""
    return f"{delay}{' '.join(filter(None, (message.text, media)))}"
