"""How a take ends: closed, paused, interrupted or failed, and what each leaves."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import AnswerRefused, MessageDenied, ModelError, TurnError
from onrecord.record.kinds import TurnClosed, TurnFailed, TurnInput, TurnInterrupted, TurnOpened, TurnPaused
from onrecord.session.folding import land
from onrecord.session.session import Session
from onrecord.turn import watching
from onrecord.turn.letting_below import let_go_below
from onrecord.turn.listen import joined
from onrecord.turn.pause import settled_pending
from onrecord.turn.result import Status, TurnResult
from onrecord.turn.turn import Turn

__all__ = ("end", "nothing")


async def end(turn: Turn, given: Session | SessionKey, error: TurnError | ModelError | None) -> TurnResult[Any]:
    """Files how the take ended and makes its session. Raises the error, with its result."""
    base, shown = turn.session, joined(turn.streaming)
    await let_go_below(turn)
    if turn.interrupted is not None and turn.pending is None:
        by = turn.interrupted
        turn.note(
            TurnInterrupted(id=by.id, cause=by.cause, of=turn.id, shown=shown, heard=by.heard, receipt=by.receipt)
        )
        await watching.wait(turn)
        return _result(turn, "interrupted", land(base, turn.entries, turn.plan.folds), kept=False)
    if error is not None:
        turn.note(TurnFailed(code=error.code, error=type(error).__name__, shown=shown, row=turn.key))
        await watching.wait(turn)
        status: Status = "refused" if isinstance(error, (MessageDenied, AnswerRefused)) else "failed"
        error.result = _result(turn, status, land(base, turn.entries, turn.plan.folds), kept=False)
        raise error
    if turn.pending is not None:
        turn.note(TurnPaused(pending=settled_pending(turn, turn.pending)))
        await watching.wait(turn)
        return _result(turn, "paused", turn.working.session(len(turn.entries)))
    status = _closing_status(turn)
    if _unchanged(turn):
        return nothing(given, status, None)
    turn.note(TurnClosed(status=status))
    await watching.wait(turn)
    return _result(turn, status, turn.working.session(len(turn.entries)))


def _closing_status(turn: Turn) -> Status:
    if turn.lines and any(line.status == "deferred" for line in turn.lines):
        return "deferred"
    return "answered" if turn.messages else "silent"


def _unchanged(turn: Turn) -> bool:
    """Nothing but the opening and an input that enters no conversation: there is nothing to keep."""
    if turn.is_new or isinstance(turn.input, Said):
        return False
    return all(isinstance(e.body, (TurnOpened, TurnInput)) for e in turn.entries)


def _result(turn: Turn, status: Status, session: Session, *, kept: bool = True) -> TurnResult[Any]:
    messages = tuple(turn.messages) if kept else ()
    return TurnResult(
        status=status, session=session, changed=True, base=None if turn.is_new else turn.session,
        entries=tuple(turn.entries), messages=messages, text="\n\n".join(m.text for m in messages if m.text),
        question=turn.question if kept else None, private=dict(turn.private), wakes=tuple(turn.wakes) if kept else (),
        disarmed=tuple(turn.disarmed) if kept else (), lines=tuple(turn.lines), llm_calls=turn.llm_calls,
        usage=turn.usage, uses=dict(turn.uses), children=tuple(turn.children), typed=_typed(turn),
    )  # fmt: skip


def _typed(turn: Turn) -> tuple[object, str, str] | None:
    if turn.output is not None:
        return turn.output
    if turn.spec.output is str:
        return None
    return (UNSET, "model", "the turn ended without an answer")


def nothing(given: Session | SessionKey, status: Status, line: Outcome | None) -> TurnResult[Any]:
    """A turn that leaves everything as it was: the session given, or none."""
    session = given if isinstance(given, Session) else None
    lines = () if line is None else (line,)
    return TurnResult(status=status, session=session, changed=False, base=session, lines=lines)
