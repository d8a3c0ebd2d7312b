"""KeywordIndex: passages by the words in them, ranked by BM25."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest

from onrecord.memory.terms import terms

__all__ = ("KeywordIndex",)

_SATURATION, _LENGTH = 1.2, 0.75
"""BM25's k1 and b: how soon another occurrence of a word counts no more, and how much longer texts are held back."""

MOST = 10_000
"""Occurrences that one search looks at, those of the rarest words first: a millisecond or two."""


class KeywordIndex:
    """Texts by number; made once, then only read."""

    def __init__(self, texts: Iterable[str]) -> None:
        places: dict[str, tuple[list[int], list[float]]] = {}
        lengths: list[int] = []
        for number, text in enumerate(texts):
            words = terms(text)
            lengths.append(len(words))
            for word, times in Counter(words).items():
                numbers, counts = places.setdefault(word, ([], []))
                numbers.append(number)
                counts.append(times)
        self.size = len(lengths)
        mean = sum(lengths) / self.size if any(lengths) else 1.0
        held = [_SATURATION * (1 - _LENGTH + _LENGTH * length / mean) for length in lengths]
        for numbers, counts in places.values():
            rare = math.log(1 + (self.size - len(numbers) + 0.5) / (len(numbers) + 0.5))
            counts[:] = [
                rare * times * (_SATURATION + 1) / (times + held[number])
                for number, times in zip(numbers, counts, strict=True)
            ]
        self._places = places

    def best(self, text: str, k: int) -> list[tuple[int, float]]:
        """Up to ``k`` numbers of texts that share words with this one, with their scores, the best first."""
        found = [held for word in dict.fromkeys(terms(text)) if (held := self._places.get(word)) is not None]
        found.sort(key=_commonness)
        scores = dict(zip(*found[0], strict=True)) if found else {}
        looked_at = len(scores)
        for numbers, worths in found[1:]:
            if looked_at + len(numbers) > MOST:
                break
            looked_at += len(numbers)
            for number, worth in zip(numbers, worths, strict=True):
                scores[number] = scores.get(number, 0.0) + worth
        best = nlargest(k, ((score, -number) for number, score in scores.items()))
        return [(-number, score) for score, number in best]


def _commonness(held: tuple[Sequence[int], Sequence[float]]) -> int:
    return len(held[0])
