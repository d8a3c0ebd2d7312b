"""Changing history: edit a tool result, remove a message, import messages, reset. Each is recorded like any turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from msgspec import Raw

from onrecord.conversation.content import Part
from onrecord.conversation.inputs import Interruption, check_interruption
from onrecord.conversation.messages import AssistantMessage, Message
from onrecord.errors import RecordInvalid, UsageError
from onrecord.jsonio import dumps
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import HistoryChanged, TurnClosed, TurnInterrupted
from onrecord.session.folding import Folds, land
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.session.working import NO_FOLDS

__all__ = (
    "change_history",
    "edit_result",
    "import_messages",
    "interrupt_closed",
    "raw_value",
    "remove_message",
    "reset",
)


def edit_result(
    session: Session, message: str, call: str, result: Sequence[Part], *, by: str, at: datetime, folds: Folds = NO_FOLDS
) -> Change:
    """Another result for a tool call. Native continuations of that round and of every later one are dropped, since
    they were generated from the old one. UsageError when there is no such message or call, or no such part.
    """
    body = HistoryChanged(op="edit", by=by, message=message, call=call, value=raw_value(result))
    return _changed(session, body, by, at, folds)


def remove_message(session: Session, message: str, *, by: str, at: datetime, folds: Folds = NO_FOLDS) -> Change:
    """The conversation without a message; the record keeps what it was. UsageError when there is no such message."""
    return _changed(session, HistoryChanged(op="remove", by=by, message=message), by, at, folds)


def import_messages(
    session: Session, messages: Sequence[Message], *, by: str, at: datetime, folds: Folds = NO_FOLDS
) -> Change:
    """Messages from elsewhere, behind the present ones. UsageError for an id that is taken or what is no message."""
    taken = {m.id for m in session.conversation.messages}
    for message in messages:
        if not isinstance(message, get_args(Message)):
            raise UsageError(
                f"an import holds messages, not {type(message).__name__}",
                hint="onrecord.conversation.transcript.messages_from(...) makes messages of plain history",
            )
        if message.id in taken:
            raise UsageError(
                f"message id {message.id!r} is already in the conversation", hint="give imports their own ids"
            )
        taken.add(message.id)
    return _changed(session, HistoryChanged(op="import", by=by, value=raw_value(messages)), by, at, folds)


def reset(session: Session, *, by: str, at: datetime, folds: Folds = NO_FOLDS) -> Change:
    """An empty conversation and empty data. It raises the generation: a turn begun before stores nothing after."""
    return _changed(session, HistoryChanged(op="reset", by=by), by, at, folds)


def change_history(session: Session, body: HistoryChanged, *, at: datetime, folds: Folds = NO_FOLDS) -> Change:
    """Any change of history as its record tells it. UsageError when it does not fit this conversation."""
    return _changed(session, body, body.by, at, folds)


def interrupt_closed(session: Session, by: Interruption, *, at: datetime, folds: Folds = NO_FOLDS) -> Change | None:
    """A late interruption: a closed turn's answer was heard only up to ``by.heard``. None when it is already known.

    UsageError when the turn has no answer in this conversation, or the interruption could not be read again.
    """
    check_interruption(by)
    if by.id in session.interruptions:
        return None
    if not any(isinstance(m, AssistantMessage) and m.turn == by.turn for m in session.conversation.messages):
        raise UsageError(f"turn {by.turn!r} has no answer in this conversation")
    body = TurnInterrupted(id=by.id, cause=by.cause, of=by.turn, heard=by.heard, receipt=by.receipt)
    return _take(session, f"{session.key.id}:interruption:{by.id}", (body,), at, folds)


def _changed(session: Session, body: HistoryChanged, by: str, at: datetime, folds: Folds) -> Change:
    if not by or not isinstance(by, str):
        raise UsageError("a change of history needs to say who made it", hint='pass by="..."')
    turn = f"{session.key.id}:history:{session.seq}"
    try:
        return _take(session, turn, (body, TurnClosed(status="silent")), at, folds)
    except LookupError as missing:
        raise UsageError(f"nothing in this conversation has the id {missing.args[0]!r}") from None
    except RecordInvalid as unreadable:
        raise UsageError(str(unreadable), hint=_TYPED) from None


_TYPED = "messages and parts hold the types they are declared with, and valid Unicode"


def raw_value(values: Sequence[object]) -> Raw:
    """Messages or parts as an entry keeps them. UsageError for what JSON cannot keep."""
    try:
        return Raw(dumps(tuple(values)))
    except (TypeError, ValueError, RecursionError) as error:
        # A TypeError of msgspec names the type that it cannot encode.
        told = f": {error}" if isinstance(error, TypeError) else ""
        raise UsageError(f"the value of a change of history cannot be recorded{told}", hint=_TYPED) from None


def _take(session: Session, turn: str, bodies: Sequence[Body], at: datetime, folds: Folds) -> Change:
    entries = tuple(
        Entry(seq=session.seq + n, n=n, turn=turn, take=1, where="main", at=at, cause=n - 1 if n else None, body=body)
        for n, body in enumerate(bodies)
    )
    return Change.between(session, land(session, entries, folds), entries)
