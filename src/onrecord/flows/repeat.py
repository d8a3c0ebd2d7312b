"""Whether a flow may begin again: pure, from what was claimed and when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

__all__ = ("blocked",)


def blocked(
    claimed: datetime | None, now: datetime, *, cooldown: timedelta | None
) -> Literal["already-claimed", "cooldown"] | None:
    """Why a claim that is already held stops a flow; None: it does not.

    ``claimed`` is when the claim's key was spent last. A cooldown that has just passed blocks no more.
    """
    if claimed is None:
        return None
    if cooldown is None:
        return "already-claimed"
    return "cooldown" if now - claimed < cooldown else None
