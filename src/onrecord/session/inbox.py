"""Rows: what must be handled, and what must be delivered. The port of the store that keeps them.

A row is *accepted* once it is stored. A worker leases the head row of a session, takes it, and the commit that ends
the take deletes it. Timers are rows with a later ``due``. Inbox and outbox follow the same rules.

1. One row per session, box and key. A row's number is never used again.
2. Of a session none of whose living rows in that box is leased, the row with the lowest (due, number) among those due
   may be leased. So one session has one taker, and a row that is leased or late blocks nobody else's session.
3. ``attempt`` counts leases and is the fence together with number and owner: who lost a lease stores nothing. A lease
   is lost when a row of its session and box is leased after it ended, the same one or another, and when its row is
   withdrawn or replaced; one that merely ended is still good. ``clean`` counts orderly give-backs, so that
   attempt - clean are the takes that nobody heard of again.
4. Messages (`Said`, `Answered`) share one due time, max(now, their floors), given anew to all that live whenever one
   is put or revived; a message given back for later moves those behind it too. So no message overtakes another, while
   wakes and events pass.
5. Interruptions and changes of history are due before everything else; one given back, when it is to be tried again.
6. A message out is due no earlier than the last one that lives, plus its own delay. One given back or revived is due no
   earlier than those of lower numbers, and moves those of higher ones.
7. A parked row (``dead``) is leased by nobody and blocks nobody until it is revived.

The store's clock decides what is due and whose lease has ended; it may jump. Instants are kept to the microsecond, in
UTC. What cannot be stored is refused before anything changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Raw, Struct

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Input, Interruption, Said, Started, Woke, row_key
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import LeaseLost, StoreError, UsageError
from onrecord.jsonio import UNREADABLE
from onrecord.record.kinds import HistoryChanged
from onrecord.session.codec import decoder
from onrecord.session.session import Session

__all__ = (
    "FIRST",
    "LONGEST_DELAY_MS",
    "LONGEST_LEASE",
    "Accepted",
    "Box",
    "Busy",
    "Lease",
    "Row",
    "RowBody",
    "Rows",
    "check_lease",
    "check_reason",
    "comes_first",
    "decode_mark",
    "decode_row_body",
    "encode_mark",
    "encode_row_body",
    "instant",
    "is_message",
    "kind_of_row",
    "lease_lost",
    "outgoing_row",
    "superseded",
    "wake_row",
)

Box = Literal["in", "out"]
Busy = Literal["queue", "supersede", "reject"]
RowBody = Input | Interruption | HistoryChanged | Outgoing

FIRST = datetime(1970, 1, 1, tzinfo=UTC)
"""When interruptions and changes of history are due: before any message."""

LONGEST_DELAY_MS = 100 * 365 * 86_400_000
"""How long a message out may be delayed."""

LONGEST_LEASE = 86_400.0
"""How many seconds a lease may be asked for at a time."""


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

        One that is there stays as it is, and nothing else happens either. ``busy``: ``reject`` refuses while a row of
        the session's inbox is leased or due; ``supersede`` marks every other `Said` that waits or is taken, so that it
        ends interrupted. With ``lease`` a new row comes back leased, with its session, when it is the next to be taken.
        A store may leave that to `lease` where the session is long and has to be read.
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

    async def revive(self, box: Box, session: SessionKey | str, /, *, keys: Sequence[str] | None = None) -> int:
        """Makes parked rows due at once, as if they had never been tried (None: all of the session). How many.

        They keep their numbers and go on counting attempts, as clean ones.
        """
        ...

    async def rows(
        self, box: Box, session: SessionKey | str | None = None, /, *, after: int = 0, limit: int = 1000
    ) -> list[Row]:
        """Rows in order of their numbers, behind ``after``, parked ones included."""
        ...

    async def cancel(
        self, box: Box, session: SessionKey | str, /, *, keys: Sequence[str] | None = None,
        by: Interruption | None = None,
    ) -> int:  # fmt: skip
        """Deletes rows that nobody has leased, parked ones too (None: all of the session). How many.

        With ``by`` nothing is deleted: rows that are not parked are marked, leased or not, and one marked before keeps
        its mark. A take sees the mark at its next heartbeat, or when it begins.
        """
        ...

    async def next_due(self, box: Box, /) -> datetime | None:
        """When something may next be leased, as things stand: a head's due time, or the end of a lease.

        In the past: now. None when nothing waits.
        """
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


def wake_row(session: SessionKey, wake: Wake, *, agent: str = "") -> Row:
    """The row that a wake armed by a turn of this session becomes; ``agent`` will take it."""
    body = Woke(wake.key, at=wake.at, payload=wake.payload, agent=agent)
    return Row(session=wake.session or session, box="in", key=row_key(body, ""), body=body, due=wake.at)


def outgoing_row(session: SessionKey, message: Outgoing) -> Row:
    """The row of a message to deliver; the store says when it is due."""
    return Row(session=session, box="out", key=message.key, body=message)


def lease_lost(row: Row) -> LeaseLost:
    """What a take is told whose row is not its own any more."""
    return LeaseLost(
        f"row {row.n} of session {row.session.id!r} is no longer leased to this take",
        hint="nothing of it is stored; whoever has the row now takes it anew",
    )


def kind_of_row(body: RowBody) -> str:
    """The kind a row is stored under, such as ``said`` or ``out``."""
    return str(body.__struct_config__.tag)


_KINDS: dict[str, Any] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Said, Happened, Started, Woke, Answered, Interruption, HistoryChanged, Outgoing)
}


def encode_row_body(row: Row) -> bytes:
    """The body as JSON. StoreError (``store-row``) for a row that could not be stored, or not be read again."""
    kind = kind_of_row(row.body)
    if kind not in _KINDS or (row.box == "out") != isinstance(row.body, Outgoing):
        raise _unfit(row.session, f"holds a {type(row.body).__name__} in the box {row.box!r}")
    if row.due is not None:
        instant(row.due)
    if isinstance(row.body, Outgoing) and not 0 <= row.body.after_ms <= LONGEST_DELAY_MS:
        raise _unfit(row.session, "is delayed by less than nothing, or by more than a hundred years")
    _texts(row.session, row.session.id, row.session.tenant, row.key)
    return _encoded(row.session, row.body, kind)


def encode_mark(session: SessionKey, by: Interruption) -> bytes:
    """What rows of this session are marked with, as JSON. StoreError when it holds what JSON cannot keep."""
    return _encoded(session, by, kind_of_row(by))


def decode_mark(body: bytes) -> Interruption:
    """What `encode_mark` wrote. StoreError for what it did not."""
    mark: Interruption = _decoded("interruption", body)
    return mark


def instant(at: datetime) -> datetime:
    """The instant as rows keep it, in UTC. StoreError for one that has no offset."""
    try:
        if at.utcoffset() is not None:
            return at.astimezone(UTC)
    except OverflowError:
        pass
    raise StoreError(
        "a time has no UTC offset, or lies outside the calendar", code="store-row", hint="use datetime.now(UTC)"
    )


def check_lease(owner: str, ttl: float) -> None:
    """UsageError for a lease that nobody could hold."""
    if not owner or not 0 < ttl <= LONGEST_LEASE:
        raise UsageError("a lease has an owner and a ttl= in seconds, up to a day", hint="ttl=30 is common")
    _texts(None, owner)


def check_reason(why: str) -> None:
    """UsageError for parking a row without saying why."""
    if not why:
        raise UsageError("a row is parked for a reason", hint="give why= a short code")
    _texts(None, why)


def decode_row_body(kind: str, body: bytes) -> RowBody:
    """What `encode_row_body` wrote. StoreError for what it did not."""
    found: RowBody = _decoded(kind, body)
    return found


def _decoded(kind: str, body: bytes) -> Any:
    if kind in _KINDS:
        with suppress(*UNREADABLE):
            return decoder(_KINDS[kind])(body)
    raise StoreError(
        f"a row of the kind {kind!r} does not decode", code="store-corrupt", hint="restore the last good copy"
    )


def _encoded(session: SessionKey, body: RowBody, kind: str) -> bytes:
    try:
        encoded = msgspec.json.encode(body)
        decoder(_KINDS[kind])(encoded)
    except UnicodeEncodeError:
        raise _unfit(session, _NO_UNICODE) from None
    except (*UNREADABLE, TypeError, ValueError, OverflowError):
        raise _unfit(session, "holds a value that JSON cannot keep, or that could not be read again") from None
    return encoded


_NO_UNICODE = "holds text that is not valid Unicode (half of a surrogate pair)"


def _texts(session: SessionKey | None, *texts: str) -> None:
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        raise _unfit(session, _NO_UNICODE) from None


def _unfit(session: SessionKey | None, what: str) -> StoreError:
    hint = "the inbox holds the five inputs, Interruption and HistoryChanged, the outbox holds Outgoing"
    of = "" if session is None else f" of session {session.id!r}"
    return StoreError(f"a row{of} {what}", code="store-row", hint=hint)
