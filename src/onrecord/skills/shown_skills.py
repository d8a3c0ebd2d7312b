"""What a request is served of skills: texts among the instructions, tools shown and hidden. Made once per situation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from onrecord.models.request import Offer, Piece
from onrecord.skills.procedure import At
from onrecord.skills.skill import Skill
from onrecord.skills.skill_tools import READ_SKILL, SKIP_STEP
from onrecord.turn.moments import Rank

__all__ = ("MOST_KEPT", "Serving", "Situation")

MOST_KEPT = 512
"""Situations whose tools are kept ready. A graph has about one per skill; beyond that they are made again."""


class Situation(Struct, frozen=True):
    """What decides about tools: skills in use, the step that is next, what ``read_skill`` says, whether parked."""

    used: tuple[str, ...]
    at: At | None
    described: str
    parked: bool


Given: TypeAlias = tuple[Offer, ...]


class Serving:
    """The tools and texts of skills in requests.

    ``scoped`` are the skills whose tools are offered only while they are in use, ``owned`` the tools that a parked
    graph takes away, ``kept`` the ids that the agent has by itself: no skill takes those away.
    """

    def __init__(
        self, skills: Mapping[str, Skill], *, scoped: frozenset[str], owned: frozenset[str], kept: frozenset[str]
    ) -> None:
        self.skills, self.scoped, self.owned, self.kept = skills, scoped, owned, kept
        self.tools_of = {id: frozenset(tool.id for tool in skill.tools) for id, skill in skills.items()}
        self.all_scoped = frozenset().union(*(self.tools_of[id] for id in scoped)) if scoped else frozenset()
        free = (self.tools_of[id] for id in skills if id not in scoped)
        self.free: frozenset[str] = frozenset().union(*free)
        self._pieces: dict[tuple[tuple[str, ...], frozenset[str]], tuple[Piece, ...]] = {}
        self._offers: dict[tuple[object, ...], tuple[Given, Given]] = {}

    def pieces(self, used: tuple[str, ...], untold: frozenset[str] = frozenset()) -> tuple[Piece, ...]:
        """The texts of the skills in use that stand among the instructions, those that no result has included."""
        held = self._pieces.get((used, untold))
        if held is None:
            if len(self._pieces) >= MOST_KEPT:
                self._pieces.clear()
            held = self._pieces[used, untold] = tuple(
                Piece(source=f"skill:{id}", text=skill.text, rank=Rank.SKILL, cache=skill.cache)
                for id in used
                if (skill := self.skills[id]).in_system or id in untold
            )
        return held

    def offers(self, given: Given, now: Situation) -> Given:
        """The tools of a request. The same tuple for the same situation, so that it is encoded once."""
        key = (id(given), now.used, now.described, now.parked, now.at and (now.at.skill.id, now.at.number))
        held = self._offers.get(key)
        if held is None or held[0] is not given:
            if len(self._offers) >= MOST_KEPT:
                self._offers.clear()
            hidden = self._hidden(now)
            made = tuple(self._shown(offer, now) for offer in given if offer.tool.id not in hidden)
            same = len(made) == len(given) and all(a is b for a, b in zip(made, given, strict=True))
            held = self._offers[key] = (given, given if same else made)
        return held[1]

    def _hidden(self, now: Situation) -> frozenset[str]:
        used = frozenset().union(*(self.tools_of[id] for id in now.used)) if now.used else frozenset()
        hidden: set[str] = set(self.all_scoped - used - self.free)
        if now.parked:
            hidden |= self.owned - used
        if now.at is None:
            hidden.add(SKIP_STEP)
        else:
            own = now.at.skill
            others = _tools(self.tools_of[id] for id in now.used if id != own.id)
            hidden |= {step.tool for step in own.steps or () if step.tool != now.at.step.tool} - others
        return frozenset(hidden - self.kept)

    def _shown(self, offer: Offer, now: Situation) -> Offer:
        name = offer.tool.id
        if name == READ_SKILL and now.described != offer.spec.description:
            told = now.described
        elif now.at is not None and name == now.at.step.tool:
            told = now.at.banner + offer.spec.description
        elif now.at is not None and name == SKIP_STEP:
            told = now.at.skipping
        else:
            return offer
        return replace(offer, spec=replace(offer.spec, description=told))


def _tools(many: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*many)
