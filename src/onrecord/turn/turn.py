"""Turn: one take while it runs. Everything that happens goes through `Turn.note`, and is folded at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Raw

from onrecord.conversation.content import Mark
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.inputs import Answered, Input, Interruption, Question
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import Delta, Outcome, Outgoing, Wake
from onrecord.conversation.usage import Usage
from onrecord.models.model import Model
from onrecord.models.request import Piece, Request, Shape
from onrecord.record.entry import Body, Entry
from onrecord.record.fold import Fold
from onrecord.record.kinds import Noted, Pending
from onrecord.session.codec import dumps_session, loads_session
from onrecord.session.folding import Working
from onrecord.session.session import Session
from onrecord.tools.tool import ToolResult
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.effects import Effects
from onrecord.turn.moments import Rank, Stop
from onrecord.turn.plan import Plan

if TYPE_CHECKING:
    from onrecord.turn.director import Query
    from onrecord.turn.result import TurnResult

__all__ = ("Turn",)

S = TypeVar("S")
T = TypeVar("T")

SETTLE_S = 10.0
"""How long an interrupted turn waits for a started call that may have changed something."""


class Turn:
    """One take of one turn: mutable, with one owner. Features and directors read it and write through its methods.

    ``answer`` is the answer that this take resumes with, for the whole take; ``resumed`` the same for whoever asked,
    read once. ``rounds`` are the rounds of the take so far, ``request`` the last request.
    """

    def __init__(
        self, plan: Plan, session: Session, effects: Effects, *, id: str, key: str, take: int, input: Input,
        context: object, options: Mapping[type, object], emit: Callable[[Delta], None] | None, is_new: bool,
    ) -> None:  # fmt: skip
        self.plan, self.session, self.effects = plan, session, effects
        self.id, self.key, self.take, self.input = id, key, take, input
        self.context, self.options, self.emit, self.is_new = context, options, emit, is_new
        self.now: datetime = effects.now()
        self.spec: AgentSpec = plan.spec
        self.working = Working(session, plan.folds)
        self.model: Model = cast(Model, plan.model)
        self.instructions: str = ""
        self.shape: Shape[Any] | None = plan.shape
        self.admitted: int | None = None
        self.speaks = True
        self.answer: Answered | None = None
        self.resumed: Answered | None = None
        self.request: Request | None = None
        self.stopped: Stop | None = None
        self.interrupted: Interruption | None = None
        self.ignored: Outcome | None = None
        self.usage: Usage | None = None
        self.llm_calls = 0
        # What this take leaves behind.
        self.entries: list[Entry] = []
        self.messages: list[Outgoing] = []
        self.wakes: list[Wake] = []
        self.disarmed: list[str] = []
        self.lines: list[Outcome] = []
        self.private: dict[str, str] = {}
        self.children: list[TurnResult[Any]] = []
        self.output: tuple[object, str, str] | None = None
        # Where it stands: a question that pauses it, the pause it resumes, counters that go on across a pause.
        self.question: Question | None = None
        self.pending: Pending | None = None
        self.resuming: Pending | None = None
        self.first_now: datetime = self.now
        self.done: dict[str, Any] = {}
        self.paused_children: dict[str, Raw] = {}
        self.effect_keys: dict[str, list[str]] = {}
        self.values: dict[str, tuple[ToolResult, str]] = {}
        self.spent: dict[str, Usage] = {}
        self.revised: dict[str, int] = {}
        self.n = self.number = self.asks = self.ids = 0
        # Text released to a live reader and not yet in a ``said`` entry.
        self.streaming: list[str | Mark] = []
        self.streamed = 0
        self.owed: list[Awaitable[Any]] = []
        self.cause: int | None = None
        self.task = asyncio.current_task()
        self.shielded = 0

    # ---- for features and directors

    @property
    def conversation(self) -> Conversation:
        """What was said, this turn's settled rounds included."""
        return self.working.conversation

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of this take so far."""
        return self.working.rounds

    @property
    def data(self) -> Mapping[str, Any]:
        """The session's data, this turn's landed patches included."""
        return self.working.data

    def state(self, fold: Fold[S]) -> S:
        """What a mounted fold has made of the record, this turn included. KeyError when it is not mounted."""
        return cast(S, self.working.slots[fold.name])

    def note(self, body: Body, *, cause: int | None = None, where: str = "main") -> Entry:
        """Files an entry and folds it at once. ``cause`` is the ``n`` of an earlier entry (None: the turn's latest)."""
        n = self.n
        entry = Entry(
            seq=self.session.seq + len(self.entries), n=n, turn=self.id, take=self.take, where=where,
            at=self.effects.now(), cause=self.cause if cause is None else cause, body=body,
        )  # fmt: skip
        self.n = n + 1
        self.entries.append(entry)
        self.working.apply(entry)
        if self.plan.watch:
            self._show(entry)
        return entry

    def option(self, kind: type[T]) -> T | None:
        """The option of this type, if the turn was given one."""
        return cast("T | None", self.options.get(kind))

    def ignore(self, line: Outcome) -> None:
        """Ends the turn with nothing filed and nothing changed."""
        self.ignored = line

    def stop(self, stop: Stop) -> None:
        """No further model call but an allowed wrap-up; the first stop stands."""
        self.stopped = self.stopped or stop

    def new_id(self, prefix: str) -> str:
        """``{turn}/{prefix}{counter}``; the counter goes on after a pause."""
        self.ids += 1
        return f"{self.id}/{prefix}{self.ids - 1}"

    async def consult(self, query: Query[T], *, where: str, model: Model | None = None) -> T:
        """The only way a feature calls a model: one silent structured call, run by no hook. ModelError."""
        from onrecord.turn.judge import consult

        return await consult(self, query, where=where, model=model)

    async def once(self, key: str, kind: type[T], act: Callable[[], Awaitable[T]]) -> T:
        """Runs an outside effect once per key of this turn."""
        return await self.effects.once(f"{self.id}/{key}", "", kind, act)

    # ---- for the loop

    def _show(self, entry: Entry) -> None:
        for watch in self.plan.watch:
            try:
                seen = watch.see(entry)
            except Exception as error:
                self._watcher_failed(watch.name, error, entry)
                continue
            if watch.awaited:
                self.owed.append(self._await_watcher(watch.name, seen, entry))

    async def _await_watcher(self, name: str, seen: Awaitable[Any], entry: Entry) -> None:
        try:
            await seen
        except Exception as error:
            self._watcher_failed(name, error, entry)

    def _watcher_failed(self, name: str, error: Exception, entry: Entry) -> None:
        if isinstance(entry.body, Noted) and entry.body.by == name:
            return  # a watcher that cannot even see this note is left alone
        self.note(Noted(by=name, text=f"watcher failed: {type(error).__name__}"), cause=entry.n)

    def interrupt(self, by: Interruption) -> bool:
        """Stops the take from outside, unless it is stopped already. A call that may have effects is waited for."""
        if self.interrupted is not None or self.task is None:
            return False
        self.interrupted = by
        if self.shielded:
            asyncio.get_running_loop().call_later(SETTLE_S, self.task.cancel)
        else:
            self.task.cancel()
        return True

    def check_interrupted(self) -> None:
        """Leaves the take at a safe place when it was interrupted meanwhile."""
        if self.interrupted is not None:
            raise asyncio.CancelledError

    def keep_child(self, call: str, session: Session) -> None:
        """A paused sub-turn waits with this turn's question."""
        self.paused_children[call] = Raw(dumps_session(session))

    def child(self, call: str) -> Session | None:
        """The paused sub-turn of a call, if there is one."""
        raw = self.paused_children.get(call)
        return None if raw is None else loads_session(raw)

    def base_pieces(self) -> tuple[Piece, ...]:
        """What every request of this turn begins with: the instructions, then declared instruction pieces."""
        if not self.instructions:
            return self.plan.pieces
        return (Piece(source="instructions", text=self.instructions, rank=Rank.BASE), *self.plan.pieces)

    def conditional_pieces(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """With the instructions whose ``only_if`` holds now, in their places."""
        more = [i.piece() for i in self.plan.conditional if i.only_if is not None and i.only_if(self)]
        return tuple(sorted((*pieces, *more), key=lambda p: p.rank)) if more else pieces

    def count(self, usage: Usage | None) -> None:
        """Adds what a call cost."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage
