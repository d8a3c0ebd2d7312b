"""Takes that end in an unusual way: parked without a turn, or overtaken by a change of their session."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.inputs import turn_id
from onrecord.errors import OnrecordError
from onrecord.host.setup import Setup
from onrecord.record.entry import Entry
from onrecord.record.kinds import ENDS, TurnFailed, TurnInterrupted
from onrecord.session.folding import land
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.turn.result import TurnResult

__all__ = ("after_conflict", "parked_change")


def parked_change(setup: Setup, row: Row, base: Session | None, why: str, error: Exception) -> Change:
    """Parks the row, and files that its turn failed: no hook runs, and no text of it is admitted."""
    session = base or Session(key=row.session, digest_key=setup.effects.nonce())
    code = error.code if isinstance(error, OnrecordError) else why
    body = TurnFailed(code=code, error=type(error).__name__, row=row.key)
    entry = _entry(session, row, body, setup.effects.now())
    after = land(session, (entry,), setup.folds_of(row, base))
    return replace(Change.between(base, after, (entry,)), taken=row, parked=why)


def _entry(session: Session, row: Row, body: TurnFailed, at: datetime) -> Entry:
    turn = turn_id(session.key, row.key, row.n)
    # A revived row is taken as the same turn, whose places count from 0: what was filed of a lease stands before them.
    return Entry(
        seq=session.seq, n=-row.attempt, turn=turn, take=row.attempt, where="main", at=at, cause=None, body=body
    )


def after_conflict(setup: Setup, row: Row, result: TurnResult[Any], newer: Session | None) -> TurnResult[Any] | None:
    """The take on the newer session, ended as interrupted: by the conflict, unless somebody had stopped it before.

    None when the history it spoke in is gone.
    """
    begun = result.base.generation if result.base is not None else 0
    if newer is None or newer.generation != begun:
        return None
    last = result.entries[-1]
    end = TurnInterrupted(id=f"conflict:{last.turn}/{last.take}", cause="conflict", of=last.turn)
    if isinstance(last.body, TurnInterrupted):
        end = last.body
    bodies = [e if not isinstance(e.body, ENDS) else replace(e, body=end) for e in result.entries]
    entries = tuple(replace(e, seq=newer.seq + at) for at, e in enumerate(bodies))
    session = land(newer, entries, setup.folds_of(row, result.base))
    return replace(
        result, status="interrupted", session=session, base=newer, entries=entries, messages=(), text="",
        question=None, wakes=(), disarmed=(), children=(),
    )  # fmt: skip
