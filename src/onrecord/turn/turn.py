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
from onrecord.errors import ModelError, UsageError
from onrecord.models.model import Model
from onrecord.models.request import Request, Shape, View
from onrecord.record.entry import Body, Entry
from onrecord.record.fold import Fold
from onrecord.record.kinds import Pending
from onrecord.record.record import Entries
from onrecord.session.folding import Working, apply
from onrecord.session.session import Session
from onrecord.timing import whole_ms
from onrecord.tools.tool import Tool, ToolResult
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.effects import Effects, made_once
from onrecord.turn.moments import Stop
from onrecord.turn.plan import Plan
from onrecord.turn.watching import show

if TYPE_CHECKING:
    from onrecord.turn.director import Query
    from onrecord.turn.result import TurnResult

__all__ = ("SETTLE_S", "Turn")

S = TypeVar("S")
T = TypeVar("T")

SETTLE_S = 10.0
"""How long an interrupted turn waits for a started call that may have changed something."""


class Turn:
    """One take of one turn: mutable, with one owner. Features and directors read it and write through its methods.

    ``answer`` is the answer that this take resumes with, for the whole take; ``resumed`` the same for whoever asked,
    read once. ``rounds`` are the rounds of the take so far, ``request`` the last request. ``record`` reads what is
    stored of sessions; None where nobody stores them. ``refused`` is what the model said was too long, and how, until
    the next request.
    """

    record: Entries | None
    refused: tuple[View, ModelError] | None
    # The turn whose call takes this one, and those that calls of this one take, by call, while they run. ``deed`` is
    # what its effects are known by: its id, or the key of the call that takes it.
    above: Turn | None
    below: dict[str, Turn]
    deed: str
    # Usage by model: of calls that have not returned, and of the whole take.
    used: dict[str, Mapping[str, Usage]]
    uses: dict[str, Usage]
    # Slots, because so many attributes would make a large dictionary for each of many turns at once.
    __slots__ = (
        "_now", "above", "admitted", "answer", "apart", "asks", "below", "cause", "children", "context", "cut",
        "deed", "disarmed", "done", "effect_keys", "effects", "emit", "entries", "filed", "first_now", "harmless", "id",
        "ids", "ignored", "input", "instructions", "interrupted", "is_new", "key", "last_step", "lent", "limit",
        "lines", "llm_calls", "looking", "may_ask", "messages", "model", "n", "now", "number", "options", "output",
        "owed", "paused_children", "pending", "plan", "private", "question", "record", "refused", "request", "resumed",
        "resuming", "revised", "session", "shape", "shielded", "speaks", "spec", "stopped", "streamed",
        "streaming", "take", "task", "tools", "usage", "used", "uses", "values", "wakes", "working",
    )  # fmt: skip

    def __init__(
        self, plan: Plan, session: Session, effects: Effects, *, id: str, key: str, take: int, input: Input,
        context: object, options: Mapping[type, object], emit: Callable[[Delta], None] | None, is_new: bool,
    ) -> None:  # fmt: skip
        self.plan, self.session, self.effects = plan, session, effects
        self.id, self.key, self.take, self.input = id, key, take, input
        self.context, self.options, self.emit, self.is_new = context, options, emit, is_new
        self._now = effects.now
        self.now: datetime = whole_ms(effects.now())
        self.first_now: datetime = self.now
        self.spec: AgentSpec = plan.spec
        self.model: Model = cast(Model, plan.model)
        self.shape: Shape[Any] | None = plan.shape
        self.working = Working(session, plan.folds)
        self.may_ask, self.record, self.refused, self.above, self.deed = True, None, None, None, id
        self.below, self.used, self.uses = {}, {}, {}
        # What this take leaves behind.
        self.entries: list[Entry] = []
        self.messages: list[Outgoing] = []
        self.wakes, self.disarmed = list[Wake](), list[str]()
        self.lines: list[Outcome] = []
        self.private: dict[str, str] = {}
        self.children: list[TurnResult[Any]] = []
        # Verbs already performed, lines and timers filed, paused sub-turns, and what calls of this take came to.
        self.done: dict[str, Any] = {}
        self.filed: list[tuple[str, object]] = []
        self.paused_children: dict[str, Raw] = {}
        self.effect_keys: dict[str, dict[str, int]] = {}
        self.values: dict[str, tuple[ToolResult, str]] = {}
        self.revised: dict[str, int] = {}
        # The tools that calls of the running verb may go to; what calls of this take were lent, which no entry has.
        self.tools: Mapping[str, Tool] = {}
        self.lent: dict[str, Any] = {}
        # Text released to a live reader and not yet in a ``said`` entry; watchers that are waited for.
        self.streaming: list[str | Mark] = []
        self.apart = False  # whether a message was said, so that what is released next begins another one
        self.owed: list[tuple[str, Awaitable[Any], Entry]] = []
        self.task = asyncio.current_task()
        self.harmless: list[asyncio.Task[Any]] = []
        # What became of it so far.
        self.instructions = ""
        self.answer: Answered | None = None
        self.resumed: Answered | None = None
        self.request: Request | None = None
        self.stopped: Stop | None = None
        self.interrupted: Interruption | None = None
        self.ignored: Outcome | None = None
        self.usage: Usage | None = None
        self.output: tuple[object, str, str] | None = None
        self.speaks = True
        # Where it stands: a question that pauses it, the pause it resumes, counters that go on across a pause.
        self.question: Question | None = None
        self.pending: Pending | None = None
        self.resuming: Pending | None = None
        self.cause: int | None = None
        self.admitted: int | None = None
        self.n = self.number = self.asks = self.ids = self.streamed = self.shielded = self.llm_calls = 0
        self.cut = self.looking = False  # whether an interruption has cancelled the task; a watcher is shown an entry
        self.last_step = False  # whether the running verb has made all the requests that its model may be asked
        self.limit: asyncio.TimerHandle | None = None

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
        if self.looking:
            raise UsageError("a watcher looks on: it files nothing", hint="a rule or a settle hook may")
        n, entries = self.n, self.entries
        entry = Entry(
            seq=self.session.seq + len(entries), n=n, turn=self.id, take=self.take, where=where,
            at=self._now(), cause=self.cause if cause is None else cause, body=body,
        )  # fmt: skip
        self.n = n + 1
        entries.append(entry)
        apply(self.working, entry)
        if self.plan.watch:
            show(self, entry)
        return entry

    def option(self, kind: type[T]) -> T | None:
        """The option of this type, if the turn was given one."""
        return cast("T | None", self.options.get(kind))

    def ignore(self, line: Outcome) -> None:
        """Ends the turn with nothing filed and nothing changed, unless something was said or a person was asked."""
        self.ignored = line

    def stop(self, stop: Stop) -> None:
        """No further model call but an allowed wrap-up; the first stop stands."""
        self.stopped = self.stopped or stop

    def new_id(self, prefix: str) -> str:
        """``{turn}/{prefix}{counter}``; the counter goes on after a pause."""
        self.ids += 1
        return f"{self.id}/{prefix}{self.ids - 1}"

    async def consult(self, query: Query[T], *, where: str, model: Model | str | None = None) -> T:
        """The only way a feature calls a model: one silent structured call, run by no hook. ModelError.

        ``model`` is a model or its name; None: the model of the turn.
        """
        from onrecord.turn.judge import consult

        return await consult(self, query, where=where, model=model)

    async def once(self, key: str, kind: type[T], act: Callable[[], Awaitable[T]]) -> T:
        """An outside effect or reading, made once per key of this turn, over its pauses too.

        A take that begins anew reads it again only from effects that keep a journal (see `Effects`).
        """
        return await made_once(self.effects, self.done, f"{self.deed}/{key}", kind, act)

    # ---- for the loop

    def interrupt(self, by: Interruption) -> bool:
        """Stops the take from outside, unless it is stopped already. A call that may have effects is waited for."""
        if self.interrupted is not None or self.task is None:
            return False
        self.interrupted = by
        for child in self.below.values():
            child.interrupt(Interruption(id=by.id, turn=child.id, cause=by.cause))
        if self.shielded:
            self.limit = asyncio.get_running_loop().call_later(SETTLE_S, self._cut)
            for reading in self.harmless:
                reading.cancel()
        else:
            self._cut()
        return True

    def _cut(self) -> None:
        if self.task is not None:
            self.cut = True
            self.task.cancel()

    def check_interrupted(self) -> None:
        """Leaves the take at a safe place when it was interrupted meanwhile."""
        if self.interrupted is not None:
            raise asyncio.CancelledError

    def count(self, usage: Usage | None, model: str = "") -> None:
        """Adds what a call cost, to the sum and to that of the model, named with its provider."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage
            self.uses[model] = self.uses[model] + usage if model in self.uses else usage
