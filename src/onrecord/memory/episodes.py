"""Episodes: past exchanges, of which those are shown that have to do with what is asked now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from onrecord.errors import ConfigurationError
from onrecord.memory.ports import Kept, Shelf, Space
from onrecord.memory.strategies import NOTHING, Candidate, Heard, Learned, Recalling
from onrecord.turn.turn import Turn

__all__ = ("Episodes",)

LOOKED_AT = 4
"""So many times as many as are shown are looked at, where age decides too."""


class _Top(Struct, frozen=True):
    top: int = 3


class Episodes(_Top, frozen=True, kw_only=True):
    """Whole exchanges, a message and its answer; shown are the ``top`` that share most words with the message now.

    With ``half_life`` an exchange of that age counts half as much as one of today. ConfigurationError for a ``top``
    below 1 or a half life that is no time.
    """

    half_life: timedelta | None = None

    name = "episodes"
    messages = False
    writes = False

    def __post_init__(self) -> None:
        if type(self.top) is not int or self.top < 1:
            raise ConfigurationError(f"top of Episodes is a whole number from 1 on, not {self.top!r}")
        if self.half_life is not None and self.half_life <= timedelta():
            raise ConfigurationError(
                "half_life of Episodes is longer than no time", hint="leave it out: age says nothing"
            )

    async def recall(self, seen: Recalling, /) -> Sequence[Candidate]:
        if not seen.query:
            return ()
        limit = self.top if self.half_life is None else self.top * LOOKED_AT
        found = await seen.shelf.search(seen.space, "episode", seen.query, limit=limit, apart=seen.apart)
        candidates = [Candidate(one.kept, one.score * self._worth(seen.turn, one.kept)) for one in found]
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
            turn=heard.turn,
        )  # fmt: skip
        return Learned(kept=(made,))
