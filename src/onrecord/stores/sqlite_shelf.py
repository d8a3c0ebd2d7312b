"""SqliteShelf: what is remembered, in a file of its own, searched by SQLite's full text index.

```
kept   (n, tenant, owner, session, memory, key, kind, body)      unique(tenant, owner, session, memory, key)
sources(n, tenant, session)                                      which sessions' words a thing is made of
words  (space, terms)                                            full text; holds no text of its own, only an index
```

The index is fed the words of `onrecord.memory.terms`, so that a search finds the same here as in memory, in scripts
without spaces too; and the digest of the space, so that a search reads no other space's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError, MissingDependency, StoreError
from onrecord.jsonio import canonical, digest
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Shown, Space
from onrecord.memory.terms import terms
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_erase import SWEPT_AT_ONCE, sweep
from onrecord.stores.sqlite_faults import damaged, unusable_path
from onrecord.stores.sqlite_file import SqliteFile, transaction
from onrecord.stores.sqlite_schema import BUSY_S, write_ahead

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SHELF_ID", "SqliteShelf")

SHELF_ID = 0x6F6E726D
"""Marks a SQLite file as a shelf of this library: ``onrm`` in ASCII."""

_VERSION = 1
_ASKED = 40
"""Words of a question that are looked for; further ones are left out."""

_SCHEMA = (
    """create table kept(
        n integer primary key autoincrement, tenant text not null, owner text not null, session text not null,
        memory text not null, key text not null, kind text not null, body blob not null,
        unique(tenant, owner, session, memory, key))""",
    "create index kept_of on kept(tenant, owner, session, memory, kind, n)",
    "create index kept_by on kept(owner) where owner<>''",
    """create table sources(
        n integer not null, tenant text not null, session text not null, primary key(n, session)) without rowid""",
    "create index sources_of on sources(tenant, session)",
    "create virtual table words using fts5(space, terms, content='', tokenize='unicode61 remove_diacritics 0')",
)
_IN = "tenant=? and owner=? and session=? and memory=?"


class SqliteShelf:
    """A `Shelf` in the SQLite file at ``path``, opened on first use and made when there is none.

    It is a file of its own, beside that of a `SqliteStore`. Several event loops, threads and processes may use it at
    once. `forget` rewrites it, so that nothing of what was deleted is left in it or in its log. It holds texts as they
    are: what must not be readable there is left out by `Memory`'s ``redact``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if not name or name == ":memory:" or name.startswith("file:") or "\0" in name:
            raise ConfigurationError(
                f"{name!r} does not name a file", hint="give a path; for a shelf in memory use PlainShelf()"
            )
        self._file = SqliteFile(CellCodec(os.path.abspath(name)), "normal", _open)  # noqa: PTH100 - keeps symbolic links

    async def put(self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = ()) -> None:
        told = [(one, msgspec.json.encode(one), _terms_of(one)) for one in kept]
        if told or drop:
            await self._file.run(partial(_put, space, told, tuple(drop)))

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        if limit < 1:
            return []
        return await self._file.run(partial(self._newest, space, kind, limit, after, apart))

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN
    ) -> list[Found]:
        asked = list(dict.fromkeys(terms(text)))[:_ASKED]
        if limit < 1 or not asked:
            return []
        return await self._file.run(partial(self._search, space, kind, asked, limit, apart))

    async def forget(self, what: SessionKey | Identity, /) -> int:
        """See `Shelf.forget`. StoreError (``store-unswept``) where others kept the file in use: it is deleted, and
        what is left of it in the file goes with the next `forget`.
        """
        gone = await self._file.run(partial(_forget, what))
        remains = await self._file.run(partial(sweep, limit=SWEPT_AT_ONCE))
        if gone and remains:
            raise StoreError(
                f"the shelf {self._file.path!r} has let go of what was asked, and traces of it are left in its file",
                code="store-unswept",
                hint="call forget once more when nobody else uses the file; `sweep` rewrites one over 64 MB",
            )
        return gone

    async def sweep(self) -> bool:
        """Rewrites the file, however large, without anything that was deleted in it; whether that was possible now."""
        return not await self._file.run(partial(sweep, limit=None))

    async def close(self) -> None:
        await self._file.close()

    def __repr__(self) -> str:
        return f"SqliteShelf({self._file.path!r})"

    # ---- in the file's thread

    def _newest(
        self, space: Space, kind: KeptKind, limit: int, after: int, apart: Shown, connection: sqlite3.Connection
    ) -> list[Kept]:
        sql = f"select n, body from kept where {_IN} and kind=? and n>? order by n desc"  # noqa: S608 - our own text
        cursor, found = connection.execute(sql, (*_named(space), kind, after)), list[Kept]()
        for row in cursor:
            one = self._read(row)
            if not apart.covers(one):
                found.append(one)
                if len(found) == limit:
                    break
        cursor.close()
        return found[::-1]

    def _search(
        self, space: Space, kind: KeptKind, asked: list[str], limit: int, apart: Shown, connection: sqlite3.Connection
    ) -> list[Found]:
        words = " OR ".join(f'"{word}"' for word in asked)
        match = f"space : {_space_word(space, kind)} AND terms : ({words})"
        sql = f"""select k.n, k.body, bm25(words, 0.0, 1.0) from words join kept k on k.n=words.rowid
            where words match ? and k.kind=? and {_IN.replace("session=", "k.session=")}
            order by bm25(words, 0.0, 1.0), k.n desc"""  # noqa: S608 - our own text; words are letters and digits
        cursor, found = connection.execute(sql, (match, kind, *_named(space))), list[Found]()
        for n, body, score in cursor:
            one = self._read((n, body))
            if not apart.covers(one):
                found.append(Found(one, -score))
                if len(found) == limit:
                    break
        cursor.close()
        return found

    def _read(self, row: tuple[int, bytes]) -> Kept:
        n, body = row
        try:
            return msgspec.structs.replace(msgspec.json.decode(body, type=Kept), n=n)
        except msgspec.DecodeError:
            raise damaged(self._file.path, f"what is kept at {n} does not decode") from None


