"""A simulation while it runs: lines in, turns out, over a clock that the customer moves."""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.asking import Lines, answer_to, form_of, put
from onrecord.cli.failure import FAILED, INTERRUPTED, OK, Wrong, debugging, logged
from onrecord.cli.flow_lines import flows_of
from onrecord.cli.flows import COMMANDS
from onrecord.cli.interrupts import Stopping, on_interrupt
from onrecord.cli.loading import agent_named, function_named
from onrecord.cli.sim_commands import Leave, Look, NotUnderstood, Pass, Report, command_named
from onrecord.cli.sim_screen import SimScreen
from onrecord.cli.sim_words import data_lines, row_lines, run_lines, script_lines
from onrecord.cli.simulated_time import SimulatedTime, instant_named
from onrecord.cli.terminal import Keyboard, Screen
from onrecord.cli.world import World, WorldStuck
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Said, Started
from onrecord.flows.captions import lasting
from onrecord.flows.invalid import nearest
from onrecord.session.memory_store import MemoryStore
from onrecord.session.store import Store

__all__ = ("simulate",)

SETTLE_S = 0.002
"""The event loop stands still while a person types: connections that closed meanwhile are noticed before the turn."""


def simulate(args: argparse.Namespace) -> int:
    """The whole command: returns its exit code."""
    if not args.session.strip():
        raise Wrong("--session needs a name", hint="leave it out for the session 'customer'")
    with logged(debug=debugging(args)):
        return _simulated(args)


