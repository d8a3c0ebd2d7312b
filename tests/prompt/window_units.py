"""Models, tools and units as tests of windows that count need them, and short ways to read what was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onrecord.conversation.content import Text
from onrecord.conversation.log import Log
from onrecord.conversation.messages import CallStatus, ContextMessage, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.usage import Usage
from onrecord.models.model import ModelCard
from onrecord.prompt.window.evicted import Evicted, Stayed
from onrecord.prompt.window.gaps import Windowed
from onrecord.session.codec import slot_value
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel
from onrecord.turn.result import TurnResult
from tests.turn.acting import tool

__all__ = ("LONG", "counting", "kept", "knows", "scribe", "session_of", "tools", "units_of_kinds")

LONG = "word " * 400
"""Longer than any notice."""


def units_of_kinds(kinds: Sequence[str]) -> Log[Unit]:
    """``user`` messages, answered ``round``s, ``open`` ones, ``system`` and ``data`` context."""
    return Log(_unit(place, kind) for place, kind in enumerate(kinds))


def _unit(place: int, kind: str) -> Unit:
    id = f"u{place}"
    if kind == "user":
        return UserMessage(id=id, content=(Text(id),))
    if kind == "system":
        return ContextMessage(id=id, content=(Text(id),), authority="system")
    if kind == "data":
        return ContextMessage(id=id, content=(Text(id),))
    status: CallStatus = "asked" if kind == "open" else "returned"
    call = ToolCall(id=f"{id}/c0", wire_id="w", name="look", result=(Text(id),), status=status)
    return Round(id=id, content=(Text(id),), calls=(call,))


def counting(*answers: Any, tokens: int = 10, **given: Any) -> ScriptedModel:
    """A model whose provider says that each request had so many tokens."""
    return ScriptedModel(*answers, usage=Usage(input_tokens=tokens, output_tokens=1), **given)


def scribe(*consult: Any) -> ScriptedModel:
    """A small model that writes summaries."""
    card = ModelCard(provider="small", model="scribe", protocol="scripted")
    return ScriptedModel(consult=consult, card=card, usage=Usage(input_tokens=7, output_tokens=3))


def tools(*names: str) -> list[Any]:
    """Tools with long results."""
    return [tool(name, lambda *_: LONG) for name in names]


def kept(body: Evicted | Stayed) -> list[str]:
    """Why and where each stayed: ``current-request@0``, by the tail of the unit's name."""
    return [f"{each.why}@{each.unit.rsplit('/', 1)[-1]}" for each in body.kept]


def knows(result: TurnResult[Any]) -> Windowed:
    """What the session's window knows."""
    assert result.session is not None
    return slot_value(result.session.slots["window"], Windowed)


def session_of(result: TurnResult[Any]) -> Session:
    """The session that a turn left."""
    assert result.session is not None
    return result.session
