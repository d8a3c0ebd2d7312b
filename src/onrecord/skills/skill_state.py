"""What a turn knows of its skills: a fold over what they file, and over requests and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ModelRequested, ToolReturned
from onrecord.skills.cursor import LEFT
from onrecord.skills.engagement import Renewal, Standing, idle_after, strength_of
from onrecord.skills.skill_entries import (
    EffectJudged,
    MapEngaged,
    MapParked,
    SkillActivated,
    SkillEscalated,
    SkillMoved,
    SkillProposed,
    SkillRejected,
    StepAdvanced,
    StepSkipped,
    StepsUnfinished,
    TurnRouted,
)

__all__ = ("CursorFold", "Place", "SkillFold", "SkillState")


class SkillState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Skills in one turn.

    ``rounds`` counts its requests, ``last`` names the last one's round. ``active`` are the skills that the model took
    up, the latest last; those taken up since the last request stand in ``picked`` and count from the next one on.
    ``cursor`` is where the graph stands, ``pick`` the way that the model chose since the last request, ``proposal``
    what a tool did, ``proposed`` what a running call proposes. ``tenure`` is the skill whose procedure runs, ``step``
    the one that is next. ``handed`` are the texts that ``read_skill`` handed out, with the round that has them.
    """

    rounds: int = 0
    last: str = ""
    active: tuple[str, ...] = ()
    picked: tuple[str, ...] = ()
    handed: tuple[tuple[str, str], ...] = ()
    cursor: str = ""
    pick: str = ""
    proposal: str = ""
    proposed: SkillProposed | None = None
    routed: TurnRouted | None = None
    tenure: str = ""
    step: int = 1
    nudged: bool = False
    refusals: int = 0
    escalated: bool = False
    standing: Standing | None = None
    since: Renewal = Renewal()

    @property
    def is_parked(self) -> bool:
        """Whether the graph takes no part in requests now."""
        return self.standing is not None and self.standing.status == "parked"


class SkillFold:
    """Makes a `SkillState`. ``graphed``: the cursor says whose procedure runs, else the skill taken up last."""

    name = "skills"
    version = 1
    state = SkillState
    scope: Literal["session", "turn"] = "turn"
    unfinished = False

    def __init__(self, *, graphed: bool, owned: frozenset[str] | None = None) -> None:
        self.graphed, self.owned = graphed, owned
        kinds = {
            "model.requested", "skill.activated", "skill.rejected", "skill.moved", "skill.turn_routed",
            "skill.step_advanced", "skill.step_skipped", "skill.steps_unfinished", "skill.escalated", "map.engaged",
            "map.parked", "skill.proposed", "tools.effect",
        }  # fmt: skip
        self.kinds = frozenset(kinds if owned is None else {*kinds, "tool.returned"})

    def start(self) -> SkillState:
        return SkillState()

    def apply(self, state: SkillState, entry: Entry, /) -> SkillState:
        body = entry.body
        if isinstance(body, ModelRequested):
            return self._requested(state, body) if body.purpose in {"speak", "wrap_up"} else state
        if isinstance(body, ToolReturned):
            if body.status in LEFT:
                return state
            owned = self.owned is not None and body.name in self.owned
            return replace(state, since=replace(state.since, called=True, owned=state.since.owned or owned))
        if isinstance(body, SkillActivated):
            return _activated(state, body)
        if isinstance(body, SkillMoved):
            strength = strength_of(body.by)
            since = state.since if strength is None else replace(state.since, moved=strength)
            return replace(state, cursor=body.to, since=since)
        return _procedure(state, body) or _routing(state, body)

    def served(self, state: SkillState) -> SkillState:
        """The state that the next request is made with: what was taken up since the last one counts now."""
        active = _latest(state.active, state.picked) if state.picked else state.active
        tenure = state.cursor if self.graphed else (active[-1] if active else "")
        if tenure == state.tenure:
            return state if active is state.active else replace(state, active=active, picked=())
        return replace(state, active=active, picked=(), tenure=tenure, step=1)

    def _requested(self, state: SkillState, body: ModelRequested) -> SkillState:
        standing = state.standing
        if standing is not None:
            idle = idle_after(standing, state.since)
            standing = replace(standing, idle=idle, served=standing.status == "engaged")
        return replace(
            self.served(state), rounds=state.rounds + 1, last=body.round, pick="", proposal="", standing=standing,
            since=Renewal(),
        )  # fmt: skip


def _activated(state: SkillState, body: SkillActivated) -> SkillState:
    if body.recalls:
        return replace(state, since=replace(state.since, asked=True))
    state = replace(state, handed=(*state.handed, (body.skill, state.last)))
    if body.restarts:
        state = replace(state, step=1)
    if body.hop:
        return replace(state, pick=body.skill, since=replace(state.since, asked=True))
    return replace(state, picked=_latest(state.picked, (body.skill,)))


def _latest(held: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    """Each once, by when it came last."""
    return tuple(dict.fromkeys(reversed((*held, *more))))[::-1]


def _procedure(state: SkillState, body: Body) -> SkillState | None:
    if isinstance(body, StepAdvanced):
        return replace(state, step=body.step + 1)
    if isinstance(body, StepSkipped):
        return replace(state, step=body.step + 1 if body.policy == "advance" else body.step)
    if isinstance(body, StepsUnfinished):
        return replace(state, nudged=state.nudged or body.action == "nudged")
    return None


def _routing(state: SkillState, body: Body) -> SkillState:
    if isinstance(body, SkillRejected):
        return replace(state, refusals=state.refusals + 1)
    if isinstance(body, TurnRouted):
        tenure = body.stands if body.step > 1 else state.tenure  # a procedure goes on where the turn before left it
        return replace(state, routed=body, cursor=state.cursor or body.source, tenure=tenure, step=body.step)
    if isinstance(body, SkillEscalated):
        return replace(state, escalated=True)
    if isinstance(body, SkillProposed):
        return replace(state, proposed=body)
    if isinstance(body, EffectJudged):
        return replace(
            state, proposed=None, proposal=body.target if body.outcome == "accepted" else state.proposal
        )  # fmt: skip
    if isinstance(body, MapEngaged):
        founded = body.founded_by or body.by
        return replace(
            state, standing=Standing(status="engaged", by=body.by, founded_by=founded, at=body.at, witness=body.witness)
        )  # fmt: skip
    if isinstance(body, MapParked) and state.standing is not None:
        return replace(state, standing=replace(state.standing, status="parked", idle=body.idle))
    return state


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a graph stands between turns: its skill, and the step that is next where that has a procedure."""

    skill: str = ""
    step: int = 1


class CursorFold:
    """Where a graph stands from turn to turn, for ``continuity="conversation"``."""

    name = "skill-cursor"
    version = 2
    state = Place
    scope: Literal["session", "turn"] = "session"
    unfinished = False
    kinds = frozenset(
        {"skill.moved", "skill.turn_routed", "skill.activated", "skill.step_advanced", "skill.step_skipped"}
    )

    def start(self) -> Place:
        return Place()

    def apply(self, state: Place, entry: Entry, /) -> Place:
        body = entry.body
        if isinstance(body, SkillMoved):
            return state if body.to == state.skill else Place(skill=body.to)
        if isinstance(body, TurnRouted) and body.to == state.skill:
            return replace(state, step=body.step)
        if isinstance(body, SkillActivated) and body.restarts:
            return replace(state, step=1)
        if isinstance(body, StepAdvanced) or (isinstance(body, StepSkipped) and body.policy == "advance"):
            return replace(state, step=body.step + 1)
        return state


CURSOR = CursorFold()
