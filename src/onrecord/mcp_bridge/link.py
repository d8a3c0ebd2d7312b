"""Link: what one session has of a server: its connection while there is one, and its tools as they were last listed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from onrecord.conversation.identity import SessionKey
from onrecord.errors import MissingDependency
from onrecord.jsonio import Json
from onrecord.mcp_bridge.failures import CallRefused, ServerFailed, SessionGone
from onrecord.mcp_bridge.listing import Described, Listing, Wanted, listing_of
from onrecord.mcp_bridge.results import Media, result_of
from onrecord.mcp_bridge.sources import Http, Stdio, given, secrets_of
from onrecord.mcp_bridge.wording import without
from onrecord.record.kinds import Noted
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.tools.toolset import OfferContext

if TYPE_CHECKING:
    from onrecord.mcp_bridge.connection import Connection

__all__ = ("Link", "Terms")

BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds until a server that could not be reached is tried again, longer each time."""
TOLD_SESSIONS = 1_024


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

    @property
    def by(self) -> str:
        """Who the record says that notices come from."""
        return f"mcp:{self.wanted.server}"


class Link:
    """A link belongs to one event loop. It opens when it is first needed, and again when it is needed once more."""

    def __init__(self, terms: Terms, context: OfferContext) -> None:
        self._terms, self._context = terms, context
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._connection: Connection | None = None
        self._is_stale, self._is_leaving = False, False
        self._tools: tuple[Tool, ...] = ()
        self._made: dict[str, tuple[Described, Tool]] = {}
        self._secrets: tuple[str, ...] = ()
        self._failures, self._retry_at, self._failed = 0, 0.0, ""
        self._report: tuple[str, ...] = ()
        self._reports = 0
        self._told: OrderedDict[SessionKey | None, int] = OrderedDict()
        self._idle: asyncio.TimerHandle | None = None
        self._ending = set[asyncio.Task[None]]()
        self.users = 0
        self.used_at = self._loop.time()

    # ---- for a round

    async def offer(self, ctx: OfferContext, context: OfferContext) -> tuple[Tool, ...]:
        """The tools for a round, listed anew where that is due; as they were last, where the server cannot be had.

        ``ctx`` is who asks, ``context`` what functions for headers and variables are told.
        """
        self._context = context
        self._enter()
        try:
            if not self._is_fresh:
                await self._refresh()
        finally:
            self._exit()
        if self._told.get(ctx.session) != self._reports:
            self._tell(ctx)
        return self._tools

    @property
    def _is_fresh(self) -> bool:
        return self._connection is not None and not self._connection.is_over and not self._is_stale

    async def _refresh(self) -> None:
        async with self._lock:
            if self._is_fresh or (self._connection_is_over and self._loop.time() < self._retry_at):
                return
            try:
                await self._connected()
            except ServerFailed:
                if self._terms.required and not self._tools:
                    raise

    @property
    def _connection_is_over(self) -> bool:
        return self._connection is None or self._connection.is_over

    def _tell(self, ctx: OfferContext) -> None:
        """Files what there is to say, once in each session."""
        self._told[ctx.session] = self._reports
        self._told.move_to_end(ctx.session)
        if len(self._told) > TOLD_SESSIONS:
            self._told.popitem(last=False)
        for text in self._report:
            ctx.note(Noted(by=self._terms.by, text=text))

    def _reported(self, *texts: str) -> None:
        if texts != self._report:
            self._report = texts
            self._reports += 1

    # ---- its connection, under the lock

    async def _connected(self) -> Connection:
        """The connection with its tools listed, opened if need be. ServerFailed."""
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
        # Importing the package takes a second or two: not on the loop that serves everybody.
        try:
            module = await asyncio.to_thread(import_module, "onrecord.mcp_bridge.connection")
        except ImportError as error:
            raise MissingDependency(
                f"tools of MCP servers need another version of the package 'mcp': {type(error).__name__}",
                hint='pip install --upgrade "onrecord[mcp]"',
            ) from error
        kind: type[Connection] = module.Connection
        connection = kind(
            self._terms.source, self._values, limits=self._terms.wanted.limits, start_s=self._terms.start_s,
            changed=self._changed,
        )  # fmt: skip
        self._ending.add(connection.task)
        connection.task.add_done_callback(self._ending.discard)
        try:
            await connection.opened()
        except BaseException:
            connection.close_soon()
            raise
        return connection

    async def _values(self) -> Mapping[str, str]:
        """Headers or variables as they are now, remembered so that no result repeats them."""
        source = self._terms.source
        is_http = isinstance(source, Http)
        named = source.headers if isinstance(source, Http) else source.env
        values = await given(named, self._context)
        found = secrets_of(values, all_of_them=is_http or callable(named))
        if not set(found) <= set(self._secrets):
            self._secrets = tuple(sorted({*self._secrets[-16:], *found}, key=len, reverse=True))
        return values

    def _changed(self) -> None:
        self._is_stale = True

    def _given_up(self, error: Exception) -> ServerFailed:
        failed = (
            error if isinstance(error, ServerFailed) else ServerFailed("mcp-refused", "it refused to list its tools")
        )
        if self._connection is not None:
            self._connection.close_soon()
        wait = BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
        self._failures += 1
        self._retry_at, self._failed = self._loop.time() + wait, str(failed)
        self._is_stale = True
        self._reported(f"the server {self._name!r} cannot be used: {failed}; it is tried again in {wait:g} s or later")
        return failed

    @property
    def _name(self) -> str:
        return self._terms.wanted.server

    def _take(self, connection: Connection, listed: Sequence[object]) -> None:
        listing: Listing = listing_of(listed, self._terms.wanted, connection.refused, self._secrets)
        made: dict[str, tuple[Described, Tool]] = {}
        for each in listing.tools:
            # The same tool stays the same object, so that whatever is cached for it holds.
            known = self._made.get(each.id)
            made[each.id] = known if known is not None and known[0] == each else (each, self._tool(each))
        self._made, self._tools = made, tuple(tool for _, tool in made.values())
        count = len(self._tools)
        server = without(connection.server, self._secrets)
        told = f"{count} {'tool' if count == 1 else 'tools'} of the server {self._name!r}, which is {server}"
        self._reported(told, *listing.notices)

    def _tool(self, described: Described) -> Tool:
        async def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
            return await self.call(described.name, args, ctx.key)

        tool = Tool(
            described.id, handler, described.description, parameters=described.parameters,
            read_only=described.read_only, destructive=described.destructive,
            max_result_size_chars=self._terms.wanted.limits.result,
        )  # fmt: skip
        return tool if self._terms.adjust is None else self._terms.adjust(tool)

    # ---- for a call

    async def call(self, name: str, args: Mapping[str, Json], key: str) -> ToolResult:
        """What the server answers. Nothing that it does raises but ServerFailed, whose words are for the model."""
        self._enter()
        try:
            return await self._called(name, args, key)
        except CallRefused as refused:
            words = without(refused.words, self._secrets)
            return ToolResult({"error": f"The server {self._name!r} refused: {words}"}, status="failed")
        except SessionGone:
            failed = ServerFailed("mcp-lost", "it does not know this connection")
        except ServerFailed as error:
            failed = error
        finally:
            self._exit()
        unknown = " Whether it did something is not known." if failed.code in {"mcp-lost", "mcp-timeout"} else ""
        raise ServerFailed(failed.code, f"The server {self._name!r} failed: {failed}.{unknown}") from None

    async def _called(self, name: str, args: Mapping[str, Json], key: str) -> ToolResult:
        terms = self._terms
        for again in (True, False):
            connection = self._connection
            if connection is None or connection.is_over:
                connection = await self._reopened()
            try:
                answer = await connection.call(name, args, {"onrecord/key": key}, terms.timeout_s)
            except SessionGone:
                if not again:
                    raise
                continue
            return result_of(answer, terms.wanted.limits, accepts=terms.accepts, secrets=self._secrets)
        raise AssertionError("a call returns or raises")

    async def _reopened(self) -> Connection:
        async with self._lock:
            left = self._retry_at - self._loop.time()
            if self._connection_is_over and self._failures and left > 0:
                raise ServerFailed("mcp-unreachable", f"{self._failed}; it is tried again in {left:.0f} s or later")
            return await self._connected()

    # ---- its end

    def _enter(self) -> None:
        self.users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _exit(self) -> None:
        self.users -= 1
        self.used_at = self._loop.time()
        if self.users:
            return
        if self._is_leaving:
            self._close_soon()
        elif self._connection is not None:
            self._idle = self._loop.call_later(self._terms.idle_s, self._close_soon)

    def _close_soon(self) -> None:
        self._is_leaving = False
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._connection is not None:
            self._connection.close_soon()
            self._connection = None

    def refresh(self) -> None:
        """The tools are listed anew before the next round."""
        self._is_stale = True

    def leave(self) -> list[asyncio.Task[None]]:
        """Lets the connection go, once nobody uses it. What has to end for it to be gone."""
        if self.users:
            self._is_leaving = True
            return []
        self._close_soon()
        return list(self._ending)
