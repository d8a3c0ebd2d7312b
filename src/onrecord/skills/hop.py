"""Hop: what is known when a graph's cursor may move."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from onrecord.skills.guards import ToolOutcome

__all__ = ("Hop", "MoveCause")

MoveCause = Literal[
    "entry", "intent", "continuity", "decider", "route", "tool-proposal", "model-pick", "stay", "none", "unexplained"
]
"""By what a cursor moves, or stays."""


class Hop(Struct, frozen=True, kw_only=True):
    """What is known when a request is made.

    ``round`` counts the turn's requests from 1; ``message`` is what the person said; ``results`` are the calls of the
    last round, in call order. ``cursor`` is where the graph stands, ``pick`` the skill that the model chose in the
    last round and was allowed, ``proposal`` what a tool proposed. ``routed`` says that the turn's beginning was
    decided apart, ``to`` where that leads (``by`` what). ``active`` are skills in use beside the cursor.
    """

    round: int = 1
    message: str = ""
    results: tuple[ToolOutcome, ...] = ()
    cursor: str = ""
    pick: str = ""
    proposal: str = ""
    active: tuple[str, ...] = ()
    routed: bool = False
    to: str = ""
    by: MoveCause = "none"

    def known(self) -> dict[str, object]:
        """What a guard may ask of the hop itself."""
        return {"round": self.round, "user_message": self.message, "current_skill": self.cursor}
