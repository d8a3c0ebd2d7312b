"""PlainShelf: what is remembered, kept in this process and gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import get_args

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Near, Shown, Space, Vector
from onrecord.memory.ranking import both, by_words, cosines
from onrecord.memory.terms import terms

__all__ = ("PlainShelf",)

KINDS: tuple[KeptKind, ...] = get_args(KeptKind)


class PlainShelf:
    """A `Shelf` in memory, for tests and first steps; keeps the same promises as one in a file."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Space, KeptKind], dict[str, Kept]] = {}
        self._vectors: dict[int, Vector] = {}
        self._number = count(1)

    async def put(
        self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = (), vectors: Mapping[str, Vector] = {}
    ) -> None:
        self._drop(space, (*drop, *(one.key for one in kept)))
        for one in kept:
            n = next(self._number)
            self._kinds.setdefault((space, one.kind), {})[one.key] = replace(one, n=n)
            if (vector := vectors.get(one.key)) is not None:
                self._vectors[n] = vector

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        found: list[Kept] = []
        for one in reversed(self._kinds.get((space, kind), {}).values()):  # they stand in the order they came
            if one.n <= after or len(found) >= limit:
                break
            if not apart.covers(one):
                found.append(one)
        return found[::-1]

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN,
        near: Near | None = None,
    ) -> list[Found]:  # fmt: skip
        kinds = self._kinds.get((space, kind), {})
        held = {one.n: one for one in kinds.values() if not apart.covers(one)}
        words = by_words(((n, one.text) for n, one in held.items()), terms(text))
        if near is None:
            ranked = sorted(words.items(), key=lambda one: (-one[1], -one[0]))
        else:
            ranked = both(words, self._near(near, held))
        return [Found(held[n], score) for n, score in ranked[: max(limit, 0)]]

    def _near(self, near: Near, held: Iterable[int]) -> dict[int, float]:
        same = {n: v.values for n in held if (v := self._vectors.get(n)) is not None and v.of == near.vector.of}
        found = zip(same, cosines(near.vector.values, [*same.values()]), strict=True)
        return {n: cosine for n, cosine in found if cosine >= near.least}

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
        for (space, _), held in list(self._kinds.items()):
            yield space, list(held.values())

    def _drop(self, space: Space, keys: Sequence[str]) -> int:
        gone = 0
        for kind in KINDS:
            if not (held := self._kinds.get((space, kind))):
                continue
            for key in keys:
                if (one := held.pop(key, None)) is not None:
                    self._vectors.pop(one.n, None)
                    gone += 1
            if not held:
                del self._kinds[space, kind]
        return gone

    async def close(self) -> None:
        pass


def _of_person(space: Space, held: Iterable[Kept], who: Identity) -> list[str]:
    return [one.key for one in held if space.owner == who or who in one.people]


def _of_session(space: Space, held: Iterable[Kept], key: SessionKey) -> list[str]:
    return [one.key for one in held if space.tenant == key.tenant and key.id in one.sessions]
