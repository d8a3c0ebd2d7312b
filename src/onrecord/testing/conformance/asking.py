"""Short questions to a store under test, and the clock that it goes by."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import LeaseLost
from onrecord.record.entry import Entry
from onrecord.session.inbox import Box, Row
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.testing.conformance.samples import AT, row, turn

__all__ = (
    "MakeStore",
    "SetClock",
    "accepted",
    "keys",
    "later",
    "loaded",
    "opened",
    "record",
    "refused",
    "stored",
    "taken",
    "unchanged",
)

MakeStore: TypeAlias = Callable[..., Store]
"""Makes a store; with ``clock=`` one that goes by this clock."""


class SetClock:
    """A clock that stands still until ``at`` is set, which may be backwards."""

    def __init__(self, at: datetime = AT) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def move(self, seconds: float) -> datetime:
        """Moves it, and says where it is then."""
        self.at += timedelta(seconds=seconds)
        return self.at


def later(seconds: float) -> datetime:
    """An instant this long after the clock's first."""
    return AT + timedelta(seconds=seconds)


@asynccontextmanager
async def opened(make: MakeStore, clock: SetClock | None = None) -> AsyncIterator[Store]:
    """A store of its own for one test, closed at its end."""
    store = make() if clock is None else make(clock=clock)
    try:
        yield store
    finally:
        await store.close()


async def accepted(store: Store, row: Row) -> Row:
    """The row as it is stored now, and was not before."""
    found = await store.put(row)
    assert found.is_new
    assert found.row is not None
    return found.row


async def taken(
    store: Store, box: Box = "in", *, owner: str = "w1", ttl: float = 30, session: SessionKey | str | None = None
) -> Row:
    """The next row, leased; there must be one."""
    key = None if session is None else session_key(session)
    (row,) = await store.lease(box, owner, ttl=ttl, session=key)
    return row


async def stored(store: Store, row: Row) -> Row | None:
    """The row of this key as it is stored, or None."""
    found = [other for other in await store.rows(row.box, row.session) if other.key == row.key]
    assert len(found) <= 1
    return found[0] if found else None


def keys(rows: Sequence[Row]) -> list[str]:
    """What the rows are called."""
    return [row.key for row in rows]


async def record(store: Store, key: SessionKey | str, after: int = -1) -> list[Entry]:
    """The record of a session as a list."""
    return [entry async for entry in store.entries(key, after=after)]


async def loaded(store: Store, key: SessionKey | str) -> Session:
    """A session that is there."""
    session = await store.load(key)
    assert session is not None
    return session


async def unchanged(store: Store, session: Session) -> None:
    """The store holds this very session, with a record of its length."""
    assert await store.load(session.key) == session
    assert len(await record(store, session.key)) == session.seq


async def refused(store: Store, zombie: Row) -> None:
    """Whoever holds this lease can do nothing with it, and nothing changes when they try."""
    before = await store.rows(zombie.box), await store.load(zombie.session)
    assert await store.extend([zombie], ttl=300) == [None]
    assert await store.again(zombie, due=later(0)) is False
    assert await store.park(zombie, why="zombie") is False
    assert await store.done(zombie) is False
    change = turn(before[1] or zombie.session, "zombie")
    for parked in ("", "zombie"):
        with pytest.raises(LeaseLost) as told:
            await store.commit(
                replace(change, taken=zombie, parked=parked, put=(row(Outgoing(key="z", text="zombie")),))
            )
        assert (told.value.code, bool(told.value.hint)) == ("lease-lost", True)
        assert "zombie" not in f"{told.value} {told.value.hint}"
    assert (await store.rows(zombie.box), await store.load(zombie.session)) == before
    assert not [one for one in await store.rows("out") if one.key == "z"]
