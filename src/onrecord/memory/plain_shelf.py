"""PlainShelf: what is remembered, kept in this process and gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Near, Shown, Space, Vector
from onrecord.memory.ranking import both, by_words, cosines
from onrecord.memory.terms import terms

__all__ = ("PlainShelf",)


class PlainShelf:
    """A `Shelf` in memory, for tests and first steps; keeps the same promises as one in a file."""

    def __init__(self) -> None:
        self._spaces: dict[Space, dict[KeptKind, dict[str, Kept]]] = {}
        self._vectors: dict[int, Vector] = {}
        self._number = count(1)

    async def put(
        self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = (), vectors: Mapping[str, Vector] = {}
    ) -> None:
        self._drop(space, (*drop, *(one.key for one in kept)))
        kinds = self._spaces.setdefault(space, {}) if kept else {}
        for one in kept:
            n = next(self._number)
            kinds.setdefault(one.kind, {})[one.key] = replace(one, n=n)
            if (vector := vectors.get(one.key)) is not None:
                self._vectors[n] = vector

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        found: list[Kept] = []
        session, since = apart.session, apart.since
        for one in reversed(self._of(space, kind).values()):  # they stand in the order they came
            if one.n <= after or len(found) >= limit:
                break
            # `apart.covers(one)`, written out: a long conversation is covered message by message
            if not session or session not in one.sessions or (since is not None and one.at < since):
                found.append(one)
        return found[::-1]

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN,
        near: Near | None = None,
    ) -> list[Found]:  # fmt: skip
        held = {one.n: one for one in self._of(space, kind).values() if not apart.covers(one)}
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
        for space, kinds in list(self._spaces.items()):
            yield space, [one for held in kinds.values() for one in held.values()]

    def _of(self, space: Space, kind: KeptKind) -> dict[str, Kept]:
        return self._spaces.get(space, {}).get(kind, {})

    def _drop(self, space: Space, keys: Sequence[str]) -> int:
        gone, kinds = 0, self._spaces.get(space, {})
        for kind, held in list(kinds.items()):
            for key in keys:
                if (one := held.pop(key, None)) is not None:
                    self._vectors.pop(one.n, None)
                    gone += 1
            if not held:
                del kinds[kind]
        if not kinds:
            self._spaces.pop(space, None)
        return gone

    async def close(self) -> None:
        pass


def _of_person(space: Space, held: Iterable[Kept], who: Identity) -> list[str]:
    return [one.key for one in held if space.owner == who or who in one.people]


def _of_session(space: Space, held: Iterable[Kept], key: SessionKey) -> list[str]:
    return [one.key for one in held if space.tenant == key.tenant and key.id in one.sessions]
