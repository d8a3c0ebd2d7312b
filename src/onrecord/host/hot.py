"""HotSessions: the sessions used last, so that a warm turn reads one row however long its history is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.session.session import Session

__all__ = ("HotSessions", "is_about")


def is_about(what: SessionKey | Identity, key: SessionKey, session: Session | None) -> bool:
    """Whether a session is the one named, a sub-turn below it, or of that person."""
    if isinstance(what, Identity):
        return session is not None and session.owner == what
    below = session is not None and session.parent == what.id and key.tenant == what.tenant
    return key == what or below


class HotSessions:
    """Keeps at most ``sessions`` sessions of at most ``messages`` messages together, the latest used.

    Nothing here is trusted: a store is asked whether a kept session is still what it holds (``load(known=)``).
    ``left`` is told of each session that is kept no longer.
    """

    def __init__(
        self, sessions: int = 256, messages: int = 200_000, *, left: Callable[[SessionKey], None] | None = None
    ) -> None:
        self._limit, self._limit_messages, self._left = sessions, messages, left
        self._kept: OrderedDict[SessionKey, Session] = OrderedDict()
        self._messages = 0

    def get(self, key: SessionKey) -> Session | None:
        """The session as it was last seen here."""
        session = self._kept.get(key)
        if session is not None:
            self._kept.move_to_end(key)
        return session

    def put(self, session: Session) -> None:
        """Keeps this state of the session instead of an older one; the least used ones make room."""
        self._forget(session.key)
        self._kept[session.key] = session
        self._messages += len(session.conversation.messages)
        while self._kept and (len(self._kept) > self._limit or self._messages > self._limit_messages):
            self.drop(next(iter(self._kept)))

    def drop(self, key: SessionKey) -> None:
        """Forgets a session."""
        if self._forget(key) and self._left is not None:
            self._left(key)

    def _forget(self, key: SessionKey) -> bool:
        old = self._kept.pop(key, None)
        if old is not None:
            self._messages -= len(old.conversation.messages)
        return old is not None

    def drop_about(self, what: SessionKey | Identity) -> None:
        """Forgets a session with its sub-turns, or all of a person's."""
        for key, session in list(self._kept.items()):
            if is_about(what, key, session):
                self.drop(key)

    def __len__(self) -> int:
        return len(self._kept)
