"""The two ways to a server, bounded: its messages by size, its program by its life."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, cast

from onrecord.mcp_bridge.sources import Http, Stdio

__all__ = ("ANSWERED", "Fault", "Sifted", "http_streams", "stdio_streams")

GRACE_S = 2.0
"""How long a program may take to end by itself once its input is closed, and then again once it is told to end."""
BANNERS = 1_000
"""Lines on its output that are no messages, after which a program is taken for one that is no server."""
CHANGED = "notifications/tools/list_changed"
KEPT = frozenset({CHANGED, "notifications/cancelled", "notifications/subscriptions/acknowledged"})

ANSWERED: ContextVar[list[int]] = ContextVar("ANSWERED")
"""HTTP statuses of the answers to what is asked in this context: messages travel with the context of who sent them."""


class Fault:
    """Why a connection ended, in our own words: the first that is told stands. ``lost`` ends it."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self.text, self._lost = "", lost

    def tell(self, text: str) -> None:
        self.text = self.text or text
        self._lost()


# ---- a program -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def stdio_streams(
    source: Stdio, env: Mapping[str, str], most: int, fault: Fault
) -> AsyncGenerator[tuple[Any, Any]]:
    """Starts the program and yields its messages and where to write. It is gone when this is left, also by force."""
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *source.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL if source.quiet else None, env={**get_default_environment(), **env},
        cwd=source.cwd, limit=most, start_new_session=True,
    )  # fmt: skip
    try:
        heard, received = anyio.create_memory_object_stream[Any](0)
        written, to_write = anyio.create_memory_object_stream[Any](0)
        async with anyio.create_task_group() as group, heard, received, written, to_write:
            group.start_soon(_read, process, heard, fault)
            group.start_soon(_write, process, to_write, fault)
            try:
                yield received, written
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _read(process: asyncio.subprocess.Process, heard: Any, fault: Fault) -> None:
    from anyio import BrokenResourceError, ClosedResourceError

    output, banners = cast(asyncio.StreamReader, process.stdout), 0
    async with heard:
        while True:
            try:
                line = await output.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return fault.tell("the server ended")
            except (asyncio.LimitOverrunError, ValueError):
                return fault.tell("the server sent a message that is too large")
            except OSError as error:
                return fault.tell(f"the server could not be read: {type(error).__name__}")
            message = _message(line)
            if message is None:
                banners += 1
                if banners > BANNERS or not _is_aside(line):
                    return fault.tell("the server sent something that is no message")
                continue
            with suppress(ClosedResourceError, BrokenResourceError):
                await heard.send(message)


def _message(line: bytes) -> object | None:
    """A message as the package has it; None for bytes that are none."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _is_aside(line: bytes) -> bool:
    """Whether a line is no message and was not meant to be one: a banner, or a line for a log."""
    if not line.lstrip().startswith(b"{"):
        return True
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return "jsonrpc" not in held


async def _write(process: asyncio.subprocess.Process, to_write: Any, fault: Fault) -> None:
    given = cast(asyncio.StreamWriter, process.stdin)
    try:
        async with to_write:
            async for message in to_write:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                given.write(text.encode() + b"\n")
                await given.drain()
    except (OSError, ValueError) as error:  # a pipe that is closed; words that UTF-8 does not have
        fault.tell(f"the server could not be written to: {type(error).__name__}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closes the input, then asks the program to end, then kills it, with all that it started."""
    if process.stdin is not None:
        process.stdin.close()
    draining = asyncio.create_task(_drain(process))
    try:
        for told in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            if told is not None:
                _signal(process, told)
            if await _ended(process):
                break
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM), leader=False)  # what it left behind
    finally:
        draining.cancel()
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Reads what nobody wants: a program that is stuck writing does not see that its input was closed."""
    output = cast(asyncio.StreamReader, process.stdout)
    with suppress(OSError):
        while await output.read(65_536):
            pass


async def _ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends in time. `Process.wait` would wait for its output to end too, which a child of it may hold."""
    until = asyncio.get_running_loop().time() + GRACE_S
    while process.returncode is None and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.01)
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, told: int, *, leader: bool = True) -> None:
    """To the whole group of the program, which began a session of its own. There are none on Windows."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, told)
        elif leader:
            process.send_signal(told)


# ---- an address ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def http_streams(
    source: Http, headers: Callable[[], Awaitable[Mapping[str, str]]], most: int, fault: Fault
) -> AsyncGenerator[tuple[Any, Any]]:
    """Yields the messages of the server at an address and where to write."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Checked(httpx2.AsyncByteStream):
        """A body piece by piece, as `_events` or `_body` lets it through."""

        def __init__(self, response: httpx2.Response, *, is_events: bool) -> None:
            self._inner: Any = response.stream
            is_message = response.status_code == 200
            self._pieces = _events(self._inner, most) if is_events else _body(self._inner, most, is_message=is_message)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._pieces:
                if isinstance(piece, str):
                    fault.tell(piece)
                    raise httpx2.RemoteProtocolError(piece)
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def sign(request: httpx2.Request) -> None:
        for name, value in (await headers()).items():
            request.headers[name] = value

    async def bound(response: httpx2.Response) -> None:
        if response.request.method == "POST" and (answered := ANSWERED.get(None)) is not None:
            answered.append(response.status_code)
        if wrong := _wrong(response):
            fault.tell(wrong)
            raise httpx2.RemoteProtocolError(wrong)
        kind = _without_words(response.headers)
        response.stream = Checked(response, is_events=kind.startswith("text/event-stream"))

    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(30.0, read=300.0), headers={"accept-encoding": "identity"},
        event_hooks={"request": [sign], "response": [bound]},
    )  # fmt: skip
    async with client, streamable_http_client(source.url, http_client=client, max_sse_event_size=most) as streams:
        yield streams


