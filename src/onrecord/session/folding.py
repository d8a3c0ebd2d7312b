"""Folding: how entries become the session, live while a turn runs and again at every replay.

A take folds into one mutable `Working` state; what it makes is a new `Session`. Whole takes are read by all folds;
takes that were interrupted or failed (*unfinished* ones) only by the conversation, inputs, interruptions, pending and
the feature folds that say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onrecord.conversation.identity import SessionKey
from onrecord.record import kinds
from onrecord.record.entry import Entry
from onrecord.record.fold import ended_by, takes
from onrecord.record.record import Record
from onrecord.session.core_folds import CORE
from onrecord.session.session import Session
from onrecord.session.working import NO_FOLDS, Folds, Working

__all__ = ("NO_FOLDS", "Folds", "Working", "apply", "land", "record_of", "refold")


def apply(working: Working, entry: Entry) -> None:
    """Folds one entry in, at once."""
    body = entry.body
    step = CORE.get(type(body))
    if step is not None:
        step(working, entry, body)
    if working.slots:
        working.fold_features(entry, body.__struct_config__.tag)


def land(session: Session, entries: Sequence[Entry], folds: Folds = NO_FOLDS) -> Session:
    """Folds one whole take onto a session; only its end says which folds may read it.

    The same function lands a live take, a replayed one, and a take on a newer session.
    """
    whole = ended_by(entries[-1].body) in {kinds.TurnClosed, kinds.TurnPaused}
    working = Working(session, folds, whole=whole)
    for entry in entries:
        apply(working, entry)
    return working.session(len(entries))


def record_of(session: Session, entries: Iterable[Entry], folds: Folds = NO_FOLDS) -> Record[Session]:
    """The record of a session, for reading: ``why``, ``state_at``, ``turns``.

    ``folds`` are those of the agent's features, where their states matter: ``Folds(agent.plan.folds.all)``.
    """
    return Record(entries, lambda some: refold(session.key, some, folds, digest_key=session.digest_key))


def refold(key: SessionKey, entries: Iterable[Entry], folds: Folds = NO_FOLDS, *, digest_key: str = "") -> Session:
    """The session that a record tells of. A last take without an end is folded as a turn sees itself, live."""
    session = Session(key=key, digest_key=digest_key)
    for take in takes(entries):
        if ended_by(take[-1].body) is not None:
            session = land(session, take, folds)
        else:
            working = Working(session, folds)
            for entry in take:
                apply(working, entry)
            working.settle_open()
            session = working.session(len(take))
    return session
