"""Choosing a model for one request: inside a turn, between two rounds of one answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, FeatureFailed
from onrecord.models.model import Model
from onrecord.models.names import model_named
from onrecord.models.request import HeaderSource, Request, Settings
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("Choice", "Choose")


class _Chosen(Struct, frozen=True):
    model: str | Model | None = None


class Choice(_Chosen, frozen=True, kw_only=True):
    """What one request is sent with: a model or its name, settings, headers; None leaves what there is.

    ``headers`` are given per attempt and are never recorded. Settings win field by field over those of a `preset`.
    """

    settings: Settings | None = None
    headers: HeaderSource | None = None


Chosen: TypeAlias = str | Model | Choice | None


class _Function(Struct, frozen=True, metaclass=Declared):
    choose: Callable[[Turn, Request], Chosen | Awaitable[Chosen]]


class Choose(_Function, frozen=True):
    """Asks ``choose(turn, request)`` before every request which model it goes to: a name, a model, a `Choice`, or None.

    All rounds of a turn stay one answer, whichever models they came from. What was chosen for another model before,
    settings and headers, does not go along with a switch. A model that raises or is none fails the turn by name;
    which model was asked is in every ``model.requested`` entry. `Agent(model=…)` takes a function for a whole turn.
    ConfigurationError for what is no function.
    """

    def __post_init__(self) -> None:
        if not callable(self.choose):
            raise ConfigurationError(
                f"Choose takes a function of the turn and the request, not a {type(self.choose).__name__}",
                hint="def choose(turn, request): return a model's name",
            )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "choose"

    def hooks(self, spec: AgentSpec) -> Hooks:
        named: dict[str, Model] = {}  # a model that is made anew begins with nothing encoded

        async def chosen(turn: Turn, request: Request) -> Request:
            got = self.choose(turn, request)
            choice = await got if inspect.isawaitable(got) else got
            if choice is None:
                return request
            if not isinstance(choice, Choice):
                choice = Choice(choice)
            changes: dict[str, object] = {}
            model = choice.model
            if isinstance(model, str):
                if model not in named:
                    named[model] = _found(self.name, model)
                model = named[model]
            if model is not None:
                if not hasattr(model, "card"):
                    raise FeatureFailed(self.name, "request", f"it chose a {type(model).__name__}, which is no model")
                changes["model"] = model
            if choice.settings is not None:
                changes["settings"] = choice.settings
            if choice.headers is not None:
                changes["headers"] = choice.headers
            return replace(request, **changes)

        return Hooks(
            on_request=chosen, order={"request": SLOTS["request"]["CHOOSE"]},
            purposes=frozenset({"speak", "wrap_up", "judge"}),
        )  # fmt: skip


def _found(feature: str, name: str) -> Model:
    try:
        return model_named(name)
    except ConfigurationError as error:
        raise FeatureFailed(feature, "request", str(error), hint=error.hint) from error
