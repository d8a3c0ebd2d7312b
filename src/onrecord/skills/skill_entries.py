"""What skills, graphs and engagement write into a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from onrecord.conversation.usage import Usage
from onrecord.record.entry import Body
from onrecord.skills.cursor import Lost
from onrecord.skills.guards import Evidence
from onrecord.skills.hop import MoveCause

__all__ = (
    "EffectJudged",
    "MapEngaged",
    "MapParked",
    "RerouteSuperseded",
    "RouteConflict",
    "ScoreRow",
    "SkillActivated",
    "SkillClassified",
    "SkillEscalated",
    "SkillMoved",
    "SkillProposed",
    "SkillRejected",
    "StepAdvanced",
    "StepSkipped",
    "StepsUnfinished",
    "Strength",
    "TurnRouted",
)

Strength = Literal["explicit", "structural", "semantic", "lexical", "assumed"]
"""How good the evidence is that a map is wanted, best first."""


class SkillActivated(Body, frozen=True, gc=False, kw_only=True, tag="skill.activated"):
    """The model took up a skill. ``hop``: it is one of a graph's, and the cursor is to go there.

    ``recalls``: it asked for a skill of a parked graph that cannot be reached from where that stands; the graph comes
    back, and its cursor stays. ``restarts``: it was in use, its procedure was done, and begins again.
    """

    skill: str
    hop: bool = False
    recalls: bool = False
    restarts: bool = False


class SkillRejected(Body, frozen=True, gc=False, kw_only=True, tag="skill.rejected"):
    """The model asked for a skill that it may not go to from here; ``allowed`` are those it may, and was told."""

    requested: str
    current: str = ""
    allowed: tuple[str, ...] = ()
    posture: str = ""


class SkillMoved(Body, frozen=True, gc=False, kw_only=True, tag="skill.moved"):
    """A graph's cursor went from a skill (empty: from none) to another, or a guard kept it where it is.

    ``witness`` are the words that matched and ``keyword`` what they were declared as; ``guard`` is the evidence of
    the guard that opened, ``guards_closed`` that of the ones that did not, by target.
    """

    source: str
    to: str
    by: MoveCause
    witness: str = ""
    keyword: str = ""
    guard: tuple[Evidence, ...] = ()
    guards_closed: tuple[tuple[str, tuple[Evidence, ...]], ...] = ()


class RouteConflict(Body, frozen=True, gc=False, kw_only=True, tag="skill.route_conflict"):
    """Results of one round led to different skills; the first in call order won."""

    source: str
    winner: Lost
    losers: tuple[Lost, ...]


class RerouteSuperseded(Body, frozen=True, gc=False, kw_only=True, tag="skill.reroute_superseded"):
    """What the model picked, or a tool proposed, lost against a route (``won``)."""

    volunteered: str
    won: str
    source: str
    by: Literal["model-pick", "tool-proposal"]


class ScoreRow(Struct, frozen=True, kw_only=True):
    """What a scorer gave one skill, and its share among all."""

    skill: str
    score: float
    relevance: float


class TurnRouted(Body, frozen=True, gc=False, kw_only=True, tag="skill.turn_routed"):
    """Where a turn begins, decided before its first request.

    ``by`` is a start rule (``entry``), a scorer (``intent``), the skill of the turn before (``continuity``), a
    ``decider``; ``menu`` leaves it to the model among ``offered``; ``none``. ``dropped`` is a skill of the turn before
    that the graph has no more. ``stay_offered``: the menu stands beside staying where it is. ``failed`` is what the
    scorer raised, by its class: then nothing was judged. A ``decider`` without ``picked`` chose nothing, or raised
    ``decider_failed``. ``step`` is the step of its procedure at which a skill goes on that was in use before.
    """

    by: Literal["entry", "intent", "continuity", "menu", "decider", "none"]
    source: str = ""
    to: str = ""
    scorer: str = ""
    scores: tuple[ScoreRow, ...] = ()
    gap: float | None = None
    decisive: bool | None = None
    witness: str = ""
    keyword: str = ""
    offered: tuple[str, ...] = ()
    stay_offered: bool = False
    dropped: str = ""
    decider: str = ""
    picked: str = ""
    failed: str = ""
    decider_failed: str = ""
    step: int = 1

    @property
    def stands(self) -> str:
        """Where the graph stands then: where the turn leads, else where it was."""
        return self.to or self.source


class SkillClassified(Body, frozen=True, gc=False, kw_only=True, tag="skill.classified"):
    """A classifier was asked where a turn begins: its own pick, what it cost, and how long it took (0: unknown)."""

    model: str
    choice: str = ""
    usage: Usage | None = None
    latency_ms: int = 0


class StepAdvanced(Body, frozen=True, gc=False, kw_only=True, tag="skill.step_advanced"):
    """A step of a procedure is done (``step`` of ``total``); ``completed``: it was the last."""

    skill: str
    step: int
    total: int
    tool: str
    note: str
    call: str = ""
    completed: bool = False


class StepSkipped(Body, frozen=True, gc=False, kw_only=True, tag="skill.step_skipped"):
    """The model skipped a step, for a reason; under ``hold`` the procedure stays at it."""

    skill: str
    step: int
    total: int
    tool: str
    note: str
    reason: str
    policy: Literal["advance", "hold"]


class StepsUnfinished(Body, frozen=True, gc=False, kw_only=True, tag="skill.steps_unfinished"):
    """An answer came before the steps were done: the model was ``nudged``, or it was ``accepted`` or ``cut-short``."""

    skill: str
    remaining: tuple[str, ...]
    total: int
    action: Literal["nudged", "accepted", "cut-short"]


class SkillEscalated(Body, frozen=True, gc=False, kw_only=True, tag="skill.escalated"):
    """After so many refusals the rest of the turn is answered by another model."""

    after_refusals: int
    refusals: int
    source: str
    to: str


class MapEngaged(Body, frozen=True, gc=False, kw_only=True, tag="map.engaged"):
    """A map takes part in requests: for the first time, again (``reengaged``), or for better reasons (``upgraded``)."""

    map: str
    by: Strength
    at: str = ""
    witness: str = ""
    reengaged: bool = False
    upgraded: bool = False
    tenant_changed: bool = False
    founded_by: Strength | None = None


class MapParked(Body, frozen=True, gc=False, kw_only=True, tag="map.parked"):
    """A map that nothing renewed takes no part in requests until something asks for it; its cursor stays."""

    map: str
    by: Strength
    idle: int
    at: str = ""
    witness: str = ""


class SkillProposed(Body, frozen=True, gc=False, kw_only=True, tag="skill.proposed"):
    """A tool proposes to go on with another skill: ``ToolResult(..., facts=(SkillProposed(skill="refunds"),))``."""

    skill: str
    reason: str = ""


class EffectJudged(Body, frozen=True, gc=False, kw_only=True, tag="tools.effect"):
    """What became of something a tool proposed; a refusal is told to the model too."""

    effect: Literal["propose-transition"]
    outcome: Literal["accepted", "refused", "superseded"]
    tool: str
    call: str = ""
    target: str = ""
    reason: str = ""
    refusal: str = ""
    about: Mapping[str, str] = {}


ALL_BODIES: tuple[type[Body], ...] = (
    SkillActivated, SkillRejected, SkillMoved, RouteConflict, RerouteSuperseded, TurnRouted, StepAdvanced, StepSkipped,
    StepsUnfinished, SkillEscalated, MapEngaged, MapParked, SkillProposed, EffectJudged, SkillClassified,
)  # fmt: skip
