"""Verbs already performed, as a pause keeps them: a director that is called again gets them from here."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from onrecord.conversation.messages import Round, ToolCall
from onrecord.conversation.usage import Usage
from onrecord.jsonio import Json
from onrecord.turn.director import Acted, Brief, Spoken

__all__ = ("ActDone", "SpeakDone", "acted_again", "read_before", "spoken_again")


class SpeakDone(Struct, frozen=True, kw_only=True):
    """A speak verb: the rounds that make its value are read again by the shape."""

    read: tuple[Round, ...] = ()
    text: str = ""
    data: dict[str, Any] = {}
    rounds: int = 0
    usage: Usage | None = None


class ActDone(Struct, frozen=True, kw_only=True):
    """An act verb. A value that JSON cannot keep is kept as the text the record has of it."""

    call: ToolCall
    value: Json = None
    error: str | None = None


def read_before(held: Any) -> tuple[Round, ...]:
    """The rounds that made the value of a paused verb so far."""
    if held is None:
        return ()
    return (held if isinstance(held, SpeakDone) else msgspec.json.decode(held, type=SpeakDone)).read


def spoken_again(brief: Brief, held: Any) -> Spoken:
    """A speak verb, read from what was kept."""
    done = held if isinstance(held, SpeakDone) else msgspec.json.decode(held, type=SpeakDone)
    value: Any = None
    if brief.shape is not None:
        for place, heard in enumerate(done.read):
            now = brief.shape.read(heard).value
            value = brief.merge(value, now) if place and brief.merge is not None else now
    return Spoken(text=done.text, value=value, data=done.data, rounds=done.rounds, usage=done.usage)


def acted_again(held: Any) -> Acted:
    """An act verb, read from what was kept."""
    done = held if isinstance(held, ActDone) else msgspec.json.decode(held, type=ActDone)
    return Acted(call=done.call, value=done.value, error=done.error)
