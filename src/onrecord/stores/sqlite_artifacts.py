"""SqliteArtifacts: results that were too long to show, in a file of their own.

```
artifacts(n, tenant, session, owner, ref, at, over, size, known, data)            unique(tenant, session, owner, ref)
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import StoreError
from onrecord.prompt.artifact_store import Artifact, ArtifactScope, check_limits, damaged_artifact, made_in
from onrecord.stores.sqlite_codec import CellCodec, Cipher
from onrecord.stores.sqlite_erase import sweep, unswept
from onrecord.stores.sqlite_file import SqliteFile, absolute_path, transaction
from onrecord.stores.sqlite_leases import micros
from onrecord.stores.sqlite_own_file import OwnFile

if TYPE_CHECKING:
    import sqlite3

__all__ = ("ARTIFACTS_ID", "SqliteArtifacts")

ARTIFACTS_ID = 0x6F6E7261
"""Marks a SQLite file as one of artifacts of this library: ``onra`` in ASCII."""

_SCHEMA = (
    """create table artifacts(
        n integer primary key autoincrement, tenant text not null, session text not null, owner text not null,
        ref text not null, at integer not null, over integer, size integer not null, known blob not null,
        data blob not null, unique(tenant, session, owner, ref))""",
    "create index artifacts_by on artifacts(owner) where owner<>''",
    "create index artifacts_at on artifacts(at)",
    "create index artifacts_over on artifacts(over) where over is not null",
)
_OWN_FILE = OwnFile(what="artifacts", instead="MemoryArtifacts()", id=ARTIFACTS_ID, version=1, schema=_SCHEMA)
_SWEPT_AT_ONCE = 256 << 20
"""Bytes up to which a file is rewritten when something is let go of: about a second, in which nobody can write."""


class SqliteArtifacts:
    """Artifacts in the SQLite file at ``path``, opened on first use and made when there is none.

    It is a file of its own, beside that of a `SqliteStore`; several event loops, threads and processes may use it at
    once. ``cipher`` seals what is stored and what is known of it; whose it is and its ref stay readable. The oldest
    are deleted once there are more than ``max_bytes`` or ``max_count`` (None: no such limit). `forget` rewrites the
    file, so that nothing of what was deleted is left in it or in its log.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int | None = None, max_count: int | None = None,
        cipher: Cipher | None = None,
    ) -> None:  # fmt: skip
        file = absolute_path(path, instead=_OWN_FILE.instead)
        check_limits("SqliteArtifacts", max_bytes, max_count)
        self._max_bytes, self._max_count = max_bytes, max_count
        self._cells = CellCodec(file, cipher)
        self._file = SqliteFile(self._cells, "normal", _OWN_FILE.open)
        # Whether the file may hold something of what was deleted in it; None: only a process before this one knows.
        self._unswept: bool | None = None

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        await self._file.run(partial(self._put, scope, artifact, data))

    async def head(self, scope: ArtifactScope, ref: str, /) -> Artifact | None:
        return await self._file.run(partial(self._head, scope, ref))

    async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
        return await self._file.run(partial(self._get, scope, ref))

    async def list(self, scope: ArtifactScope, /) -> Sequence[Artifact]:
        return await self._file.run(partial(self._list, scope))

    async def forget(self, what: Identity | SessionKey, /, *, turns: Collection[str] | None = None) -> None:
        """See `ArtifactStore.forget`. StoreError (``store-unswept``) where others kept the file in use: it is deleted,
        and what is left of it in the file goes with the next `forget`.
        """
        is_person = isinstance(what, Identity)
        of = (_owner(what),) if isinstance(what, Identity) else (what.tenant, what.id)
        if turns is None:
            work = partial(_deleted, _DELETE_OF_PERSON if is_person else _DELETE_OF_SESSION, of)
        else:
            read = _READ_OF_PERSON if is_person else _READ_OF_SESSION
            work = partial(_deleted_of_turns, self._known, read, of, turns)
        await self._delete(work, sure=True)

    async def expire(self, before: datetime | None, now: datetime, /) -> None:
        """See `ArtifactStore.expire`; StoreError as `forget` raises it."""
        young = -(2**63) if before is None else micros(before)
        sql = "delete from artifacts where at<? or over<=?"
        await self._delete(partial(_deleted, sql, (young, micros(now))), sure=False)

    async def sweep(self) -> bool:
        """Rewrites the file, however large, without anything that was deleted in it; whether that was possible now."""
        return not await self._file.run(partial(sweep, limit=None))

    async def close(self) -> None:
        """Finishes what was asked before, then closes the file; safe to call twice."""
        await self._file.close()

    def __repr__(self) -> str:
        return f"SqliteArtifacts({self._file.path!r})"

    async def _delete(self, deletes: Callable[[sqlite3.Connection], int], *, sure: bool) -> None:
        """Deletes, and sweeps where that is due; ``sure``: also where it is not known whether it is."""
        gone = await self._file.run(deletes)
        due = bool(gone or self._unswept)
        if not due and not (sure and self._unswept is None):
            return
        remains = await self._file.run(partial(sweep, limit=_SWEPT_AT_ONCE))
        self._unswept = (due or None) if remains else False
        if remains and due:
            raise unswept(self._file.path, _SWEPT_AT_ONCE)

    # ---- in the file's thread

    def _put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, connection: sqlite3.Connection) -> None:
        place = (*_named(scope), artifact.ref)
        at, over = micros(artifact.created_at), artifact.expires_at
        known = self._cells.seal(msgspec.json.encode(artifact), "known", *place)
        with transaction(connection):
            sql = "delete from artifacts where (tenant=? and session=? and owner=? and ref=?) or over<=?"
            gone = connection.execute(sql, (*place, at)).rowcount > 0
            connection.execute(
                "insert into artifacts(tenant, session, owner, ref, at, over, size, known, data)"
                " values(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*place, at, None if over is None else micros(over), len(data), known,
                 self._cells.seal(data, "data", *place)),
            )  # fmt: skip
            if self._max_bytes is not None or self._max_count is not None:
                gone |= _make_room(connection, self._max_bytes, self._max_count)
            self._unswept = gone or self._unswept

    def _head(self, scope: ArtifactScope, ref: str, connection: sqlite3.Connection) -> Artifact | None:
        sql = "select known from artifacts where tenant=? and session=? and owner=? and ref=?"
        found = connection.execute(sql, (*_named(scope), ref)).fetchone()
        return None if found is None else self._known(found[0], *_named(scope), ref)

    def _get(self, scope: ArtifactScope, ref: str, connection: sqlite3.Connection) -> bytes | None:
        sql = "select known, data from artifacts where tenant=? and session=? and owner=? and ref=?"
        found = connection.execute(sql, (*_named(scope), ref)).fetchone()
        if found is None:
            return None
        data = self._cells.open(found[1], "data", *_named(scope), ref)
        if not self._known(found[0], *_named(scope), ref).is_whole(data):
            raise damaged_artifact(f"{ref} in {self._file.path!r}")
        return data

    def _list(self, scope: ArtifactScope, connection: sqlite3.Connection) -> Sequence[Artifact]:
        sql = "select ref, known from artifacts where tenant=? and session=? and owner=? order by n"
        return tuple(self._readable(scope, connection.execute(sql, _named(scope)).fetchall()))

    def _readable(self, scope: ArtifactScope, found: Sequence[tuple[str, bytes]]) -> Iterator[Artifact]:
        for ref, known in found:
            with suppress(StoreError):  # whoever asks for it is told
                yield self._known(known, *_named(scope), ref)

    def _known(self, cell: bytes, *place: str) -> Artifact:
        """What is known of the artifact at a place: tenant, session, owner and ref."""
        try:
            return msgspec.json.decode(self._cells.open(cell, "known", *place), type=Artifact)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise damaged_artifact(f"{place[-1]} in {self._file.path!r} does not decode") from None


