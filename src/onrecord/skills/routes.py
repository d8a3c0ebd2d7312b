"""What a graph is declared with: starts, routes, decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from onrecord.conditions import check_condition
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.skills.guards import STATUSES, Guard, ToolOutcome, check_guard
from onrecord.skills.hop import Hop
from onrecord.skills.matching import Match

__all__ = ("Decide", "Route", "Start")


class _StartHead(Struct, frozen=True, metaclass=Declared):
    use: str


class Start(_StartHead, frozen=True, kw_only=True):
    """Where a turn may begin: the skill ``use``, for a message that matches, or when ``only_if(hop)`` holds.

    With neither it is the default, and whatever stands behind it is never reached. ``examples`` are messages that
    must begin here; they are checked when the graph is made. ``label`` is for drawings.
    ConfigurationError for both conditions at once.
    """

    match: Match | None = None
    only_if: Callable[[Hop], bool] | None = None
    examples: Sequence[str] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if self.match is not None and self.only_if is not None:
            raise ConfigurationError(
                f"the start at {self.use!r} has both match= and only_if=", hint="give it one, or make two starts"
            )
        check_condition(self.only_if, f"only_if of the start at {self.use!r}")


class _RouteHead(Struct, frozen=True, metaclass=Declared):
    source: str
    to: str


class Route(_RouteHead, frozen=True, kw_only=True):
    """A way from the skill ``source`` to the skill ``to``, taken after a round whose results say so.

    One of: ``only_if(outcome)``, code over a `ToolOutcome`; ``on_tool``, the id of a tool that returned (not one that
    failed or was denied); ``on_status``, one status or several, alone or together with ``on_tool``; ``guard``,
    conditions as data. With none of them only the model takes it, by ``read_skill``. ``label`` is for drawings.
    ConfigurationError for more than one of them, a status that no call ends with, and a guard that says nothing.
    """

    only_if: Callable[[ToolOutcome], bool] | None = None
    on_tool: str = ""
    on_status: str | Sequence[str] | None = None
    guard: Guard | None = None
    label: str = ""

    def __post_init__(self) -> None:
        where = f"the route from {self.source!r} to {self.to!r}"
        if isinstance(self.on_status, str):
            structs.force_setattr(self, "on_status", (self.on_status,))
        if self.on_status is not None and not self.on_status:
            raise ConfigurationError(f"{where} has an empty on_status: it could never be taken")
        for status in self.on_status or ():
            if status not in STATUSES:
                raise ConfigurationError(
                    f"{where} waits for the status {status!r}, which no call ends with",
                    hint=f"they are {', '.join(sorted(STATUSES))}",
                )
        data = bool(self.on_tool) or self.on_status is not None
        if sum((self.only_if is not None, data, self.guard is not None)) > 1:
            raise ConfigurationError(
                f"{where} says twice when it is taken",
                hint="one of only_if, guard, and on_tool with or without on_status",
            )
        if self.guard is not None:
            check_guard(self.guard, where)
        check_condition(self.only_if, f"only_if of {where}")

    @property
    def kind(self) -> str:
        """``predicate``, ``on-tool-return``, ``on-tool-status``, ``guard`` or ``model``."""
        if self.only_if is not None:
            return "predicate"
        if self.guard is not None:
            return "guard"
        if self.on_status is not None:
            return "on-tool-status"
        return "on-tool-return" if self.on_tool else "model"


class Decide(Struct, frozen=True, metaclass=Declared):
    """A decision of a tree: ``yes`` when ``only_if(hop)`` holds, else ``no``. Either is a decision or a skill's id.

    ``label`` is for drawings. ConfigurationError for an async condition.
    """

    only_if: Callable[[Hop], bool]
    yes: Decide | str
    no: Decide | str
    label: str = ""

    def __post_init__(self) -> None:
        check_condition(self.only_if, f"only_if of the decision {self.label!r}")
