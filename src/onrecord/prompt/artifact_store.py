"""Where artifacts are kept: the port, and the store in memory. Nothing of it is part of a session or its record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Protocol, TypeAlias

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.declared import declared
from onrecord.errors import StoreError, check_count

__all__ = (
    "Artifact", "ArtifactScope", "ArtifactStore", "MemoryArtifacts", "check_limits", "checksum", "damaged_artifact",
    "made_in",
)  # fmt: skip


Data: TypeAlias = bytes  # an artifact's own `bytes` is a number


class ArtifactScope(Struct, frozen=True, kw_only=True):
    """Whose artifacts: those of one session and its owner. Nobody who runs in it can name another."""

    session: SessionKey
    owner: Identity | None = None

    def belongs_to(self, what: Identity | SessionKey) -> bool:
        """Whether this is a scope of that session, or of a session of that person."""
        return what in (self.session, self.owner)


class Artifact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of something stored: ``ref`` names it in its scope, ``bytes`` is how large it is.

    ``kind`` says what it is (``tool-result/<tool>`` for results), ``turn`` and ``call`` where it came from, ``parents``
    what it was made of. ``checksum`` is that of its bytes. From ``expires_at`` on it counts as gone.
    """

    ref: str
    kind: str
    media_type: str
    bytes: int
    created_at: datetime
    checksum: str = ""
    expires_at: datetime | None = None
    label: str = ""
    turn: str = ""
    call: str = ""
    parents: tuple[str, ...] = ()

    def is_over(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now

    def is_whole(self, data: Data) -> bool:
        """Whether these are the bytes that were stored."""
        return len(data) == self.bytes and self.checksum in ("", checksum(data))


class ArtifactStore(Protocol):
    """Keeps artifacts by scope and ref.

    What is stored twice is the newest from then on. Where there are limits the oldest of all scopes make room. Each
    method raises StoreError when the store fails, with the code ``artifact-damaged`` where what it keeps is not what it
    was given; what it raises names no content.
    """

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        """Stores it, and deletes what is over by the time that it was made at."""
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

    async def forget(self, what: Identity | SessionKey, /, *, turns: Collection[str] | None = None) -> None:
        """Deletes everything of a session or a person; again is no error.

        ``turns``: only what these turns of it stored last, and what was made of that (see `made_in`).
        """
        ...

    async def expire(self, before: datetime | None, now: datetime, /) -> None:
        """Deletes what was made ``before`` that instant (None: nothing for its age), and what is over ``now``."""
        ...


@declared
class MemoryArtifacts:
    """Artifacts in this process. The oldest are dropped once there are more than ``max_bytes`` or ``max_count``."""

    def __init__(self, *, max_bytes: int | None = 64 * 1024 * 1024, max_count: int | None = None) -> None:
        check_limits("MemoryArtifacts", max_bytes, max_count)
        self._max_bytes, self._max_count = max_bytes, max_count
        self._held: dict[tuple[ArtifactScope, str], tuple[Artifact, bytes]] = {}
        self._bytes = 0

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        self._drop((scope, artifact.ref))
        for key in [key for key, (held, _) in self._held.items() if held.is_over(artifact.created_at)]:
            self._drop(key)
        self._held[scope, artifact.ref] = (artifact, data)
        self._bytes += len(data)
        while len(self._held) > 1 and self._is_full():
            self._drop(next(iter(self._held)))

    async def head(self, scope: ArtifactScope, ref: str, /) -> Artifact | None:
        held = self._held.get((scope, ref))
        return None if held is None else held[0]

    async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
        held = self._held.get((scope, ref))
        return None if held is None else held[1]

    async def list(self, scope: ArtifactScope, /) -> Sequence[Artifact]:
        return [artifact for (of, _), (artifact, _) in self._held.items() if of == scope]

    async def forget(self, what: Identity | SessionKey, /, *, turns: Collection[str] | None = None) -> None:
        theirs = {key: held for key, (held, _) in self._held.items() if key[0].belongs_to(what)}
        gone = None if turns is None else made_in(theirs.values(), turns)
        for key in theirs:
            if gone is None or key[1] in gone:
                self._drop(key)

    async def expire(self, before: datetime | None, now: datetime, /) -> None:
        for key, (held, _) in list(self._held.items()):
            if held.is_over(now) or (before is not None and held.created_at < before):
                self._drop(key)

    def _is_full(self) -> bool:
        most, count = self._max_bytes, self._max_count
        return (most is not None and self._bytes > most) or (count is not None and len(self._held) > count)

    def _drop(self, key: tuple[ArtifactScope, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held[1])


def made_in(held: Iterable[Artifact], turns: Collection[str]) -> frozenset[str]:
    """The refs of what these turns stored, and of all that was made of it."""
    left, gone = list(held), set[str]()
    while found := {one.ref for one in left if one.turn in turns or not gone.isdisjoint(one.parents)}:
        gone |= found
        left = [one for one in left if one.ref not in gone]
    return frozenset(gone)


def checksum(data: bytes) -> str:
    """What tells whether bytes are still what they were."""
    return blake2b(data, digest_size=16).hexdigest()


def check_limits(store: str, max_bytes: int | None, max_count: int | None) -> None:
    """ConfigurationError for a limit below 1."""
    for name, value in (("max_bytes", max_bytes), ("max_count", max_count)):
        if value is not None:
            check_count(store, name, value, hint="None keeps everything")


def damaged_artifact(where: str) -> StoreError:
    """The error of a store that finds something else than it was given, naming the place and nothing in it."""
    return StoreError(
        f"an artifact is damaged: {where}", code="artifact-damaged",
        hint="delete it: the tool that made it makes it anew",
    )  # fmt: skip
