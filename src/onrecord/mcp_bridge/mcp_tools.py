"""McpTools: the tools of an MCP server as a toolset, with a connection for each session."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.declared import declared
from onrecord.errors import ConfigurationError, MissingDependency
from onrecord.mcp_bridge.limits import Limits
from onrecord.mcp_bridge.link import Link
from onrecord.mcp_bridge.listing import Wanted
from onrecord.mcp_bridge.reach import Terms
from onrecord.mcp_bridge.results import IMAGES, Media
from onrecord.mcp_bridge.sources import Http, Stdio
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import OfferContext

__all__ = ("McpTools",)

_server_name = re.compile(r"[a-zA-Z0-9_-]{1,32}").fullmatch
_prefix = re.compile(r"[a-zA-Z0-9_-]{0,32}").fullmatch
_MEDIA: frozenset[Media] = frozenset({"image", "audio", "file"})

Place = tuple[asyncio.AbstractEventLoop, SessionKey | None, Identity | None]


@declared
class McpTools:
    """The tools of the MCP server at ``source``, for ``tools=`` of an agent. ``name`` is yours, and goes on the record.

    Tools are called ``{name}_{tool}``; ``prefix`` says otherwise. ``allow`` and ``deny`` are the server's own names.
    The server is connected to when a round first asks for its tools, once for each session and its owner, or once for
    all with ``shared``; a connection that nobody used for ``idle_s`` seconds is closed, and so are the longest unused
    of more than ``live`` (None: 16 programs, 64 addresses). A server that cannot be reached offers what it last did,
    and the record says so; with ``required`` the turn fails until its tools were listed once. ``start_s`` limits
    connecting and listing, ``timeout_s`` one call.

    What the server says of a tool has no authority: each counts as one that may destroy something, unless
    ``trusts_hints`` lets the server say otherwise. ``adjust`` has the last word over each tool, and may add traits such
    as a check-in. ``accepts`` are the kinds of content that models are shown as they are. ConfigurationError for a
    source, name or number that is none; MissingDependency without the extra ``mcp``.
    """

    def __init__(
        self, source: Stdio | Http, *, name: str, prefix: str | None = None, allow: Collection[str] | None = None,
        deny: Collection[str] = (), shared: bool = False, required: bool = False, trusts_hints: bool = False,
        adjust: Callable[[Tool], Tool] | None = None, accepts: Collection[Media] = IMAGES,
        timeout_s: float = 60.0, start_s: float = 30.0, idle_s: float = 900.0, live: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
    ) -> None:  # fmt: skip
        _check(source, name, prefix, allow, deny, accepts)
        if not all(_is_positive(each) for each in (timeout_s, start_s, idle_s)) or (live is not None and live < 1):
            raise ConfigurationError("timeout_s=, start_s=, idle_s= and live= of a server are greater than 0")
        if find_spec("mcp") is None:
            raise MissingDependency(
                "tools of MCP servers need the package 'mcp', which is not installed",
                hint='pip install "onrecord[mcp]"',
            )
        wanted = Wanted(
            server=name, prefix=f"{name}_" if prefix is None else prefix, limits=limits, trusts_hints=trusts_hints,
            allow=None if allow is None else frozenset(allow), deny=frozenset(deny),
        )  # fmt: skip
        self._terms = Terms(
            source=source, wanted=wanted, accepts=frozenset(accepts), adjust=adjust, required=required,
            timeout_s=timeout_s, start_s=start_s, idle_s=idle_s,
        )  # fmt: skip
        self._shared, self._live = shared, live or (16 if isinstance(source, Stdio) else 64)
        self._links: dict[Place, Link] = {}

    @property
    def name(self) -> str:
        """The server's name here."""
        return self._terms.wanted.server

    def __repr__(self) -> str:
        return f"McpTools({self._terms.source!r}, name={self.name!r})"

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        """The tools for a round. ServerFailed only where the server is ``required``."""
        # What all share is nobody's: what it is opened with must not depend on who came first.
        context = OfferContext(turn="", round=0) if self._shared else replace(ctx, note=_nowhere)
        place = (asyncio.get_running_loop(), context.session, context.identity)
        link = self._links.get(place)
        if link is None:
            link = self._links[place] = Link(self._terms, context)
        offered = await link.offer(ctx, context)
        if len(self._links) > self._live:
            self._make_room()
        return offered

    def _make_room(self) -> None:
        for place in [place for place in self._links if place[0].is_closed()]:
            del self._links[place]
        here = asyncio.get_running_loop()
        idle = sorted((p for p, k in self._links.items() if p[0] is here and not k.users), key=self._used_at)
        for place in idle[: max(len(self._links) - self._live, 0)]:
            self._links.pop(place).leave()

    def _used_at(self, place: Place) -> float:
        return self._links[place].used_at

    def refresh(self) -> None:
        """Lists the tools anew before the next round, for servers that do not tell of a change."""
        for link in self._links.values():
            link.refresh()

    async def leave(self, session: SessionKey, /) -> None:
        """Closes the connections of a session, its sub-agents' too; one that is used, when it is used no more."""
        await self._let_go(lambda held: held == session)  # what is below a session is offered under its name

    async def aclose(self) -> None:
        """Closes every connection of this event loop; one that is used, when it is used no more."""
        await self._let_go(lambda _: True)

    async def _let_go(self, which: Callable[[SessionKey | None], bool]) -> None:
        here = asyncio.get_running_loop()
        ending: list[asyncio.Task[None]] = []
        for place, link in list(self._links.items()):
            if place[0] is here and which(place[1]):
                del self._links[place]
                ending += link.leave()
        if ending:
            await asyncio.wait(ending)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _nowhere(noted: object) -> None:
    """A context that outlives its round files nothing."""


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


def _check(
    source: object, name: object, prefix: object, allow: object, deny: object, accepts: Collection[object]
) -> None:
    if not isinstance(source, (Stdio, Http)):
        raise ConfigurationError(
            f"a server is at Stdio(...) or Http(...), not at a {type(source).__name__}",
            hint='McpTools(Stdio(("python", "server.py")), name="files")',
        )
    if not isinstance(name, str) or not _server_name(name):
        raise ConfigurationError("the name of a server has 1 to 32 letters, digits, '_' and '-'", hint='name="files"')
    if prefix is not None and (not isinstance(prefix, str) or not _prefix(prefix)):
        raise ConfigurationError("the prefix of a server has up to 32 letters, digits, '_' and '-'")
    for word, names in (("allow", allow), ("deny", deny)):
        if names is not None and (isinstance(names, str) or not isinstance(names, Collection)):
            raise ConfigurationError(f"{word}= of a server are names of its tools", hint=f'{word}=["search"]')
    if not set(accepts) <= _MEDIA:
        raise ConfigurationError("accepts= of a server are some of 'image', 'audio' and 'file'")
