"""The loop: moments, the director and its stage, speaking, tools, pausing, and the take that holds them.

Exported is what features and directors are written with, beside what `onrecord` itself exports. The names are loaded
on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.lazy_names import lazy_names

if TYPE_CHECKING:
    from onrecord.turn.agent_spec import AgentSpec as AgentSpec
    from onrecord.turn.director import Brief as Brief
    from onrecord.turn.director import Director as Director
    from onrecord.turn.director import Query as Query
    from onrecord.turn.director import Solo as Solo
    from onrecord.turn.director import Stage as Stage
    from onrecord.turn.instruction import OnActivation as OnActivation
    from onrecord.turn.instruction import OnReturn as OnReturn
    from onrecord.turn.moments import SLOTS as SLOTS
    from onrecord.turn.moments import Feature as Feature
    from onrecord.turn.moments import Hooks as Hooks
    from onrecord.turn.moments import Rank as Rank
    from onrecord.turn.plan import Bundle as Bundle

_HOMES: dict[str, str] = {
    "AgentSpec": "agent_spec",
    **dict.fromkeys(("Brief", "Director", "Query", "Solo", "Stage"), "director"),
    **dict.fromkeys(("OnActivation", "OnReturn"), "instruction"),
    **dict.fromkeys(("Feature", "Hooks", "Rank", "SLOTS"), "moments"),
    "Bundle": "plan",
}

__all__ = tuple(sorted(_HOMES))

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
