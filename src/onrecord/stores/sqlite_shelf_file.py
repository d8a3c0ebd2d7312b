"""The tables of a shelf's file, and how such a file is made and recognised.

```
kept   (n, tenant, owner, session, memory, key, kind, at, body)  unique(tenant, owner, session, memory, key)
sources(n, tenant, session)                                      which sessions' words a thing is made of
people (n, person)                                               whose words, where it is not the owner's
vectors(n, model, body)                                          what some of them mean, to which embedder
words  (terms)                                                   full text; holds no text of its own, only an index
```

The index is fed the words of `onrecord.memory.terms`, so that a search finds the same here as in memory, in scripts
without spaces too; each behind the digest of its space, so that a search reads no other space's, and takes as long as
its own is large. In a sealed file it is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onrecord.errors import MissingDependency, StoreError
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_faults import unusable_path
from onrecord.stores.sqlite_file import transaction
from onrecord.stores.sqlite_schema import BUSY_S, write_ahead

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SHELF_ID", "open_shelf")

SHELF_ID = 0x6F6E726D
"""Marks a SQLite file as a shelf of this library: ``onrm`` in ASCII."""

_VERSION = 1

_SCHEMA = (
    """create table kept(
        n integer primary key autoincrement, tenant text not null, owner text not null, session text not null,
        memory text not null, key text not null, kind text not null, at integer not null, body blob not null,
        unique(tenant, owner, session, memory, key))""",
    "create index kept_of on kept(tenant, owner, session, memory, kind, n)",
    "create index kept_by on kept(owner) where owner<>''",
    "create index kept_at on kept(memory, at)",
    """create table sources(
        n integer not null, tenant text not null, session text not null, primary key(n, session)) without rowid""",
    "create index sources_of on sources(tenant, session)",
    "create table people(n integer not null, person text not null, primary key(n, person)) without rowid",
    "create index people_of on people(person)",
    "create table vectors(n integer primary key, model text not null, body blob not null)",
    "create table secrets(secret blob not null)",
    """create virtual table words using fts5(terms, content='',
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* Co M*'")""",
)


def open_shelf(path: str, synchronous: str, codec: CellCodec) -> tuple[sqlite3.Connection, bool]:
    """Opens a shelf's file, making its tables where there are none. StoreError for a file of anybody else."""
    import sqlite3

    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        _recognise(connection, path)
        write_ahead(connection)
        connection.execute(f"pragma synchronous={synchronous}")
        connection.execute("pragma secure_delete=on")  # what is deleted is overwritten at once
        codec.check(connection)
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
