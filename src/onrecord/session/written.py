"""A change as a store writes it: encoded once, checked against itself, and against what the store holds.

Every store does the same with it, inside one transaction: for each `Written`, read the `Head`, `check` it, write.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import SessionConflict, StoreError, UsageError
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import encode_message, encode_state
from onrecord.session.inbox import check_reason, encode_row_body, kind_of_row
from onrecord.session.session import Session
from onrecord.session.store import Change

__all__ = ("NOTHING", "Head", "Written", "write_out")


class Head(Struct, frozen=True):
    """Where a stored session stands: its version and generation, and how many entries and messages it has."""

    version: int = 0
    generation: int = 0
    seq: int = 0
    messages: int = 0

    def is_of(self, session: Session | None) -> bool:
        """Whether this very state is what is stored."""
        return (
            session is not None
            and (session.version, session.generation, session.seq) == (self.version, self.generation, self.seq)
            and len(session.conversation.messages) == self.messages
        )


NOTHING = Head()
"""The head of a session that is not stored."""


class Written(Struct, frozen=True, kw_only=True):
    """One session of a change, encoded: ``after`` is its head once this is stored, ``expected`` the version before.

    ``messages`` go behind the first ``kept`` ones; each entry comes with its body's bytes.
    """

    key: SessionKey
    expected: int
    after: Head
    state: bytes
    kept: int
    messages: tuple[bytes, ...]
    entries: tuple[tuple[Entry, bytes], ...]
    owner: Identity | None = None
    parent: str | None = None

    def check(self, stored: Head) -> None:
        """Raises SessionConflict unless this is the next version, StoreError when it does not fit what is stored."""
        if self.expected != stored.version or self.after.generation < stored.generation:
            conflict = SessionConflict(self.key.id, expected=self.expected, found=stored.version)
            if self.after.generation < stored.generation:
                conflict.hint = "its history was reset after this work began: load the session again"
            raise conflict
        if self.kept > stored.messages:
            raise _unfit(self.key, f"keeps {self.kept} messages, but {stored.messages} are stored")
        if self.entries[0][0].seq != stored.seq:
            raise _unfit(self.key, f"starts at entry {self.entries[0][0].seq}, but the record goes on at {stored.seq}")


def write_out(change: Change, codec: EntryCodec) -> tuple[Written, ...]:
    """A change and its children, encoded, in order; sessions without new entries are left out.

    Raises StoreError (``store-change``) for a change that contradicts itself or holds what JSON cannot keep, and
    (``store-row``) for rows that could not be stored.
    """
    if not isinstance(change, Change):
        raise UsageError(
            f"a store commits a Change, not a {type(change).__name__}", hint="write await store.commit(result.change())"
        )
    written: list[Written] = []
    _gather(change, codec, written)
    _check_rows(change)
    keys = [one.key for one in written]
    if len(set(keys)) != len(keys):
        raise _unfit(change.session.key, "holds two changes of one session")
    return tuple(written)


def _gather(change: Change, codec: EntryCodec, into: list[Written]) -> None:
    if change.entries:
        into.append(_written(change, codec))
    elif change.messages:
        raise _unfit(change.session.key, "has messages but no entries, so nothing of it would be stored")
    for child in change.children:
        _gather(child, codec, into)


def _check_rows(change: Change) -> None:
    key, taken = change.session.key, change.taken
    if taken is not None and taken.session != key:
        raise _unfit(key, "came of a row of another session", _ROWS)
    if change.parked:
        if taken is None:
            raise _unfit(key, "parks a row but took none", _ROWS)
        check_reason(change.parked)
    for row in change.put:
        if not isinstance(row.body, (Woke, Outgoing)):
            raise _unfit(key, f"puts a row of the kind {kind_of_row(row.body)!r}", _ROWS)
        encode_row_body(row)
    for child in change.children:
        if child.taken is not None:
            raise _unfit(key, "has a child that took a row", _ROWS)
        _check_rows(child)


def _written(change: Change, codec: EntryCodec) -> Written:
    session, entries = change.session, change.entries
    key, total = session.key, len(session.conversation.messages)
    if change.kept < 0 or change.kept + len(change.messages) != total:
        told = f"keeps {change.kept} messages and adds {len(change.messages)}, but the session has {total}"
        raise _unfit(key, told)
    first = entries[0].seq
    if any(entry.seq != first + place for place, entry in enumerate(entries)):
        raise _unfit(key, "has entries whose numbers do not follow one another")
    if session.seq != first + len(entries):
        raise _unfit(key, f"ends before entry {first + len(entries)}, but the session goes on at {session.seq}")
    after = Head(session.version + 1, session.generation, session.seq, total)
    try:
        return Written(
            key=key, expected=session.version, after=after, kept=change.kept,
            owner=session.owner, parent=session.parent,
            state=encode_state(msgspec.structs.replace(session, version=after.version)),
            messages=tuple(encode_message(message) for message in change.messages),
            entries=tuple((entry, _body(entry, codec)) for entry in entries),
        )  # fmt: skip
    except UnicodeEncodeError:
        raise _unfit(key, "holds text that is not valid Unicode (half of a surrogate pair)") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        # msgspec names the type it cannot encode; its messages for other reasons are not ours to trust.
        told = f": {error}" if isinstance(error, TypeError) else ""
        hint = "session.data, details and states of features hold texts, numbers, lists and mappings"
        raise _unfit(key, f"holds a value that JSON cannot keep{told}", hint) from None


def _body(entry: Entry, codec: EntryCodec) -> bytes:
    (entry.turn + entry.where).encode()  # stored as they are, so they must be text here already
    return codec.encode_body(entry.body)


_MADE = "make it with Change.between(before, after, entries) from the session as it was loaded"


_ROWS = "taken= is the row of this session's turn; put= holds rows made by wake_row and outgoing_row"


def _unfit(key: SessionKey, what: str, hint: str = _MADE) -> StoreError:
    return StoreError(f"the change of session {key.id!r} {what}", code="store-change", hint=hint)
