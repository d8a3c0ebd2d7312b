"""A graph as it is mounted: declared once, asked before every request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import check_count
from onrecord.models.model import Model
from onrecord.skills.cursor import Move
from onrecord.skills.engagement import Engagement
from onrecord.skills.hop import Hop
from onrecord.skills.routes import Decide, Route, Start
from onrecord.skills.skill import Skill
from onrecord.skills.turn_start import TurnStart

__all__ = ("Continuity", "Escalation", "Explains", "GraphPlan", "Strictness")

Strictness = Literal["assist", "guard", "rails"]
Continuity = Literal["turn", "conversation"]


class _EscalationHead(Struct, frozen=True, metaclass=Declared):
    model: str | Model


class Escalation(_EscalationHead, frozen=True, kw_only=True):
    """After so many refused picks in one turn, another model answers the rest of it. ConfigurationError
    for a number below 1.
    """

    after_refusals: int = 1

    def __post_init__(self) -> None:
        check_count("Escalation", "after_refusals", self.after_refusals)


class Explains(Protocol):
    """Says where the cursor goes."""

    def explain(self, hop: Hop, /) -> Move: ...


class GraphPlan(Struct, frozen=True, kw_only=True):
    """What the hooks need of a graph.

    ``nodes`` are the skills that it wires, ``loose`` those beside it that the model may take up anywhere. ``entries``
    are where a turn may begin, ``always`` the default among them: its text stays. ``model_reads``: the model chooses
    among the entries. ``reaches`` is how a graph by shape says what can be reached.
    """

    nodes: Mapping[str, Skill]
    loose: Mapping[str, Skill]
    starts: tuple[Start, ...]
    routes: tuple[Route, ...]
    tree: Decide | None
    entries: tuple[str, ...]
    always: tuple[str, ...]
    successors: Mapping[str, tuple[str, ...]]
    resolver: Explains
    model_reads: bool = False
    strictness: Strictness = "assist"
    continuity: Continuity = "turn"
    begins: TurnStart | None = None
    escalation: tuple[Model, int] | None = None
    engagement: Engagement | None = None
    reaches: Callable[[str], Iterable[str]] | None = None

    def reachable(self, cursor: str) -> tuple[str, ...]:
        """The skills that the model may go to from here: those behind it, and the entries. None in a tree."""
        if self.tree is not None:
            return ()
        if self.reaches is not None:
            return tuple(dict.fromkeys(id for id in self.reaches(cursor) if id != cursor and id in self.nodes))
        ways: Sequence[str] = (*self.successors.get(cursor, ()), *self.entries) if cursor else self.entries
        return tuple(dict.fromkeys(id for id in ways if id != cursor))
