"""TurnResult: what a turn came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from msgspec import Struct

from onrecord.conversation.content import Mark
from onrecord.conversation.inputs import Question
from onrecord.conversation.outgoing import Outcome, Outgoing, Wake
from onrecord.conversation.usage import Usage
from onrecord.errors import OutputInvalid, UsageError
from onrecord.record.entry import Entry
from onrecord.session.session import Session
from onrecord.session.store import Change

__all__ = ("OutputSource", "Status", "TurnResult")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    # Defaults of type variables come with Python 3.13; type checkers know them everywhere.
    O = DefaultTypeVar("O", default=str)  # noqa: E741 - the output type's name in every signature of the library
else:
    O = TypeVar("O")  # noqa: E741 - as above

Status = Literal["answered", "silent", "paused", "deferred", "ignored", "interrupted", "refused", "failed"]
RUN = "run"
"""The kind of lines that tell of whole runs; a line of any other kind tells of a step."""
OutputSource = Literal["model", "fallback", "canned"]


class TurnResult(Struct, Generic[O], frozen=True, kw_only=True):
    """What a turn came to.

    ``session`` is the new state (its ``version`` is untouched: a store writes it), ``changed`` False means: save
    nothing, send nothing. ``messages`` are to be delivered in order. ``text`` is all of their words. ``question`` is
    set when the turn is paused; ``private`` holds what may be shown to the person but is never recorded.
    ``llm_calls`` counts failed calls too; ``usage`` is None when nobody counted. ``uses`` is the same by model, named
    with its provider. All three count what sub-agents did; ``children`` are their turns.
    """

    status: Status
    session: Session | None
    changed: bool
    base: Session | None = None
    entries: tuple[Entry, ...] = ()
    messages: tuple[Outgoing, ...] = ()
    text: str = ""
    question: Question | None = None
    private: Mapping[str, str] = {}
    wakes: tuple[Wake, ...] = ()
    disarmed: tuple[str, ...] = ()
    lines: tuple[Outcome, ...] = ()
    llm_calls: int = 0
    usage: Usage | None = None
    uses: Mapping[str, Usage] = {}
    children: tuple[TurnResult[Any], ...] = ()
    typed: tuple[object, str, str] | None = None

    @property
    def output(self) -> O:
        """The typed value, or the fallback's; a plain agent's is ``text``. Raises OutputInvalid when there is none."""
        if self.typed is None:
            return cast(O, self.text)
        value, _, unmet = self.typed
        if unmet:
            raise OutputInvalid(unmet, hint="give Typed(fallback=...) or Typed(canned=...) to have a value always")
        return cast(O, value)

    @property
    def output_source(self) -> OutputSource:
        """Where `output` comes from. Raises OutputInvalid like it."""
        _ = self.output
        return "model" if self.typed is None else cast(OutputSource, self.typed[1])

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Control tokens found in what was said, in order."""
        return tuple(mark for message in self.messages for mark in message.marks)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every line the director filed in this turn, but for those that say what started, ended or was not begun."""
        return tuple(line for line in self.lines if line.kind != RUN)

    @property
    def started(self) -> tuple[Outcome, ...]:
        """Lines of what started: kind ``run``, status ``started``."""
        return self._runs("started")

    @property
    def ended(self) -> tuple[Outcome, ...]:
        """Lines of what ended: kind ``run``, status ``ended``, the reason as code."""
        return self._runs("ended")

    @property
    def skipped(self) -> tuple[Outcome, ...]:
        """Lines of what was not begun and why: kind ``run``, status ``skipped``, with a code."""
        return self._runs("skipped")

    def _runs(self, status: str) -> tuple[Outcome, ...]:
        return tuple(line for line in self.lines if line.kind == RUN and line.status == status)

    @property
    def schedule(self) -> tuple[Wake, ...]:
        """The wakes this turn armed."""
        return self.wakes

    def change(self) -> Change:
        """What a store commits for this turn: new messages, entries, state. UsageError when nothing changed."""
        if self.session is None or not self.changed:
            raise UsageError("this turn changed nothing, so there is nothing to commit", hint="check result.changed")
        children = tuple(child.change() for child in self.children if child.changed)
        return Change.between(self.base, self.session, self.entries, children=children)

    def __repr__(self) -> str:
        return f"TurnResult({self.status!r}, {len(self.messages)} messages, {len(self.entries)} entries)"
