"""The file that an export is written to: whole or not at all, and never over anything but an earlier export."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from onrecord.cli.failure import Wrong
from onrecord.cli.sources import is_store

__all__ = ("write_export",)

_BEGINS = b'{"onrecord":"record",'
_BESIDE = ("-wal", "-shm", "-journal")
_OWN = "give the export a file of its own"


def write_export(target: str, lines: Iterable[bytes]) -> None:
    """Puts the lines into the file in one step: until then an earlier export there stays as it is.

    A device or a pipe is written as it is. Wrong for a folder, for a store and what belongs to one, and for a file that
    holds anything but an export.
    """
    path = Path(target)
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            with path.open("wb") as file:
                file.writelines(lines)
            return
    except (FileNotFoundError, NotADirectoryError):
        pass  # made below, also behind a link that leads nowhere yet
    path = path.resolve()  # a link stays one, and leads to the new file
    _refuse(target, path)
    try:
        _replace(path, lines)
    except OSError as error:
        error.filename, error.filename2 = target, None  # the name that was given, not that of the unfinished file
        raise


def _refuse(target: str, path: Path) -> None:
    """Raises Wrong where an export may not be written."""
    if path.is_dir():
        raise Wrong(f"{target!r} is a folder", hint="name a file inside it")
    if not path.parent.is_dir():
        raise Wrong(
            f"{target!r} cannot be made: there is no folder {str(Path(target).parent)!r}", hint="make the folder first"
        )
    for ending in _BESIDE:
        store = str(path).removesuffix(ending)
        if store != str(path) and Path(store).is_file() and is_store(store):
            raise Wrong(f"{target!r} belongs to the store beside it", hint=_OWN)
    if not path.exists():
        return
    if is_store(str(path)):
        raise Wrong(f"{target!r} is a store", hint=_OWN)
    with path.open("rb") as file:
        begins = file.read(len(_BEGINS))
    if begins and begins != _BEGINS:
        raise Wrong(f"{target!r} is there already and no export; it was not touched", hint=_OWN)
    if not os.access(path, os.W_OK):  # putting another file in its place needs no permission of its own
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    """Writes a file beside the one that is meant, and puts it in its place once the disk has it."""
    unfinished = path.with_name(f".onrecord-{secrets.token_hex(6)}")
    try:
        with unfinished.open("xb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
