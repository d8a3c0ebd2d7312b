"""Vectors by number: all of them compared with numpy, or the nearest found through usearch's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from onrecord.errors import UsageError
from onrecord.memory.optional_libraries import needed, numpy_for_vectors
from onrecord.memory.ports import VectorIndex

__all__ = ("MakeIndex", "NumpyIndex", "UsearchIndex", "matrix_of")

MakeIndex: TypeAlias = Callable[[Any], VectorIndex]
"""Makes an index of a matrix of float32 whose rows have the length 1, or 0 where a text has no vector."""


def matrix_of(vectors: Sequence[Sequence[float]]) -> Any:
    """Vectors as rows of length 1. UsageError for vectors of several lengths, or with numbers that are none."""
    numpy = numpy_for_vectors()
    try:
        with numpy.errstate(over="ignore"):  # what is too large becomes infinite, and is told below
            matrix = numpy.asarray(vectors, dtype=numpy.float32)
    except (ValueError, TypeError):
        matrix = numpy.zeros(0, dtype=numpy.float32)
    if matrix.ndim != 2 or not matrix.shape[1] or not numpy.isfinite(matrix).all():
        raise UsageError("an embedder gives one vector a text, all of one length, of finite numbers")
    lengths = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / numpy.where(lengths > 0, lengths, 1)


class NumpyIndex:
    """Compares with every vector: exact, nothing to build, 20,000 of 384 numbers in a few milliseconds.

    It needs the extra ``retrieval`` (MissingDependency).
    """

    def __init__(self, matrix: Any) -> None:
        self._rows = numpy_for_vectors().ascontiguousarray(matrix)

    def nearest(self, vector: Sequence[float], k: int, /) -> list[tuple[int, float]]:
        numpy = numpy_for_vectors()
        # Not ``@``: that is a library's, whose threads cost more CPU than they save, and keep others waiting.
        scores = numpy.einsum("ij,j->i", self._rows, matrix_of([vector])[0])
        k = min(k, len(scores))
        if k < 1:
            return []
        best = numpy.argpartition(scores, len(scores) - k)[len(scores) - k :]
        ordered = best[numpy.lexsort((best, -scores[best]))]
        return [(int(number), float(scores[number])) for number in ordered]


class UsearchIndex:
    """Walks a graph of neighbours: for hundreds of thousands of vectors, nearly exact, minutes to build.

    It needs the extra ``usearch`` (MissingDependency).
    """

    def __init__(self, matrix: Any) -> None:
        numpy = needed("numpy", "usearch", "an index of neighbours")
        usearch = needed("usearch.index", "usearch", "an index of neighbours")
        self._index = usearch.Index(ndim=int(matrix.shape[1]), metric="cos", dtype="f32")
        self._index.add(numpy.arange(len(matrix)), matrix)

    def nearest(self, vector: Sequence[float], k: int, /) -> list[tuple[int, float]]:
        if k < 1 or not len(self._index):
            return []
        found = self._index.search(matrix_of([vector])[0], k)
        return [(int(n), 1.0 - float(far)) for n, far in zip(found.keys, found.distances, strict=True)]
