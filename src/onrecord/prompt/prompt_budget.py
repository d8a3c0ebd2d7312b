"""PromptBudget: says when the instructions of an agent have grown too long. It cuts nothing."""

from __future__ import annotations

import logging

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import check_count
from onrecord.models.request import Request
from onrecord.prompt.window.evicted import Pressure
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("PromptBudget",)

log = logging.getLogger("onrecord.prompt")

LAST = SLOTS["request"]["CACHE"] - 1
"""Behind everybody who adds text."""


class _Chars(Struct, frozen=True, metaclass=Declared):
    system: int


class PromptBudget(_Chars, frozen=True):
    """Tells when the system text of a request is longer than ``system`` characters; what is sent stays whole.

    Each such request has a ``context.budget_pressure`` entry with ``plan_action`` ``none``, and the first of an agent a
    warning in the log ``onrecord.prompt``. ConfigurationError for a number below 1.
    """

    def __post_init__(self) -> None:
        check_count("PromptBudget", "system", self.system)

    @property
    def name(self) -> str:
        """The feature's name."""
        return "prompt-budget"

    def hooks(self, spec: AgentSpec) -> Hooks:
        cap, warned = self.system, list[bool]()

        async def tells(turn: Turn, request: Request) -> Request:
            texts = [piece.text for piece in request.pieces if piece.place == "system" and piece.text]
            size = len("\n\n".join(texts))
            if size > cap:
                turn.note(
                    Pressure(
                        slot="system-prompt", overflow_by=size - cap, plan_action="none", unit="chars", cap=cap,
                        projected=size,
                    ),
                    where=request.where,
                )  # fmt: skip
                if not warned:
                    warned.append(True)
                    log.warning("the system text of agent %r has %d characters, over %d", spec.name, size, cap)
            return request

        return Hooks(
            on_request=tells, order={"request": LAST}, bodies=(Pressure,), alone=True,
            manifest={"prompt-budget": {"system": cap}},
        )  # fmt: skip
