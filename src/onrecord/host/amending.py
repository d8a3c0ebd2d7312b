"""Amending: rows that are no input change what was said: interruptions of closed turns, and changes of history."""

from __future__ import annotations

from typing import Any

from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import UsageError
from onrecord.host.setup import Setup
from onrecord.record.kinds import HistoryChanged
from onrecord.session.history import change_history, interrupt_closed
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.turn.result import Status, TurnResult

__all__ = ("amend",)


def amend(row: Row, base: Session | None, setup: Setup) -> tuple[Change | None, TurnResult[Any]]:
    """What the row makes of the session (None: nothing), and what its sender is told.

    UsageError for a change of history that does not fit the conversation.
    """
    now, body = setup.effects.now(), row.body
    session = base or Session(key=row.session, digest_key=setup.effects.nonce())
    if isinstance(body, HistoryChanged):
        return _told(row, base, change_history(session, body, at=now, folds=setup.plan.folds), "silent", "")
    if not isinstance(body, Interruption):  # only a store that breaks the port's promises puts one here
        raise UsageError(f"a row of the inbox holds a {type(body).__name__}, which nobody takes")
    try:
        change = interrupt_closed(session, body, at=now, folds=setup.plan.folds)
    except UsageError:
        return _told(row, base, None, "ignored", "unknown-turn")
    return _told(row, base, change, "ignored" if change is None else "interrupted", "" if change else "seen")


def _told(
    row: Row, base: Session | None, change: Change | None, status: Status, code: str
) -> tuple[Change | None, TurnResult[Any]]:
    line = Outcome(kind="input", status="ignored", code=code, key=row.key, message="nothing to change")
    result = TurnResult[Any](
        status=status, session=base if change is None else change.session, changed=change is not None, base=base,
        entries=() if change is None else change.entries, lines=(line,) if code else (),
    )  # fmt: skip
    return change, result
