"""What looking something up costs: in 20,000 passages, by words, by vectors of 384 numbers, and by both.

    python -m benchmarks.retrieval

The vectors are random: comparing costs the same whatever they mean. An embedder's own time is not in it.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal

from benchmarks.in_process import Row, rows_of, table
from benchmarks.measure import Work, by_turns, yardstick
from onrecord.memory import Corpus, Document
from onrecord.memory.corpus import Mode
from onrecord.memory.splitters import Spans

__all__ = ("BUDGETS", "PASSAGES", "measured", "table")

PASSAGES, DIMS, WORDS, SEARCHES = 20_000, 384, 32, 10

BUDGETS: dict[str, tuple[str, float]] = {
    "20,000 passages by words": ("ms", 3),
    "20,000 passages by vectors": ("ms", 5),
    "20,000 passages by both": ("ms", 10),
}
"""Unit and budget of each row."""

MODES: dict[str, Mode] = dict(zip(BUDGETS, ("keyword", "vector", "hybrid"), strict=True))


class RandomVectors:
    """An embedder that costs nothing."""

    name = "random"

    def __init__(self) -> None:
        import numpy as np

        self._chance = np.random.default_rng(7)

    async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
        made = self._chance.standard_normal((len(texts), DIMS), dtype="f4")
        return made if of == "passage" else made.tolist()  # what is asked for comes as lists, from a service


def words_of(seed: int) -> tuple[list[str], random.Random, list[float]]:
    """Made-up words, and how common each is, together with those before it: as words of a language are."""
    chance = random.Random(seed)  # noqa: S311 - made-up text
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    known = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(20_000)]
    return known, chance, list(accumulate(1 / (rank + 2) for rank in range(len(known))))


async def corpus() -> tuple[Corpus, list[str]]:
    """The corpus, and questions of twelve words."""
    known, chance, common = words_of(7)
    size = PASSAGES // 100
    documents = [
        Document(f"d{i}", "\n\n".join(" ".join(chance.choices(known, cum_weights=common, k=WORDS)) for _ in range(100)))
        for i in range(size)
    ]
    made = await Corpus.of(documents, splitter=_paragraphs, embedder=RandomVectors())
    return made, [" ".join(chance.choices(known, cum_weights=common, k=12)) for _ in range(SEARCHES)]


def _paragraphs(document: Document) -> Spans:
    """Each line of words as a passage."""
    return [(found.start(), found.end()) for found in re.finditer(r"[^\n]+", document.text)]


def _searching(held: Corpus, questions: Sequence[str], mode: Mode) -> Work:
    async def block() -> int:
        for question in questions:
            if not await held.search(question, mode=mode):
                raise ValueError(question)
        return len(questions)

    return block


async def measured(blocks: int = 12) -> list[Row]:
    """Every row with a budget."""
    held, questions = await corpus()
    if len(held) != PASSAGES:
        raise ValueError(len(held))
    works: dict[str, Work] = {"yardstick": yardstick}
    works |= {name: _searching(held, questions, mode) for name, mode in MODES.items()}
    return rows_of(await by_turns(works, blocks), BUDGETS)


if __name__ == "__main__":
    print(table(asyncio.run(measured())))
