"""What SQLite's own errors mean for whoever uses the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from onrecord.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

__all__ = (
    "damaged", "fault", "is_busy", "moved", "passing", "read_only", "unfit", "unmigrated", "unread_log",
    "unusable_path",
)  # fmt: skip

_UNCHANGED = "nothing of this change was stored"

_MEANINGS = {
    "SQLITE_FULL": (
        "store-full", "the disk is full", f"{_UNCHANGED}; make room and take the same turn again",
    ),
    "SQLITE_READONLY": (
        "store-readonly", "it may be read and not written",
        f"{_UNCHANGED}; check the permissions of the file and of its folder",
    ),
    "SQLITE_BUSY": (
        "store-busy", "another process held it locked for longer than this store waits",
        f"{_UNCHANGED}; find who keeps a transaction open, then try again",
    ),
    "SQLITE_CORRUPT": (
        "store-corrupt", "the file is damaged", "keep a copy of it as it is, then restore the last good copy",
    ),
    "SQLITE_IOERR": (
        "store-io", "the disk reported an error", f"{_UNCHANGED}; check the disk, then try again",
    ),
    "SQLITE_TOOBIG": (
        "store-too-big", "one message or entry is larger than SQLite takes (1 GB)", _UNCHANGED,
    ),
    "SQLITE_CANTOPEN": (
        "store-unreachable", "it cannot be opened", "check that its folder exists and can be written",
    ),
}  # fmt: skip
_SAME_AS = {
    "SQLITE_NOTADB": "SQLITE_CORRUPT",
    "SQLITE_LOCKED": "SQLITE_BUSY",
    "SQLITE_PROTOCOL": "SQLITE_BUSY",
    "SQLITE_PERM": "SQLITE_READONLY",
}


def fault(error: sqlite3.Error | UnicodeDecodeError, path: str) -> StoreError:
    """The error a caller sees instead of the driver's, whose own text may quote what is stored.

    Where a table's definition is damaged, that text is none, and the driver raises UnicodeDecodeError in place of it.
    """
    name = str(getattr(error, "sqlite_errorname", ""))
    primary = "_".join(name.split("_")[:2])
    if not name and (isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error)):
        primary = "SQLITE_CORRUPT"
    if primary == "SQLITE_CANTOPEN" and (better := unusable_path(path)) is not None:
        return better
    known = _MEANINGS.get(_SAME_AS.get(primary, primary))
    if known is None:
        return StoreError(f"the store {path!r} failed ({name or type(error).__name__})", hint=_UNCHANGED)
    code, what, hint = known
    return StoreError(f"the store {path!r}: {what} ({name or type(error).__name__})", code=code, hint=hint)


def passing(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Whether the open file is fine and only this attempt failed."""
    name = str(getattr(error, "sqlite_errorname", ""))
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_TOOBIG"))


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process is writing at this moment."""
    return str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_BUSY")


def read_only(error: sqlite3.Error) -> bool:
    """Whether the file may be read, and only that."""
    name = str(getattr(error, "sqlite_errorname", ""))
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"))


def unmigrated(path: str, version: int) -> StoreError:
    """A file of an older schema that keeps no rows and could not be brought up to date."""
    code, what, hint = _MEANINGS["SQLITE_READONLY"]
    told = f"the store {path!r}: it has schema {version}, which keeps no rows, and {what}"
    return StoreError(told, code=code, hint=hint)


def unfit(error: Exception, path: str) -> StoreError:
    """A name or a number that no SQLite column takes."""
    what = "a number beyond 64 bits" if isinstance(error, OverflowError) else "a name that is not valid Unicode"
    return StoreError(f"the store {path!r} was given {what}", code="store-change", hint=_UNCHANGED)


def moved(path: str) -> StoreError:
    """The open file is no longer the one at its path; what is written to it now would be lost."""
    return StoreError(
        f"the file of the store {path!r} was moved, deleted or replaced while it was in use",
        code="store-moved",
        hint=f"{_UNCHANGED}; put the file back, or load the session again from what is there now",
    )


def unread_log(path: str) -> StoreError:
    """A store whose newest changes are in the log beside it, which cannot be read where nothing may be written."""
    return StoreError(
        f"the store {path!r} cannot be read where nothing may be written: its log beside it holds changes",
        code="store-readonly",
        hint="copy the file and what begins with its name to a folder that may be written, and read it there",
    )


def damaged(path: str, what: str) -> StoreError:
    """A file that SQLite can read, but whose content is not what a store writes."""
    code, _, hint = _MEANINGS["SQLITE_CORRUPT"]
    return StoreError(f"the store {path!r} is damaged: {what}", code=code, hint=hint)


def unusable_path(path: str) -> StoreError | None:
    """Why a file cannot be opened or made at this path, where the path alone says so."""
    try:
        code, what, hint = _unusable(Path(path))
    except PermissionError:
        code, what, hint = "store-readonly", "is in a folder that may not be entered", "check the folder's permissions"
    return StoreError(f"the store {path!r} {what}", code=code, hint=hint) if code else None


def _unusable(file: Path) -> tuple[str, str, str]:
    folder = file.parent
    if file.is_dir():
        return "store-is-folder", "is a folder", "name a file inside it, such as onrecord.db"
    if not folder.is_dir():
        there = "is not a folder" if folder.exists() else "does not exist"
        return "store-no-folder", f"cannot be made: its folder {there}", "make the folder first"
    if file.exists() and not os.access(file, os.R_OK):
        return "store-readonly", "may not be read", "check the permissions of the file"
    if not os.access(folder, os.W_OK):
        hint = "SQLite keeps a log beside its file: check the permissions of the folder"
        return "store-readonly", "is in a folder that may not be written", hint
    return "", "", ""
