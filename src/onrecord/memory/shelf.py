"""PlainShelf: what is remembered, kept in this process and gone with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from math import log
from typing import get_args

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Shown, Space
from onrecord.memory.terms import terms

__all__ = ("PlainShelf",)

KINDS: tuple[KeptKind, ...] = get_args(KeptKind)


class PlainShelf:
    """A `Shelf` in memory, for tests and first steps; keeps the same promises as one in a file."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Space, KeptKind], dict[str, Kept]] = {}
        self._number = count(1)

    async def put(self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = ()) -> None:
        self._drop(space, (*drop, *(one.key for one in kept)))
        for one in kept:
            self._kinds.setdefault((space, one.kind), {})[one.key] = replace(one, n=next(self._number))

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
        self, space: Space, kind: KeptKind, text: str, /, *, limit: int, apart: Shown = NOTHING_SHOWN
    ) -> list[Found]:
        held = [(one, Counter(terms(one.text))) for one in self._of(space, kind, apart)]
        asked = set(terms(text))
        rare = {word: log(1 + len(held) / (1 + sum(word in words for _, words in held))) for word in asked}
        scored = [
            Found(one, sum(rare[word] for word in asked & words.keys()) / (1 + log(1 + words.total())))
            for one, words in held
            if asked & words.keys()
        ]
        return sorted(scored, key=lambda found: (-found.score, -found.kept.n))[:limit]

    async def forget(self, what: SessionKey | Identity, /) -> int:
        gone = 0
        for (space, _), held in list(self._kinds.items()):
            keys = _of_person(space, held, what) if isinstance(what, Identity) else _of_session(space, held, what)
            gone += self._drop(space, keys)
        return gone

    def _drop(self, space: Space, keys: Iterable[str]) -> int:
        gone = 0
        for kind in KINDS:
            held = self._kinds.get((space, kind), {})
            gone += sum(held.pop(key, None) is not None for key in keys)
            if not held:
                self._kinds.pop((space, kind), None)
        return gone

    async def close(self) -> None:
        pass

    def _of(self, space: Space, kind: KeptKind, apart: Shown) -> Iterable[Kept]:
        return (k for k in self._kinds.get((space, kind), {}).values() if not apart.covers(k))


def _of_person(space: Space, held: dict[str, Kept], who: Identity) -> list[str]:
    return list(held) if space.owner == who else []


def _of_session(space: Space, held: dict[str, Kept], key: SessionKey) -> list[str]:
    return [one.key for one in held.values() if space.tenant == key.tenant and key.id in one.sessions]
