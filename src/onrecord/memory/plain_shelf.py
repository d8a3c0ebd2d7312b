"""PlainShelf: what is remembered, kept in this process and gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Near, Shown, Space, Vector
from onrecord.memory.ranking import best_first, both, cosines
from onrecord.memory.shelved_texts import ShelvedTexts
from onrecord.memory.terms import terms

__all__ = ("PlainShelf",)

MOST_COMPARED = 10_000
"""Vectors that a search compares, those of the latest sessions first."""


class _Spot:
    """What is kept in one space."""

    def __init__(self) -> None:
        self.by_key: dict[str, Kept] = {}
        self.kinds: dict[KeptKind, ShelvedTexts] = {}

    def add(self, one: Kept) -> None:
        self.by_key[one.key] = one
        self.kinds.setdefault(one.kind, ShelvedTexts()).add(one)

    def drop(self, key: str) -> Kept | None:
        one = self.by_key.pop(key, None)
        if one is not None:
            self.kinds[one.kind].drop(one)
        return one


class PlainShelf:
    """A `Shelf` in memory, for tests and first steps; keeps the same promises as one in a file."""

    def __init__(self) -> None:
        self._spaces: dict[Space, _Spot] = {}
        self._vectors: dict[int, Vector] = {}
        self._number = count(1)

    async def put(
        self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = (), vectors: Mapping[str, Vector] = {}
    ) -> None:
        self._drop(space, drop)
        for one in kept:
            self._drop(space, (one.key,))
            n = next(self._number)
            self._spaces.setdefault(space, _Spot()).add(replace(one, n=n))
            if (vector := vectors.get(one.key)) is not None:
                self._vectors[n] = vector

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        return self._of(space, kind).newest(limit, after, apart) if limit > 0 else []

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN,
        near: Near | None = None,
    ) -> list[Found]:  # fmt: skip
        texts = self._of(space, kind)
        found = texts.search(terms(text), apart)
        held = {n: one for n, (one, _) in found.items()}
        words = {n: score for n, (_, score) in found.items()}
        if near is None:
            ranked = best_first(words)
        else:
            close = self._near(near, texts.some(MOST_COMPARED, apart))
            held |= {one.n: one for one, _ in close}
            ranked = both(words, {one.n: cosine for one, cosine in close})
        return [Found(held[n], score) for n, score in ranked[: max(limit, 0)]]

    def _near(self, near: Near, held: Iterable[Kept]) -> list[tuple[Kept, float]]:
        same = [(one, v) for one in held if (v := self._vectors.get(one.n)) is not None and v.of == near.vector.of]
        found = zip(same, cosines(near.vector.values, [vector.values for _, vector in same]), strict=True)
        return [(one, cosine) for (one, _), cosine in found if cosine >= near.least]

    async def forget(self, what: SessionKey | Identity, /) -> int:
        gone = 0
        for space, held in self._all():
            keys = _of_person(space, held, what) if isinstance(what, Identity) else _of_session(space, held, what)
            gone += self._drop(space, keys)
        return gone

    async def expire(self, before: datetime, of: Space | str, /) -> int:
        return sum(
            self._drop(space, [one.key for one in held if one.at < before])
            for space, held in self._all()
            if of in (space, space.memory)
        )

    def _all(self) -> Iterator[tuple[Space, list[Kept]]]:
        for space, spot in list(self._spaces.items()):
            yield space, list(spot.by_key.values())

    def _of(self, space: Space, kind: KeptKind) -> ShelvedTexts:
        spot = self._spaces.get(space)
        return ShelvedTexts() if spot is None else spot.kinds.get(kind, ShelvedTexts())

    def _drop(self, space: Space, keys: Iterable[str]) -> int:
        spot = self._spaces.get(space)
        if spot is None:
            return 0
        gone = [one for key in keys if (one := spot.drop(key)) is not None]
        for one in gone:
            self._vectors.pop(one.n, None)
        if not spot.by_key:
            del self._spaces[space]
        return len(gone)

    async def close(self) -> None:
        pass


def _of_person(space: Space, held: Iterable[Kept], who: Identity) -> list[str]:
    return [one.key for one in held if space.owner == who or who in one.people]


def _of_session(space: Space, held: Iterable[Kept], key: SessionKey) -> list[str]:
    return [one.key for one in held if space.tenant == key.tenant and key.id in one.sessions]
