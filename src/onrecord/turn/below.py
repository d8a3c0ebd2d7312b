"""Tools that are agents: what the turn that calls them has to know of what lies below."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.models.model import ModelCard
from onrecord.tools.tool import Tool

__all__ = ("Below", "Forget")

Forget = tuple[str, Callable[[Identity | SessionKey], Awaitable[None]]]
"""A feature's name, and how it lets go of a session or a person."""


class Below(Struct, frozen=True):
    """A trait of tools that are agents.

    ``forget``: what their features keep has to be forgotten with what their host's do. ``cards`` are the models that
    they and the agents below them ask, where that is known when they are built, with the agents' names.
    """

    forget: tuple[Forget, ...] = ()
    cards: tuple[tuple[str, ModelCard], ...] = ()

    def check(self, tool: Tool, /) -> None:
        """It may stand on any tool."""

    def arms(self) -> None:
        """Nothing has to be mounted: it is read where an agent is compiled."""
