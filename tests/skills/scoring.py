"""A graph that scorers choose in, and what a turn says of how it began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onrecord.errors import ModelError
from onrecord.skills import Candidate, Intent, Keywords, Route, SkillGraph, Start
from onrecord.skills.skill_entries import SkillMoved, TurnRouted
from tests.skills.knowing import skill
from tests.turn.acting import Result, bodies

__all__ = ("INTENTS", "A", "B", "C", "Down", "Scores", "cursor", "graph", "routed")

A, B, C = (skill(id) for id in "abc")


class Scores:
    """A scorer that gives what it is told to, and keeps what it was asked."""

    name = "scores"

    def __init__(self, *, floor: float | None = None, categorical: bool = False, **scores: float) -> None:
        self.floor, self.categorical, self.scores = floor, categorical, scores
        self.asked: list[tuple[str, list[str]]] = []

    async def score(self, turn: Any, message: str, candidates: Sequence[Candidate], /) -> dict[str, float]:
        self.asked.append((message, [c.skill for c in candidates]))
        return self.scores


class Down(Scores):
    """A scorer that fails."""

    async def score(self, turn: Any, message: str, candidates: Sequence[Candidate], /) -> dict[str, float]:
        raise ModelError("down", kind="overload", provider="p")


INTENTS = [Start(id, match=Intent(f"wants {id}", [f"give me {id}"])) for id in "ab"]


def graph(scorer: Any = None, *routes: Route, start: Any = None, **more: Any) -> SkillGraph:
    """Two intents, and a skill behind a keyword."""
    rules = [*INTENTS, Start("c", match=Keywords(["third"]))] if start is None else start
    return SkillGraph([A, B, C], start=rules, routes=routes, classify=scorer, check="off", **more)


def routed(result: Result) -> TurnRouted:
    """How the turn began."""
    (body,) = bodies(result, TurnRouted)
    return body


def cursor(result: Result) -> str:
    """Where it stood at the end."""
    moved = bodies(result, SkillMoved)
    return moved[-1].to if moved else ""