_DELETE_OF_PERSON = "delete from artifacts where owner=?"
_DELETE_OF_SESSION = "delete from artifacts where tenant=? and session=?"
_READ_OF_PERSON = "select n, known, tenant, session, owner, ref from artifacts where owner=?"
_READ_OF_SESSION = "select n, known, tenant, session, owner, ref from artifacts where tenant=? and session=?"


def _deleted(sql: str, values: tuple[object, ...], connection: sqlite3.Connection) -> int:
    with transaction(connection):
        return connection.execute(sql, values).rowcount


def _deleted_of_turns(
    read: Callable[..., Artifact],
    sql: str,
    of: tuple[str, ...],
    turns: Collection[str],
    connection: sqlite3.Connection,
) -> int:
    """Also what cannot be read: nobody can say of which turn it is."""
    with transaction(connection):
        known = dict[int, Artifact | None]()
        for n, cell, *place in connection.execute(sql, of).fetchall():
            known[n] = None
            with suppress(StoreError):
                known[n] = read(cell, *place)
        refs = made_in([held for held in known.values() if held is not None], turns)
        gone = [(n,) for n, held in known.items() if held is None or held.ref in refs]
        connection.executemany("delete from artifacts where n=?", gone)
    return len(gone)


def _make_room(connection: sqlite3.Connection, max_bytes: int | None, max_count: int | None) -> bool:
    """Deletes the oldest, never the newest; whether there was anything to delete."""
    made = False
    size, number = connection.execute("select sum(size), count(*) from artifacts").fetchone()
    for n, bytes_ in connection.execute("select n, size from artifacts order by n").fetchall()[:-1]:
        if (max_bytes is None or size <= max_bytes) and (max_count is None or number <= max_count):
            break
        connection.execute("delete from artifacts where n=?", (n,))
        size, number, made = size - bytes_, number - 1, True
    return made


def _named(scope: ArtifactScope) -> tuple[str, str, str]:
    return scope.session.tenant, scope.session.id, _owner(scope.owner)


def _owner(owner: Identity | None) -> str:
    return "" if owner is None else msgspec.json.encode(owner).decode()
