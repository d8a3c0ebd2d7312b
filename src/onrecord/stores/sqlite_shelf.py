"""SqliteShelf: what is remembered, in a file of its own, searched by SQLite's full text index.

The tables stand in `onrecord.stores.sqlite_shelf_schema`.
"""

# ruff: noqa: S608  statements are put together from this file's own text, and values, words too, are always parameters

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.jsonio import canonical, digest
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Near, Shown, Space, Vector
from onrecord.memory.ranking import DEPTH, best_first, both, by_words, cosines
from onrecord.memory.terms import terms
from onrecord.stores.sqlite_codec import CellCodec, Cipher
from onrecord.stores.sqlite_erase import SWEPT_AT_ONCE, sweep, unswept
from onrecord.stores.sqlite_faults import damaged
from onrecord.stores.sqlite_file import SqliteFile, absolute_path, transaction
from onrecord.stores.sqlite_leases import micros
from onrecord.stores.sqlite_shelf_schema import SHELF_FILE, SHELF_ID

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SHELF_ID", "SqliteShelf")

MOST_READ = 2000
"""Texts that a search in a sealed shelf reads, the newest first: it has no index to ask."""

MOST_MATCHED = 2000
"""Texts that a search ranks: those that have its rarest words, or the newest that have one of the others."""

MOST_COMPARED = 10_000
"""Vectors that a search compares, the newest first."""

_ASKED = 40
"""Words of a question that are looked for; further ones are left out."""

_KeyOf = Callable[[str], str]

_IN = "k.tenant=? and k.owner=? and k.session=? and k.memory=?"


class SqliteShelf:
    """A `Shelf` in the SQLite file at ``path``, opened on first use and made when there is none.

    It is a file of its own, beside that of a `SqliteStore`. Several event loops, threads and processes may use it at
    once. `forget` rewrites it, so that nothing of what was deleted is left in it or in its log.

    ``cipher`` seals texts and vectors, as a store's cells are sealed; whose they are, their kinds and times stay
    readable. A full text index would tell the words of what is sealed, so a sealed shelf has none: a search reads the
    newest 2,000 texts of its space instead, in some tens of milliseconds. StoreError (``store-key``) when the file
    was written with another cipher, or with none.
    """

    def __init__(self, path: str | os.PathLike[str], *, cipher: Cipher | None = None) -> None:
        codec = CellCodec(absolute_path(path, instead=SHELF_FILE.instead), cipher)
        self._file, self._cells = SqliteFile(codec, "normal", SHELF_FILE.open), _Cells(codec)
        self._unswept = False  # whether the file may hold something of what was deleted for good

    async def put(
        self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = (), vectors: Mapping[str, Vector] = {}
    ) -> None:
        told, dropped = tuple(kept), tuple(drop)
        if told or dropped:
            await self._file.run(partial(self._cells.put, space, told, dropped, dict(vectors)))

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        if limit < 1:
            return []
        return await self._file.run(partial(self._cells.newest, space, kind, limit, after, apart))

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN,
        near: Near | None = None,
    ) -> list[Found]:  # fmt: skip
        asked = list(dict.fromkeys(terms(text)))[:_ASKED]
        if limit < 1 or not (asked or near):
            return []
        return await self._file.run(partial(self._cells.search, space, kind, asked, limit, apart, near))

    async def forget(self, what: SessionKey | Identity, /) -> int:
        """See `Shelf.forget`. StoreError (``store-unswept``) where others kept the file in use: it is deleted, and
        what is left of it in the file goes with the next `forget`.
        """
        return await self._swept(await self._file.run(partial(self._cells.forget, what)))

    async def expire(self, before: datetime, of: Space | str, /) -> int:
        """See `Shelf.expire`. For a memory's name the file is rewritten as by `forget`, which raises the same."""
        gone = await self._file.run(partial(self._cells.expire, before, of))
        return await self._swept(gone) if (gone or self._unswept) and isinstance(of, str) else gone

    async def _swept(self, gone: int) -> int:
        self._unswept = self._unswept or gone > 0  # also where what follows is cancelled
        remains = await self._file.run(partial(sweep, limit=SWEPT_AT_ONCE))
        if self._unswept and remains:
            raise unswept(self._file.path, SWEPT_AT_ONCE)
        self._unswept = False
        return gone

    async def sweep(self) -> bool:
        """Rewrites the file, however large, without anything that was deleted in it; whether that was possible now."""
        remains = await self._file.run(partial(sweep, limit=None))
        self._unswept = self._unswept and bool(remains)
        return not remains

    async def close(self) -> None:
        await self._file.close()

    def __repr__(self) -> str:
        return f"SqliteShelf({self._file.path!r})"


