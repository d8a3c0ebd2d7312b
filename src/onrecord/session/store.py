"""Store: the one persistence port, and what a commit is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import Message
from onrecord.record.entry import Entry
from onrecord.session.erasure import Erasure, Retention
from onrecord.session.inbox import Row, Rows
from onrecord.session.session import Session

__all__ = ("Change", "Store")


class Change(Struct, frozen=True, kw_only=True):
    """One commit, atomic. A session without new entries is not written; rows are, all the same.

    ``session`` is the new state, still with the version it was loaded with; ``messages`` go behind the first ``kept``
    stored ones, which is how a changed history is written too; ``entries`` are appended; ``children`` are the changes
    of sub-turns and stand or fall with it. ``taken`` is the leased row this came of: it is deleted, or parked with the
    reason ``parked``. Then ``drop`` names wakes of the session that are not to come (their rows' keys; one that runs
    stays), and ``put`` are wakes and messages out. A wake replaces one of its key that waits, is parked or runs, and
    whoever runs it loses the lease; a message out whose key is there stays as it is. Children drop and put too.
    """

    session: Session
    kept: int = 0
    messages: tuple[Message, ...] = ()
    entries: tuple[Entry, ...] = ()
    children: tuple[Change, ...] = ()
    taken: Row | None = None
    parked: str = ""
    drop: tuple[str, ...] = ()
    put: tuple[Row, ...] = ()

    def __repr__(self) -> str:
        return f"Change({self.session!r}, {len(self.messages)} messages, {len(self.entries)} entries)"

    @classmethod
    def between(
        cls, before: Session | None, after: Session, entries: Iterable[Entry], children: Iterable[Change] = ()
    ) -> Change:
        """What turns the stored ``before`` (None: nothing is stored) into ``after``; messages both share are kept."""
        told = after.conversation.messages
        kept = 0 if before is None else told.shared_with(before.conversation.messages)
        return cls(
            session=after, kept=kept, messages=tuple(told.since(kept)), entries=tuple(entries), children=tuple(children)
        )


class Store(Rows, Protocol):
    """Keeps sessions, their messages, their entries and rows; every key includes the tenant.

    All methods raise StoreError with a hint, never a driver's own exception, and leave nothing half-written.
    """

    async def load(self, key: SessionKey | str, /, *, known: Session | None = None) -> Session | None:
        """The session, or None. With ``known``, that very object comes back when it is still what is stored."""
        ...

    async def commit(self, change: Change, /) -> Session:
        """Writes a change and returns its session with the new version, or as it is when nothing had to be written.

        LeaseLost when the row taken is somebody else's by now; SessionConflict when the stored session is not the one
        the change was made from. Cancelled, it has happened whole or not at all.
        """
        ...

    def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        """The record of a session in order, from behind ``after``."""
        ...

    async def sessions(self, *, tenant: str = "") -> list[SessionKey]:
        """The keys of all sessions of a tenant, in order of their ids."""
        ...

    async def erase(
        self, what: SessionKey | Identity | str, /, *, messages: Sequence[str] | None = None, why: str
    ) -> Erasure:
        """Erases a session, all sessions that a person owns, or the turns that some messages of a session belong to.

        Of what is erased every entry's body becomes an `Erased`; messages, state, rows (leased ones too) and the key of
        digests go. A session's sub-turns go with it, and those of an erased turn with that turn. Erasing some turns
        also takes what later entries hold of them, data they changed and the states of features. The generation is
        raised, so work that began before is refused. The record says that it happened and ``why``, which stays.

        Erasing again what is erased does nothing. A message that no record knows is passed over. UsageError without a
        reason, StoreError (``store-record``) for messages of a record that does not fold.
        """
        ...

    async def expire(self, policy: Retention, /) -> Erasure:
        """Erases what is older than the policy says, in short transactions; what sessions know now stays as it is.

        UsageError for kinds of entries of which sessions are built.
        """
        ...

    async def close(self) -> None:
        """Lets go of files and connections; safe to call twice."""
        ...
