"""Tools that are agents: what the turn that calls them has to know of what lies below."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.models.model import ModelCard
from onrecord.session.erasure import Retention
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import SessionToolset

__all__ = ("Below", "Expire", "Forget")

Forget = tuple[str, Callable[[Identity | SessionKey], Awaitable[None]]]
"""A feature's name, and how it lets go of a session or a person."""

Expire = tuple[str, Callable[[Retention, datetime], Awaitable[None]]]
"""A feature's name, and how it lets go of what is old."""


class Below(Struct, frozen=True):
    """A trait of tools that are agents.

    ``forget``, ``expire``: what their features keep has to go with what their host's do. ``cards`` are the models that
    they and the agents below them ask, where that is known when they are built, with the agents' names.
    ``holders``: what their toolsets keep open has to be closed with what their host's do.
    """

    forget: tuple[Forget, ...] = ()
    expire: tuple[Expire, ...] = ()
    cards: tuple[tuple[str, ModelCard], ...] = ()
    holders: tuple[SessionToolset, ...] = ()

    def check(self, tool: Tool, /) -> None:
        """It may stand on any tool."""

    def arms(self) -> None:
        """Nothing has to be mounted: it is read where an agent is compiled."""
