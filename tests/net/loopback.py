"""Servers on 127.0.0.1 that do exactly what a test says, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

JSON = b'{"ok":true}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(JSON), JSON)
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a body without a stated length."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass
class Asked:
    """One request as it came over the wire."""

    head: bytes
    body: bytes

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode()

    @property
    def fields(self) -> dict[str, str]:
        lines = self.head.decode().split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}


@dataclass
class Peer:
    """One connection of a server, as a script sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    server: Loopback
    asked: int = 0

    async def request(self) -> Asked:
        """The next request; `asyncio.IncompleteReadError` when the client has gone."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = Asked(head, b"").fields
        body = await self.reader.readexactly(int(fields.get("content-length", "0")))
        self.asked += 1
        asked = Asked(head, body)
        self.server.requests.append(asked)
        return asked

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Ends the connection with RST instead of FIN."""
        ends = self.writer.get_extra_info("socket")
        ends.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Returns when the client has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class Loopback:
    """A running server: where it is, and what it was asked."""

    port: int = 0
    scheme: str = "http"
    host: str = "127.0.0.1"
    connections: int = 0
    requests: list[Asked] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/v1/chat?key=sk-in-the-address"


@contextlib.asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Loopback]:
    """Runs ``script`` for every connection; the connection closes when it returns."""
    loopback = Loopback(scheme="https" if tls else "http", host="localhost" if tls else "127.0.0.1")
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loopback.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await script(Peer(reader, writer, loopback.connections, loopback))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client left, which a keep-alive loop finds out this way, or the test is over
        except Exception as problem:  # noqa: BLE001 - shown by the fixture's end
            loopback.failures.append(problem)
        finally:
            tasks.discard(task)
            writer.close()
            with contextlib.suppress(Exception):
                await writer.wait_closed()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls, limit=1 << 20)
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not loopback.failures, loopback.failures


def answering(*parts: bytes) -> Script:
    """A script that answers every request of a connection with the same bytes."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            for part in parts:
                await peer.send(part)
                await asyncio.sleep(0)

    return script