def _named(space: Space) -> tuple[str, str, str, str]:
    return space.tenant, _owner(space.owner), space.session, space.memory


def _owner(owner: Identity | None) -> str:
    return "" if owner is None else canonical(owner).decode()


def _space_word(space: Space, kind: str) -> str:
    """One word for a space and a kind, for the index."""
    return "x" + digest(canonical([*_named(space), kind]))


def _terms_of(one: Kept) -> str:
    return " ".join(terms(one.text)) if one.kind == "episode" else ""


def _put(
    space: Space, told: Sequence[tuple[Kept, bytes, str]], drop: Sequence[str], connection: sqlite3.Connection
) -> None:
    find = f"select n, body from kept where {_IN} and key=?"  # noqa: S608 - our own text
    insert = "insert into kept(tenant, owner, session, memory, key, kind, body) values(?, ?, ?, ?, ?, ?, ?)"
    with transaction(connection):
        for key in (*drop, *(one.key for one, _, _ in told)):
            _delete(connection, connection.execute(find, (*_named(space), key)).fetchall())
        for one, body, words in told:
            n = connection.execute(insert, (*_named(space), one.key, one.kind, body)).lastrowid
            connection.executemany(
                "insert into sources values(?, ?, ?)", [(n, space.tenant, id) for id in dict.fromkeys(one.sessions)]
            )
            if words:
                word = _space_word(space, one.kind)
                connection.execute("insert into words(rowid, space, terms) values(?, ?, ?)", (n, word, words))


def _delete(connection: sqlite3.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
    for n, body in rows:
        one = msgspec.json.decode(body, type=Kept)
        if words := _terms_of(one):
            place = "select tenant, owner, session, memory from kept where n=?"
            word = "x" + digest(canonical([*connection.execute(place, (n,)).fetchone(), one.kind]))
            sql = "insert into words(words, rowid, space, terms) values('delete', ?, ?, ?)"
            connection.execute(sql, (n, word, words))
        connection.execute("delete from kept where n=?", (n,))
        connection.execute("delete from sources where n=?", (n,))


def _forget(what: SessionKey | Identity, connection: sqlite3.Connection) -> int:
    with transaction(connection):
        if isinstance(what, Identity):
            rows = connection.execute("select n, body from kept where owner=?", (_owner(what),)).fetchall()
        else:
            sql = "select n, body from kept where n in (select n from sources where tenant=? and session=?)"
            rows = connection.execute(sql, (what.tenant, what.id)).fetchall()
        _delete(connection, rows)
        if rows:  # one segment, in which nothing stands for what is gone
            connection.execute("insert into words(words) values('optimize')")
    return len(rows)


# ---- opening ---------------------------------------------------------------------------------------------------------


def _open(path: str, synchronous: str, codec: CellCodec) -> tuple[sqlite3.Connection, bool]:
    import sqlite3

    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        _recognise(connection, path)
        write_ahead(connection)
        connection.execute(f"pragma synchronous={synchronous}")
        connection.execute("pragma secure_delete=on")  # what is deleted is overwritten at once
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            raise _foreign(path, "is not a SQLite file") from None
        raise
    return connection, False


def _recognise(connection: sqlite3.Connection, path: str) -> None:
    """Makes the tables of a new file, or checks whose an old one is. Nothing is written to one of somebody else."""

    def number(what: str) -> Any:
        return connection.execute(what).fetchone()[0]

    if not number("pragma application_id") and not number("select count(*) from sqlite_master"):
        with transaction(connection):
            if not number("select count(*) from sqlite_master"):  # else another process was faster
                _make(connection)
    if number("pragma application_id") != SHELF_ID:
        raise _foreign(path, "belongs to another application")
    if number("pragma user_version") != _VERSION:
        raise StoreError(
            f"the shelf {path!r} has a schema that this version of onrecord does not know",
            code="store-newer", hint="a newer onrecord wrote it: update onrecord; the file was not touched",
        )  # fmt: skip


def _make(connection: sqlite3.Connection) -> None:
    import sqlite3

    connection.execute(f"pragma application_id={SHELF_ID}")
    for sql in _SCHEMA:
        try:
            connection.execute(sql)
        except sqlite3.OperationalError as error:
            if "fts5" not in str(error):
                raise
            raise MissingDependency(
                "this Python's SQLite was built without its full text index FTS5",
                hint="install a Python that has it, or keep memories in PlainShelf()",
            ) from None
    connection.execute(f"pragma user_version={_VERSION}")


def _foreign(path: str, what: str) -> StoreError:
    better = unusable_path(path)
    return better or StoreError(
        f"the file {path!r} {what}; it was not touched", code="store-foreign", hint="give the shelf a file of its own"
    )
