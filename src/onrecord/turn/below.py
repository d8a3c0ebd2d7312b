"""Tools that are agents: what the turn that calls them has to know of what lies below."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.models.model import ModelCard
from onrecord.session.erasure import Retention
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import SessionToolset
from onrecord.tools.traits import traits_of
from onrecord.turn.moments import ForgetTurns, Hooks

__all__ = ("Below", "Expire", "Forget", "cards_below", "forgetting")

Forget = tuple[str, Callable[[Identity | SessionKey], Awaitable[None]], ForgetTurns | None]
"""A feature's name, and how it lets go of a session or a person, and of some turns if it can tell them apart."""

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


def cards_below(tools: Iterable[Tool]) -> Iterator[tuple[str, ModelCard]]:
    """The models that the agents among these tools ask, and those below them, with the agents' names."""
    return (card for trait in traits_of(tools, Below) for card in trait.cards)


Either = TypeVar("Either", Forget, Expire)


def forgetting(
    mounted: Sequence[tuple[str, Hooks]], below: Sequence[Below]
) -> tuple[tuple[Forget, ...], tuple[Expire, ...]]:
    """How the features of an agent forget and expire, then those of the agents below it."""
    forget: list[Forget] = [(name, h.forget, h.forget_turns) for name, h in mounted if h.forget is not None]
    expire: list[Expire] = [(name, h.expire) for name, h in mounted if h.expire is not None]
    return (
        _each_once([*forget, *(one for trait in below for one in trait.forget)]),
        _each_once([*expire, *(one for trait in below for one in trait.expire)]),
    )


def _each_once(given: Sequence[Either]) -> tuple[Either, ...]:
    """A feature may stand in several agents, and is asked once."""
    return tuple(one for place, one in enumerate(given) if all(one[1] != other[1] for other in given[:place]))
