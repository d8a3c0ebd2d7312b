"""The turns above a child turn: what they allow it, and what nobody else may do to it."""

from __future__ import annotations

from onrecord.conversation.messages import Round
from onrecord.errors import UsageError
from onrecord.models.request import Request
from onrecord.session.session import Session
from onrecord.turn.contained import fail
from onrecord.turn.moments import Stop
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("AskerGone", "check_reachable", "stop_above")


class AskerGone(BaseException):
    """Leaves the handler of a sub-agent that cannot go on with its question; ``error`` says why. The question stays."""

    def __init__(self, error: UsageError) -> None:
        super().__init__()
        self.error = error


def stop_above(turn: Turn, seen: Request | Round) -> Stop | None:
    """What a feature of a turn above says of a request of this turn before it is sent, or of its reply: a stop, filed.

    The nearest turn is asked first.
    """
    above = turn.above
    while above is not None:
        for name, guard in above.plan.guards:
            try:
                stop = guard(above, turn, seen)
            except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
                fail(name, "request", error)
            if stop is not None:
                file_verdict(turn, "request", name, "stop", stop.reason)
                turn.stop(stop)
                return stop
        above = above.above
    return None


def check_reachable(session: Session, above: Turn | None) -> None:
    """UsageError for an input from outside to a child turn that waits: its question is that of the turn above it."""
    if session.parent is None or session.pending is None or above is not None:
        return
    raise UsageError(
        "this session belongs to a call of a tool, whose turn waits for an answer", code="asked-above",
        hint=f"answer the question of the session {session.parent!r}",
    )  # fmt: skip
