"""MemoryStore: the promises of a store, kept in memory and gone with the process. For tests and first steps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey, session_key
from onrecord.errors import StoreError
from onrecord.record.entry import Body, Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import decode_message, decode_state
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.session.written import NOTHING, Head, Written, write_out

__all__ = ("MemoryStore",)


class _Kept(Struct):
    head: Head
    state: bytes
    messages: list[bytes]
    entries: list[bytes]


class MemoryStore:
    """Keeps everything as the bytes a file would hold, so that what cannot be stored fails here too.

    ``bodies`` are the entry bodies of features to give back typed; others come back as `UnknownBody`. Usable from
    several event loops and threads.
    """

    def __init__(self, *, bodies: Iterable[type[Body]] = ()) -> None:
        self._codec = EntryCodec(bodies)
        self._kept: dict[SessionKey, _Kept] = {}
        self._lock = Lock()
        self._closed = False

    async def load(self, key: SessionKey | str, /, *, known: Session | None = None) -> Session | None:
        """The session, or None; ``known`` itself when it is still what is stored."""
        key = session_key(key)
        with self._open():
            kept = self._kept.get(key)
            if kept is None:
                return None
            if known is not None and known.key == key and kept.head.is_of(known):
                return known
            state, messages = kept.state, tuple(kept.messages)
        return decode_state(state, Conversation.of(decode_message(message) for message in messages))

    async def commit(self, change: Change, /) -> Session:
        """Stores a change whole or not at all. SessionConflict when it is not the next version."""
        written = write_out(change, self._codec)
        lines = [[self._codec.encode(entry) for entry, _ in one.entries] for one in written]
        with self._open():
            for one in written:
                kept = self._kept.get(one.key)
                one.check(NOTHING if kept is None else kept.head)
            for one, entries in zip(written, lines, strict=True):
                self._write(one, entries)
        return replace(change.session, version=change.session.version + 1) if change.entries else change.session

    def _write(self, one: Written, entries: list[bytes]) -> None:
        kept = self._kept.setdefault(one.key, _Kept(NOTHING, b"", [], []))
        kept.head, kept.state = one.after, one.state
        kept.messages[one.kept :] = one.messages
        kept.entries.extend(entries)

    async def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        """The record of a session in order, from behind ``after``, as it is when reading begins."""
        with self._open():
            kept = self._kept.get(session_key(key))
            lines = [] if kept is None else kept.entries[max(after + 1, 0) :]
        for line in lines:
            yield self._codec.decode(line)

    async def sessions(self, *, tenant: str = "") -> list[SessionKey]:
        """The keys of all sessions of a tenant, in order of their ids."""
        with self._open():
            return sorted((key for key in self._kept if key.tenant == tenant), key=lambda key: key.id)

    async def close(self) -> None:
        """Forgets everything; safe to call twice."""
        with self._lock:
            self._closed = True
            self._kept = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @contextmanager
    def _open(self) -> Iterator[None]:
        """The store for oneself. Asked only then whether it is closed: it may have been while this one waited."""
        with self._lock:
            if self._closed:
                raise StoreError("this store is closed", code="store-closed", hint="make a new one")
            yield
