"""Where artifacts are kept: a port, and two stores behind it. Nothing here is part of a session or its record."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError, StoreError

__all__ = ("Artifact", "ArtifactScope", "ArtifactStore", "FileArtifacts", "MemoryArtifacts")

T = TypeVar("T")


class ArtifactScope(Struct, frozen=True, kw_only=True):
    """Whose artifacts: those of one session. Nobody who runs in it can name another."""

    tenant: str
    principal: str
    session: str

    def belongs_to(self, what: Identity | SessionKey) -> bool:
        """Whether this is a scope of that session, or of a session of that person."""
        if isinstance(what, SessionKey):
            return (self.tenant, self.session) == (what.tenant, what.id)
        return (self.tenant, self.principal) == (what.tenant, what.principal)


class Artifact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of something stored: ``ref`` names it in its scope, ``bytes`` is how large it is.

    ``kind`` says what it is (``tool-result/<tool>`` for results), ``turn`` and ``call`` where it came from, ``parents``
    what it was made of. After ``expires_at`` it counts as gone.
    """

    ref: str
    kind: str
    media_type: str
    bytes: int
    created_at: datetime
    expires_at: datetime | None = None
    label: str = ""
    turn: str = ""
    call: str = ""
    parents: tuple[str, ...] = ()


class ArtifactStore(Protocol):
    """Keeps artifacts by scope and ref. Putting one again changes nothing but its expiry."""

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        """Stores it. What it raises is contained: the result is then shown whole."""
        ...

    async def head(self, scope: ArtifactScope, ref: str, /) -> Artifact | None:
        """What is known of it, or None."""
        ...

    async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
        """Its bytes, or None."""
        ...

    async def list(self, scope: ArtifactScope, /) -> Sequence[Artifact]:
        """Everything in a scope, the oldest first."""
        ...

    async def forget(self, what: Identity | SessionKey, /) -> None:
        """Deletes everything of a session or a person; again is no error."""
        ...


class MemoryArtifacts:
    """Artifacts in this process. The oldest are dropped once there are more than ``max_bytes`` or ``max_count``."""

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024, max_count: int | None = None) -> None:
        for name, value in (("max_bytes", max_bytes), ("max_count", max_count)):
            if value is not None and (type(value) is not int or value < 1):
                raise ConfigurationError(f"{name} of MemoryArtifacts is a whole number from 1 on, not {value!r}")
        self._max_bytes, self._max_count = max_bytes, max_count
        self._held: dict[tuple[ArtifactScope, str], tuple[Artifact, bytes]] = {}
        self._bytes = 0

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        """Stores it, as the newest."""
        self._drop((scope, artifact.ref))
        self._held[scope, artifact.ref] = (artifact, data)
        self._bytes += len(data)
        most = self._max_count
        while len(self._held) > 1 and (self._bytes > self._max_bytes or (most is not None and len(self._held) > most)):
            self._drop(next(iter(self._held)))

    async def head(self, scope: ArtifactScope, ref: str, /) -> Artifact | None:
        """What is known of it, or None."""
        held = self._held.get((scope, ref))
        return None if held is None else held[0]

    async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
        """Its bytes, or None."""
        held = self._held.get((scope, ref))
        return None if held is None else held[1]

    async def list(self, scope: ArtifactScope, /) -> Sequence[Artifact]:
        """Everything in a scope, the oldest first."""
        return [artifact for (of, _), (artifact, _) in self._held.items() if of == scope]

    async def forget(self, what: Identity | SessionKey, /) -> None:
        """Deletes everything of a session or a person."""
        for key in [key for key in self._held if key[0].belongs_to(what)]:
            self._drop(key)

    def _drop(self, key: tuple[ArtifactScope, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held[1])


class FileArtifacts:
    """Artifacts as files below a folder, one folder per scope: they outlive the process, and others may read them.

    Names are digests, so no tenant, person or tool can lead outside of the folder. StoreError when the disk fails.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        """Stores it: first the bytes, then what is known of them, each whole or not at all."""
        await self._run(self._put, scope, artifact, data)

    async def head(self, scope: ArtifactScope, ref: str, /) -> Artifact | None:
        """What is known of it, or None."""
        held = await self._run(_read, self._path(scope, ref, "json"))
        return None if held is None else msgspec.json.decode(held, type=Artifact)

    async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
        """Its bytes, or None."""
        return await self._run(_read, self._path(scope, ref, "data"))

    async def list(self, scope: ArtifactScope, /) -> Sequence[Artifact]:
        """Everything in a scope, the oldest first."""
        held = await self._run(lambda: [path.read_bytes() for path in self._of(scope).glob("*.json")])
        known = (msgspec.json.decode(one, type=Artifact) for one in held)
        return sorted(known, key=lambda artifact: artifact.created_at)

    async def forget(self, what: Identity | SessionKey, /) -> None:
        """Deletes everything of a session or a person."""
        await self._run(self._forget, what)

    # ---- in a thread

    def _put(self, scope: ArtifactScope, artifact: Artifact, data: bytes) -> None:
        folder = self._of(scope)
        if not folder.exists():
            folder.mkdir(parents=True)
            _write(folder / SCOPE, msgspec.json.encode(scope))
        _write(self._path(scope, artifact.ref, "data"), data)
        _write(self._path(scope, artifact.ref, "json"), msgspec.json.encode(artifact))

    def _forget(self, what: Identity | SessionKey) -> None:
        for folder in list(self._folders()):
            held = _read(folder / SCOPE)
            if held is not None and msgspec.json.decode(held, type=ArtifactScope).belongs_to(what):
                # What says whose it is goes last: a deletion that is cut short can be done again.
                for path in sorted(folder.iterdir(), key=lambda path: path.name == SCOPE):
                    path.unlink(missing_ok=True)
                folder.rmdir()

    def _folders(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (path for path in self._folder.iterdir() if path.is_dir())

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


SCOPE = "scope"


def _name(of: bytes) -> str:
    return blake2b(of, digest_size=16).hexdigest()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    aside.write_bytes(data)
    aside.replace(path)
