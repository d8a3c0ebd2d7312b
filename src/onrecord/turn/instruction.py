"""Instruction: a piece of prompt text declared ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from onrecord.models.request import Piece
from onrecord.turn.moments import Hooks, Rank

if TYPE_CHECKING:
    from onrecord.turn.agent_spec import AgentSpec
    from onrecord.turn.turn import Turn

__all__ = ("Instruction",)


class _Worded(Struct, frozen=True):
    text: str


class Instruction(_Worded, frozen=True, kw_only=True):
    """Text the model is told with every request.

    ``when`` is text for the model (``When <when>: <text>``); ``only_if`` is code, asked once per request. ``rank``
    orders it among the system pieces. ``cache`` advises vendors' prompt caches (None: ``always``, or ``while_active``
    with ``only_if``). As a feature: ``features=[Instruction("Be brief.")]``.
    """

    rank: int = Rank.INSTRUCTION
    when: str = ""
    only_if: Callable[[Turn], bool] | None = None
    name: str = "instruction"
    cache: Literal["always", "never", "while_active"] | None = None

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(instructions=(self,))

    def piece(self) -> Piece:
        """How it stands in a request."""
        text = f"When {self.when}: {self.text}" if self.when else self.text
        cache = self.cache or ("always" if self.only_if is None else "while_active")
        return Piece(source=self.name, text=text, rank=self.rank, cache=cache)
