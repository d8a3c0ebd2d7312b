"""What other people's code raises: what ends the take, and what is only the failure of that code."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from onrecord.errors import FeatureFailed, TurnError
from onrecord.jsonio import writable

__all__ = ("ends_take", "fail", "told")


def ends_take(error: BaseException) -> bool:
    """Whether this goes through: somebody cancelled this task, or speaks to somebody above the turn.

    Any other exception is the failure of whoever raised it, and so is the cancellation of a task of its own.
    """
    if not isinstance(error, asyncio.CancelledError):
        return not isinstance(error, Exception)
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def told(error: BaseException) -> str:
    """What an exception says, as text that can be sent and stored; its name where it says nothing, or cannot."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot be shown still has a name
        text = ""
    return writable(text) or type(error).__name__


def fail(feature: str, moment: str, error: BaseException) -> NoReturn:
    """FeatureFailed, where a failure can be no denial; a TurnError and what ends the take go through."""
    if isinstance(error, TurnError) or ends_take(error):
        raise error
    raise FeatureFailed(feature, moment, type(error).__name__) from error