# ---- in the file's thread --------------------------------------------------------------------------------------------


class _Reading:
    """What is read with a connection, in the file's thread."""

    def __init__(self, codec: CellCodec) -> None:
        self.codec, self.sealed = codec, codec.cipher is not None

    def newest(
        self, space: Space, kind: KeptKind, limit: int, after: int, apart: Shown, connection: sqlite3.Connection
    ) -> list[Kept]:
        but, shown = _but(apart)
        sql = f"""select n, body from kept k where {_IN} and kind=? and n>?{but}
            order by n desc limit ?"""
        rows = connection.execute(sql, (*_named(space), kind, after, *shown, limit)).fetchall()
        return [self._read(space, n, body) for n, body in reversed(rows)]

    def search(
        self, space: Space, kind: KeptKind, asked: list[str], limit: int, apart: Shown, near: Near | None,
        connection: sqlite3.Connection,
    ) -> list[Found]:  # fmt: skip
        most = limit if near is None else max(limit, DEPTH)
        find = self._read_through if self.sealed else self._matching
        words = find(space, kind, asked, most, apart, connection) if asked else []
        held = {one.kept.n: one.kept for one in words}
        if near is None:
            return words
        close = dict[int, float]()
        for one in self._near(space, kind, near, most, apart, connection):
            held[one.kept.n], close[one.kept.n] = one.kept, one.score
        ranked = both({one.kept.n: one.score for one in words}, close)
        return [Found(held[n], score) for n, score in ranked[:limit]]

    def _matching(
        self, space: Space, kind: KeptKind, asked: list[str], limit: int, apart: Shown, connection: sqlite3.Connection
    ) -> list[Found]:
        """Words that are in very many texts are looked for in the newest of them alone, and only where others find
        too few: each text that matches costs the time to rank it.
        """
        rare, common = _apart(_indexed(_named(space), kind, asked), connection)
        found = self._ranked(space, kind, rare, 0, limit, apart, connection) if rare else []
        if common and len(found) < limit:
            sql = f"select n from kept k where {_IN} and kind=? order by n desc limit 1 offset ?"
            oldest = connection.execute(sql, (*_named(space), kind, MOST_MATCHED)).fetchone()
            since, held = oldest[0] if oldest is not None else 0, {one.kept.n for one in found}
            more = self._ranked(space, kind, common, since, limit, apart, connection)
            found += [one for one in more if one.kept.n not in held]
        return found[:limit]

    def _ranked(
        self, space: Space, kind: KeptKind, words: Sequence[str], since: int, limit: int, apart: Shown,
        connection: sqlite3.Connection,
    ) -> list[Found]:  # fmt: skip
        """The texts above a number that have one of these words."""
        but, shown = _but(apart)
        sql = f"""select k.n, k.body, bm25(words) from words join kept k on k.n=words.rowid
            where words match ? and words.rowid>? and k.kind=? and {_IN}{but}
            order by bm25(words), k.n desc limit ?"""
        given = (_any_of(words), since, kind, *_named(space), *shown, limit)
        rows = connection.execute(sql, given).fetchall()
        return [Found(self._read(space, n, body), -score) for n, body, score in rows]

    def _read_through(
        self, space: Space, kind: KeptKind, asked: list[str], limit: int, apart: Shown, connection: sqlite3.Connection
    ) -> list[Found]:
        held = {one.n: one for one in self.newest(space, kind, MOST_READ, 0, apart, connection)}
        scores = by_words(((n, Counter(terms(one.text))) for n, one in held.items()), asked)
        return [Found(held[n], score) for n, score in best_first(scores)[:limit]]

    def _near(
        self, space: Space, kind: KeptKind, near: Near, limit: int, apart: Shown, connection: sqlite3.Connection
    ) -> list[Found]:
        but, shown = _but(apart)
        sql = f"""select k.n, k.body, v.body from kept k join vectors v on v.n=k.n
            where {_IN} and k.kind=? and v.model=?{but} order by k.n desc limit ?"""
        given = (*_named(space), kind, near.vector.of, *shown, MOST_COMPARED)
        rows = {n: (body, vector) for n, body, vector in connection.execute(sql, given)}
        vectors = [self.codec.open(vector, "vector", n, *_named(space)) for n, (_, vector) in rows.items()]
        scored = zip(rows, cosines(near.vector.values, vectors), strict=True)
        best = best_first({n: cosine for n, cosine in scored if cosine >= near.least})[:limit]
        return [Found(self._read(space, n, rows[n][0]), cosine) for n, cosine in best]

    def _read(self, space: Space, n: int, body: bytes) -> Kept:
        try:
            return msgspec.structs.replace(self._opened(_named(space), body), n=n)
        except msgspec.DecodeError:
            raise damaged(self.codec.path, f"what is kept at {n} does not decode") from None

    def _opened(self, named: Sequence[str], body: bytes) -> Kept:
        return msgspec.json.decode(self.codec.open(body, "kept", *named), type=Kept)