def _wrong(response: Any) -> str:
    """What is wrong with an answer before it is read; empty where nothing is."""
    if response.headers.get("content-encoding", "identity") != "identity":
        return "the server sent a packed answer, which was not asked for"
    if response.request.method == "POST" and 300 <= response.status_code < 400:  # it is not followed
        return f"it answered with HTTP status {response.status_code}"
    return ""


def _without_words(headers: Any) -> str:
    """Which type of content it is. What the package would write to a log where it is of no use to it, goes."""
    headers.pop("location", None)
    kind: str = headers.get("content-type", "").lower()
    if kind and not kind.startswith(("application/json", "text/event-stream")):
        headers["content-type"] = "application/octet-stream"
    return kind


async def _events(stream: Any, most: int) -> AsyncIterator[bytes | str]:
    """Events one by one, or what is wrong with them: what is no message the package would write to a log, too."""
    left, seen = bytearray(), 0
    async for piece in stream:
        left += piece
        while (end := _event_end(left, max(seen - 3, 0))) is not None:
            event, seen = bytes(left[: end.end()]), 0
            del left[: end.end()]
            if (found := _event(event)) is not None:
                yield found
        seen = len(left)
        if seen > most:
            yield "the server sent a message that is too large"
            return
    if (found := _event(bytes(left))) is not None:
        yield found


_LINE_END = rb"(?:\r\n|\n|\r(?!\n))"
_event_end = re.compile(_LINE_END + _LINE_END).search
_lines = re.compile(_LINE_END).split


def _event(event: bytes) -> bytes | str | None:
    """An event with a message, or with none in it; None for one of another kind, which nobody wants."""
    data, kind = list[bytes](), b""
    for line in _lines(event):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            kind = value.removeprefix(b" ")
    if kind not in {b"", b"message"}:
        return None
    if any(data) and _message(b"\n".join(data)) is None:
        return "the server sent something that is no message"
    return event


async def _body(stream: Any, most: int, *, is_message: bool) -> AsyncIterator[bytes | str]:
    """A body, or what is wrong with it. What is to be a message and is none, the package would write to a log."""
    body = bytearray()
    async for piece in stream:
        body += piece
        if len(body) > most:
            yield "the server sent a message that is too large"
            return
    if is_message and _message(bytes(body)) is None:
        yield "the server sent something that is no message"
    yield bytes(body)


# ---- both ------------------------------------------------------------------------------------------------------------


class Sifted:
    """Messages of a server as the `mcp` package should see them.

    Lists of tools are set aside as they came, and read by the package in part: it reads a list as a whole, so that one
    malformed tool would hide all the others. Of what a server tells unasked only that its tools changed is of use; the
    package would write the rest to a log where it is malformed.
    """

    def __init__(self, inner: Any, listed: Callable[[list[Any]], None], changed: Callable[[], None]) -> None:
        self._inner, self._listed, self._changed = inner, listed, changed

    @property
    def last_context(self) -> Any:
        """Where the message came from; the package asks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        while not self._passes(item := await self._inner.receive()):
            pass
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self._passes(item := await self._inner.__anext__()):
            pass
        return item

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        left: bool | None = await self._inner.__aexit__(kind, error, trace)
        return left

    def _passes(self, item: Any) -> bool:
        """Whether the package is to see a message; of one with tools, only what it can read."""
        message: Any = getattr(item, "message", None)
        result = getattr(message, "result", None)
        if isinstance(result, dict) and isinstance(listed := result.get("tools"), list):
            self._listed(listed)
            result["tools"] = [_readable(tool) for tool in listed if _has_name(tool)]
        method = getattr(message, "method", None)
        if method is None or hasattr(message, "id"):
            return True  # an answer, or a request, which the package refuses
        if method == CHANGED:
            self._changed()
        is_awaited = isinstance((message.params or {}).get("_meta"), dict)
        return method in KEPT and (is_awaited or method != CHANGED)


def _has_name(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _readable(tool: dict[str, Any]) -> dict[str, Any]:
    """What the package needs of a tool: its name, and which arguments are to be sent as headers too."""
    schema = tool.get("inputSchema")
    held = schema.get("properties") if isinstance(schema, dict) else None
    held = held if isinstance(held, dict) else {}
    properties = {name: each for name, each in held.items() if isinstance(each, dict)}
    return {"name": tool["name"], "inputSchema": {"type": "object", "properties": properties}}
