"""Trace: a finished turn as its own model may read it.

What happened comes from the record; words come only from the conversation as it stands now. So a reply that a rule
refused or rewrote, a result that was replaced or erased, arguments that a rule put in place of the model's and the
calls of a director are told of, but not quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.display import labelled
from onrecord.conversation.messages import ContextMessage, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.render import context_text
from onrecord.honesty.languages import english
from onrecord.honesty.templates import Teller
from onrecord.jsonio import Json
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry, kind_of
from onrecord.record.record import Record

__all__ = ("MOST_CHARS", "MOST_QUOTED", "Trace", "part_of")

B = TypeVar("B", bound=Body)

MOST_CHARS = 8000
"""How many characters of one value are handed out at once."""

MOST_QUOTED = 300
"""How many characters a line quotes."""

_TELLER = Teller(english.TEMPLATES, english.WORDS, app="The agent")

_READ = {("before_tool", "deny"), ("after_tool", "deny"), ("output", "revise")}
"""Verdicts whose reason the model was told when they were made."""


def part_of(text: str, limit: int, start: int = 0) -> str:
    """A part of a text, saying how much is left out behind it."""
    shown = text[start : start + limit]
    left = len(text) - start - len(shown)
    return f"{shown} … ({left} more characters)" if left > 0 else shown


class Trace:
    """The entries of one turn, with what its model may read of them. ``dropped`` is how many were too many to read."""

    def __init__(self, turn: str, entries: Sequence[Entry], conversation: Conversation, *, dropped: int = 0) -> None:
        self.turn, self.dropped = turn, dropped
        self.entries = tuple(entries)
        self.record: Record[None] = Record(entries, lambda _: None)
        self._units: dict[str, Unit] = {u.id: u for u in conversation.units if u.id.startswith(f"{turn}/")}
        rounds = [unit for unit in self._units.values() if isinstance(unit, Round)]
        self._said = {entry.body.round for entry in entries if isinstance(entry.body, kinds.TextSaid)}
        self._calls: dict[str, ToolCall] = {call.id: call for held in rounds for call in held.calls}

    def sentence(self, entry: Entry) -> str:
        """What happened, without a word of anybody."""
        return _TELLER.told(entry.body)

    def line(self, entry: Entry) -> dict[str, Json]:
        """An entry in a line: its number to cite, what happened, and the beginning of what was said."""
        told: dict[str, Json] = {"entry": entry.seq, "told": self.sentence(entry) or kind_of(entry.body)}
        if words := self.words(entry):
            told["text"] = part_of(words, MOST_QUOTED)
        return told

    def lines(self, entries: Iterable[Entry], most: int) -> list[Json]:
        """The lines of entries, at most so many."""
        return [self.line(entry) for _, entry in zip(range(most), entries, strict=False)]

    def words(self, entry: Entry) -> str:
        """What was said, asked for or returned here, as far as the conversation still holds it."""
        body = entry.body
        if isinstance(body, (kinds.ToolStarted, kinds.ToolReturned)):
            return self.arguments(body.call) if isinstance(body, kinds.ToolStarted) else self.result(body.call)
        match body:
            case kinds.ModelReplied(round=held) | kinds.RoundSettled(round=held):
                return self._reply(held.id)
            case kinds.TextSaid(text=text, round=held):
                return text if isinstance(self._units.get(held), Round) else ""
            case kinds.VerdictFiled(moment=moment, verdict=verdict, why=why):
                return why if (moment, verdict) in _READ else ""
            case kinds.TurnPaused(pending=pending):
                return pending.question.text if pending.question.audience == "speaker" else ""
            case _:
                return self._admitted(entry)

    def _admitted(self, entry: Entry) -> str:
        """The message that the turn began with, or text that was put into the conversation."""
        place = {kinds.TurnInput: "u", kinds.ContextAdded: f"x{entry.n}"}.get(type(entry.body), "")
        unit = self._units.get(f"{entry.turn}/{place}")
        if isinstance(unit, UserMessage):
            return unit.text
        return context_text(unit) if isinstance(unit, ContextMessage) else ""

    def arguments(self, call: str) -> str:
        """The arguments of a call as the model wrote them."""
        held = self._calls.get(call)
        return "" if held is None else held.raw_args

    def result(self, call: str) -> str:
        """What the model read of a call."""
        held = self._calls.get(call)
        return "" if held is None or held.result is None else labelled(held.result)

    def said(self) -> list[Entry]:
        """What the agent said, in order."""
        return [e for e in self.entries if isinstance(e.body, kinds.TextSaid) and e.body.text.strip()]

    def of(self, *some: type[Body]) -> list[Entry]:
        """The entries of some kinds."""
        return [entry for entry in self.entries if isinstance(entry.body, some)]

    def bodies(self, kind: type[B]) -> list[tuple[Entry, B]]:
        """The entries of one kind, each with its body."""
        return [(entry, entry.body) for entry in self.entries if isinstance(entry.body, kind)]

    def find(self, seq: int) -> Entry | None:
        """The entry with this number, if it is one of this turn."""
        return next((entry for entry in self.entries if entry.seq == seq), None)

    def _reply(self, round_id: str) -> str:
        held = self._units.get(round_id)
        if not isinstance(held, Round):
            return ""
        # What a person never got is not quoted, though the conversation may hold it.
        text = held.text.strip() if held.calls or held.id in self._said else ""
        return " ".join(filter(None, (text, *(f"{c.name}({c.raw_args})" for c in held.calls))))
