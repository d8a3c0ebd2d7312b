"""Store: the one persistence port. What a commit is, and a store in memory that keeps the same promises."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from msgspec import Struct

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import Message
from onrecord.record.entry import Entry
from onrecord.session.session import Session

__all__ = ("Change", "Store")


class Change(Struct, frozen=True, kw_only=True):
    """One commit, atomic.

    ``session`` is the new state, still with the version it was loaded with; ``messages`` go behind the first ``kept``
    stored ones, which is how a changed history is written too; ``entries`` are appended; ``children`` are the changes
    of sub-turns and stand or fall with it.
    """

    session: Session
    kept: int = 0
    messages: tuple[Message, ...] = ()
    entries: tuple[Entry, ...] = ()
    children: tuple[Change, ...] = ()


class Store(Protocol):
    """Keeps sessions, their messages and their entries; every key includes the tenant.

    All methods raise StoreError with a hint, never a driver's own exception, and leave nothing half-written.
    """

    async def load(self, key: SessionKey | str, /, *, known: Session | None = None) -> Session | None:
        """The session, or None. With ``known``, that very object comes back when nothing changed since."""
        ...

    async def commit(self, change: Change, /) -> Session:
        """Writes a change and returns its session with the new version. SessionConflict when it is not the next one."""
        ...

    def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        """The record of a session in order, from behind ``after``."""
        ...

    async def sessions(self, *, tenant: str = "") -> list[SessionKey]:
        """The keys of all sessions of a tenant, in order of their ids."""
        ...

    async def close(self) -> None:
        """Lets go of files and connections; safe to call twice."""
        ...
