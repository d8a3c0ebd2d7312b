"""Erasing: what is left of a session, what an erasure did, and for how long things are kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
from msgspec import Struct

from onrecord.conversation.identity import SessionKey
from onrecord.errors import UsageError
from onrecord.jsonio import UNREADABLE, Json
from onrecord.record.kinds import HistoryChanged
from onrecord.session.session import StoredSlot

__all__ = ("Erasure", "Kept", "Remains", "Retention", "ago", "reason_of")

Remains = Literal["log", "pages"]


class Erasure(Struct, frozen=True, kw_only=True):
    """What was erased: how many sessions, messages, entries (their bodies) and rows.

    ``remains`` names where copies of them may still be: in the ``log`` beside a file that somebody is reading, or in
    unused ``pages`` of a file that was too large to be rewritten at once. Empty: nothing of them is in the store.
    ``gone`` names the sessions of which nothing is left, those of sub-turns and those erased before too; ``turns`` the
    turns that went with some messages of a session.
    """

    sessions: int = 0
    messages: int = 0
    entries: int = 0
    rows: int = 0
    remains: tuple[Remains, ...] = ()
    gone: tuple[SessionKey, ...] = ()
    turns: tuple[str, ...] = ()

    def __add__(self, other: Erasure) -> Erasure:
        return Erasure(
            sessions=self.sessions + other.sessions, messages=self.messages + other.messages,
            entries=self.entries + other.entries, rows=self.rows + other.rows,
            remains=tuple(dict.fromkeys((*self.remains, *other.remains))),
            gone=(*self.gone, *other.gone), turns=(*self.turns, *other.turns),
        )  # fmt: skip


class Retention(Struct, frozen=True, kw_only=True):
    """For how long things are kept; None: for ever. What is older is erased.

    ``entries``: turns, with their messages and entries, from their last entry on. ``sessions``: whole sessions in
    which nothing happened for that long and for which nothing waits. ``rows``: parked rows. ``kinds``: entries of
    single kinds of which no session is built, such as ``verdict``, ``note``, or those of features.

    UsageError for an age below zero.
    """

    entries: timedelta | None = None
    sessions: timedelta | None = None
    rows: timedelta | None = None
    kinds: Mapping[str, timedelta] = {}

    def __post_init__(self) -> None:
        """A wrong age would erase everything."""
        whole: tuple[object, ...] = (self.entries, self.sessions, self.rows)
        for age in (*(age for age in whole if age is not None), *self.kinds.values()):
            if not isinstance(age, timedelta) or age < timedelta(0):
                raise UsageError(
                    "Retention takes ages from zero on", hint="write Retention(entries=timedelta(days=90))"
                )


class Kept(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session keeps although the entries that made it were erased; filed by the erasure, read by folds.

    ``data`` holds what the entries that are left do not tell.
    """

    generation: int
    why: str
    inputs: tuple[str, ...] = ()
    interruptions: tuple[str, ...] = ()
    data: Mapping[str, Json] = {}
    slots: Mapping[str, StoredSlot] = {}
    last_user_at: datetime | None = None
    last_assistant_at: datetime | None = None


_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def ago(now: datetime, age: timedelta) -> datetime:
    """The instant so long before, or the beginning of the calendar."""
    try:
        return now - age
    except OverflowError:
        return _BEGINNING


def reason_of(erased: HistoryChanged) -> str:
    """Why something was erased, as the entry of it tells; empty where it does not."""
    try:
        return msgspec.json.decode(erased.value, type=Kept).why
    except UNREADABLE:
        return ""
