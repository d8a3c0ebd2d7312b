"""Connection: one connection to a server, held by a task of its own, so that whoever leaves a call leaves it open."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from onrecord.errors import MissingDependency
from onrecord.jsonio import Json
from onrecord.mcp_bridge.failures import CallRefused, ServerFailed, SessionGone
from onrecord.mcp_bridge.limits import Limits
from onrecord.mcp_bridge.shown_words import clean
from onrecord.mcp_bridge.sources import Http, Stdio
from onrecord.mcp_bridge.transports import ANSWERED, Fault, Sifted, http_streams, stdio_streams

__all__ = ("Connection", "load_package")

T = TypeVar("T")

PAGES = 50
"""Pages of one list of tools."""
LISTED = 10
"""How many times the tools that are offered a server may list: ``allow`` may name some at the end."""
LISTEN_AGAIN_S = 30.0
ASK_AGAIN_S = 0.25
SENDING_S = 5.0
"""How long a message may take to be sent, on top of what its answer may take."""
USED = ("anyio", "httpx2", "mcp.client.stdio", "mcp.client.streamable_http", "mcp_types.version", "pydantic")


def load_package() -> None:
    """Imports what a connection needs, which takes a second or two. MissingDependency for versions without it."""
    try:
        for module in USED:
            import_module(module)
    except ImportError as error:
        raise MissingDependency(
            f"tools of MCP servers need another version of the package 'mcp': {type(error).__name__}",
            hint='pip install --upgrade "onrecord[mcp]"',
        ) from error


class Connection:
    """A connection that is opening, open or over. ``changed`` is told that the server has other tools now.

    The package has to be loaded.
    """

    def __init__(
        self, source: Stdio | Http, values: Callable[[], Awaitable[Mapping[str, str]]], *, limits: Limits,
        start_s: float, changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self._source, self._values, self._limits, self._start_s = source, values, limits, start_s
        self._changed, self._fault = changed, Fault(self.close_soon)
        self._closing, self._open = asyncio.Event(), asyncio.Event()
        self._scope: Any = None
        self._client: Any = None
        self._raw: list[Any] = []
        self.refused: frozenset[str] = frozenset()
        self.task = asyncio.create_task(self._hold())

    # ---- its life

    async def opened(self) -> None:
        """Until it is open. ServerFailed when it cannot be opened; leaving early gives it up."""
        opening = asyncio.ensure_future(self._open.wait())
        try:
            await asyncio.wait({opening, self.task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.close_soon()
            raise
        finally:
            opening.cancel()
        if self.is_over:
            raise self._failed("mcp-unreachable", "it cannot be reached")

    @property
    def is_over(self) -> bool:
        """Whether it can be used no more."""
        return self.task.done() or self._closing.is_set() or not self._open.is_set()

    def close_soon(self) -> None:
        """Ends it; who needs it gone waits for ``task``."""
        self._closing.set()
        if self._scope is not None and not self._open.is_set():
            self._scope.cancel()

    async def _hold(self) -> None:
        import anyio
        from mcp import Client

        answered = list[int]()
        ANSWERED.set(answered)
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_s) as scope:
                self._scope = scope
                async with Client(self._streams(), read_timeout_seconds=self._start_s, cache=None) as client:
                    scope.deadline = math.inf
                    self._client = client
                    await self._stay(client)
            if scope.cancelled_caught and not self._closing.is_set():
                self._fault.tell(f"it did not answer within {self._start_s:g} s")
        except Exception as error:  # noqa: BLE001 - whatever ends it, those who use it are told in our own words
            status = next((each for each in reversed(answered) if each >= 400), 0)
            self._fault.tell(f"it answered with HTTP status {status}" if status else _reason(error))

    async def _stay(self, client: Any) -> None:
        import anyio

        async with anyio.create_task_group() as group:
            tools = client.server_capabilities.tools
            if not _is_old(client) and tools is not None and tools.list_changed:
                group.start_soon(self._listen, client)
            self._open.set()
            await self._closing.wait()
            group.cancel_scope.cancel()

    async def _listen(self, client: Any) -> None:
        """Asks to be told of other tools, as servers of today want it; servers before 2026 tell it unasked."""
        from mcp.shared.exceptions import MCPError

        while True:
            with suppress(MCPError, RuntimeError, TimeoutError):
                async with client.listen(tools_list_changed=True) as events:
                    try:
                        async for _ in events:  # `Sifted` has seen it before
                            pass
                    finally:
                        self._changed()  # what is told until it is heard again, nobody hears
            await asyncio.sleep(LISTEN_AGAIN_S)

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        source, most = self._source, self._limits.message
        values = await self._values()  # what cannot be had ends it here, in our words
        streams: AbstractAsyncContextManager[tuple[Any, Any]]
        if isinstance(source, Http):
            streams = http_streams(source, self._values, most, self._fault)
        else:
            streams = stdio_streams(source, values, most, self._fault)
        async with streams as (received, written):
            yield Sifted(received, self._raw.extend, self._changed), written

    # ---- its use

    @property
    def server(self) -> str:
        """Name, version and protocol, as the server gives them."""
        client = self._used()
        info = client.server_info
        told = "a server without a name" if info is None else f"{info.name} {info.version}"
        return f"{clean(told, 120, lines=1)}, protocol {clean(client.protocol_version, 20, lines=1)}"

    async def listed(self) -> list[object]:
        """All tools of the server as it sent them. ServerFailed.

        ``refused`` names those whose arguments cannot be sent as the headers that they ask for.
        """
        client, found = self._used(), set[str]()
        self._raw.clear()
        cursor: str | None = None
        if client.server_capabilities.tools is None:
            return []
        for _ in range(PAGES):
            page = await self._asked(client.list_tools(cursor=cursor), self._start_s)
            found |= {tool.name for tool in page.tools}
            if page.next_cursor is None or page.next_cursor == cursor or len(self._raw) > LISTED * self._limits.tools:
                break
            cursor = page.next_cursor
        named = {tool["name"] for tool in self._raw if isinstance(tool, dict) and isinstance(tool.get("name"), str)}
        self.refused = frozenset(named - found)
        return [*self._raw]

    async def call(
        self, name: str, args: Mapping[str, Json], meta: Mapping[str, Json], timeout_s: float
    ) -> Mapping[str, Any]:
        """What the server answers, as JSON. ServerFailed, CallRefused in the server's words, SessionGone."""
        import mcp_types as types

        given = {"name": name, "arguments": dict(args), "_meta": dict(meta)}
        params = types.CallToolRequestParams.model_validate(given)
        until = asyncio.get_running_loop().time() + timeout_s
        while True:
            asked = self._used().session.send_request(
                types.CallToolRequest(params=params), _answer_type(), request_read_timeout_seconds=timeout_s
            )
            answer: Any = await self._asked(asked, timeout_s)
            if isinstance(answer, types.CallToolResult):
                return answer.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if answer.input_requests:
                kinds = ", ".join(sorted({request.method for request in answer.input_requests.values()}))
                raise CallRefused(f"it asked for {kinds}, which this application does not answer")
            if asyncio.get_running_loop().time() + ASK_AGAIN_S > until:
                raise self._failed("mcp-timeout", "it did not answer in time")
            await asyncio.sleep(ASK_AGAIN_S)  # it needs more time, and wants to be asked again
            params = params.model_copy(update={"request_state": answer.request_state})

    def _used(self) -> Any:
        if self._client is None or self.is_over:
            raise self._failed("mcp-lost", "the connection is over")
        return self._client

    async def _asked(self, asking: Awaitable[T], timeout_s: float) -> T:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        answered = list[int]()
        held = ANSWERED.set(answered)
        try:
            async with asyncio.timeout(timeout_s + SENDING_S):  # the package has the limit too, and tells the server
                return await asking
        except MCPError as error:
            raise await self._told(error, answered[-1] if answered else 0) from None
        except TimeoutError:
            self.close_soon()  # it does not read what it is sent: the limit of the package begins behind that
            raise self._failed("mcp-timeout", "it did not answer in time") from None
        except ValidationError:
            raise ServerFailed("mcp-malformed", "it answered something that is no answer") from None
        except (ClosedResourceError, BrokenResourceError, RuntimeError) as error:
            raise self._failed("mcp-lost", f"the connection was lost: {type(error).__name__}") from None
        finally:
            ANSWERED.reset(held)

    async def _told(self, error: Any, status: int) -> Exception:
        """What an error of the package means here."""
        import mcp_types as types

        words, code = clean(error.message, 2_000), error.code
        if code == types.REQUEST_TIMEOUT and words.endswith("timed out"):
            return ServerFailed("mcp-timeout", "it did not answer in time")
        if code == types.CONNECTION_CLOSED:
            self.close_soon()
            await asyncio.wait({self.task}, timeout=0.5)
            return self._failed("mcp-lost", "the connection was lost")
        if status == 404 and _is_old(self._client):  # it had given this connection a name, and knows it no more
            self.close_soon()
            return SessionGone()
        if code == types.HEADER_MISMATCH:
            self._changed()
        if status >= 400 and code == types.INTERNAL_ERROR:
            return ServerFailed("mcp-refused", f"it answered with HTTP status {status}")
        return CallRefused(words)

    def _failed(self, code: str, otherwise: str) -> ServerFailed:
        return ServerFailed(code, self._fault.text or otherwise)


def _is_old(client: Any) -> bool:
    """Whether the server speaks a protocol of before 2026, with connections that it knows by name."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return client.protocol_version not in MODERN_PROTOCOL_VERSIONS


@cache
def _answer_type() -> Any:
    """What a call is answered with. It is not checked against the server's own schema, whose patterns would run."""
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


def _reason(error: BaseException) -> str:
    """Why it ended: kinds of errors and never what they say, which may hold an address or a secret."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return "its program is not there"
    return f"it cannot be reached: {type(error).__name__}"
