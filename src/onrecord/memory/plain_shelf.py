"""PlainShelf: what is remembered, kept in this process and gone with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import count, islice, takewhile
from typing import TypeAlias

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Near, Shown, Space, Vector
from onrecord.memory.ranking import best_first, both, by_words, cosines
from onrecord.memory.terms import terms

__all__ = ("PlainShelf",)

_Group: TypeAlias = tuple[KeptKind, tuple[str, ...]]
"""A kind, and the sessions that its things are made of."""


class PlainShelf:
    """A `Shelf` in memory, for tests and first steps; keeps the same promises as one in a file."""

    def __init__(self) -> None:
        # By the sessions that things are made of: those of a long one that a request shows are passed over at once.
        self._spaces: dict[Space, dict[_Group, dict[str, Kept]]] = {}
        self._words: dict[int, Counter[str]] = {}
        self._vectors: dict[int, Vector] = {}
        self._number = count(1)

    async def put(
        self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = (), vectors: Mapping[str, Vector] = {}
    ) -> None:
        self._drop(space, (*drop, *(one.key for one in kept)))
        groups = self._spaces.setdefault(space, {}) if kept else {}
        for one in kept:
            n = next(self._number)
            groups.setdefault((one.kind, one.sessions), {})[one.key] = replace(one, n=n)
            if (vector := vectors.get(one.key)) is not None:
                self._vectors[n] = vector

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        held = merge(*(reversed(group.values()) for group in self._of(space, kind, apart)), key=lambda one: -one.n)
        fresh = takewhile(lambda one: one.n > after, held)
        return [*islice((one for one in fresh if not apart.covers(one)), max(limit, 0))][::-1]

    async def search(
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN,
        near: Near | None = None,
    ) -> list[Found]:  # fmt: skip
        groups = self._of(space, kind, apart)
        held = {one.n: one for group in groups for one in group.values() if not apart.covers(one)}
        words = by_words(((n, self._words_of(one)) for n, one in held.items()), terms(text))
        ranked = best_first(words) if near is None else both(words, self._near(near, held))
        return [Found(held[n], score) for n, score in ranked[: max(limit, 0)]]

    def _words_of(self, one: Kept) -> Counter[str]:
        """Taken apart once, and not by each search."""
        if (words := self._words.get(one.n)) is None:
            words = self._words[one.n] = Counter(terms(one.text))
        return words

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
        for space, groups in list(self._spaces.items()):
            yield space, [one for held in groups.values() for one in held.values()]

    def _of(self, space: Space, kind: KeptKind, apart: Shown) -> list[dict[str, Kept]]:
        """The groups of a kind that are not covered as a whole; each stands in the order it came."""
        whole = apart.session if apart.since is None else ""
        groups = self._spaces.get(space, {}).items()
        return [held for (of, sessions), held in groups if of == kind and not (whole and whole in sessions)]

    def _drop(self, space: Space, keys: Sequence[str]) -> int:
        gone, groups = 0, self._spaces.get(space, {})
        for group, held in list(groups.items()):
            for key in keys:
                if (one := held.pop(key, None)) is not None:
                    self._words.pop(one.n, None)
                    self._vectors.pop(one.n, None)
                    gone += 1
            if not held:
                del groups[group]
        if not groups:
            self._spaces.pop(space, None)
        return gone

    async def close(self) -> None:
        pass


def _of_person(space: Space, held: Iterable[Kept], who: Identity) -> list[str]:
    return [one.key for one in held if space.owner == who or who in one.people]


def _of_session(space: Space, held: Iterable[Kept], key: SessionKey) -> list[str]:
    return [one.key for one in held if space.tenant == key.tenant and key.id in one.sessions]