def _simulated(args: argparse.Namespace) -> int:
    agent = agent_named(args.agent, model=args.model)
    flows = flows_of(agent, args.agent)
    given = None if args.given is None else function_named(args.given, "--given")
    clock = SimulatedTime(instant_named(args.at))
    screen = Screen()
    lines: Lines = Keyboard(screen) if args.script is None else _Script(args.script, screen)
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
            told = f"the script {path!r} is no file" if Path(path).exists() else f"there is no script {path!r}"
            raise Wrong(told, hint="name a text file: a message or a command on each line")
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
        self.agent, self.world, self.lines = agent, world, lines
        self.screen, self.shows = screen, SimScreen(screen, world, debug=debug)
        self.interrupted = False
        self._flows = [flow.id for flow in world.flows.declared]
        # A store may hold inputs of an earlier simulation, and theirs must not be taken for ours.
        self._prefix = f"{secrets.token_hex(3)}-" if is_kept else "m"
        self._count = 0

    @property
    def code(self) -> int:
        """At a terminal a failed turn was seen; a script has to be told."""
        if self.interrupted:
            return INTERRUPTED
        return FAILED if self.shows.failed and not self.lines.live else OK

    def begin(self, path: str | None) -> None:
        """Says who talks, when, and where it is kept."""
        screen, model, world = self.screen, self.agent.plan.fixed_model(), self.world
        self.runner.run(world.open())
        name = self.agent.name if model is None else f"{self.agent.name} ({model.card.name})"
        kept = f"session {world.key.id!r} in {path}" if path else "nothing is kept"
        screen.line(f"{name} · a simulation from {self.shows.now} on · {kept}", bold=True)
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
                line = self.lines.line(f"{self.shows.now} > ").strip()
                if line == "/answer" and question is not None:
                    left_open = ""
                elif line.startswith("/") and not line.startswith("//"):
                    self._command(line)
                elif line:
                    self._take(Said(line.removeprefix("/"), key=self._key()))
            except (EOFError, _Left):
                break
            except KeyboardInterrupt:
                self.interrupted = not self.lines.live
                break
        self.screen.fresh()

    def _key(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _ask(self) -> bool:
        """The open question; False when it is left for later."""
        session = self.world.session
        question = None if session is None else session.question
        if session is None or question is None:
            return True
        self._put_question()
        answer = answer_to(self.screen, self.lines, question, form_of(session), self._command)
        if answer is None:
            self.screen.line("  left open: /answer comes back to it", dim=True)
            return False
        self._take(answer)
        return True

    def _put_question(self) -> None:
        session = self.world.session
        if session is None or session.question is None:
            self.shows.rows((), "no question is open")
        else:
            put(self.screen, session, form_of(session), self.shows.private)

    # ---- commands

    def _command(self, line: str) -> None:
        try:
            command = command_named(line, self._flows)
        except NotUnderstood as error:
            self.shows.refuse(str(error))
            return
        match command:
            case Leave():
                raise _Left
            case Look("question"):
                self._put_question()
            case Pass():
                self._pass(command)
            case Report(kind="event", name=name, value=value):
                self._take(Happened(name, key=self._key(), payload=value))
                if name not in (events := self.world.flows.events):
                    self.screen.line(f"    {nearest(name, events)}", dim=True)
            case Report(name=name, value=value):
                self._take(Started(name, key=self._key(), input=value))
            case Look():
                self._look(command)

    def _look(self, look: Look) -> None:
        world, shows = self.world, self.shows
        if look.at == "data":
            known = {} if world.session is None else world.session.data
            shows.rows(data_lines(known, world.flows.fields), "nothing is known yet")
        elif look.at == "runs":
            shows.rows(run_lines(world.state, world.clock), "no run is live")
        elif look.at == "wakes":
            rows = self.runner.run(world.rows())
            shows.rows(row_lines(rows, world.state, world.key.id, world.clock), "nothing is due later")
        else:
            self.screen.line(COMMANDS, dim=True)

    # ---- time

    def _pass(self, command: Pass) -> None:
        now = self.world.clock.at
        if command.length is not None:
            try:
                until = now + command.length
            except OverflowError:
                self.shows.refuse("the calendar ends before that")
                return
        else:
            row = self.runner.run(self.world.due())
            if row is None:
                self.shows.rows((), "nothing is due later")
                return
            until = max(row.due or now, now)
        self._guarded(partial(self._move, until))

    async def _move(self, until: datetime) -> None:
        """Lets time pass until then; what comes due on the way is taken at its own time."""
        world, began, seen, has_shown = self.world, self.world.clock.at, set[int](), False
        while not world.is_stopped:
            row = await world.due()
            if row is None or (row.due is not None and row.due > until) or row.n in seen:
                break
            world.clock.move(row.due or world.clock.at)
            with self.shows.patience():
                taken = await world.serve()
            if not taken:
                seen.add(row.n)
            for one in taken:
                await self.shows.turn(one)
                has_shown = True
        if not world.is_stopped:
            world.clock.move(until)
        if not has_shown:
            passed = lasting(world.clock.at - began)
            self.screen.line(f"  {passed} later, at {self.shows.now}, nothing has happened", dim=True)

    # ---- turns

    def _take(self, input: Input) -> None:
        self._guarded(partial(self._put, input))

    async def _put(self, input: Input) -> None:
        with self.shows.patience():
            taken = await self.world.put(input)
        for one in taken:
            await self.shows.turn(one)

    def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does it; what fails is told, and the simulation goes on where it can."""

        async def interruptible() -> None:
            with on_interrupt(self._interrupt(Stopping(self.world.stop, self.screen))):
                await asyncio.sleep(SETTLE_S)
                if not self.world.is_stopped:
                    await work()

        self.world.is_stopped = False
        try:
            self.runner.run(interruptible())
        except (BrokenPipeError, KeyboardInterrupt, WorldStuck):
            raise
        except Exception as error:  # noqa: BLE001 - told in a line; the next message may do better
            self.shows.tell(error)

    def _interrupt(self, stopping: Stopping) -> Callable[[], None]:
        """Ctrl-C stops the turn that runs, and time. Where nobody types, the simulation as well."""

        def interrupt() -> None:
            self.interrupted = not self.lines.live
            stopping.stop()

        return interrupt
