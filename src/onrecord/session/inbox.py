"""Rows: what must be handled, and what must be delivered. The port of the store that keeps them.

A row is *accepted* once it is stored. A worker leases the head row of a session, takes it, and the commit that ends
the take deletes it. Timers are rows with a later ``due``. Inbox and outbox follow the same rules.

1. One row per session, box and key. A row's number is never used again.
2. Of a session none of whose living rows in that box is leased, the row with the lowest (due, number) among those due
   may be leased. So one session has one taker, and a row that is leased or late blocks nobody else's session.
3. ``attempt`` counts leases and is the fence together with number and owner: who lost a lease stores nothing.
   ``clean`` counts orderly give-backs, so that attempt - clean are the takes that nobody heard of again.
4. Messages (`Said`, `Answered`) share one due time, max(now, their floors), given anew whenever one is put; a message
   given back for later moves those behind it too. So no message overtakes another, while wakes and events pass.
5. Interruptions and changes of history are due before everything else.
6. A message out is due no earlier than the last one waiting, plus its own delay.
7. A parked row (``dead``) is leased by nobody and blocks nobody until it is revived.

The store's clock decides what is due and whose lease has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Raw, Struct

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Input, Interruption, Said, Started, Woke, row_key
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import StoreError
from onrecord.jsonio import UNREADABLE
from onrecord.record.kinds import HistoryChanged
from onrecord.session.session import Session

__all__ = (
    "FIRST",
    "Accepted",
    "Box",
    "Busy",
    "Lease",
    "Row",
    "RowBody",
    "Rows",
    "comes_first",
    "decode_row_body",
    "encode_row_body",
    "is_message",
    "kind_of_row",
    "outgoing_row",
    "superseded",
    "wake_row",
)

Box = Literal["in", "out"]
Busy = Literal["queue", "supersede", "reject"]
RowBody = Input | Interruption | HistoryChanged | Outgoing

FIRST = datetime(1970, 1, 1, tzinfo=UTC)
"""When interruptions and changes of history are due: before any message."""


class Row(Struct, frozen=True, kw_only=True):
    """Something to handle (box ``in``) or to deliver (``out``).

    ``due`` None means at once; ``options`` are the turn's, as a JSON list. The fields from ``n`` on are kept by the
    store: ``lease_until`` is set while ``owner`` holds it; ``rung`` is the place on the ladder of retries,
    ``retry_at`` when the next one is due, ``floor`` the instant before which the provider wants none; ``cancel``
    tells the take to stop; ``dead`` says why the row is parked.
    """

    session: SessionKey
    box: Box
    key: str
    body: RowBody
    due: datetime | None = None
    options: Raw = Raw(b"[]")
    n: int = 0
    owner: str = ""
    lease_until: datetime | None = None
    attempt: int = 0
    clean: int = 0
    rung: int = 0
    retry_at: datetime | None = None
    floor: datetime | None = None
    cancel: Interruption | None = None
    dead: str = ""

    def __repr__(self) -> str:
        state = f", parked: {self.dead}" if self.dead else ", leased" if self.lease_until is not None else ""
        return f"Row({self.session.id!r}, {self.box!r}, n={self.n}, attempt={self.attempt}{state})"


class Lease(Struct, frozen=True, kw_only=True):
    """Who wants to take a row, and for how many seconds at a time. ``known`` is the session as they have it."""

    owner: str
    ttl: float
    known: Session | None = None


class Accepted(Struct, frozen=True, kw_only=True):
    """What became of a row that was put.

    ``row`` is the stored one, also when it was there before (``is_new`` False); None: refused, the session is busy.
    ``leased`` says that it is the asker's to take now, over ``session``.
    """

    row: Row | None
    is_new: bool = False
    leased: bool = False
    session: Session | None = None


class Rows(Protocol):
    """The half of a store that keeps rows. All of it raises StoreError with a hint, never a driver's own exception."""

    async def put(self, row: Row, /, *, busy: Busy = "queue", lease: Lease | None = None) -> Accepted:
        """Stores a row unless one with its key is there: then it is accepted, and survives any crash.

        ``busy``: ``reject`` refuses while a row of the session is leased or due; ``supersede`` marks all other
        messages of people that wait or are taken, so that they end interrupted. With ``lease`` the row comes back
        leased, with its session, when it is the next to be taken.
        """
        ...

    async def lease(
        self, box: Box, owner: str, /, *, ttl: float, limit: int = 1, session: SessionKey | None = None
    ) -> list[Row]:
        """Up to ``limit`` rows that may be taken now, of as many sessions, earliest first; they are the owner's."""
        ...

    async def extend(self, rows: Sequence[Row], /, *, ttl: float) -> list[Row | None]:
        """The leases for ``ttl`` seconds more; None where one was lost. ``cancel`` of a row says: stop."""
        ...

    async def again(self, row: Row, /, *, due: datetime, rung: int = 0, floor: datetime | None = None) -> bool:
        """Gives a leased row back, to be taken at ``due``. False, and nothing happens, where the lease was lost."""
        ...

    async def done(self, row: Row, /) -> bool:
        """Deletes a leased row that left nothing to commit. False where the lease was lost."""
        ...

    async def park(self, row: Row, /, *, why: str) -> bool:
        """Sets a leased row aside as dead: visible, and in nobody's way. False where the lease was lost."""
        ...

    async def revive(self, box: Box, session: SessionKey, /, *, keys: Sequence[str] | None = None) -> int:
        """Makes parked rows due at once, as if they had never been tried (None: all of the session). How many."""
        ...

    async def rows(
        self, box: Box, session: SessionKey | None = None, /, *, after: int = 0, limit: int = 1000
    ) -> list[Row]:
        """Rows in order of their numbers, behind ``after``, parked ones included."""
        ...

    async def cancel(
        self, box: Box, session: SessionKey, /, *, keys: Sequence[str] | None = None, by: Interruption | None = None
    ) -> int:
        """Deletes rows that nobody has leased (None: all of the session); with ``by`` marks them all instead.

        How many. A take sees the mark at its next heartbeat, or when it begins.
        """
        ...

    async def next_due(self, box: Box, /) -> datetime | None:
        """When something may next be leased, as things stand; None when nothing waits."""
        ...


