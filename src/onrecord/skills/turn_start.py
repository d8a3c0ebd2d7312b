"""Where a turn begins: a start rule, the skill of the turn before, a scorer, a menu, a decider; in this order."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.models.model import Model
from onrecord.skills.cursor import Resolver
from onrecord.skills.hop import Hop
from onrecord.skills.matching import Witness
from onrecord.skills.routes import Start
from onrecord.skills.scorers import Candidate, Scorer, one_of, relevances
from onrecord.skills.skill_entries import ScoreRow, TurnRouted
from onrecord.turn.contained import ends_take
from onrecord.turn.turn import Turn

__all__ = ("RESERVED", "STAY", "Closeness", "TurnStart")

log = logging.getLogger("onrecord.skills")

SCORING_S = 30.0
"""How long a turn waits for a scorer that does not say so itself (``within_s``)."""

STAY = "stay"
NONE = "none"
RESERVED = frozenset({STAY, NONE})
"""What a decider may say besides the skills of a menu."""


class Closeness(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """When a scorer's best is good enough, and how many go on a menu otherwise.

    ``near_tie`` is the least lead over the second (``tanh`` of half the difference of scores, 0 to 1), ``menu`` the
    most skills that are offered (1 counts as two). ConfigurationError for numbers outside of that.
    """

    near_tie: float = 0.15
    menu: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.near_tie < 1 or type(self.menu) is not int or self.menu < 1:
            raise ConfigurationError(
                "Closeness takes near_tie from 0 to below 1, and a whole number from 1 on as menu",
                hint="Closeness(near_tie=0.15, menu=3)",
            )


class TurnStart(Struct, frozen=True, kw_only=True):
    """How turns begin where start rules alone do not say it.

    ``apart``: no cascade, the scorer alone chooses among all entries. Where it fails, or finds none that fits, they
    are a menu.
    """

    resolver: Resolver
    candidates: tuple[Candidate, ...]
    descriptions: Mapping[str, str]
    scorer: Scorer | None = None
    closeness: Closeness = Closeness()
    decider: Model | None = None
    rails: bool = False
    apart: bool = False

    async def route(
        self, turn: Turn, message: str, before: str, hidden: frozenset[str], *, dropped: str
    ) -> TurnRouted | None:
        """Where this turn begins; None leaves it to the start rules. ``before`` is the skill of the turn before."""
        if not self.apart:
            rule = self.resolver.entry(Hop(message=message, cursor=before), conditional=True)
            if rule is not None:
                return _by_rule(*rule, before, dropped)
        seen = [c for c in self.candidates if c.skill not in hidden]
        if self.scorer is None or not (seen or before):
            if before:
                return TurnRouted(by="continuity", source=before, to=before, dropped=dropped)
            return TurnRouted(by="none", dropped=dropped) if dropped else None
        base = TurnRouted(by="none", source=before, scorer=self.scorer.name, dropped=dropped)
        scores = await self._scores(turn, message, seen, before)
        if not isinstance(scores, str):
            routed = self._judged(base, scores, seen)
        elif self.apart and not scores:
            return None
        else:
            base = replace(base, failed=scores)
            routed = replace(base, by="continuity", to=before) if before else self._menu(base, [c.skill for c in seen])
        return await self._decided(turn, message, routed) if routed.by == "menu" else routed

    async def _scores(
        self, turn: Turn, message: str, seen: Sequence[Candidate], before: str
    ) -> Mapping[str, float] | str:
        """The scores of what may be seen, and of where it stands; what the scorer raised, or nothing to score."""
        known = [c.skill for c in seen]
        more = (
            [Candidate(skill=before, description=self.descriptions[before])] if before and before not in known else []
        )
        asked = [*seen, *more]
        if self.scorer is None or not message:
            return ""
        try:
            async with asyncio.timeout(getattr(self.scorer, "within_s", SCORING_S)):
                got = await self.scorer.score(turn, message, asked)
            return {c.skill: float(got[c.skill]) for c in asked if c.skill in got}
        except BaseException as error:
            if ends_take(error):
                raise
            log.warning("the scorer %r failed: %s", self.scorer.name, type(error).__name__)
            return type(error).__name__

    def _judged(self, base: TurnRouted, scores: Mapping[str, float], seen: Sequence[Candidate]) -> TurnRouted:
        floor, categorical = (self.scorer.floor, self.scorer.categorical) if self.scorer else (None, False)
        shares = relevances(scores, floor)
        rows = tuple(
            ScoreRow(skill=id, score=score, relevance=shares.get(id, 0.0))
            for id, score in sorted(scores.items(), key=lambda pair: -pair[1])
            if math.isfinite(score)
        )
        ranked = list(shares)
        gap = math.tanh((scores[ranked[0]] - scores[ranked[1]]) / 2) if len(ranked) > 1 else None
        decisive = bool(ranked) and (categorical or gap is None or gap >= self.closeness.near_tie)
        told = replace(base, scores=rows, gap=gap, decisive=decisive)
        before = base.source
        if self.apart and ranked:
            return replace(told, by="entry", to=ranked[0])
        if decisive:
            stays = ranked[0] == before
            return replace(told, by="continuity" if stays else "intent", to=ranked[0])
        if before and ranked:
            return replace(told, by="continuity", to=before)
        tied = self._tied(ranked, scores) if ranked else [c.skill for c in seen if c.skill != before]
        return self._menu(told, tied)

    def _tied(self, ranked: Sequence[str], scores: Mapping[str, float]) -> list[str]:
        top = scores[ranked[0]]
        near = [id for id in ranked if math.tanh((top - scores[id]) / 2) < self.closeness.near_tie]
        return near[: max(2, self.closeness.menu)]

    def _menu(self, told: TurnRouted, offered: Sequence[str]) -> TurnRouted:
        if self.rails or not offered:
            return replace(told, by="continuity", to=told.source) if told.source else replace(told, by="none")
        return replace(told, by="menu", offered=tuple(offered), stay_offered=bool(told.source))

    async def _decided(self, turn: Turn, message: str, routed: TurnRouted) -> TurnRouted:
        """What the decider makes of a menu; one that fails leaves it."""
        if self.decider is None:
            return routed
        options = {id: self.descriptions[id] for id in routed.offered}
        if routed.source:
            options[STAY] = f"go on with {routed.source}"
        options[NONE] = "none of these"
        routed = replace(routed, decider=self.decider.card.name)
        try:
            picked = await one_of(turn, "skills/decide", message, options, model=self.decider)
        except BaseException as error:
            if ends_take(error):
                raise
            log.warning("the decider failed: %s", type(error).__name__)
            return replace(routed, decider_failed=type(error).__name__)
        if not picked:
            return routed
        to = picked if picked in routed.offered else routed.source if picked == STAY else ""
        return replace(routed, by="decider", to=to, offered=(), stay_offered=False, picked=picked)


def _by_rule(start: Start, witness: Witness | None, before: str, dropped: str) -> TurnRouted:
    text, keyword = (witness.text, witness.keyword) if witness is not None else ("", "")
    return TurnRouted(by="entry", source=before, to=start.use, witness=text, keyword=keyword, dropped=dropped)
