"""Whether a question can be kept: one that could not be read again would lock its session for ever."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from onrecord.conversation.inputs import Ask

__all__ = ("is_askable",)


def is_askable(ask: object) -> bool:
    """Whether this is a question whose fields are of their types; ``private`` may hold anything, it is not kept."""
    if not isinstance(ask, Ask):
        return False
    try:
        msgspec.json.decode(msgspec.json.encode(replace(ask, private={})), type=Ask)
    except Exception:  # noqa: BLE001 - whatever the reason, it cannot be kept
        return False
    return True
