"""Upkeep of a SQLite store's file: whether it is whole, who is in it, and a copy of it while others write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from onrecord.conversation.identity import SessionKey
from onrecord.errors import StoreError
from onrecord.stores.sqlite_faults import damaged, fault
from onrecord.stores.sqlite_schema import opened_to_read, schema_version

if TYPE_CHECKING:
    import sqlite3

__all__ = ("backup", "faults_of", "sessions_of")

Progress = Callable[[int, int], None]

_MOST = 100
_PAGES_AT_ONCE = 4096
_STRAYS = "select count(*) from {} where place>>32 not in (select no from sessions)"


def faults_of(path: str) -> list[str]:
    """What is wrong with a store's file as a file: what SQLite's own check finds, and rows that belong to no session.

    Reads all of it and changes nothing. Empty when all is well; StoreError when it cannot even be read.
    """
    with _reading(path) as connection:
        found = [str(line) for (line,) in connection.execute(f"pragma integrity_check({_MOST})")]
        if found != ["ok"]:
            return [" ".join(line.split()) for line in found]
        strays = {name: connection.execute(_STRAYS.format(name)).fetchone()[0] for name in ("messages", "entries")}
    return [f"{count} {name} belong to no session" for name, count in strays.items() if count]


def sessions_of(path: str) -> list[SessionKey]:
    """The keys of all sessions of all tenants, in order."""
    with _reading(path) as connection:
        found = connection.execute("select tenant, id from sessions order by tenant, id").fetchall()
    return [SessionKey(id, tenant=tenant) for tenant, id in found]


def backup(path: str, copy: str, *, progress: Progress | None = None) -> int:
    """Copies a store, as it is at one instant, to a new file; returns the file's size in bytes.

    Others may write meanwhile. The copy appears whole and checked, or not at all; nothing is ever overwritten.
    ``progress`` is told pages done and pages in all. StoreError for all that goes wrong.
    """
    import sqlite3

    target = Path(copy)
    if target.exists() or target.is_symlink():
        raise _in_the_way(copy)
    folder = target.parent
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=folder)
        os.close(handle)
    except OSError as error:
        raise _unwritable(copy, error) from None
    part = Path(name)
    try:
        with _reading(path) as source:
            try:
                with closing(sqlite3.connect(part, isolation_level=None)) as made:
                    _copy(source, made, progress)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise fault(error, copy) from None
        _check_copy(path, part)
        _appear(part, target)
        return target.stat().st_size
    except OSError as error:
        raise _unwritable(copy, error) from None
    finally:
        for leftover in (part, Path(f"{part}-journal"), Path(f"{part}-wal"), Path(f"{part}-shm")):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def _copy(source: sqlite3.Connection, made: sqlite3.Connection, progress: Progress | None) -> None:
    def told(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    (mode,) = source.execute("pragma journal_mode").fetchone()
    if mode == "wal":
        # One moment in time, though others write: without it a copy begins anew with every commit of theirs.
        source.execute("begin")
        source.execute("select count(*) from sqlite_master").fetchone()
    source.backup(made, pages=_PAGES_AT_ONCE, progress=told, sleep=0.01)


def _check_copy(path: str, part: Path) -> None:
    """What was written reads back whole."""
    import sqlite3

    uri = f"{part.resolve().as_uri()}?mode=ro&immutable=1"  # immutable: no log appears beside it
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            found = connection.execute("pragma integrity_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise fault(error, path) from None
    if found != ("ok",):
        raise damaged(path, "its copy is not whole, so it was not kept; onrecord store check says more")


def _appear(part: Path, target: Path) -> None:
    """Gives the copy its name, once it is on the disk, unless something took that name meanwhile."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(part, target)
    except FileExistsError:
        raise _in_the_way(str(target)) from None
    except OSError:  # a disk without hard links
        if target.exists():
            raise _in_the_way(str(target)) from None
        part.rename(target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    """The file, opened so that nothing in it can change. StoreError instead of the driver's errors."""
    import sqlite3

    if not schema_version(path):
        raise StoreError(f"there is no store {path!r}", code="store-unreachable", hint="check the path")
    try:
        with closing(opened_to_read(path)) as connection:
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise fault(error, path) from None


def _in_the_way(copy: str) -> StoreError:
    told = f"there is a file {copy!r} already; it was not touched"
    return StoreError(told, code="store-exists", hint="give the copy a name that is free")


def _unwritable(copy: str, error: OSError) -> StoreError:
    told = f"the copy {copy!r} cannot be written ({error.strerror or type(error).__name__})"
    return StoreError(told, code="store-unreachable", hint="check its folder, its permissions and the room on the disk")
