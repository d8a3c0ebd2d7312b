"""Where a record is read from: a session in a store's file, or a record file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.cli.failure import Wrong, meant
from onrecord.cli.record_file import Header, read_record
from onrecord.cli.terminal import plural
from onrecord.conversation.identity import SessionKey
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import TurnOpened
from onrecord.record.leaving import Leaves
from onrecord.record.record import Record
from onrecord.session.folding import NO_FOLDS, Folds
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.session.walking import walk

__all__ = ("Held", "folds_for", "held", "is_store", "no_session", "store_named", "stored_sessions")

_MAGIC = b"SQLite format 3\0"
_NAME_ONE = "name a store's file or an exported record"


class Held(Struct, frozen=True, kw_only=True):
    """A record with what is known about it: its stored session (from a store) or its header (from a file)."""

    path: str
    key: SessionKey
    digest_key: str
    entries: tuple[Entry, ...]
    codec: EntryCodec
    folds: Folds = NO_FOLDS
    session: Session | None = None
    header: Header | None = None
    broken: tuple[str, ...] = ()

    def leaving(self, leaves: Leaves) -> Held:
        """The same, with entries as they leave the record."""
        return replace(self, entries=tuple(map(leaves, self.entries)))

    def record(self) -> Record[Session]:
        """The entries as a record that can be folded. RecordInvalid names the entry that does not fold."""
        return Record(self.entries, self.folded)

    def folded(self, entries: Sequence[Entry]) -> Session:
        """The session that entries fold to. RecordInvalid names the entry that does not fold."""
        session = Session(key=self.key, digest_key=self.digest_key)
        for one in walk(session, entries, self.folds):
            session = one.session or session
        return session


def is_store(path: str) -> bool:
    """Whether the file is a store, by its first bytes. Wrong when there is no such file.

    A pipe is none, and not a byte of it is read: it gives them only once.
    """
    if not path:
        raise Wrong("no file is named", hint=_NAME_ONE)
    file = Path(path)
    if not file.exists():
        near = [str(one) for one in file.parent.glob("*") if one.is_file()]
        told = f"{path!r} is a link that leads nowhere" if file.is_symlink() else f"there is no file {path!r}"
        raise Wrong(told, hint=meant(str(file), near, otherwise=_NAME_ONE))
    if file.is_dir():
        raise Wrong(f"{path!r} is a folder", hint="name the store's file inside it")
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC


def store_named(path: str) -> str:
    """The path, if it leads to a store's file. Wrong when it does not."""
    if not is_store(path):
        raise Wrong(f"{path!r} is no store", hint="name the file that a SqliteStore, or onrecord chat --store, writes")
    return path


def stored_sessions(path: str, tenant: str) -> list[Session]:
    """Every session of a store's file."""
    from onrecord.stores.sqlite import SqliteStore

    async def read() -> list[Session]:
        async with SqliteStore(path) as store:
            found = [await store.load(key) for key in await store.sessions(tenant=tenant)]
            return [session for session in found if session is not None]

    return asyncio.run(read())


def held(path: str, session: str | None, *, tenant: str = "", agent: Agent[Any, Any] | None = None) -> Held:
    """The record that a command line names. ``session`` may be left out where there is only one.

    ``agent`` brings the entry bodies and folds of its features.
    """
    codec = EntryCodec() if agent is None else agent.plan.codec
    if is_store(path):
        return asyncio.run(_from_store(path, session, tenant, codec, agent))
    file = read_record(path, codec)
    key = SessionKey(session or "record", tenant=tenant) if file.header is None else file.header.session
    if session is not None and file.header is not None and session != key.id:
        raise Wrong(f"{path!r} holds no session {session!r}", hint=f"it holds {key.id!r}")
    return Held(
        path=path, key=key, digest_key="" if file.header is None else file.header.digest_key, entries=file.entries,
        codec=codec, folds=folds_for(agent, file.entries), header=file.header, broken=file.broken,
    )  # fmt: skip


def folds_for(agent: Agent[Any, Any] | None, entries: Sequence[Entry], session: Session | None = None) -> Folds:
    """The folds of the agent's features, where it took the turns of the session: not those of an agent below it, nor
    of another one of its host. There is no more to go by than its name; below another, what else a record says of it.
    """
    if agent is None:
        return NO_FOLDS
    opened, spec = [e.body for e in entries if isinstance(e.body, TurnOpened)], agent.plan.spec
    is_below = session is not None and session.parent is not None
    others = (one.agent != spec.name or (is_below and one.manifest != spec.manifest) for one in opened)
    return NO_FOLDS if any(others) else agent.plan.folds


async def _from_store(
    path: str, session: str | None, tenant: str, codec: EntryCodec, agent: Agent[Any, Any] | None
) -> Held:
    from onrecord.stores.sqlite import SqliteStore

    async with SqliteStore(path, bodies=codec.kinds.values()) as store:
        if session is None:
            names = [key.id for key in await store.sessions(tenant=tenant)]
            if not names:
                raise Wrong(f"{path!r} holds no sessions{_whose(tenant)}", hint=_listed(names))
            if len(names) != 1:
                raise Wrong(f"{path!r} holds {plural(len(names), 'session')}: say which", hint=_listed(names))
            session = names[0]
        key = SessionKey(session, tenant=tenant)
        stored = await store.load(key)
        if stored is None:
            raise await no_session(store, path, key)
        entries = tuple([entry async for entry in store.entries(key)])
    return Held(
        path=path, key=key, digest_key=stored.digest_key, entries=entries[: stored.seq], codec=codec,
        folds=folds_for(agent, entries, stored), session=stored,
    )  # fmt: skip


async def no_session(store: Store, path: str, key: SessionKey) -> Wrong:
    """What is said of a session that a store does not hold."""
    if key.tenant and await store.load(SessionKey(key.id)) is not None:
        hint = "there is one of no tenant: leave --tenant out"
    else:
        names = [known.id for known in await store.sessions(tenant=key.tenant)]
        hint = meant(key.id, names, otherwise=_listed(names))
    return Wrong(f"{path!r} holds no session {key.id!r}{_whose(key.tenant)}", hint=hint)


def _whose(tenant: str) -> str:
    return f" of tenant {tenant!r}" if tenant else ""


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "onrecord chat --store keeps sessions in it"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"it holds {', '.join(map(repr, names[:8]))}{more}"
