"""HashingEmbedder: vectors without a model, for tests and for machines without one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal
from zlib import crc32

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.memory.terms import terms

__all__ = ("HashingEmbedder",)

_GRAM = 4


class _Dims(Struct, frozen=True, metaclass=Declared):
    dims: int = 256


class HashingEmbedder(_Dims, frozen=True):
    """An `Embedder` of words and pieces of words, hashed into ``dims`` numbers: the same everywhere, for ever.

    It compares how texts are written, not what they mean: it knows forms of a word and misspellings, and no synonym.
    So it is for tests, for working offline, and beside keyword search; not for the place of a trained model.
    ConfigurationError for ``dims`` that are no whole number from 8 to 65,536.
    """

    about = "compares spelling, not meaning: for tests and for use offline"

    def __post_init__(self) -> None:
        if type(self.dims) is not int or not 8 <= self.dims <= 65_536:
            raise ConfigurationError(
                f"dims={self.dims!r} of HashingEmbedder is no whole number from 8 to 65536", hint="HashingEmbedder(256)"
            )

    @property
    def name(self) -> str:
        """``hashing-`` and the number of dimensions."""
        return f"hashing-{self.dims}"

    async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dims
        for feature, times in Counter(_features(text)).items():
            hashed = crc32(feature.encode())
            vector[hashed % self.dims] += (1 if hashed & 0x8000_0000 else -1) * (1 + math.log(times)) * _worth(feature)
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector] if length else vector


def _features(text: str) -> Iterator[str]:
    """Words, and every four letters in a row of each with its edges."""
    for word in terms(text):
        yield word
        edged = f"<{word}>"
        for start in range(max(len(edged) - _GRAM + 1, 0)):
            yield f"~{edged[start : start + _GRAM]}"


def _worth(feature: str) -> float:
    return 0.5 if feature[0] == "~" else 1.0
