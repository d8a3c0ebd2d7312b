"""A request that a model refused as too long is made once more where a window can show it less."""

from __future__ import annotations

from onrecord.errors import ModelError
from onrecord.models.request import Request
from onrecord.record.kinds import ModelAttempted
from onrecord.turn.moments import SLOTS
from onrecord.turn.turn import Turn

__all__ = ("check_shorter", "is_too_long")

_WINDOW = SLOTS["request"]["WINDOW"]


def is_too_long(turn: Turn, request: Request, error: ModelError, round_id: str) -> bool:
    """Whether to compose the request anew after this error: then it is filed as an attempt, and windows are told.

    The model says so itself, and nobody was shown anything of a reply: nothing is guessed here, and nothing taken back.
    """
    windows = any(hook.slot == _WINDOW for hook in turn.plan.on_request[request.purpose])
    if error.kind != "context" or error.started or turn.streaming or not windows:
        return False
    turn.note(
        ModelAttempted(
            round=round_id, attempt=1, error=error.kind, status=error.status, model=request.model.card.name
        ),
        where=request.where,
    )  # fmt: skip
    turn.refused = (request.view, error)
    return True


def check_shorter(turn: Turn, request: Request) -> None:
    """Raises the refusal that came before where this request would show the same again. It stands until now."""
    refused, turn.refused = turn.refused, None
    if refused is not None and refused[0] == request.view:
        raise refused[1]
