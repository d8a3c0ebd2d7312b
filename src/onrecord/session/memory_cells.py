"""What a store in memory holds, as erasing sees it: as plain as it can be written."""

from __future__ import annotations

import secrets  # noqa: TID251 - a key that nobody can guess, as a database would make it
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.record.entry import Entry, kind_of
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import Erased
from onrecord.session.codec import decode_message, decode_state, encode_message, encode_state
from onrecord.session.eraser import Age, Bare
from onrecord.session.erasing import ERASURE, descendants
from onrecord.session.inbox import Row
from onrecord.session.memory_rows import RowTable, due_of, forget, rows_behind
from onrecord.session.session import Session
from onrecord.session.written import Head

__all__ = ("KeptSession", "MemoryCells")


class KeptSession(Struct):
    """A session as the store in memory keeps it."""

    head: Head
    state: bytes
    messages: list[bytes]
    entries: list[bytes]

    def session(self) -> Session:
        """The session, decoded."""
        return decode_state(self.state, Conversation.of(decode_message(message) for message in self.messages))


class MemoryCells:
    """`Cells` of a store in memory; whoever uses it holds the store's lock."""

    def __init__(self, sessions: dict[SessionKey, KeptSession], table: RowTable, codec: EntryCodec) -> None:
        self._sessions, self._table, self._codec = sessions, table, codec
        self.now = table.clock()

    def fresh_key(self) -> str:
        return secrets.token_hex(16)

    def bare(self, key: SessionKey) -> Bare | None:
        kept = self._sessions.get(key)
        return None if kept is None else Bare(kept.session(), len(kept.messages))

    def told(self, key: SessionKey) -> tuple[Session, list[Entry]] | None:
        kept = self._sessions.get(key)
        return None if kept is None else (kept.session(), [self._codec.decode(line) for line in kept.entries])

    def left(self, key: SessionKey) -> list[Entry]:
        entries = map(self._codec.decode, self._sessions[key].entries)
        return [entry for entry in entries if not isinstance(entry.body, Erased)]

    def of_kinds(self, key: SessionKey, before: dict[str, datetime], after: int, limit: int) -> list[Entry]:
        left = (entry for entry in self.left(key) if entry.seq > after)
        found = (e for e in left if (at := before.get(kind_of(e.body))) is not None and e.at < at)
        return [entry for _, entry in zip(range(limit), found, strict=False)]

    def owned(self, who: Identity) -> list[SessionKey]:
        return [key for key, kept in self._sessions.items() if kept.session().owner == who]

    def below(self, key: SessionKey) -> list[SessionKey]:
        return descendants(key, ((child, kept.session().parent) for child, kept in self._sessions.items()))

    def ages(self, after: SessionKey | None, limit: int) -> list[Age]:
        keys = sorted(self._sessions, key=_order)
        behind = [key for key in keys if after is None or _order(key) > _order(after)]
        return [self._age(key) for key in behind[:limit]]

    def _age(self, key: SessionKey) -> Age:
        left = [entry.at for entry in self.left(key) if entry.where != ERASURE]
        last = self._codec.decode(self._sessions[key].entries[-1]).at
        return Age(key, last, min(left, default=None))

    def waits(self, key: SessionKey) -> bool:
        return bool(self._table.living("in", key) or self._table.living("out", key))

    def write(self, session: Session, entries: Sequence[Entry]) -> None:
        kept = self._sessions[session.key]
        kept.state = encode_state(session)
        kept.messages = [encode_message(message) for message in session.conversation.messages]
        kept.head = Head(session.version, session.generation, session.seq, len(kept.messages))
        self.rewrite(session.key, entries)

    def rewrite(self, key: SessionKey, entries: Sequence[Entry]) -> None:
        lines = self._sessions[key].entries
        for entry in entries:
            lines[entry.seq : entry.seq + 1] = [self._codec.encode(entry)]

    def drop(self, key: SessionKey, matches: Callable[[Row], bool] | None) -> int:
        return forget(self._table, lambda row: row.session == key and (matches is None or matches(row)))

    def put_back(self, key: SessionKey, change: Callable[[Row], Row]) -> None:
        for box in ("in", "out"):
            for row in rows_behind(self._table, box, key, 0, self._table.last):
                self._table.keep(change(row))

    def drop_parked(self, before: datetime, limit: int) -> int:
        rows = [row for box in ("in", "out") for row in rows_behind(self._table, box, None, 0, self._table.last)]
        old = [row for row in rows if row.dead and due_of(row) < before][:limit]
        for row in old:
            self._table.remove(row)
        return len(old)


def _order(key: SessionKey) -> tuple[str, str]:
    return key.tenant, key.id
