"""Engagement: whether a map takes part in requests at all. Where its cursor stands is the map's own business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import check_count
from onrecord.models.request import Piece
from onrecord.skills.cursor import Move
from onrecord.skills.hop import MoveCause
from onrecord.skills.skill_entries import MapEngaged, MapParked, Strength
from onrecord.turn.moments import Rank

__all__ = ("MAP", "Engagement", "Renewal", "Standing", "advanced", "idle_after", "park_card", "strength_of")

MAP = "skill-map"
"""The name of the one map there is: a graph of skills."""

ORDER: Mapping[Strength, int] = {"assumed": 0, "lexical": 1, "semantic": 2, "structural": 3, "explicit": 4}

OF_CAUSE: Mapping[MoveCause, Strength] = {
    "model-pick": "explicit", "route": "structural", "tool-proposal": "structural", "continuity": "structural",
    "intent": "semantic", "decider": "semantic", "entry": "lexical", "unexplained": "assumed", "stay": "assumed",
    "none": "assumed",
}  # fmt: skip


class _Grace(Struct, frozen=True, metaclass=Declared):
    grace: int = 3


class Engagement(_Grace, frozen=True, kw_only=True):
    """Parks a graph that a guess brought in and nothing renewed: ``SkillGraph(..., engagement=Engagement(grace=3))``.

    A turn that a keyword or a classifier sent to a skill counts as a guess. When the graph's tools are not called, no
    route is taken and the model asks for no skill of it for ``grace`` requests in a row, in which it calls other
    tools, the graph's text and tools leave the requests, and a line says how to get them back: ``read_skill``. The
    cursor stays. With ``never_parks`` it is only told how the graph stands. ConfigurationError
    for a ``grace`` below 1.
    """

    never_parks: bool = False

    def __post_init__(self) -> None:
        check_count("Engagement", "grace", self.grace)


class Standing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a map stands: in use or parked, since what evidence, and for how many requests nothing renewed it."""

    status: Literal["engaged", "parked"]
    by: Strength
    founded_by: Strength
    at: str = ""
    witness: str = ""
    idle: int = 0
    served: bool = False


class Renewal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened since the last request: any call, a call of the map's tools, a move, a skill asked for by name."""

    called: bool = False
    owned: bool = False
    asked: bool = False
    moved: Strength | None = None

    @property
    def best(self) -> Strength | None:
        """The strongest evidence among it."""
        found: list[Strength] = [] if self.moved is None else [self.moved]
        if self.owned:
            found.append("structural")
        if self.asked:
            found.append("explicit")
        return max(found, key=ORDER.__getitem__, default=None)


def strength_of(cause: MoveCause) -> Strength | None:
    """How strong the evidence of a move is; None for what is no move."""
    return None if cause in {"stay", "none"} else OF_CAUSE[cause]


def idle_after(standing: Standing, since: Renewal) -> int:
    """For how many requests nothing renewed it, once the next is made. A request without a call says nothing.

    One that is parked is not served, so it is idle no longer than it was: its card stays the same.
    """
    if standing.status == "parked":
        return standing.idle
    if since.best is not None:
        return 0
    return standing.idle + 1 if standing.served and since.called else standing.idle


def advanced(
    standing: Standing | None, since: Renewal, move: Move, options: Engagement
) -> MapEngaged | MapParked | None:  # fmt: skip
    """What changes about a map before a request, if anything does."""
    best = since.best
    if standing is None:
        return _engaged(move, best or "assumed", None) if best is not None or move.to else None
    if standing.status == "parked":
        return _engaged(move, best, standing, reengaged=True) if best in {"explicit", "structural"} else None
    if best is None:
        idle = idle_after(standing, since)
        tentative = standing.by in {"lexical", "semantic", "assumed"}
        if not tentative or options.never_parks or idle < options.grace:
            return None
        return MapParked(map=MAP, by=standing.by, idle=idle, at=move.to, witness=standing.witness)
    if move.is_move and move.source:
        return _engaged(move, best, standing, tenant_changed=True)
    return _engaged(move, best, standing, upgraded=True) if ORDER[best] > ORDER[standing.by] else None


def _engaged(
    move: Move, by: Strength, standing: Standing | None, *, reengaged: bool = False, upgraded: bool = False,
    tenant_changed: bool = False,
) -> MapEngaged:  # fmt: skip
    return MapEngaged(
        map=MAP, by=by, at=move.to, witness="" if move.witness is None else move.witness.text, reengaged=reengaged,
        upgraded=upgraded, tenant_changed=tenant_changed,
        founded_by=None if standing is None else standing.founded_by,
    )  # fmt: skip


def park_card(standing: Standing, cursor: str) -> Piece:
    """What stands in the place of a parked map."""
    place = f" It stands at {cursor!r}." if cursor else ""
    text = (
        f"The map {MAP!r} of skills is parked: it was taken up on a guess, and nothing in {standing.idle} requests "
        f"needed it, so its instructions and tools are left out.{place} To use it after all, call read_skill with any "
        "skill of it."
    )
    return Piece(source="map-status", text=text, rank=Rank.STEERING, cache="never")
