"""The conversation as text for people and diagnostics: labels stand for media, and nothing native or encoded shows.

Never fed to a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from onrecord.conversation.content import Audio, CallRef, File, Image, Mark, Refusal, Structured, Text, Thinking
from onrecord.conversation.conversation import units_of
from onrecord.conversation.messages import ContextMessage, Message, Round, Unit, UserMessage
from onrecord.conversation.render import context_text, user_parts

__all__ = ("DisplayLine", "displayed", "labelled")

DisplayRole = Literal["user", "assistant", "system", "developer"]
Displayable = Text | Image | Audio | File | Refusal | Thinking | CallRef | Structured | Mark


class DisplayLine(Struct, frozen=True):
    """One line of the projection: who it belongs to and its text. Tool results and data belong to ``user``."""

    role: DisplayRole
    text: str


def displayed(messages: Iterable[Message]) -> tuple[DisplayLine, ...]:
    """The messages in order: an answer gives its words with its calls, then one line for each result."""
    return tuple(line for message in messages for unit in units_of(message) for line in _lines(unit))


def labelled(parts: Iterable[Displayable]) -> str:
    """Parts as text without a separator: ``[Image]``, ``[Audio]``, ``[File: r.pdf]`` for media, nothing for reasoning.

    A picture's description and a sound's transcript are words about it, not the thing: the label stays a label.
    """
    return "".join(_label(part) for part in parts)


def _label(part: Displayable) -> str:
    match part:
        case Text(text=text) | Refusal(text=text):
            return text
        case Image():
            return "[Image]"
        case Audio():
            return "[Audio]"
        case File(name=name):
            return f"[File: {name or 'attachment'}]"
        case Structured():
            return context_text(ContextMessage(id="", content=(part,)))
        case Mark(hidden=hidden, raw=raw):
            return "" if hidden else raw
        case _:
            return ""


def _lines(unit: Unit) -> Iterator[DisplayLine]:
    if isinstance(unit, UserMessage):
        yield DisplayLine("user", labelled(user_parts(unit)))
    elif isinstance(unit, ContextMessage):
        yield DisplayLine("user" if unit.authority == "data" else unit.authority, context_text(unit))
    else:
        yield from _round_lines(unit)


def _round_lines(held: Round) -> Iterator[DisplayLine]:
    for context in held.before:
        yield from _lines(context)
    words = labelled(held.content) + "".join(f"{call.name}({call.raw_args})" for call in held.calls)
    if words:
        yield DisplayLine("assistant", words)
    for call in held.calls:
        if call.result is not None:
            yield DisplayLine("user", labelled(call.result))
    for context in held.revised:
        yield from _lines(context)
