"""What a tool's handler gets: `ToolContext` as the loop fills it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from onrecord.conversation.identity import Identity
from onrecord.conversation.inputs import Answered, Ask
from onrecord.conversation.messages import ToolCall, Unit
from onrecord.conversation.outgoing import ProgressDelta
from onrecord.conversation.short import cut
from onrecord.errors import UsageError
from onrecord.jsonio import Json, writable
from onrecord.session.session import Session
from onrecord.tools.tool import ToolContext
from onrecord.turn.askable import is_askable
from onrecord.turn.director import Scope
from onrecord.turn.effects import made_once
from onrecord.turn.turn import Turn

__all__ = ("CallContext",)

T = TypeVar("T")

LONGEST_PROGRESS = 500
"""Characters of what a call says of its progress."""


def answer_name(key: str, place: int) -> str:
    """Under which the answer to a question of a call is kept, by the call's key and how many were asked before."""
    return f"{key}/ask{place}"


def answers_to(turn: Turn, key: str) -> int:
    """How many questions of the call with this key were answered so far."""
    count = 0
    while answer_name(key, count) in turn.done:
        count += 1
    return count


def _read(held: Any) -> Answered:
    return held if isinstance(held, Answered) else msgspec.json.decode(held, type=Answered)


class _Unwind(BaseException):
    """Leaves one handler after `ask`; the runner looks at the context, however the handler ended."""


class CallContext:
    """What a handler gets; see `ToolContext`."""

    __slots__ = (
        "_answers",
        "_loop",
        "_scope",
        "_thread",
        "asked",
        "asked_by",
        "call",
        "data",
        "kept_child",
        "key",
        "over",
        "patch",
        "turn",
    )

    def __init__(self, turn: Turn, call: ToolCall, key: str, data: Mapping[str, Json], scope: Scope) -> None:
        self.turn, self.call, self.key, self.data, self._scope = turn, call, key, data, scope
        self.patch: dict[str, Json] = {}
        self.asked: Ask | None = None
        self.asked_by = ""
        self.kept_child: Session | None = None
        self.over = False
        self._answers = 0
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    @property
    def context(self) -> Any:
        return self.turn.context

    @property
    def history(self) -> Sequence[Unit]:
        return self.turn.working.conversation.units

    @property
    def now(self) -> datetime:
        return self.turn.now

    @property
    def identity(self) -> Identity | None:
        return self.turn.session.owner

    @property
    def run(self) -> object:
        return self._scope.run

    @property
    def input(self) -> Json:
        return self._scope.input

    @property
    def dedupe_key(self) -> str:
        return self._scope.dedupe_key

    @property
    def silenced(self) -> str | None:
        return self._scope.silenced

    def set(self, patch: Mapping[str, Json], /) -> None:
        self._check_running()
        self.patch.update(patch)

    def progress(self, message: str = "", /) -> None:
        if self.turn.emit is None or self.over:
            return
        given: object = message
        words = writable(given) if isinstance(given, str) else ""
        if self.turn.lent:
            from onrecord.turn.lent import without_lent  # it knows of calls, which know of this

            words = without_lent(self.turn, words)
        words = cut(words, LONGEST_PROGRESS)
        told = ProgressDelta(id=self.call.id, name=self.call.name, message=words)
        if threading.get_ident() == self._thread:
            self.turn.emit(told)
            return
        with suppress(RuntimeError):  # a loop that is closed has nobody left who reads
            self._loop.call_soon_threadsafe(self.turn.emit, told)

    def _check_running(self) -> None:
        if self.over:
            raise UsageError(
                f"the call of {self.call.name!r} has ended: what its context is told now would be lost",
                code="call-ended",
                hint="finish what a handler starts before it returns",
            )

    async def ask(self, ask: Ask, /) -> Answered:
        self._check_running()
        if not is_askable(ask):
            raise UsageError("this is no question that can be kept", hint="ask(Ask(text, fields=..., detail=...))")
        recorded = self.turn.done.get(answer_name(self.key, self._answers))
        self._answers += 1
        if recorded is not None:
            return _read(recorded)
        # Recorded before the unwind: a task group or a broad except inside the handler can hide only the latter.
        self.asked = self.asked or ask
        raise _Unwind

    @property
    def answers(self) -> int:
        """How many questions of this call were answered so far."""
        return answers_to(self.turn, self.key)

    def skip_answers(self) -> None:
        """The next `ask` is a new question: for handlers that keep their own place, such as sub-agents."""
        self._answers = self.answers

    async def once(self, key: str, kind: type[T], act: Callable[[], Awaitable[T]], /) -> T:
        return await made_once(self.turn.effects, self.turn.done, f"{self.key}/{key}", kind, act)


def last_answer(context: CallContext) -> Answered:
    """What a person answered last to this call. KeyError when nobody did."""
    return _read(context.turn.done[answer_name(context.key, context.answers - 1)])


_: type[ToolContext[Any]] = CallContext
