"""Whether what other people's code made can be kept: what could not be read again would lock its session for ever."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from onrecord.conversation.inputs import Ask

__all__ = ("is_askable",)


def is_askable(ask: object) -> bool:
    """Whether this is a question whose fields are of their types; ``private`` may hold anything, it is not kept."""
    return isinstance(ask, Ask) and can_be_kept(replace(ask, private={}), Ask)


def can_be_kept(value: object, kind: Any) -> bool:
    """Whether a value, once stored, could be read again as this type."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except Exception:  # noqa: BLE001 - whatever the reason, it cannot be kept
        return False
    return True
