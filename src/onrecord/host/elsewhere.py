"""The result of a turn that another process took, told from the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Interruption, Said, turn_id
from onrecord.conversation.outgoing import Outcome, Wake, disarmed
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    HistoryChanged,
    ModelRequested,
    OutcomeFiled,
    TextSaid,
    TurnClosed,
    TurnFailed,
    TurnInterrupted,
    TurnPaused,
    TurnResumed,
    WakeArmed,
    WakeDisarmed,
)
from onrecord.session.inbox import Row
from onrecord.session.session import Session, resumed
from onrecord.session.store import Store
from onrecord.turn.result import Status, TurnResult
from onrecord.turn.saying import message_of
from onrecord.turn.take import stale

__all__ = ("result_elsewhere",)


async def result_elsewhere(store: Store, row: Row, since: int, known: Session | None = None) -> TurnResult[Any]:
    """What became of a row that is gone, read from entry number ``since`` on. ``ignored`` when no entry knows of it."""
    found = list[Entry]()
    turn = turn_id(row.session, row.key, row.n)
    async for entry in store.entries(row.session, after=since - 1):
        if _is_led_to(entry.body, row):
            turn, found = entry.turn, []
        if entry.turn == turn:
            if found and found[-1].take != entry.take:
                found = []
            found.append(entry)
    session = await store.load(row.session, known=known)
    if not found:
        line = _line(row, session)
        return TurnResult(status="ignored", session=session, changed=False, base=session, lines=(line,))
    bodies = [entry.body for entry in found]
    status = _status(found[-1])
    speaks = not isinstance(row.body, Said) or row.body.speaks
    whole = isinstance(found[-1].body, (TurnClosed, TurnPaused))
    messages = (
        tuple(message_of(b, speaks=speaks) for b in bodies if isinstance(b, TextSaid) and b.text) if whole else ()
    )
    last = found[-1].body
    return TurnResult(
        status=status, session=session, changed=True, base=session, entries=tuple(found), messages=messages,
        text="\n\n".join(m.text for m in messages if m.text), wakes=_armed(bodies, row.session) if whole else (),
        question=last.pending.question if isinstance(last, TurnPaused) else None,
        lines=tuple(body.line for body in bodies if isinstance(body, OutcomeFiled)),
        llm_calls=sum(isinstance(body, ModelRequested) for body in bodies),
    )  # fmt: skip


def _line(row: Row, session: Session | None) -> Outcome:
    """What is told of a row that left nothing."""
    body = row.body
    if isinstance(body, Interruption) and session is not None and body.id in session.interruptions:
        return Outcome(kind="input", status="ignored", code="seen", key=row.key, message="nothing to change")
    if isinstance(body, Answered) and (session is None or resumed(session, body) is None):
        return stale(row.key)
    return Outcome(
        kind="input", status="ignored", code="not-taken", key=row.key, message="withdrawn, or taken before"
    )  # fmt: skip


def _is_led_to(body: Body, row: Row) -> bool:
    """Whether this is what the row led to, under the name of another turn or under one of its own."""
    given = row.body
    if isinstance(body, TurnResumed):
        return body.row == row.key or (isinstance(given, Answered) and body.answer.key == given.key)
    if isinstance(body, TurnInterrupted):
        return isinstance(given, Interruption) and body.id == given.id
    return isinstance(body, HistoryChanged) and body == given


def _armed(bodies: Sequence[Body], session: SessionKey) -> tuple[Wake, ...]:
    """The wakes that a take left armed."""
    armed = list[Wake]()
    for body in bodies:
        if isinstance(body, WakeDisarmed):
            armed = disarmed(armed, body.key, session)
        elif isinstance(body, WakeArmed):
            armed.append(body.wake)
    return tuple(armed)


def _status(end: Entry) -> Status:
    body = end.body
    if isinstance(body, TurnPaused):
        return "paused"
    if isinstance(body, TurnInterrupted):
        return "interrupted"
    if isinstance(body, TurnFailed):
        return "failed"
    return cast(Status, body.status) if isinstance(body, TurnClosed) else "silent"
