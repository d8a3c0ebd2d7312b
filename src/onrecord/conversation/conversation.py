"""Conversation: the ordered messages of a session, and their units, as two logs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from operator import is_

from msgspec import Struct, field
from msgspec.structs import replace

from onrecord.conversation.content import Part, Text
from onrecord.conversation.log import Log
from onrecord.conversation.messages import AssistantMessage, Message, Round, ToolCall, Unit

__all__ = ("INTERRUPTED", "Conversation", "units_of")

INTERRUPTED = "[interrupted here]"


class Conversation(Struct, frozen=True):
    """What was said. ``units`` is what requests show: user messages, context messages and rounds.

    During a turn its settled rounds are already at the tail of ``units``; the message that holds them is added when
    the take ends. So each unit is projected once, and closing a plain turn copies nothing.
    """

    messages: Log[Message] = field(default_factory=Log)
    units: Log[Unit] = field(default_factory=Log)

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Conversation:
        """A conversation from loaded or imported messages."""
        held = list(messages)
        return cls(Log(held), Log(unit for message in held for unit in units_of(message)))

    def add(self, message: Message) -> Conversation:
        """With one message more, and its units."""
        if not isinstance(message, AssistantMessage):
            return Conversation(self.messages.append(message), self.units.append(message))
        return Conversation(self.messages.append(message), self.units.extend(units_of(message)))

    def grow(self, settled: Round) -> Conversation:
        """With a settled round of the running take; its message follows when the take ends."""
        return Conversation(self.messages, self.units.append(settled))

    def close(self, base_units: int, message: AssistantMessage) -> Conversation:
        """The running rounds, from unit ``base_units`` on, become ``message``.

        Where the message shows other units than the running take did (a draft left, text was cut), and only then,
        the unit log forks at the first difference.
        """
        units, at, shows = self.units, base_units, units_of(message)
        for kept, running in zip(shows, units.since(base_units), strict=False):
            if kept is not running:
                break
            at += 1
        if at < len(units):
            units = units.cut(at)
        return Conversation(self.messages.append(message), units.extend(shows[at - base_units :]))

    def index_of(self, message_id: str) -> int:
        """Where a message stands among the messages. LookupError if it is not there."""
        for index, message in enumerate(self.messages):
            if message.id == message_id:
                return index
        raise LookupError(message_id)

    def put(self, index: int, *, message: Message | None, kept_rounds: int = 0) -> Conversation:
        """The message at ``index`` replaced, or removed with None. Forks both logs there; earlier items are kept.

        Later rounds were generated from what stood there, so their continuations go, and those of the new message
        but for its first ``kept_rounds`` rounds.
        """
        messages = self.messages.cut(index)
        put = [] if message is None else [_portable(message, kept_rounds)]
        shows = [unit for each in put for unit in units_of(each)]
        same = sum(takewhile(bool, map(is_, shows, units_of(self.messages[index]))))
        units = self.units.cut(sum(len(units_of(m)) for m in messages) + same).extend(shows[same:])
        for later in self.messages.since(index + 1):
            cleared = _portable(later, 0)
            put.append(cleared)
            units = units.extend(units_of(cleared))
        return Conversation(messages.extend(put), units)

    def edit_result(self, message_id: str, call_id: str, result: tuple[Part, ...]) -> Conversation:
        """One tool result replaced; the continuation of its round and of every later one is dropped.

        LookupError names a message or call that is not there.
        """
        index = self.index_of(message_id)
        message = self.messages[index]
        rounds = message.rounds if isinstance(message, AssistantMessage) else ()
        for at, held in enumerate(rounds):
            for place, call in enumerate(held.calls):
                if call.id == call_id:
                    calls = (*held.calls[:place], _answered(call, result), *held.calls[place + 1 :])
                    edited = (*rounds[:at], replace(held, calls=calls), *rounds[at + 1 :])
                    return self.put(index, message=replace(message, rounds=edited), kept_rounds=at)
        raise LookupError(call_id)


def units_of(message: Message) -> tuple[Unit, ...]:
    """What requests show of a message.

    An interrupted answer shows its rounds with tool calls, then what people saw or heard of its words, marked.
    """
    if not isinstance(message, AssistantMessage):
        return (message,)
    if message.interrupted is None:
        return message.rounds
    shown = message.text[: message.heard]  # all of it where that is None
    cut = Round(id=f"{message.id}/cut", content=(Text(f"{shown} {INTERRUPTED}" if shown else INTERRUPTED),))
    return (*(r for r in message.rounds if r.calls), cut)


def _portable(message: Message, kept_rounds: int) -> Message:
    """The message with portable content only, after its first rounds."""
    if not isinstance(message, AssistantMessage) or all(r.continuation is None for r in message.rounds[kept_rounds:]):
        return message
    later = tuple(replace(r, continuation=None) for r in message.rounds[kept_rounds:])
    return replace(message, rounds=message.rounds[:kept_rounds] + later)


def _answered(call: ToolCall, result: tuple[Part, ...]) -> ToolCall:
    return replace(call, result=result, status="returned")
