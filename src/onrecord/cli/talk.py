"""A chat while it runs: lines in, turns out, every turn kept before the next one begins.

A host takes the turns, so that a message is accepted before its model is called, and survives this program.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.around import PROMPT, recap, show_end, typed_before
from onrecord.cli.asking import answer_to, form_of, put, show_private
from onrecord.cli.failure import FAILED, INTERRUPTED, OK, Wrong, debugging, logged, said_of, tell
from onrecord.cli.hosted import Hosted
from onrecord.cli.interrupts import Stopping, on_interrupt
from onrecord.cli.loading import agent_named, function_named
from onrecord.cli.reply import Reply
from onrecord.cli.terminal import Keyboard, Screen, plural
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Said
from onrecord.errors import ModelError, RecordInvalid, StoreError, TurnError
from onrecord.host import Give
from onrecord.record.entry import Entry
from onrecord.record.leaving import leaving
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.turn.result import TurnResult
from onrecord.turn.stream import TurnStream

__all__ = ("Talk", "talk")

COMMANDS = """\
  /record   the entries of the last turn, one line each
  /why      why the last answer came about; /why 17 explains entry 17
  /answer   the open question again; /later leaves it open, /decline says no
  /outcomes what the steps of flows come to, below each reply; once more: no longer
  /quit     ends the chat (Ctrl-D does too); Ctrl-C stops a reply"""

PATIENCE_S = 2.0
"""After this time without a word the screen says whom one waits for."""

SETTLE_S = 0.002
"""The event loop stands still while a person types: connections that closed meanwhile are noticed before the turn."""


def talk(args: argparse.Namespace) -> int:
    """The whole command: returns its exit code."""
    if not args.session.strip():
        raise Wrong("--session needs a name", hint="leave it out for the session 'default'")
    with logged(debug=debugging(args)):
        return _talked(args)


def _talked(args: argparse.Namespace) -> int:
    agent = agent_named(args.agent, model=args.model)
    given = None if args.given is None else function_named(args.given, "--given")
    screen = Screen()
    store = _opened(args.store, agent)
    chat = Talk(agent, store, SessionKey(args.session), screen, Keyboard(screen), debug=debugging(args), given=given)
    chat.outcomes = args.outcomes
    with asyncio.Runner() as runner:
        chat.runner = runner
        try:
            chat.begin(args.store)
            chat.go_on()
        finally:
            runner.run(chat.close())
    return chat.code


def _opened(path: str | None, agent: Agent[Any, Any]) -> Store | None:
    if path is None:
        return None
    from onrecord.stores.sqlite import SqliteStore

    return SqliteStore(path, bodies=agent.plan.codec.kinds.values())


class _Left(Exception):
    """The person ended the chat with a command."""


class Talk:
    """One chat. ``session`` is what is stored (None: nothing yet); without a store it is kept in memory."""

    runner: asyncio.Runner

    def __init__(
        self, agent: Agent[Any, Any], store: Store | None, key: SessionKey, screen: Screen, keyboard: Keyboard,
        *, debug: bool = False, given: Give | None = None,
    ) -> None:  # fmt: skip
        self.agent, self.key, self.is_kept = agent, key, store is not None
        self.store: Store = MemoryStore(bodies=agent.plan.codec.kinds.values()) if store is None else store
        self.host = Hosted(agent, self.store, key, screen, given)
        self.screen, self.keyboard, self.debug = screen, keyboard, debug
        self.session: Session | None = None
        self.private: dict[str, Mapping[str, str]] = {}  # by question
        self.failed = False
        self.interrupted = False
        self.outcomes = False

    @property
    def code(self) -> int:
        """At a terminal a failed turn was seen; a script has to be told."""
        if self.interrupted:
            return INTERRUPTED
        return FAILED if self.failed and not self.keyboard.live else OK

    # ---- the conversation

    def begin(self, path: str | None) -> None:
        """Says who talks, where it is kept, and what was said before."""
        screen, model = self.screen, self.agent.plan.fixed_model()
        if self.is_kept:
            self.session = self.runner.run(self.store.load(self.key))
        name = self.agent.name if model is None else f"{self.agent.name} ({model.card.name})"
        kept = f"session {self.key.id!r} in {path}" if path else "this session is not kept; --store FILE keeps it"
        screen.line(f"{name} · {kept}", bold=True)
        if model is not None and model.card.honest:
            screen.line(model.card.honest)
        if self.session is not None:
            screen.line(recap(self.session), dim=True)
        if self.keyboard.live:
            screen.line("Ctrl-C stops a reply, Ctrl-D ends the chat, /help lists commands", dim=True)

    def go_on(self) -> None:
        """Questions and messages, until the input ends. Where nobody types, Ctrl-C ends it too."""
        left_open = ""
        if self.is_kept:
            self._take_up()
        while not self.interrupted:
            try:
                question = None if self.session is None else self.session.question
                if question is not None and question.key != left_open:
                    if not self._ask():
                        left_open = question.key
                    continue
                line = self.keyboard.line(PROMPT).strip()
                if not line:
                    continue
                if line.split()[0] == "/answer":
                    left_open = ""
                    if question is None:
                        self.screen.line("  no question is open", dim=True)
                elif line.startswith("/"):
                    self._command(line)
                else:
                    self._turn(Said(line, key=secrets.token_hex(8)))
            except (EOFError, _Left):
                break
            except KeyboardInterrupt:
                self.interrupted = not self.keyboard.live
                break
        if self.session is not None and self.session.question is not None:
            kept = "the same --session answers it later" if self.is_kept else "nothing of it is kept"
            self.screen.line(f"  a question is left open; {kept}", dim=True)
        self.screen.fresh()

    def _take_up(self) -> None:
        """What an earlier program left: messages nobody is known to have seen, and inputs that were not taken yet."""

        async def take_up() -> None:
            async with self.host.replying:
                await self.host.show_left_over()
                for said, stream in await self.host.unfinished():
                    self.screen.line("  going on with what was asked before the interruption:", dim=True)
                    self.screen.line(typed_before(said))
                    try:
                        await self._reply(said, stream)
                    except BrokenPipeError:
                        raise
                    except Exception as error:  # noqa: BLE001 - one that fails is told, and the chat goes on
                        self._tell(error)
            await self._settle()

        try:
            self.runner.run(take_up())
        except StoreError as error:
            self._tell(error)

    def _ask(self) -> bool:
        """The open question; False when it is left for later."""
        session = self.session
        question = None if session is None else session.question
        if session is None or question is None:
            return True
        form = form_of(session)
        put(self.screen, session, form, self.private)
        answer = answer_to(self.screen, self.keyboard, question, form, self._command)
        if answer is None:
            self.screen.line("  left open: /answer comes back to it", dim=True)
            return False
        self._turn(answer)
        return True

    def _command(self, line: str) -> None:
        command = line.split(maxsplit=1)[0]
        if command in {"/quit", "/exit", "/q"}:
            raise _Left
        if command in {"/record", "/why"}:
            try:
                self._explain(command, line[len(command) :].strip())
            except (StoreError, RecordInvalid) as error:
                self._tell(error)
        elif command == "/answer" and self.session is not None:  # at the answer's own prompt
            put(self.screen, self.session, form_of(self.session), self.private)
        elif command == "/outcomes":
            self.outcomes = not self.outcomes
            self.screen.line(f"  outcomes are {'shown' if self.outcomes else 'not shown'} from here on", dim=True)
        elif command == "/later":
            self.screen.line("  no question is open", dim=True)
        elif command in {"/help", "/?"}:
            self.screen.line(COMMANDS, dim=True)
        else:
            self.screen.line(f"  there is no {command}; /help lists the commands", dim=True)

    def _explain(self, command: str, which: str) -> None:
        from onrecord.cli.timeline import turn_lines
        from onrecord.cli.why import why_lines
        from onrecord.honesty.slices import last_answer
        from onrecord.record.record import Record

        async def whole() -> list[Entry]:
            redact = self.agent.plan.redact
            return [leaving(entry, redact) async for entry in self.store.entries(self.key)]

        record: Record[None] = Record(self.runner.run(whole()), lambda _: None)
        entries = record.entries
        if command == "/record":
            last = [entry for entry in entries if entry.turn == entries[-1].turn]
            lines = list(turn_lines(last, self.screen, record=entries))
        else:
            seq = last_answer(record)
            if which and which != "last":
                seq = int(which) if which.isdecimal() and int(which) < len(entries) else None
                if seq is None:
                    self.screen.line(f"  there is no entry {which}; /record shows those of the last turn", dim=True)
                    return
            lines = [] if seq is None else list(why_lines(record, seq, self.screen))
        for text in lines:
            self.screen.drawn(text)
        if not lines:
            self.screen.line("  nothing happened yet", dim=True)

    # ---- one turn

    def _turn(self, said: Input) -> None:
        """Takes one input, shows what comes, keeps what it came to. What fails is told, and the chat goes on."""
        try:
            self.runner.run(self._take(said))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 - told in a line; the next message may do better
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        self.failed = True
        if self.debug or not self.screen.live:
            self.screen.fresh()
            self.screen.out.flush()
            tell(error, debug=self.debug)
            return
        told, hint = said_of(error)
        self.screen.line(f"! {told}", bold=True)
        if hint:
            self.screen.line(f"  hint: {hint}", dim=True)

    async def close(self) -> None:
        """Lets go of the session and of its store."""
        await self.host.close()
        await self.store.close()

    async def _take(self, said: Input) -> None:
        await asyncio.sleep(SETTLE_S)
        await self._refresh()
        async with self.host.replying:
            await self._reply(said, self.host.stream(said))
        await self._settle()

    async def _reply(self, said: Input, stream: TurnStream[Any]) -> None:
        reply = Reply(self.screen)
        failure: TurnError | ModelError | None = None
        waiting = asyncio.get_running_loop().call_later(PATIENCE_S, reply.wait, _model_name(self.agent))
        with self._interruptible(said):
            try:
                async with aclosing(stream.batches()) as batches:
                    async for batch in batches:
                        waiting.cancel()
                        reply.show(batch)
                result: TurnResult[Any] | None = await stream.result()
            except (TurnError, ModelError) as error:
                failure, result = error, error.result
            except OSError:  # nobody reads the output any more: the reply is left, and what was shown is kept
                await self.host.stop(said)
                raise
            except StoreError:
                self.screen.line("! this turn was not kept", bold=True)
                await self.host.take_back(said)
                raise
            finally:
                waiting.cancel()  # else it would speak up in the middle of the next turn
            reply.end()
            if result is not None:
                show_end(self.agent, result, reply, outcomes=self.outcomes)
                await self.host.was_shown(result.messages)
                if result.changed and result.session is not None:
                    self.session = result.session
                if result.question is None:
                    show_private(self.screen, result.private)
                else:
                    self.private = {result.question.key: result.private}  # stands below it, as often as it is put
        if failure is not None:
            if result is None:
                await self.host.take_back(said)
            self._tell(failure)

    async def _settle(self) -> None:
        """What is due besides: wakes that a turn armed, and what they say."""
        with self._interruptible(None):
            await self.host.settle()
        self.session = await self.store.load(self.key, known=self.session)

    @contextmanager
    def _interruptible(self, said: Input | None) -> Iterator[None]:
        """Inside, Ctrl-C stops the turn of this input, or whatever turn runs. Where nobody types, the chat as well."""
        stopping = Stopping(partial(self.host.stop, said), self.screen)

        def interrupt() -> None:
            self.interrupted = not self.keyboard.live
            stopping.stop()

        with on_interrupt(interrupt):
            yield

    # ---- the store

    async def _refresh(self) -> None:
        """What others did to the session since the last turn is read before the next."""
        if self.session is None:
            return
        found = await self.store.load(self.key, known=self.session)
        if found is not self.session:
            self.session = found
            count = "it is not there any more" if found is None else plural(len(found.conversation.messages), "message")
            told = f"  the session was changed elsewhere and is loaded again: {count}"
            self.screen.line(told, dim=True)


def _model_name(agent: Agent[Any, Any]) -> str:
    model = agent.plan.fixed_model()
    return agent.name if model is None else model.card.name
