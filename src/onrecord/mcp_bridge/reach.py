"""Reach: a server as one session has it: the connection while there is one, and the tools as they were last listed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from onrecord.mcp_bridge.connection import Connection, load_package
from onrecord.mcp_bridge.failures import CallRefused, ServerFailed, SessionGone
from onrecord.mcp_bridge.listing import Described, Wanted, listing_of
from onrecord.mcp_bridge.results import Media
from onrecord.mcp_bridge.shown_words import without
from onrecord.mcp_bridge.sources import Http, Stdio, given, secrets_of
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import OfferContext

__all__ = ("Reach", "Terms")

BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds until a server that could not be reached is tried again, longer each time."""
SECRETS = 16
"""How many secrets of before are still looked for, beside those of now."""


class Terms(Struct, frozen=True, kw_only=True):
    """On what terms a server is used; see `McpTools`, whose parameters they are."""

    source: Stdio | Http
    wanted: Wanted
    accepts: frozenset[Media]
    adjust: Callable[[Tool], Tool] | None
    required: bool
    timeout_s: float
    start_s: float
    idle_s: float


class Reach:
    """It belongs to one event loop. ``tool`` makes a tool of what is listed; ``context`` is what functions are told."""

    def __init__(self, terms: Terms, context: OfferContext, tool: Callable[[Described], Tool]) -> None:
        self._terms, self._tool, self.context = terms, tool, context
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._connection: Connection | None = None
        self._is_stale = False
        self._made: dict[str, tuple[Described, Tool]] = {}
        self._failures, self._retry_at, self._failed = 0, 0.0, ""
        self.tools: tuple[Tool, ...] = ()
        self.secrets: tuple[str, ...] = ()
        self.report: tuple[str, ...] = ()
        self.reports = 0
        self.ending = set[asyncio.Task[None]]()

    @property
    def is_fresh(self) -> bool:
        """Whether the tools are those that the server has now, as far as it told."""
        return not self.is_over and not self._is_stale

    @property
    def is_over(self) -> bool:
        """Whether there is no connection."""
        return self._connection is None or self._connection.is_over

    async def refresh(self) -> None:
        """Lists the tools anew, unless the server could not be reached a moment ago. ServerFailed where required."""
        async with self._lock:
            if self.is_fresh or (self.is_over and self._loop.time() < self._retry_at):
                return
            try:
                await self._connected()
            except ServerFailed:
                if self._terms.required and not self.tools:
                    raise

    async def connection(self) -> Connection:
        """The connection, opened if need be. ServerFailed, also where it could not be a moment ago."""
        held = self._connection
        if held is not None and not held.is_over:
            return held
        async with self._lock:
            left = self._retry_at - self._loop.time()
            if self.is_over and self._failures and left > 0:
                raise ServerFailed("mcp-unreachable", f"{self._failed}; it is tried again in {left:.0f} s or later")
            return await self._connected()

    def changed(self) -> None:
        """The tools are to be listed anew before the next round."""
        self._is_stale = True

    def close_soon(self) -> None:
        """Ends the connection. What it takes to end is in ``ending``."""
        if self._connection is not None:
            self._connection.close_soon()
            self._connection = None

    # ---- under the lock

    async def _connected(self) -> Connection:
        try:
            if self._connection is None or self._connection.is_over:
                self._connection = None
                self._connection = await self._opened()
                self._is_stale = True
            if self._is_stale:
                await self._list(self._connection)
        except (ServerFailed, CallRefused, SessionGone) as error:
            raise self._given_up(error) from None
        self._failures, self._failed = 0, ""
        return self._connection

    async def _list(self, connection: Connection) -> None:
        self._is_stale = False  # before it is listed: what changes meanwhile is listed again
        try:
            self._take(connection, await connection.listed())
        except BaseException:
            self._is_stale = True
            raise

    async def _opened(self) -> Connection:
        await asyncio.to_thread(load_package)  # not on the loop that serves everybody
        connection = Connection(
            self._terms.source, self._values, limits=self._terms.wanted.limits, start_s=self._terms.start_s,
            changed=self.changed,
        )  # fmt: skip
        self.ending.add(connection.task)
        connection.task.add_done_callback(self.ending.discard)
        try:
            await connection.opened()
        except BaseException:
            connection.close_soon()
            raise
        return connection

    async def _values(self) -> Mapping[str, str]:
        """Headers or variables as they are now, remembered so that no result repeats them."""
        source = self._terms.source
        named = source.headers if isinstance(source, Http) else source.env
        values = await given(named, self.context)
        found = secrets_of(values, all_of_them=isinstance(source, Http) or callable(named))
        if not set(found) <= set(self.secrets):
            self.secrets = tuple(sorted({*self.secrets[-SECRETS:], *found}, key=len, reverse=True))
        return values

    def _given_up(self, error: Exception) -> ServerFailed:
        failed = error
        if not isinstance(failed, ServerFailed):
            failed = ServerFailed("mcp-refused", "it refused to list its tools")
        self.close_soon()
        wait = BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
        self._failures += 1
        self._retry_at, self._failed = self._loop.time() + wait, str(failed)
        self._is_stale = True
        name = self._terms.wanted.server
        self._reported(f"the server {name!r} cannot be used: {failed}; it is tried again in {wait:g} s or later")
        return failed

    def _take(self, connection: Connection, listed: Sequence[object]) -> None:
        wanted = self._terms.wanted
        listing = listing_of(listed, wanted, connection.refused, self.secrets)
        made: dict[str, tuple[Described, Tool]] = {}
        for each in listing.tools:
            # The same tool stays the same object, so that whatever is cached for it holds.
            known = self._made.get(each.id)
            made[each.id] = known if known is not None and known[0] == each else (each, self._tool(each))
        self._made, self.tools = made, tuple(tool for _, tool in made.values())
        count, server = len(self.tools), without(connection.server, self.secrets)
        told = f"{count} {'tool' if count == 1 else 'tools'} of the server {wanted.server!r}, which is {server}"
        self._reported(told, *listing.notices)

    def _reported(self, *texts: str) -> None:
        if texts != self.report:
            self.report = texts
            self.reports += 1
