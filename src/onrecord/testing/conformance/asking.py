"""Short questions to a store under test."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from onrecord.conversation.identity import SessionKey
from onrecord.record.entry import Entry
from onrecord.session.session import Session
from onrecord.session.store import Store

__all__ = ("MakeStore", "loaded", "opened", "record", "unchanged")

MakeStore: TypeAlias = Callable[[], Store]


@asynccontextmanager
async def opened(make: MakeStore) -> AsyncIterator[Store]:
    """A store of its own for one test, closed at its end."""
    store = make()
    try:
        yield store
    finally:
        await store.close()


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
