"""Asking models to think before they speak, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, UnsupportedThinkingError
from onrecord.jsonio import Json
from onrecord.models.model import ModelCard
from onrecord.models.refusing import THINKING_HINT
from onrecord.models.request import Request
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("Thinking",)

_HINT = f"{THINKING_HINT}; of models that stand in for each other, all have to think so"


class _Budget(Struct, frozen=True, metaclass=Declared):
    budget: float | None = None


class Thinking(_Budget, frozen=True, kw_only=True):
    """Asks the model to think with every request, and decides what is kept of its reasoning.

    ``budget`` is in tokens, a positive number; None does not ask. Models with budgets are sent it as a target; models
    that decide for themselves how much to think are only asked to. A request whose settings say ``thinking`` already
    keeps its own.

    ``handler`` is given each stretch of reasoning in words before anybody sees it and before it is filed, and returns
    what is kept of it (an empty text: nothing); reasoning then streams a stretch at a time. One that raises is noted,
    and that stretch is dropped. None keeps no reasoning at all; without ``handler`` it is kept as it came. What a
    vendor wants back of its own reply (`Round.continuation`) is no business of the handler and stays as it is.

    Raises ConfigurationError for a budget that is no positive, finite number, or where nothing is asked;
    UnsupportedThinkingError for a model that does not think, and on models with budgets for one that is not whole, or
    below the least that its card says; while building where the model is known by then, else before the request is
    sent. So does a setting beside it that a thinking model does not take, such as a temperature.
    """

    handler: Callable[[str], str] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        budget: object = self.budget
        if budget is None:
            if self.handler is UNSET:
                raise ConfigurationError("Thinking() asks for nothing", hint="give a budget, a handler, or both")
        elif isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < math.inf:
            raise ConfigurationError(
                f"the budget of Thinking is a positive number of tokens, not {budget!r}", hint="Thinking(4096)"
            )
        handler: object = self.handler
        if handler is not None and handler is not UNSET and not callable(handler):
            raise ConfigurationError(
                f"the handler of Thinking is a function of a text, not a {type(handler).__name__}",
                hint="it returns what is kept of the reasoning; handler=None keeps nothing",
            )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "thinking"

    def hooks(self, spec: AgentSpec) -> Hooks:
        if spec.card is not None and (problem := self._unfit(spec.card)):
            raise UnsupportedThinkingError(problem, provider=spec.card.provider, hint=_HINT)
        about: dict[str, Json] = {} if self.budget is None else {"budget": self.budget}
        if self.handler is not UNSET:
            about["handler"] = "none" if self.handler is None else "own"
        keeps = None if self.handler is UNSET else self.handler or _nothing
        return Hooks(
            on_request=None if self.budget is None else self._ask, on_thinking=keeps, alone=True,
            order={"request": SLOTS["request"]["RULES"]}, purposes=frozenset({"speak", "wrap_up", "judge"}),
            manifest={"thinking": about},
        )  # fmt: skip

    async def _ask(self, turn: Turn, request: Request) -> Request:
        if request.settings.thinking is not None or self.budget is None:
            return request
        if problem := self._unfit(request.model.card):
            raise UnsupportedThinkingError(problem, provider=request.model.card.provider, hint=_HINT)
        return replace(request, settings=replace(request.settings, thinking=math.ceil(self.budget)))

    def _unfit(self, card: ModelCard) -> str:
        """Why this model cannot be asked so; empty when it can."""
        if self.budget is None:
            return ""
        if card.thinking == "none":
            return f"model {card.name!r} does not think before it speaks"
        least = card.least_thinking
        if card.thinking == "budget" and (self.budget < least or self.budget != math.floor(self.budget)):
            return f"model {card.name!r} takes a whole budget from {least} tokens on, not {self.budget:g}"
        return ""


def _nothing(_words: str) -> str:
    return ""
