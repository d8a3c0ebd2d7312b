"""Trait: an open, typed declaration on a tool that some feature reads. No trait of any feature lives here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from onrecord.tools.tool import Tool

__all__ = ("Trait", "traits_of")

T = TypeVar("T")


class Trait(Protocol):
    """Carried by a tool in ``traits=``; ``arms`` names the feature that must be mounted to read it."""

    def check(self, tool: Tool, /) -> None:
        """Raises ToolInvalid when this trait cannot stand on that tool."""
        ...

    def arms(self) -> object | None:
        """The feature mounted when a registered tool carries this trait."""
        ...


def traits_of(tools: Iterable[Tool], kind: type[T]) -> Iterator[T]:
    """The traits of one kind that these tools carry, in order."""
    return (trait for tool in tools for trait in tool.traits if isinstance(trait, kind))
