"""Below: what a tool that is an agent has below it, for whoever runs the agent above."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import SessionToolset

__all__ = ("Below", "Forget")

Forget = tuple[str, Callable[[Identity | SessionKey], Awaitable[None]]]
"""A feature's name, and how it lets go of a session or a person."""


class Below(Struct, frozen=True):
    """A trait of tools that are agents: what their features keep has to be forgotten with what their host's do.

    And what their toolsets keep open has to be closed with it.
    """

    forget: tuple[Forget, ...] = ()
    holders: tuple[SessionToolset, ...] = ()

    def check(self, tool: Tool, /) -> None:
        """It may stand on any tool."""

    def arms(self) -> None:
        """Nothing has to be mounted: it is read where an agent is compiled."""
