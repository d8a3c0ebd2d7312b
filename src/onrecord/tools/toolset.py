"""Toolset: a source of tools that is consulted each round, and the three that everybody needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from msgspec import Struct, structs

from onrecord.conditions import check_condition, says_yes
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.declared import declared
from onrecord.errors import ToolInvalid
from onrecord.jsonio import Json
from onrecord.record.kinds import Noted
from onrecord.tools.tool import Tool

__all__ = (
    "OfferContext",
    "SessionToolset",
    "StaticTools",
    "Toolset",
    "gated",
    "holders",
    "named_source",
    "prefixed",
    "unique_tools",
)


def _nowhere(noted: Noted) -> None:
    """Where notices go when nobody keeps a record."""


class OfferContext(Struct, frozen=True, kw_only=True):
    """For which round tools are asked: ``active`` names the skills in use, ``data`` is the session's.

    ``session`` is the session of the turn, for a sub-agent that of the outermost turn above it. ``note`` files what a
    source has to say about its tools, such as one that it leaves out: it goes on the record, and no model reads it.
    """

    turn: str
    round: int
    session: SessionKey | None = None
    note: Callable[[Noted], object] = _nowhere
    identity: Identity | None = None
    context: object = None
    data: Mapping[str, Json] = {}
    active: frozenset[str] = frozenset()


class Toolset(Protocol):
    """A source of tools: a server, a tenant's catalogue. Consulted before each round, so it should answer quickly."""

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        """The tools of this round: no other of its tools may be called in it. What it raises ends the turn as a failed
        feature.
        """
        ...


class SessionToolset(Toolset, Protocol):
    """A toolset that keeps something open, such as a connection for each session.

    A host tells it when a session is no longer kept ready, and when the host closes; each has five seconds, then the
    host goes on without it. Both may come while a tool of it runs, and it may be consulted again afterwards. A turn
    that ends or pauses is no reason: neither is called for it.
    """

    async def leave(self, session: SessionKey, /) -> None:
        """Lets go of what it keeps for this session and for sub-agents below it."""
        ...

    async def aclose(self) -> None:
        """Lets go of everything."""
        ...


def unique_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools as a tuple of their own. Raises ToolInvalid for what is no tool, and names an id that comes twice."""
    seen: set[str] = set()
    for tool in tools:
        if not isinstance(tool, Tool):
            raise ToolInvalid(
                f"{getattr(tool, '__name__', type(tool).__name__)!r} is not a tool",
                hint="put @tool above the function, or write Tool(id, handler, description, parameters=...)",
            )
        if tool.id in seen:
            raise ToolInvalid(f"two tools have the id {tool.id!r}", hint="give one of them another id")
        seen.add(tool.id)
    return tuple(tools)


@declared
class StaticTools:
    """Always the same tools, as they were when it was made. Raises ToolInvalid."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = unique_tools(tools)

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        """The tools."""
        return self._tools


@declared
def gated(inner: Toolset | Sequence[Tool], only_if: Callable[[str, OfferContext], bool]) -> Toolset:
    """The tools of ``inner`` for which ``only_if(id, ctx)`` holds in a round; asked anew each round.

    What it does not let through in a round is neither offered nor run there. Registered tools are a permission rule's
    business. ToolInvalid for an async ``only_if``; whatever raises, or has to be awaited, ends the turn as a failed
    feature.
    """
    check_condition(only_if, "only_if of gated", error=ToolInvalid)
    return _Gated(_as_toolset(inner), only_if)


@declared
def prefixed(inner: Toolset | Sequence[Tool], prefix: str) -> Toolset:
    """The tools of ``inner`` with ``prefix`` before each id, so that two sources cannot collide. Raises ToolInvalid."""
    if not prefix:
        raise ToolInvalid("a prefix of tool ids cannot be empty", hint='write one such as "files_"')
    return _Prefixed(_as_toolset(inner), prefix)


def _as_toolset(inner: Toolset | Sequence[Tool]) -> Toolset:
    return StaticTools(inner) if isinstance(inner, Sequence) else inner


def holders(toolsets: Sequence[Toolset]) -> tuple[SessionToolset, ...]:
    """Those of the toolsets, and of what is wrapped in them, that keep something open; each once."""
    found: list[SessionToolset] = []
    for toolset in toolsets:
        source = _unwrapped(toolset)
        if callable(getattr(source, "leave", None)) and callable(getattr(source, "aclose", None)):
            holder = cast(SessionToolset, source)
            if all(holder is not known for known in found):
                found.append(holder)
    return tuple(found)


def named_source(toolset: Toolset) -> str:
    """What the record calls a toolset: its ``name``, where it has one, beside its class."""
    source = _unwrapped(toolset)
    name: object = getattr(source, "name", "")
    kind = type(source if name else toolset).__name__
    return f"{kind} {name!r}" if isinstance(name, str) and name else kind


def _unwrapped(toolset: object) -> object:
    while isinstance(toolset, (_Gated, _Prefixed)):
        toolset = toolset.inner
    return toolset


class _Gated:
    def __init__(self, inner: Toolset, only_if: Callable[[str, OfferContext], bool]) -> None:
        self.inner, self._only_if = inner, only_if

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        return tuple(tool for tool in await self.inner.tools(ctx) if says_yes(self._only_if(tool.id, ctx)))


class _Prefixed:
    def __init__(self, inner: Toolset, prefix: str) -> None:
        self.inner, self._prefix = inner, prefix
        self._renamed: dict[str, tuple[Tool, Tool]] = {}

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        return tuple(self._rename(tool) for tool in await self.inner.tools(ctx))

    def _rename(self, tool: Tool) -> Tool:
        # The same tool stays the same object from round to round, so that whatever is cached for it holds.
        known = self._renamed.get(tool.id)
        if known is None or known[0] is not tool:
            known = self._renamed[tool.id] = (tool, structs.replace(tool, id=f"{self._prefix}{tool.id}"))
        return known[1]
