"""Who answers a turn, and under which instructions, where the agent leaves that to functions of the turn."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, OnrecordError
from onrecord.models.model import Model
from onrecord.models.names import as_model
from onrecord.record.kinds import Noted
from onrecord.turn.contained import fail

if TYPE_CHECKING:
    from onrecord.turn.turn import Turn

__all__ = ("PerTurn", "configure")


class _Default(Struct, frozen=True, metaclass=Declared):
    default: Any
    choose: Callable[[Turn, Any], Any]


class PerTurn(_Default, frozen=True):
    """A default for ``model=`` or ``instructions=``, and a function that may choose something else for a turn.

    ``choose(turn, default)``, sync or async, is told the default and gives None to keep it::

        Agent(model=PerTurn("openai:gpt-5-mini", lambda turn, small: "openai:gpt-5" if is_hard(turn) else None))

    A function of the turn without a default needs no `PerTurn`.
    """

    async def __call__(self, turn: Turn, /) -> Any:
        """What holds in this turn."""
        said = self.choose(turn, self.default)
        given: object = await said if isawaitable(said) else said
        return self.default if given is None else given


class Configured(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was chosen when the turn began: a pause keeps it. ``named``: the model was given by its name."""

    model: str = ""
    named: bool = False
    instructions: str | None = None


async def configure(turn: Turn) -> None:
    """Reads ``model=`` and ``instructions=`` that are functions of the turn, once, and files what they chose.

    A turn that goes on after a pause keeps its choice. Only a model that was no name has to be asked for again: an
    object does not outlive its process.
    """
    plan = turn.plan
    turn.instructions = cast(str, plan.instructions)
    if not callable(plan.model) and not callable(plan.instructions):
        return
    kept = f"{turn.id}//configured"
    held = turn.done.get(kept)
    before = held if isinstance(held, Configured) else msgspec.json.decode(held, type=Configured) if held else None
    chosen, about = Configured(), dict[str, str]()
    if callable(plan.model):
        given = before.model if before is not None and before.named else await _called(turn, "model", plan.model)
        if not isinstance(given, str) and not hasattr(given, "card"):
            raise ConfigurationError(f"model= returned {type(given).__name__}, neither a name nor a model")
        turn.model = as_model(cast("str | Model", given))
        about["model"] = turn.model.card.name
        name = given if isinstance(given, str) else turn.model.card.name
        chosen = Configured(model=name, named=isinstance(given, str))
    if callable(plan.instructions):
        said = None if before is None else before.instructions
        turn.instructions = await _called(turn, "instructions", plan.instructions) if said is None else said
        if not isinstance(turn.instructions, str):
            raise ConfigurationError(f"instructions= returned {type(turn.instructions).__name__}, not a text")
        about["instructions"] = f"{len(turn.instructions)} characters"
        chosen = msgspec.structs.replace(chosen, instructions=turn.instructions)
    turn.note(Noted(by="configure", text="chosen for this turn", about=about))
    turn.done[kept] = chosen


async def _called(turn: Turn, what: str, function: Callable[[Turn], Any]) -> Any:
    """What a function of the turn gives; what it raises is the agent's failure, and the take is kept."""
    try:
        given = function(turn)
        return await given if isawaitable(given) else given
    except OnrecordError:
        raise
    except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
        fail(turn.spec.name, what, error)
