"""Logs of units of several kinds, as tests of window plans need them."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.conversation.content import Text
from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Round, ToolCall, Unit, UserMessage

__all__ = ("units_of_kinds",)


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
    status = "asked" if kind == "open" else "returned"
    call = ToolCall(id=f"{id}/c0", wire_id="w", name="look", result=(Text(id),), status=status)  # type: ignore[arg-type]
    return Round(id=id, content=(Text(id),), calls=(call,))
