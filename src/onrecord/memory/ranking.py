"""Rankings: things by the words they share with a question, by how near they are to it, and by both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf, log

from onrecord.memory.optional_libraries import numpy_for_vectors

__all__ = ("DEPTH", "best_first", "both", "by_words", "cosines", "fused")

FUSED = 60
"""Reciprocal rank fusion's constant: how much the first places are ahead of those behind them."""

DEPTH = 50
"""How many places of each ranking are put together."""


def by_words(texts: Iterable[tuple[int, Counter[str]]], asked: Iterable[str]) -> dict[int, float]:
    """The numbers of texts that have one of these words, each with a score: rare words count more, long texts less.

    A text is given as its `terms`, counted.
    """
    held = list(texts)
    wanted = set(asked)
    rare = {word: log(1 + len(held) / (1 + sum(word in words for _, words in held))) for word in wanted}
    return {
        number: sum(rare[word] for word in shared) / (1 + log(1 + words.total()))
        for number, words in held
        if (shared := wanted & words.keys())
    }


def cosines(vector: bytes, others: Sequence[bytes]) -> list[float]:
    """How near vectors are to one, all of them float32 of length 1; less than any can be for one with
    another count of numbers.
    """
    if not others:
        return []
    numpy = numpy_for_vectors()
    size = len(vector)
    rows = numpy.frombuffer(b"".join(o if len(o) == size else bytes(size) for o in others), dtype="<f4")
    # Not ``@``: see `NumpyIndex`.
    found = numpy.einsum("ij,j->i", rows.reshape(len(others), -1), numpy.frombuffer(vector, dtype="<f4"))
    return [float(score) if len(o) == size else -inf for score, o in zip(found, others, strict=True)]


def both(words: Mapping[int, float], near: Mapping[int, float]) -> list[tuple[int, float]]:
    """Numbers by half of their share of the best score of words, and half of their cosine; the best first.

    Not by places, as `fused` does it: what counts down with age has to know how much better one is than another.
    """
    most = max(words.values(), default=0.0) or 1.0
    scored = {n: (words.get(n, 0.0) / most + max(near.get(n, 0.0), 0.0)) / 2 for n in (*words, *near)}
    return best_first(scored)


def best_first(scores: Mapping[int, float]) -> list[tuple[int, float]]:
    """Numbers with their scores, the best first; of equal ones the newest."""
    return sorted(scores.items(), key=lambda one: (-one[1], -one[0]))


def fused(rankings: Iterable[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """Numbers by their places in several rankings (reciprocal rank fusion), the best first."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, (number, _) in enumerate(ranking, start=1):
            scores[number] = scores.get(number, 0.0) + 1 / (FUSED + place)
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))
