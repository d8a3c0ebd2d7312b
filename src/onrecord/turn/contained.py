"""What other people's code raises: what ends the take, and what is only the failure of that code."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from onrecord.errors import FeatureFailed, ModelError, OnrecordError, TurnError, UnsupportedThinkingError
from onrecord.jsonio import writable

__all__ = ("ends_take", "fail", "failed_call", "raised", "told")

_OWN = __file__.removesuffix(".py").removesuffix("contained")[:-1].removesuffix("turn")


def ends_take(error: BaseException) -> bool:
    """Whether this goes through: somebody cancelled this task, or speaks to somebody above the turn.

    Any other exception is the failure of whoever raised it, and so is the cancellation of a task of its own.
    """
    if not isinstance(error, asyncio.CancelledError):
        return not isinstance(error, Exception)
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failed_call(error: ModelError) -> str:
    """The code of a call that a feature can do without, for the record.

    A scripted model that has run out goes through: that is a test's own mistake, which it has to hear of.
    """
    if isinstance(error, AssertionError):
        raise error
    return error.code


def told(error: BaseException) -> str:
    """What an exception says, as text that can be sent and stored; its name where it says nothing, or cannot."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot be shown still has a name
        text = ""
    return writable(text) or type(error).__name__


def raised(error: BaseException) -> str:
    """Which exception it is and the last place outside of this library that it came from; never what it says.

    ``TypeError (clinic.py, line 187)``.
    """
    from pathlib import PurePath  # a heavy import, for a turn that has failed

    place, at = "", error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if not file.startswith(_OWN):
            place = f" ({writable(PurePath(file).name)}, line {at.tb_lineno})"
        at = at.tb_next
    return f"{type(error).__name__}{place}"


def fail(feature: str, moment: str, error: BaseException) -> NoReturn:
    """FeatureFailed, where a failure can be no denial.

    A TurnError, a refusal to ask a model so, and what ends the take go through.
    """
    if isinstance(error, (TurnError, UnsupportedThinkingError)) or ends_take(error):
        raise error
    hint = f"the cause of this error is what it raised: {raised(error)}"
    if isinstance(error, OnrecordError) and error.hint:
        hint = f"{hint}; {error.hint}"
    raise FeatureFailed(feature, moment, type(error).__name__, hint=hint) from error
