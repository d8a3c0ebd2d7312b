"""PlainShelf: what is remembered, kept in this process and gone with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from math import log

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import NOTHING_SHOWN, Found, Kept, KeptKind, Shown, Space
from onrecord.memory.terms import terms

__all__ = ("PlainShelf",)


class PlainShelf:
    """A `Shelf` in memory, for tests and first steps; keeps the same promises as one in a file."""

    def __init__(self) -> None:
        self._spaces: dict[Space, dict[str, Kept]] = {}
        self._number = count(1)

    async def put(self, space: Space, kept: Sequence[Kept], /, *, drop: Sequence[str] = ()) -> None:
        held = self._spaces.setdefault(space, {})
        for key in (*drop, *(one.key for one in kept)):
            held.pop(key, None)
        held.update({one.key: replace(one, n=next(self._number)) for one in kept})
        if not held:
            del self._spaces[space]

    async def newest(
        self, space: Space, kind: KeptKind, /, *, limit: int, after: int = 0, apart: Shown = NOTHING_SHOWN
    ) -> list[Kept]:
        found = [one for one in self._of(space, kind, apart) if one.n > after]
        return found[max(len(found) - limit, 0) :]

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
        for space, held in list(self._spaces.items()):
            keys = _of_person(space, held, what) if isinstance(what, Identity) else _of_session(space, held, what)
            for key in keys:
                del held[key]
            gone += len(keys)
            if not held:
                del self._spaces[space]
        return gone

    async def close(self) -> None:
        pass

    def _of(self, space: Space, kind: KeptKind, apart: Shown) -> Iterable[Kept]:
        return (k for k in self._spaces.get(space, {}).values() if k.kind == kind and not apart.covers(k))


def _of_person(space: Space, held: dict[str, Kept], who: Identity) -> list[str]:
    return list(held) if space.owner == who else []


def _of_session(space: Space, held: dict[str, Kept], key: SessionKey) -> list[str]:
    return [one.key for one in held.values() if space.tenant == key.tenant and key.id in one.sessions]
