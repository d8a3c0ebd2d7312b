"""Sessions of sub-turns whose turn above waits for them no more: they are closed together with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from onrecord.record.entry import Entry
from onrecord.record.kinds import TurnClosed, TurnOpened, TurnPaused
from onrecord.record.record import Entries
from onrecord.session.codec import loads_session
from onrecord.session.folding import land
from onrecord.session.session import Session
from onrecord.session.store import Change

__all__ = ("changes_below", "closed_below", "is_waiting", "waiting_below")

BY = "dropped"
"""How the turn that closes such a session calls what began it."""


def waiting_below(session: Session) -> Iterator[Session]:
    """The sessions of sub-turns that the open question of this one waits with, as they were stored."""
    if session.pending is not None:
        yield from map(loads_session, session.pending.children.values())


async def is_waiting(child: Session, record: Entries | None) -> bool:
    """Whether it is still stored as its turn above knows it; without a store whoever keeps it knows.

    Somebody may have erased it, changed its history, or let go of it because of its age.
    """
    if record is None:
        return True
    found = [entry.body async for entry in record(child.key, after=child.seq - 2)]
    return len(found) == 1 and isinstance(found[0], TurnPaused)


def closed_below(child: Session, at: datetime) -> tuple[Session, tuple[Entry, ...]]:
    """A session whose question nobody will answer, without it, and the entries that say so."""
    if child.pending is None:
        return child, ()
    bodies = (
        TurnOpened(input_kind=BY, row=BY, now=at, drops=child.pending.turn),
        TurnClosed(status="silent"),
    )
    turn = f"{child.key.id}:{BY}:{child.seq}"
    entries = tuple(
        Entry(seq=child.seq + n, n=n, turn=turn, take=1, where="main", at=at, cause=n - 1 if n else None, body=body)
        for n, body in enumerate(bodies)
    )
    return land(child, entries), entries


async def changes_below(session: Session, at: datetime, record: Entries | None) -> tuple[Change, ...]:
    """What closes all that waits with the open question of a session, for the change that lets go of the question."""
    changes = list[Change]()
    for child in waiting_below(session):
        if await is_waiting(child, record):
            after, entries = closed_below(child, at)
            changes.append(Change.between(child, after, entries, children=await changes_below(child, at, record)))
    return tuple(changes)
