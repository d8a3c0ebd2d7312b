"""Texts of one kind on a shelf in memory, in the order they came and by the words in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from math import log

from onrecord.memory.ports import Kept, Shown
from onrecord.memory.terms import terms

__all__ = ("MOST_LOOKED_AT", "ShelvedTexts")

MOST_LOOKED_AT = 2000
"""Occurrences of words that one search looks at, those of the rarest first, and of each the newest: a millisecond."""


class _Session:
    """Texts that are made of the same sessions; ``latest`` is the number of the newest that there ever was."""

    __slots__ = ("kept", "latest", "of")

    def __init__(self, of: tuple[str, ...]) -> None:
        self.of, self.latest = of, 0
        self.kept: dict[int, Kept] = {}


class ShelvedTexts:
    """Texts by the sessions that they are made of: those of a long one that a request shows are passed over at once.

    The session that was added to last stands last. Words are taken apart by the first search that comes; most kinds
    are never searched.
    """

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, ...], _Session] = {}
        self._unread: dict[int, Kept] = {}
        self._where: dict[str, dict[tuple[str, ...], dict[int, Kept]]] = {}
        self._counts: dict[str, int] = {}
        self._sizes: dict[int, int] = {}

    def add(self, one: Kept) -> None:
        held = self._sessions.pop(one.sessions, None) or _Session(one.sessions)
        held.kept[one.n] = self._unread[one.n] = one
        held.latest = one.n
        self._sessions[one.sessions] = held

    def drop(self, one: Kept) -> None:
        held = self._sessions[one.sessions]
        del held.kept[one.n]
        if not held.kept:
            del self._sessions[one.sessions]
        if self._unread.pop(one.n, None) is None:
            self._forget_words(one)

    def newest(self, limit: int, after: int, apart: Shown) -> list[Kept]:
        """See `Shelf.newest`."""
        found: list[Kept] = []
        for held in reversed(self._sessions.values()):
            if held.latest <= after or (len(found) >= limit and held.latest < found[0].n):
                break  # those that follow are older still
            if not _is_whole(held.of, apart):
                fresh = takewhile(lambda one: one.n > after, reversed(held.kept.values()))
                more = islice((one for one in fresh if not apart.covers(one)), limit)
                found = sorted([*found, *more], key=lambda one: one.n)[-limit:]
        return found

    def some(self, most: int, apart: Shown) -> Iterator[Kept]:
        """Up to so many that are not covered, those of the latest sessions first."""
        open_ = (held for held in reversed(self._sessions.values()) if not _is_whole(held.of, apart))
        every = (one for held in open_ for one in reversed(held.kept.values()) if not apart.covers(one))
        return islice(every, most)

    # ---- by words

    def search(self, asked: Iterable[str], apart: Shown) -> dict[int, tuple[Kept, float]]:
        """The texts that have one of these words, by number and with a score: rare words count more, long texts less.

        Of very many occurrences those of the rarest words are looked at, the latest of each first.
        """
        self._read()
        size, left = len(self._sizes), MOST_LOOKED_AT
        found: dict[int, tuple[Kept, float]] = {}
        counts = {word: count for word in set(asked) if (count := self._counts.get(word))}
        for word in sorted(counts, key=lambda word: (counts[word], word)):
            rare = log(1 + size / (1 + counts[word]))
            for one in islice(self._having(word, apart), left):
                left -= 1
                if not apart.covers(one):
                    before = found[one.n][1] if one.n in found else 0.0
                    found[one.n] = one, before + rare / (1 + log(1 + self._sizes[one.n]))
        return found

    def _having(self, word: str, apart: Shown) -> Iterator[Kept]:
        for of, held in reversed(self._where[word].items()):
            if not _is_whole(of, apart):
                yield from reversed(held.values())

    def _read(self) -> None:
        for one in self._unread.values():
            words = terms(one.text)
            self._sizes[one.n] = len(words)
            for word in set(words):
                where = self._where.setdefault(word, {})
                held = where.pop(one.sessions, None) or {}
                held[one.n] = one
                where[one.sessions] = held
                self._counts[word] = self._counts.get(word, 0) + 1
        self._unread.clear()

    def _forget_words(self, one: Kept) -> None:
        del self._sizes[one.n]
        for word in set(terms(one.text)):
            where = self._where[word]
            del where[one.sessions][one.n]
            if not where[one.sessions]:
                del where[one.sessions]
            self._counts[word] -= 1
            if not self._counts[word]:
                del self._counts[word], self._where[word]


def _is_whole(sessions: tuple[str, ...], apart: Shown) -> bool:
    """Whether everything that is made of these sessions is covered."""
    return bool(apart.session) and apart.since is None and apart.session in sessions
