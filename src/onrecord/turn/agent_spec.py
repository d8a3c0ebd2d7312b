"""AgentSpec: an agent's declaration as features and directors may read it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from onrecord.jsonio import Json
from onrecord.models.model import ModelCard
from onrecord.tools.tool import Tool
from onrecord.turn.director import Brief

__all__ = ("AgentSpec",)


class AgentSpec(Struct, frozen=True, kw_only=True):
    """Names and values only, no handlers of features.

    ``tools`` are the registered ones in order, ``rounds`` the cap on rounds with tools, ``brief`` what the plain
    speaker is told; ``manifest`` is what a record says of the agent, ``digest`` its fingerprint. ``card`` says what the
    model can do; None where a function of the turn chooses it.
    """

    name: str
    tools: tuple[Tool, ...]
    output: type
    rounds: int
    brief: Brief
    manifest: Mapping[str, Json]
    digest: str
    card: ModelCard | None = None