def is_message(body: RowBody) -> bool:
    """Whether the row is of those that never overtake each other."""
    return isinstance(body, (Said, Answered))


def comes_first(body: RowBody) -> bool:
    """Whether the row goes ahead of every message."""
    return isinstance(body, (Interruption, HistoryChanged))


def superseded(by: Row) -> Interruption:
    """What other messages of a session are marked with by one that supersedes them."""
    return Interruption(id=f"superseded:{by.key}", cause="superseded")


def wake_row(session: SessionKey, wake: Wake) -> Row:
    """The row that a wake armed by a turn of this session becomes."""
    body = Woke(wake.key, at=wake.at, payload=wake.payload)
    return Row(session=wake.session or session, box="in", key=row_key(body, ""), body=body, due=wake.at)


def outgoing_row(session: SessionKey, message: Outgoing) -> Row:
    """The row of a message to deliver; the store says when it is due."""
    return Row(session=session, box="out", key=message.key, body=message)


def kind_of_row(body: RowBody) -> str:
    """The kind a row is stored under, such as ``said`` or ``out``."""
    return str(body.__struct_config__.tag)


_KINDS: dict[str, type[Any]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Said, Happened, Started, Woke, Answered, Interruption, HistoryChanged, Outgoing)
}
_decoders = {name: msgspec.json.Decoder(kind) for name, kind in _KINDS.items()}


def encode_row_body(row: Row) -> bytes:
    """The body as JSON. StoreError when it holds what JSON cannot keep."""
    if kind_of_row(row.body) not in _KINDS:
        raise _unfit(row, f"holds a {type(row.body).__name__}")
    try:
        (row.session.id + row.session.tenant + row.key).encode()
        return msgspec.json.encode(row.body)
    except UnicodeEncodeError:
        raise _unfit(row, "holds text that is not valid Unicode (half of a surrogate pair)") from None
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise _unfit(row, "holds a value that JSON cannot keep") from None


def decode_row_body(kind: str, body: bytes) -> RowBody:
    """What `encode_row_body` wrote. StoreError for what it did not."""
    decoder = _decoders.get(kind)
    if decoder is not None:
        try:
            found: RowBody = decoder.decode(body)
            return found
        except UNREADABLE:
            pass
    raise StoreError(
        f"a row of the kind {kind!r} does not decode", code="store-damaged", hint="restore the last good copy"
    )


def _unfit(row: Row, what: str) -> StoreError:
    hint = "a row carries one of the five inputs, an Interruption, a HistoryChanged or an Outgoing"
    return StoreError(f"the row of session {row.session.id!r} {what}", code="store-row", hint=hint)
