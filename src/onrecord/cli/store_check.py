"""Checking a store: the file, every session of every tenant, every row of the inbox and the outbox."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.sources import Held, folds_for
from onrecord.cli.terminal import plural
from onrecord.cli.verify import Check, checks
from onrecord.conversation.identity import SessionKey
from onrecord.errors import OnrecordError, StoreError
from onrecord.record.jsonl import EntryCodec
from onrecord.session.inbox import Box, Row
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_schema import SCHEMA_VERSION, schema_version
from onrecord.stores.sqlite_upkeep import faults_of, sessions_of

__all__ = ("session_told", "store_checks")

BOXES: tuple[Box, ...] = ("in", "out")
_PAGE = 1000


def store_checks(path: str, agent: Agent[Any, Any] | None, progress: Callable[[int, int], None]) -> Iterator[Check]:
    """Everything that can be checked about a store's file, in order. It is only read."""
    version = schema_version(path)
    if version > SCHEMA_VERSION:
        asyncio.run(_open(path))  # which raises, and says what to do
    try:
        faults = tuple(faults_of(path))
    except StoreError as error:
        faults = (str(error),)
    yield Check(f"the file is whole, with schema {version}", faults)
    if version < SCHEMA_VERSION:
        told = f"sessions and rows, since schema {version} is an older one: onrecord store migrate brings it up to date"
        yield Check("", unchecked=f"not checked: {told}")
        return
    try:
        yield from asyncio.run(_inside(path, sessions_of(path), agent, progress))
    except StoreError as error:
        yield Check("sessions and rows can be read", (str(error),))


async def _open(path: str) -> None:
    async with SqliteStore(path):
        pass


async def _inside(
    path: str, keys: Sequence[SessionKey], agent: Agent[Any, Any] | None, progress: Callable[[int, int], None]
) -> list[Check]:
    codec = EntryCodec() if agent is None else agent.plan.codec
    gaps, unchecked, entries, forgot = list[str](), list[str](), 0, 0
    async with SqliteStore(path, bodies=codec.kinds.values()) as store:
        for done, key in enumerate(keys):
            progress(done, len(keys))
            try:
                held = await _held(store, path, key, codec, agent)
                found = [] if held is None else list(checks(held))
            except OnrecordError as error:
                gaps.append(f"{session_told(key)}: {error}")
                continue
            entries += 0 if held is None else len(held.entries)
            gaps += [f"{session_told(key)}: {gap}" for one in found for gap in one.gaps]
            forgot += any(one.erased for one in found)
            unchecked += [one.unchecked for one in found if one.unchecked]
        progress(len(keys), len(keys))
        told = f"{plural(len(keys), 'session')} with {plural(entries, 'entry', 'entries')} decode, fold and verify"
        erased = (f"in {plural(forgot, 'session')} something was erased: record verify says what",) if forgot else ()
        return [Check(told, tuple(gaps), _unchecked(unchecked), erased), *await _row_checks(store)]


async def _held(
    store: SqliteStore, path: str, key: SessionKey, codec: EntryCodec, agent: Agent[Any, Any] | None
) -> Held | None:
    session = await store.load(key)
    if session is None:
        return None  # erased since the keys were listed
    entries = tuple([entry async for entry in store.entries(key)])
    return Held(
        path=path, key=key, digest_key=session.digest_key, entries=entries[: session.seq], codec=codec,
        folds=folds_for(agent, entries, session), session=session,
    )  # fmt: skip


def _unchecked(told: Sequence[str]) -> str:
    """What could not be checked, the commonest first."""
    counted = [f"{what} ({plural(count, 'session')})" for what, count in Counter(told).most_common(3)]
    return f"not checked: {'; '.join(counted)}" if counted else ""


async def _row_checks(store: SqliteStore) -> list[Check]:
    gaps, now, counts = list[str](), datetime.now(UTC), Counter[str]()
    for box in BOXES:
        after = 0
        while True:
            try:
                rows = await store.rows(box, after=after, limit=_PAGE)
            except StoreError as error:
                gaps.append(str(error))
                break
            for row in rows:
                counts[box] += 1
                counts["parked"] += bool(row.dead)
                counts["late"] += row.lease_until is not None and row.lease_until <= now
                gaps += [f"{session_told(row.session)}, row {row.n} ({box}): {gap}" for gap in _row_gaps(row)]
            if len(rows) < _PAGE:
                break
            after = rows[-1].n
    told = f"{plural(counts['in'], 'row')} in and {counts['out']} out can be taken as they are"
    return [Check(told, tuple(gaps)), *_worth_knowing(counts)]


def _row_gaps(row: Row) -> Iterator[str]:
    """What no store would write."""
    if bool(row.owner) != (row.lease_until is not None):
        yield "it has an owner without a lease, or a lease without an owner"
    if row.dead and row.owner:
        yield "it is parked and leased"
    if row.clean > row.attempt:
        yield f"it was given back {row.clean} times and leased {row.attempt} times"
    if not row.key:
        yield "it has no key"


def _worth_knowing(counts: Counter[str]) -> Iterator[Check]:
    if counts["parked"]:
        told = f"{plural(counts['parked'], 'row')} parked: onrecord inbox list --parked says why"
        yield Check("", unchecked=told)
    if counts["late"]:
        yield Check("", unchecked=f"{plural(counts['late'], 'lease')} ran out: the next worker takes over")


def session_told(key: SessionKey) -> str:
    """How a session is named in a line."""
    return f"session {key.id!r}" + (f" of {key.tenant!r}" if key.tenant else "")
