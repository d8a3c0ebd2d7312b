"""FileArtifacts: artifacts in a folder."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.declared import declared
from onrecord.errors import StoreError
from onrecord.prompt.artifact_store import Artifact, ArtifactScope, check_limits, damaged_artifact, made_in

__all__ = ("FileArtifacts",)

T = TypeVar("T")

SCOPE = "scope"
"""The file that says whose a folder is."""

_NAME = re.compile(r"[0-9a-f]{32}", re.ASCII)

_numbers = count()


@declared
class FileArtifacts:
    """Artifacts as files below a folder, one folder per scope: they outlive the process, and others may read them.

    Names are digests, so no tenant, person or tool can lead outside of the folder. The oldest are deleted once there
    are more than ``max_bytes`` or ``max_count`` (None: no such limit). Threads and processes may share a folder.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, max_bytes: int | None = None, max_count: int | None = None
    ) -> None:
        check_limits("FileArtifacts", max_bytes, max_count)
        self._folder, self._max_bytes, self._max_count = Path(folder), max_bytes, max_count
        self._lock = Lock()  # a folder that is being emptied is not written into

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        """Stores it: first the bytes, then what is known of them, each whole or not at all."""
        await self._run(self._put, scope, artifact, data)

    async def head(self, scope: ArtifactScope, ref: str, /) -> Artifact | None:
        return await self._run(_known, self._path(scope, ref, "json"))

    async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
        return await self._run(self._get, scope, ref)

    async def list(self, scope: ArtifactScope, /) -> Sequence[Artifact]:
        held = await self._run(lambda: [known for path in _described(self._of(scope)) if (known := _decoded(path))])
        return sorted(held, key=lambda artifact: artifact.created_at)

    async def forget(self, what: Identity | SessionKey, /, *, turns: Collection[str] | None = None) -> None:
        await self._run(self._forget, what, turns)

    async def expire(self, before: datetime | None, now: datetime, /) -> None:
        await self._run(self._expire, before, now)

    # ---- in a thread

    def _put(self, scope: ArtifactScope, artifact: Artifact, data: bytes) -> None:
        folder = self._of(scope)
        with self._lock:
            if not (folder / SCOPE).exists():
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / SCOPE, msgspec.json.encode(scope))
            for path in list(_described(folder)) if artifact.expires_at is not None else ():
                held = _decoded(path)
                if held is not None and held.is_over(artifact.created_at):
                    _delete(path)
            _write(self._path(scope, artifact.ref, "data"), data)
            _write(self._path(scope, artifact.ref, "json"), msgspec.json.encode(artifact))
            if self._max_bytes is not None or self._max_count is not None:
                self._make_room(self._path(scope, artifact.ref, "json"))

    def _get(self, scope: ArtifactScope, ref: str) -> bytes | None:
        path = self._path(scope, ref, "data")
        known, data = _known(path.with_suffix(".json")), _read(path)
        if known is None or data is None:
            return None
        if not known.is_whole(data):
            raise damaged_artifact(f"the file {_told(path)} is not what was stored")
        return data

    def _forget(self, what: Identity | SessionKey, turns: Collection[str] | None) -> None:
        nobodys = ""
        with self._lock:
            for folder in list(self._folders()):
                scope = _scope(folder)
                if scope is None and any(folder.iterdir()):
                    nobodys = folder.name  # after the others: it may be theirs, and must not go unsaid
                elif scope is not None and turns is not None and scope.belongs_to(what):
                    _delete_of_turns(folder, turns)
                elif scope is None or scope.belongs_to(what):
                    # What says whose it is goes last: a deletion that is cut short can be done again.
                    for path in sorted(folder.iterdir(), key=lambda path: path.name == SCOPE):
                        path.unlink(missing_ok=True)
                    folder.rmdir()
        if nobodys:
            raise damaged_artifact(f"the folder {self._folder.name}/{nobodys} does not say whose it is")

    def _expire(self, before: datetime | None, now: datetime) -> None:
        """Also of what a crash left half written, by the age of its file."""
        with self._lock:
            for path in [path for folder in self._folders() for path in folder.iterdir() if path.name != SCOPE]:
                known = _decoded(path.with_suffix(".json")) if path.suffix in {".json", ".data"} else None
                made = _written(path) if known is None else known.created_at
                if (before is not None and made < before) or (known is not None and known.is_over(now)):
                    _delete(path)

    def _make_room(self, newest: Path) -> None:
        found = [(path, held) for folder in self._folders() for path in _described(folder) if (held := _decoded(path))]
        found.sort(key=lambda each: (each[0] == newest, each[1].created_at))
        size, number = sum(held.bytes for _, held in found), len(found)
        for path, held in found[:-1]:
            fits = self._max_bytes is None or size <= self._max_bytes
            if fits and (self._max_count is None or number <= self._max_count):
                return
            _delete(path)
            size, number = size - held.bytes, number - 1

    def _folders(self) -> Iterator[Path]:
        """Those that are ours: whatever else is in the folder stays."""
        with suppress(FileNotFoundError):
            yield from (path for path in self._folder.iterdir() if _NAME.fullmatch(path.name) and path.is_dir())

    def _of(self, scope: ArtifactScope) -> Path:
        return self._folder / _name(msgspec.json.encode(scope))

    def _path(self, scope: ArtifactScope, ref: str, ending: str) -> Path:
        return self._of(scope) / f"{_name(ref.encode('utf-8', 'replace'))}.{ending}"

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        try:
            return await asyncio.to_thread(work, *args)
        except OSError as error:
            raise StoreError(
                f"artifacts cannot be kept in {self._folder.name!r}: {type(error).__name__}",
                hint="look whether the folder can be written to, and has room",
            ) from error

    def __repr__(self) -> str:
        return f"FileArtifacts({os.fspath(self._folder)!r})"


def _name(of: bytes) -> str:
    return blake2b(of, digest_size=16).hexdigest()


def _described(folder: Path) -> Iterator[Path]:
    return folder.glob("*.json")


def _known(path: Path) -> Artifact | None:
    """What a file tells of an artifact. StoreError where it does not decode."""
    data = _read(path)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Artifact)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise damaged_artifact(f"the file {_told(path)} does not decode") from None


def _told(path: Path) -> str:
    """Where a file is, without the way to the folder."""
    return "/".join(path.parts[-3:])


def _decoded(path: Path) -> Artifact | None:
    """The same where damage is no matter."""
    with suppress(StoreError):
        return _known(path)
    return None


def _scope(folder: Path) -> ArtifactScope | None:
    data = _read(folder / SCOPE)
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return None if data is None else msgspec.json.decode(data, type=ArtifactScope)
    return None


def _written(path: Path) -> datetime:
    """When a file was last written; never for one that is gone."""
    with suppress(FileNotFoundError):
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return datetime.max.replace(tzinfo=UTC)


def _delete_of_turns(folder: Path, turns: Collection[str]) -> None:
    """Also what is torn or half written: nobody can say of which turn it is."""
    known = {path: held for path in _described(folder) if (held := _decoded(path)) is not None}
    gone = made_in(known.values(), turns)
    stays = {path.stem for path, held in known.items() if held.ref not in gone}
    for path in [path for path in folder.iterdir() if path.name != SCOPE and path.stem not in stays]:
        _delete(path)


def _delete(path: Path) -> None:
    """A file, and the bytes with what is known of them: those first, or nobody would know their age."""
    if path.suffix == ".json":
        path.with_suffix(".data").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    aside = path.with_name(f"{path.name}.{os.getpid()}-{next(_numbers)}.new")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
