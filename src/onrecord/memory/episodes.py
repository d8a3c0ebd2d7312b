"""Episodes: past exchanges, of which those are shown that have to do with what is asked now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, ModelError, UsageError, check_count
from onrecord.memory.embedding import embedded_soon
from onrecord.memory.optional_libraries import numpy_for_vectors
from onrecord.memory.ports import Embedder, Kept, Near, Shelf, Space, Vector, fingerprint
from onrecord.memory.strategies import NOTHING, Candidate, Heard, Learned, Recalling
from onrecord.memory.vector_index import matrix_of
from onrecord.record.kinds import Noted
from onrecord.turn.contained import failed_call
from onrecord.turn.turn import Turn

__all__ = ("Episodes",)

LOOKED_AT = 4
"""So many times as many as are shown are looked at, where age decides too."""


class _Top(Struct, frozen=True, metaclass=Declared):
    top: int = 3


class Episodes(_Top, frozen=True, kw_only=True):
    """Whole exchanges, a message and its answer; shown are the ``top`` that share most words with the message now.

    With an ``embedder`` also those that mean something like it, though they share no word; of these, ``threshold`` is
    the least cosine. It needs the extra ``retrieval`` (numpy). Exchanges that another embedder compared, or none, are
    found by their words; where it fails, so are all, and the record says so.

    With ``half_life`` an exchange of that age counts half as much as one of today, and with ``min_worth`` one whose age
    left less of it than that is not recalled at all: 0.1 is a little over three half lives. ConfigurationError for a
    ``top`` below 1, a half life that is no time, a least worth without one or that is not from 0 to 1, and a threshold
    without an embedder or that is no cosine.
    """

    half_life: timedelta | None = None
    min_worth: float = 0.0
    embedder: Embedder | None = None
    threshold: float | None = None

    name = "episodes"
    messages = False
    writes = False

    def __post_init__(self) -> None:
        check_count("Episodes", "top", self.top)
        if self.half_life is not None and self.half_life <= timedelta():
            raise ConfigurationError(
                "half_life of Episodes is longer than no time", hint="leave it out: age says nothing"
            )
        if self.min_worth and (self.half_life is None or not 0 <= self.min_worth <= 1):
            raise ConfigurationError(
                f"min_worth={self.min_worth!r} of Episodes is a part of what an exchange of today counts, from 0 to 1",
                hint="give half_life= too: Episodes(half_life=timedelta(days=30), min_worth=0.1)",
            )
        if self.threshold is not None and (self.embedder is None or not -1 <= self.threshold <= 1):
            raise ConfigurationError(
                f"threshold={self.threshold!r} of Episodes is a cosine, from -1 to 1, of vectors that embedder= makes"
            )
        if self.embedder is not None:
            numpy_for_vectors()

    async def recall(self, seen: Recalling, /) -> Sequence[Candidate]:
        if not seen.query:
            return ()
        limit = self.top if self.half_life is None else self.top * LOOKED_AT
        near, failed = None, ""
        if self.embedder is not None:
            vector, failed = await _vector(self.embedder, seen.query, of="query")
            near = None if vector is None else Near(vector, -1.0 if self.threshold is None else self.threshold)
        if failed:
            seen.missed.append(f"{self.name}: {failed}")
        found = await seen.shelf.search(
            seen.space, "episode", seen.query, limit=limit, apart=seen.apart, near=near
        )  # fmt: skip
        aged = [(one, self._worth(seen.turn, one.kept)) for one in found]
        candidates = [Candidate(one.kept, one.score * worth) for one, worth in aged if worth >= self.min_worth]
        return sorted(candidates, key=lambda one: -(one.score or 0.0))[: self.top]

    def _worth(self, turn: Turn, kept: Kept) -> float:
        if self.half_life is None:
            return 1.0
        return float(0.5 ** (max(turn.now - kept.at, timedelta()) / self.half_life))

    async def learn(self, turn: Turn, shelf: Shelf, space: Space, heard: Heard, /) -> Learned:
        if not heard.user:
            return NOTHING
        text = f"user: {heard.user}\nassistant: {heard.answer}" if heard.answer else f"user: {heard.user}"
        made = Kept(
            key=f"episode-{heard.turn}", kind="episode", text=text, at=turn.now, sessions=(heard.session,),
            people=heard.people, turn=heard.turn,
        )  # fmt: skip
        if self.embedder is None:
            return Learned(kept=(made,))
        vector, failed = await _vector(self.embedder, text, of="passage")
        if vector is None:
            turn.note(Noted(by=self.name, text=f"kept to be found by its words alone: {failed}"))
            return Learned(kept=(made,))
        return Learned(kept=(made,), vectors={made.key: vector})


async def _vector(embedder: Embedder, text: str, *, of: Literal["query", "passage"]) -> tuple[Vector | None, str]:
    """The vector of a text; or None and a code, where the embedder failed or gave something else."""
    try:
        matrix = matrix_of(await embedded_soon(embedder, [text], of=of))
    except ModelError as error:
        return None, failed_call(error)
    except UsageError:
        return None, "embedder-invalid"
    if len(matrix) != 1:
        return None, "embedder-invalid"
    return Vector(fingerprint(embedder.name, int(matrix.shape[1])), matrix.astype("<f4").tobytes()), ""