class _Cells(_Reading):
    """What is done with a connection, in the file's thread."""

    def put(
        self, space: Space, kept: Sequence[Kept], drop: Sequence[str], vectors: Mapping[str, Vector],
        connection: sqlite3.Connection,
    ) -> None:  # fmt: skip
        named = _named(space)
        find = f"select n, body from kept k where {_IN} and key=?"
        insert = "insert into kept(tenant, owner, session, memory, key, kind, at, body) values(?, ?, ?, ?, ?, ?, ?, ?)"
        with transaction(connection):
            key_of = self._keys(connection)
            for key in (*drop, *(one.key for one in kept)):
                self._delete(connection, connection.execute(find, (*named, key_of(key))).fetchall())
            for one in kept:
                body = self.codec.seal(msgspec.json.encode(one), "kept", *named)
                n = connection.execute(insert, (*named, key_of(one.key), one.kind, micros(one.at), body)).lastrowid
                connection.executemany(
                    "insert into sources values(?, ?, ?)", [(n, space.tenant, id) for id in dict.fromkeys(one.sessions)]
                )
                connection.executemany(
                    "insert into people values(?, ?)", [(n, _owner(who)) for who in dict.fromkeys(one.people)]
                )
                if n is not None and (vector := vectors.get(one.key)) is not None:
                    values = self.codec.seal(vector.values, "vector", n, *named)
                    connection.execute("insert into vectors values(?, ?, ?)", (n, vector.of, values))
                self._index(connection, n, named, one)

    def _keys(self, connection: sqlite3.Connection) -> _KeyOf:
        """How keys are written: in a sealed file as digests that only its cipher can make, since they may be guessed
        (that of a fact is a digest of what it is about).
        """
        if not self.sealed:
            return str
        held = connection.execute("select secret from secrets").fetchone()
        if held is None:
            secret = os.urandom(32)
            connection.execute("insert into secrets values(?)", (self.codec.seal(secret, "secret"),))
        else:
            secret = self.codec.open(held[0], "secret")
        return lambda key: blake2b(key.encode(), key=secret, digest_size=16).hexdigest()

    def _index(self, connection: sqlite3.Connection, n: int | None, named: Sequence[str], one: Kept) -> None:
        if not self.sealed and (words := _terms_of(named, one)):
            connection.execute("insert into words(rowid, terms) values(?, ?)", (n, words))

    def _delete(self, connection: sqlite3.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
        whole = True
        for n, body in rows:
            whole = (self.sealed or self._unindex(connection, n, body)) and whole
            for table in ("kept", "sources", "people", "vectors"):
                connection.execute(f"delete from {table} where n=?", (n,))
        if not whole:  # what is damaged cannot say which words of the index were its
            connection.execute("insert into words(words) values('delete-all')")
            for n, named, one in self._readable(connection):
                self._index(connection, n, named, one)

    def _unindex(self, connection: sqlite3.Connection, n: int, body: bytes) -> bool:
        try:
            one = self._opened((), body)
        except msgspec.DecodeError:
            return False
        place = "select tenant, owner, session, memory from kept where n=?"
        if words := _terms_of(connection.execute(place, (n,)).fetchone(), one):
            connection.execute("insert into words(words, rowid, terms) values('delete', ?, ?)", (n, words))
        return True

    def _readable(self, connection: sqlite3.Connection) -> Iterator[tuple[int, Sequence[str], Kept]]:
        for n, body, *named in connection.execute(
            "select n, body, tenant, owner, session, memory from kept"
        ).fetchall():
            with suppress(msgspec.DecodeError):
                yield n, named, self._opened(named, body)

    def forget(self, what: SessionKey | Identity, connection: sqlite3.Connection) -> int:
        if isinstance(what, Identity):
            who = _owner(what)
            return self._gone(connection, "owner=? or n in (select n from people where person=?)", (who, who))
        which = "n in (select n from sources where tenant=? and session=?)"
        return self._gone(connection, which, (what.tenant, what.id))

    def expire(self, before: datetime, of: Space | str, connection: sqlite3.Connection) -> int:
        at = micros(before)
        if isinstance(of, str):
            return self._gone(connection, "memory=? and at<?", (of, at))
        return self._gone(connection, f"{_IN} and at<?", (*_named(of), at))

    def _gone(self, connection: sqlite3.Connection, which: str, given: tuple[str | int, ...]) -> int:
        with transaction(connection):
            sql = f"select n, body from kept k where {which}"
            rows = connection.execute(sql, given).fetchall()
            self._delete(connection, rows)
            if rows and not self.sealed:  # one segment, in which nothing stands for what is gone
                connection.execute("insert into words(words) values('optimize')")
        return len(rows)


def _named(space: Space) -> tuple[str, str, str, str]:
    return space.tenant, _owner(space.owner), space.session, space.memory


def _but(apart: Shown) -> tuple[str, tuple[str | int, ...]]:
    """What leaves out those that `Shown.covers`, before they are read: of a long conversation that is nearly all."""
    if not apart.session:
        return "", ()
    shown = "exists(select 1 from sources s where s.n=k.n and s.session=?)"
    if apart.since is None:
        return f" and not {shown}", (apart.session,)
    return f" and (k.at<? or not {shown})", (micros(apart.since), apart.session)


def _owner(owner: Identity | None) -> str:
    return "" if owner is None else canonical(owner).decode()


def _terms_of(named: Sequence[str], one: Kept) -> str:
    return " ".join(_indexed(named, one.kind, terms(one.text))) if one.kind == "episode" else ""


def _indexed(named: Sequence[str], kind: str, words: Iterable[str]) -> Iterator[str]:
    """Words as the index holds them: each space has its own, so that a search neither reads those of others nor is
    ranked by how often others use them.
    """
    mine = f"x{digest(canonical([*named, kind]))[:12]}"
    return (mine + word for word in words)


def _apart(words: Iterable[str], connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """The rarest words, which together match no more than `MOST_MATCHED` texts, and the others."""
    sql = "select count(*) from (select 1 from words where words match ? limit ?)"
    left, counts = MOST_MATCHED, dict[str, int]()
    for word in words:
        (counts[word],) = connection.execute(sql, (_any_of((word,)), MOST_MATCHED // 4 + 1)).fetchone()
    rare, common = list[str](), list[str]()
    for word in sorted(counts, key=counts.__getitem__):
        left -= counts[word]
        (rare if left >= 0 and counts[word] <= MOST_MATCHED // 4 else common).append(word)
    return rare, common


def _any_of(words: Iterable[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)
