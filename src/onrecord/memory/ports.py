"""The ports of memory and retrieval: where remembered things are kept, and what makes vectors of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey

__all__ = (
    "NOTHING_SHOWN", "Embedded", "Embedder", "Found", "Kept", "KeptKind", "Near", "Shelf", "Shown", "Space", "Vector",
    "VectorIndex", "fingerprint",
)  # fmt: skip

KeptKind = Literal["message", "summary", "fact", "episode"]


class Space(Struct, frozen=True, gc=False, kw_only=True):
    """Whose memory it is: nothing that is kept in one space is ever read in another.

    ``tenant`` is the session's; ``owner`` the person's own names. ``session`` is set where a session remembers for
    itself alone; ``memory`` is the name of the feature, so that two of an agent do not read each other's.
    """

    tenant: str = ""
    owner: Identity | None = None
    session: str = ""
    memory: str = "memory"


class Kept(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One thing that is remembered.

    ``key`` names it in its space; another of this key takes its place. ``at`` is when the oldest of its words were
    said. ``sessions`` are the ids of the sessions whose words it is made of, and ``people`` those of them whose space
    it is not: forgetting one of them takes it along.
    ``turn`` is the turn that left it, ``role`` who said a message; ``upto`` of a summary is the number of the newest
    message in it. ``n`` is given by the shelf, counts up, and is never reused.
    """

    key: str
    kind: KeptKind
    text: str
    at: datetime
    sessions: tuple[str, ...] = ()
    people: tuple[Identity, ...] = ()
    turn: str = ""
    role: str = ""
    upto: int = 0
    n: int = 0


class Found(Struct, frozen=True, gc=False):
    """Something kept that a search found, and how well it fits: more is better, without a fixed scale."""

    kept: Kept
    score: float


class Shown(Struct, frozen=True, gc=False):
    """What a request shows anyway: messages of ``session``, from ``since`` on (None: all of them)."""

    session: str = ""
    since: datetime | None = None

    def covers(self, kept: Kept) -> bool:
        """Whether something kept is among it."""
        if not self.session or self.session not in kept.sessions:
            return False
        return self.since is None or kept.at >= self.since


NOTHING_SHOWN = Shown()


class Vector(Struct, frozen=True, gc=False):
    """What a text means to an embedder: ``of`` is its fingerprint, ``values`` float32 of length 1, little-endian."""

    of: str
    values: bytes


class Near(Struct, frozen=True, gc=False):
    """The vector of a question, and the least cosine that counts as near."""

    vector: Vector
    least: float = -1.0


class Shelf(Protocol):
    """Where remembered things are kept. Safe to use by many turns at once; StoreError where it cannot be."""

    async def put(
        self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = (), vectors: Mapping[str, Vector] = {}
    ) -> None:
        """Lets go of the keys in ``drop``, then keeps these: all of it or nothing. One of a known key takes its place,
        as the newest. ``vectors`` are those of texts among them, by key.
        """
        ...

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        """Up to ``limit`` of the newest of a kind, in the order in which they were kept, numbers above ``after`` only.
        Those that ``apart`` covers are left out, and do not count.
        """
        ...

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN,
        near: Near | None = None,
    ) -> list[Found]:  # fmt: skip
        """Up to ``limit`` of a kind that share words with ``text`` or are ``near`` it, the best first.

        Only vectors of the same fingerprint are compared; with ``near`` scores lie between 0 and 1
        (`onrecord.memory.ranking.both`).
        """
        ...

    async def forget(self, what: SessionKey | Identity, /) -> int:
        """Deletes what is made of this session's words, or all that is this person's and all that is made of their
        words, whatever the tenant of the session. How many; nothing of them can be found afterwards, in files neither.
        """
        ...

    async def expire(self, before: datetime, of: Space | str, /) -> int:
        """Deletes what is older than an instant: in one space, or in all of the memory of this name. How many.

        For a name it is as thorough as `forget`; in one space, which is asked turn by turn, it is as deleted rows are.
        """
        ...

    async def close(self) -> None:
        """Finishes what was asked before; safe to call twice."""
        ...


# ---- vectors ---------------------------------------------------------------------------------------------------------

Embedded = Sequence[Sequence[float]]
"""One vector a text, all of one length."""


class Embedder(Protocol):
    """Makes vectors of texts, near each other where the texts mean something alike."""

    @property
    def name(self) -> str:
        """Which one it is: vectors of two names are never compared."""
        ...

    async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Embedded:
        """One vector for each text, in order, all of one length. ModelError where a service failed.

        ``of`` says whether the texts are searched with (``query``) or found (``passage``).
        """
        ...


class VectorIndex(Protocol):
    """Vectors by number, and which are nearest to another."""

    def nearest(self, vector: Sequence[float], k: int, /) -> list[tuple[int, float]]:
        """Up to ``k`` numbers with their cosine, the nearest first."""
        ...


def fingerprint(name: str, dims: int) -> str:
    """What vectors are of: ``name@dims``."""
    return f"{name}@{dims}"
