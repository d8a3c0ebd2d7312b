"""The tables of a SQLite store, and how a file is recognised before anything in it is touched.

```
sessions(no, tenant, id, version, generation, seq, messages, state,
         owner, parent)                                                 unique(tenant, id); small state only
messages(place, body)                                                   rewritten only when a history changes
entries (place, n, turn, take, path, at, cause, kind, body)             only ever appended
rows    (n, tenant, session, box, key, kind, body, options, due, …)     what must be handled or delivered; since 2
```

A session's number and the place of a row in it share one integer, ``no * 2**32 + n``. So a session's rows lie
together, whichever sessions were written in between: 10,000 messages of one of 20 interleaved sessions are read in a
quarter of the time that a (tenant, session, n) index needs, and a commit costs no more.

Instants of rows are microseconds since 1970. Three indices keep leasing away from rows that sleep: what is due next,
what is due next in a session, and which rows of a session are leased. Parked rows are in none of them.

A file of an older schema is brought up to date when it is opened, in one transaction; where it may not be written it is
read as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from onrecord.errors import StoreError
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_faults import damaged, fault, read_only, unread_log, unusable_path

if TYPE_CHECKING:
    import sqlite3

__all__ = (
    "APPLICATION_ID",
    "BUSY_S",
    "ROWS_SINCE",
    "SCHEMA_VERSION",
    "connect",
    "migrate",
    "opened_to_read",
    "schema_version",
    "write_ahead",
)

APPLICATION_ID = 0x6F6E7263
"""Marks a SQLite file as a store of this library: ``onrc`` in ASCII."""

SCHEMA_VERSION = 2
"""The newest schema this library writes, kept in ``PRAGMA user_version``."""

ROWS_SINCE = 2
"""The first schema that keeps rows."""

BUSY_S = 5.0
"""Seconds to wait for another process that is writing."""

_LOG_PAGES = 4000
"""Pages of the log, 16 MB, after which it is copied into the file: each page once, however often it was written."""

_HEADER = 100
_MAGIC = b"SQLite format 3\0"
_ROWS = (
    # ``dead=''`` and ``lease_until is not null`` stand in the queries as they stand here, or SQLite uses no such index.
    """create table rows(
        n integer primary key autoincrement, tenant text not null, session text not null, box text not null,
        key text not null, kind text not null, body blob not null, options blob not null, due integer not null,
        owner text not null default '', lease_until integer, attempt integer not null default 0,
        clean integer not null default 0, rung integer not null default 0, retry_at integer, floor integer,
        cancel blob, dead text not null default '', unique(tenant, session, box, key))""",
    "create index rows_due on rows(box, due) where dead=''",
    "create index rows_of on rows(tenant, session, box, due) where dead=''",
    "create index rows_leased on rows(tenant, session, box, lease_until) where lease_until is not null",
)
_KIN = (
    "alter table sessions add column owner text not null default ''",
    "alter table sessions add column parent text not null default ''",
    """update sessions set owner=coalesce(json_extract(cast(state as text), '$.owner'), ''),
        parent=coalesce(json_extract(cast(state as text), '$.parent'), '')""",
    "create index sessions_of on sessions(owner) where owner<>''",
    "create index sessions_below on sessions(tenant, parent) where parent<>''",
)
_SCHEMAS = {
    1: (
        """create table sessions(
            no integer primary key autoincrement, tenant text not null, id text not null, version integer not null,
            generation integer not null, seq integer not null, messages integer not null, state blob not null,
            unique(tenant, id))""",
        "create table messages(place integer primary key, body blob not null)",
        """create table entries(
            place integer primary key, n integer not null, turn text not null, take integer not null,
            path text not null, at text not null, cause integer, kind text not null, body blob not null)""",
    ),
    2: (*_ROWS, *_KIN),
}
"""What each schema adds to the one before it."""
_TABLES = {1: ("sessions", "messages", "entries"), 2: ("sessions", "messages", "entries", "rows")}


def connect(path: str, synchronous: str, codec: CellCodec | None = None) -> tuple[sqlite3.Connection, bool]:
    """Opens a store's file, making it when there is none; and whether it is seen as it is now, whatever comes later.

    Where nothing may be written it is opened to be read. StoreError for a file that is no store, or not sealed as
    the ``codec`` seals; it stays untouched.
    """
    connection, fixed = _connected(path, synchronous)
    if codec is not None:
        try:
            codec.check(connection)
        except BaseException:
            connection.close()
            raise
    return connection, fixed


def _connected(path: str, synchronous: str) -> tuple[sqlite3.Connection, bool]:
    import sqlite3

    _recognise(path)
    try:
        return _to_write(path, synchronous), False
    except sqlite3.OperationalError as error:
        if not _writing_refused(error, path) or not _has_content(path):
            raise
    return _to_read(path, _check)


def _to_write(path: str, synchronous: str) -> sqlite3.Connection:
    import sqlite3

    # Python's own transactions are off: each statement says for itself where one begins.
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        _prepare(connection, path)
        write_ahead(connection)
        connection.execute(f"pragma synchronous={synchronous}")
        connection.execute(f"pragma wal_autocheckpoint={_LOG_PAGES}")
        connection.execute("pragma secure_delete=on")  # what is deleted is overwritten at once
    except BaseException:
        connection.close()
        raise
    return connection


def opened_to_read(path: str) -> sqlite3.Connection:
    """A store's file of any schema, opened so that nothing in it can change, also where nothing may be written.

    StoreError where that leaves out what its log holds; errors of the driver as they are.
    """
    connection, _ = _to_read(path, _version)
    return connection


def _to_read(path: str, look: Callable[[sqlite3.Connection, str], int]) -> tuple[sqlite3.Connection, bool]:
    """A connection that may only read. SQLite wants to keep its log even then, unless it is told that nobody writes.

    ``look`` reads something of it, since only then it is known whether it can be read.
    """
    import sqlite3

    try:
        return _opened_to_read(path, "mode=ro", look), False
    except sqlite3.OperationalError as error:
        if not _writing_refused(error, path):
            raise
    if any(_has_content(f"{path}{ending}") for ending in ("-wal", "-journal")):
        raise unread_log(path)
    return _opened_to_read(path, "mode=ro&immutable=1", look), True


def _opened_to_read(path: str, how: str, look: Callable[[sqlite3.Connection, str], int]) -> sqlite3.Connection:
    import sqlite3

    where = f"{Path(path).absolute().as_uri()}?{how}"
    connection = sqlite3.connect(where, uri=True, timeout=BUSY_S, isolation_level=None)
    try:
        look(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: str) -> int:
    return _number(connection, "pragma user_version")


def _writing_refused(error: sqlite3.Error, path: str) -> bool:
    """Whether permissions are in the way; a file cannot be opened for want of file descriptors either."""
    if error.sqlite_errorname.startswith("SQLITE_CANTOPEN"):
        return not os.access(Path(path).parent, os.W_OK)
    return error.sqlite_errorname.startswith("SQLITE_READONLY")


def _has_content(path: str) -> bool:
    file = Path(path)
    return file.is_file() and file.stat().st_size > 0


def _recognise(path: str) -> None:
    """Reads the file's header without SQLite, which may write to a file just because it opens it."""
    unusable = unusable_path(path)
    try:
        with Path(path).open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        if unusable is not None:
            raise unusable from None
        return
    except OSError as error:
        told = f"the store {path!r} cannot be read ({type(error).__name__})"
        raise unusable or StoreError(told, code="store-io", hint="check the disk, then try again") from None
    if not header or Path(f"{path}-journal").exists():
        return  # new, or being made at this moment by another process
    if not header.startswith(_MAGIC):
        raise _foreign(path, "is not a SQLite file")
    if len(header) < _HEADER:
        raise damaged(path, "it ends within its header")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise _foreign(path, "belongs to another application")


def _foreign(path: str, what: str) -> StoreError:
    return StoreError(
        f"the file {path!r} {what}; it was not touched",
        code="store-foreign",
        hint="give the store a file of its own; if this file was a store, restore its last good copy",
    )


def schema_version(path: str) -> int:
    """The schema of a store's file, 0 where there is none yet. StoreError for a file that is not a store."""
    import sqlite3

    _recognise(path)
    if not Path(path).exists():
        return 0
    try:
        try:
            with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
                return _version(connection, path)
        except sqlite3.OperationalError as error:
            if not _writing_refused(error, path):
                raise
        with closing(opened_to_read(path)) as connection:
            return _version(connection, path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise fault(error, path) from None


def migrate(path: str) -> int:
    """Brings a store's file up to date, as opening it for use does; returns the schema it had.

    StoreError where it cannot be written, or is not an older store; it is then as it was.
    """
    import sqlite3

    before = schema_version(path)
    try:
        connection, _ = connect(path, "full")
        try:
            if _number(connection, "pragma user_version") < SCHEMA_VERSION:
                _upgrade(connection)
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise fault(error, path) from None
    return before


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Makes the tables of a new file, or checks those of an old one and brings it up to date."""
    import sqlite3

    new = _is_new(connection)
    if not new and _check(connection, path) == SCHEMA_VERSION:
        return
    try:
        _upgrade(connection)
    except sqlite3.OperationalError as error:
        if new or not read_only(error):
            raise
    _ = _check(connection, path)


def _upgrade(connection: sqlite3.Connection) -> None:
    """From whatever schema the file has by now to the newest one, in one transaction."""
    connection.execute("begin immediate")
    try:
        if _is_new(connection):  # else another process was faster
            # First, and in the transaction: a file is ours from the moment it is anything.
            connection.execute(f"pragma application_id={APPLICATION_ID}")
        if _number(connection, "pragma application_id") == APPLICATION_ID:
            for version in range(_number(connection, "pragma user_version") + 1, SCHEMA_VERSION + 1):
                for sql in _SCHEMAS[version]:
                    connection.execute(sql)
                connection.execute(f"pragma user_version={version}")
        connection.execute("commit")
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def _is_new(connection: sqlite3.Connection) -> bool:
    asked = ("pragma application_id", "pragma user_version", "select count(*) from sqlite_master")
    return not any(_number(connection, sql) for sql in asked)


def _number(connection: sqlite3.Connection, sql: str) -> int:
    (value,) = connection.execute(sql).fetchone()
    return int(value)


def _check(connection: sqlite3.Connection, path: str) -> int:
    """The schema of a file that is a whole store."""
    if _number(connection, "pragma application_id") != APPLICATION_ID:
        raise _foreign(path, "belongs to another application")
    version = _number(connection, "pragma user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store {path!r} has schema {version}, this version of onrecord knows schemas up to {SCHEMA_VERSION}",
            code="store-newer",
            hint="a newer onrecord wrote it: update onrecord; the file was not touched",
        )
    wanted = _TABLES.get(version, ())
    there = {name for (name,) in connection.execute("select name from sqlite_master where type='table'")}
    found = len(there.intersection(wanted))
    if not wanted or found != len(wanted):
        raise damaged(path, f"it has schema {version} and {found} of {len(wanted)} tables")
    return version


def write_ahead(connection: sqlite3.Connection) -> None:
    """Readers and the writer do not wait for each other. Where the disk cannot do that, SQLite keeps its older way."""
    import sqlite3

    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("pragma journal_mode=wal")
        except sqlite3.OperationalError as error:
            if read_only(error):
                return  # it may be read all the same
            # Two processes that make one file at once: SQLite does not wait here by itself.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
