"""HTTP for every provider: one aiohttp session per event loop, opened on first use and closed with the loop.

    async with post(url, body, headers=headers, provider="openai") as reply:
        if reply.status == 200:
            async for events in reply.event_batches(silence_s=60):
                ...

What callers can rely on:

- Every failure to get bytes is a `ModelError` of kind ``network``, ``timeout`` or ``invalid`` that names provider and
  host, and never a header, a body or the rest of the address. A status is no failure, a redirect included: it is in
  ``reply.status``.
- Nothing is sent twice, with one exception: a kept-alive connection that turns out to be dead before a byte of the
  answer arrived is replaced once by a new one.
- Leaving the ``async with`` before the end of the answer, by an exception or by being cancelled, cuts the connection.
- Cookies, ``.netrc`` and redirects are ignored, TLS is verified, proxies come from the environment at each call.
- A session belongs to one event loop and one process. ``asyncio.run`` closes it; a forked child starts afresh.

aiohttp is imported on first use, in a thread, because that takes a fifth of a second.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from functools import cache, partial
from inspect import signature
from typing import Any, NamedTuple

from onrecord.net.exchange import Endpoint, Exchange, Meaning, Sent
from onrecord.net.heads import Heads, Known, ask_again, knows
from onrecord.net.loops import PerLoop
from onrecord.net.reply import Reply, Response
from onrecord.net.silence import Alarm

__all__ = ("Reply", "close", "get", "post", "prewarm")

CONNECT_S = 30.0
SLICE = 1 << 18  # of a large body, written at a time
WHOLE = 1 << 16  # up to this size a body goes out in one piece with the head
HEAD_LINE = 1 << 15  # longest status line or header field of an answer


def post(
    url: str,
    body: bytes,
    *,
    headers: Mapping[str, str],
    provider: str,
    silence_s: float = 60.0,
    connect_s: float = CONNECT_S,
) -> Exchange:
    """Sends ``body`` and is, as an async context manager, the open `Reply`.

    ``silence_s`` bounds each wait in which nothing moves, ``connect_s`` each attempt to connect. ``provider`` is the
    name errors begin with. The content type is JSON unless ``headers`` says otherwise.
    """
    return Exchange(_clients, "POST", url, body, headers, provider, silence_s, connect_s)


def get(
    url: str, *, headers: Mapping[str, str], provider: str, silence_s: float = 60.0, connect_s: float = CONNECT_S
) -> Exchange:
    """Like `post`, without a body: for lists of models."""
    return Exchange(_clients, "GET", url, None, headers, provider, silence_s, connect_s)


async def prewarm() -> None:
    """Imports the HTTP client without blocking the loop and opens this loop's session."""
    await _clients.open(asyncio.get_running_loop())


async def close() -> None:
    """Closes this loop's session and its connections now; the next request opens a new one."""
    await _clients.close(asyncio.get_running_loop())


class _AiohttpClient:
    """The HTTP client of one event loop."""

    def __init__(self, kit: _Kit, loop: asyncio.AbstractEventLoop) -> None:
        import aiohttp

        self._parts: _Kit = kit
        self._connector = kit.connector(loop)
        self._timeouts = {CONNECT_S: aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)}
        self._endpoints: dict[str, Endpoint] = {}
        self._heads = Heads()
        self.alarm = Alarm(loop)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(loop=loop),
            timeout=self._timeouts[CONNECT_S],
            headers={"Accept-Encoding": "identity", "User-Agent": "onrecord"},
            request_class=kit.request,
            trust_env=False,
            max_line_size=HEAD_LINE,
            max_field_size=HEAD_LINE,
        )
        self.meaning = _meaning

    def endpoint(self, url: str) -> Endpoint | None:
        """The parsed address; the same few come again and again."""
        if (known := self._endpoints.get(url)) is not None:
            return known
        from yarl import URL

        try:
            target = URL(url)
        except ValueError:
            return None
        host, port = target.raw_host, target.port
        if target.scheme not in {"http", "https"} or not host or not port:
            return None
        told = f"[{host}]" if ":" in host else host
        named = told if target.is_default_port() else f"{told}:{port}"
        if len(self._endpoints) >= 256:
            self._endpoints.clear()
        self._endpoints[url] = made = Endpoint(url, target, target.scheme, host, port, named)
        return made

    async def request(
        self,
        method: str,
        endpoint: Endpoint,
        body: Sent | None,
        headers: Mapping[str, str],
        proxy: str | None,
        connect_s: float,
    ) -> Response:
        warm = body is not None and proxy is None and len(body.content) <= WHOLE and self._parts.warm
        if warm and body is not None and (known := self._heads.find(endpoint.url, headers)) is not None:
            answer = await ask_again(self._connector, known, body, HEAD_LINE)
            if answer is not None:
                return answer
        timeout = self._timeouts.get(connect_s)
        if timeout is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        data = None if body is None else self._parts.body(body)
        response: Response = await self._session.request(
            method, endpoint.target, data=data, headers=headers, allow_redirects=False, proxy=proxy, timeout=timeout
        )
        if warm and body is not None and body.known is not None:
            self._heads.learn(endpoint.url, headers, body.known)
        return response

    def is_stale(self, body: Sent, problem: BaseException) -> bool:
        """Whether a request failed on a connection kept from an earlier one, before anything of the answer came."""
        wire: Any = body.wire
        return isinstance(problem, self._parts.broken) and wire is not None and wire.uses > 1 and not wire.heard

    def drop_idle(self, endpoint: Endpoint) -> None:
        self._connector.drop_idle(endpoint.name, endpoint.port)

    async def aclose(self) -> None:
        self.alarm.stop()
        await self._session.close()

    def abandon(self) -> None:
        self._session.detach()  # a session that is never closed would complain when it is collected


class _Kit(NamedTuple):
    """The subclasses of aiohttp's parts that the transport needs, made once aiohttp is imported."""

    connector: Any
    request: Any
    body: Any
    broken: tuple[type[BaseException], ...]
    warm: bool


@cache
def _kit() -> _Kit:
    import aiohttp

    body, wire = _body_class(), _wire_class()
    connector = _connector_class(wire)
    return _Kit(
        connector=connector,
        request=_request_class(body),
        body=body,
        broken=(aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError),
        warm=knows(connector, wire),
    )


def _wire_class() -> Any:
    from aiohttp.client_proto import ResponseHandler

    class Wire(ResponseHandler):
        """A connection that knows how often it was used, whether the present answer has begun, and how it ended."""

        uses = 0
        heard = False
        lost: BaseException | None = None

        def data_received(self, data: bytes) -> None:
            self.heard = True
            super().data_received(data)

        def resume_reading(self, *args: Any, **named: Any) -> None:
            # aiohttp calls this after each chunk that is taken out, and would start its parser over nothing each time.
            if getattr(self, "_reading_paused", True):
                super().resume_reading(*args, **named)

        def connection_lost(self, exc: BaseException | None) -> None:
            self.lost = exc
            super().connection_lost(exc)

        def close(self) -> None:
            # A connection given up has nothing left to say: neither unsent bytes nor a TLS farewell may keep it open.
            self.abort()

    return Wire


def _connector_class(wire: Any) -> Any:
    import aiohttp
    from aiohttp.resolver import ThreadedResolver

    class Connector(aiohttp.TCPConnector):
        """The pool: unlimited, because the number of turns is limited elsewhere or not at all."""

        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(limit=0, keepalive_timeout=60, resolver=ThreadedResolver(loop=loop), loop=loop)
            self._factory = partial(wire, loop=loop)
            self._pid = os.getpid()

        def drop_idle(self, host: str, port: int) -> None:
            for key in [key for key in self._conns if key.host == host and key.port == port]:
                for idle, _ in self._conns.pop(key):
                    idle.close()

        def __del__(self, *args: Any) -> None:
            # In a forked child the sockets are the parent's, and so is the poller they are registered with.
            if self._pid == os.getpid() and not self._loop.is_closed():
                super().__del__(*args)

    return Connector


def _body_class() -> Any:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.payload import Payload

    class Body(Payload):
        """A request body that is already bytes. It goes out in slices, none of them copied, and reports each."""

        _autoclose = True

        def __init__(self, sent: Sent) -> None:
            super().__init__(sent.content, content_type="application/json")
            self._size = len(sent.content)
            self.sent = sent

        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            raise NotImplementedError  # for multipart forms, which this is not

        async def write(self, writer: AbstractStreamWriter) -> None:
            await self.write_with_length(writer, None)

        async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
            whole = memoryview(self.sent.content)
            for start in range(0, len(whole), SLICE):
                await writer.write(whole[start : start + SLICE])
                self.sent.touch()

    return Body


def _request_class(body: Any) -> Any:
    import aiohttp
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.http_writer import StreamWriter

    # With a version of aiohttp whose response is made from other parts, the sending is left to aiohttp.
    known = {"self", "method", "url", "writer", "continue100", "timer", "request_info", "traces", "loop", "session"}
    direct = signature(aiohttp.ClientResponse.__init__).parameters.keys() == known | {"stream_writer"}

    class Request(ClientRequest):
        """Tells the body its connection, and sends a small one at once where aiohttp would start a task for it."""

        response: Any  # aiohttp declares it in a way that type checkers read differently from run to run

        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            wire = conn.protocol
            wire.uses += 1
            wire.heard = False
            if not isinstance(self._body, body):
                return await super().send(conn)
            sent: Sent = self._body.sent
            sent.wire = wire
            line = f"{self.method} {self.url.raw_path_qs} HTTP/1.1"
            sent.known = Known(self.connection_key, line, self.headers)
            if not direct or len(sent.content) > WHOLE or wire.writing_paused or self.proxy is not None:
                return await super().send(conn)
            writer = StreamWriter(wire, self.loop)
            await writer.write_headers(line, self.headers)
            await writer.write(sent.content, drain=False)
            writer.set_eof()
            answer: aiohttp.ClientResponse = self.response_class(
                self.method, self.original_url, writer=None, continue100=None, timer=self._timer,
                request_info=self.request_info, traces=self._traces, loop=self.loop, session=self._session,
                stream_writer=writer,
            )  # fmt: skip
            self.response = answer
            return answer

    return Request


def _meaning(problem: BaseException) -> Meaning:
    """What an exception of aiohttp means, in words of our own."""
    import aiohttp

    for kind, say in _refusals():
        if isinstance(problem, kind):
            return say(problem)
    match problem:
        case asyncio.TimeoutError():
            return Meaning("timeout", "did not take the connection in time", "check the address and the network")
        case aiohttp.ClientPayloadError():
            return Meaning("network", "cut its answer off before the end")
        case aiohttp.ClientResponseError() | aiohttp.http_exceptions.HttpProcessingError():
            return Meaning("invalid", "sent an answer that is not valid HTTP, or a header that is too long")
        case aiohttp.InvalidURL() | ValueError():
            return Meaning(
                "invalid",
                "cannot be asked: the address or a header holds a character it must not",
                "look for a line break or a blank in the base URL, the key and the headers",
            )
        case aiohttp.ClientConnectionError() | OSError():
            return Meaning("network", "closed the connection")
    return Meaning("unknown", f"could not be asked ({type(problem).__name__})")


@cache
def _refusals() -> list[tuple[type[BaseException], Callable[[Any], Meaning]]]:
    """How each way of not getting a connection is reported; the narrower class comes first."""
    import aiohttp

    address = "check the address, that the server runs, and the network"
    return [
        (
            aiohttp.ClientConnectorCertificateError,
            lambda problem: Meaning(
                "network",
                f"showed a TLS certificate that is not trusted ({_reason(problem.certificate_error)})",
                "fix the certificate, or name the authority that signed it in SSL_CERT_FILE",
            ),
        ),
        (
            aiohttp.ClientConnectorDNSError,
            lambda _: Meaning("network", "has a name that cannot be resolved", "check the host name and the network"),
        ),
        (
            aiohttp.ClientProxyConnectionError,
            lambda problem: Meaning(
                "network", f"is behind a proxy that cannot be reached ({_reason(problem.os_error)})", PROXY
            ),
        ),
        (
            aiohttp.ClientHttpProxyError,
            lambda problem: Meaning("network", f"is behind a proxy that answered with status {problem.status}", PROXY),
        ),
        (
            aiohttp.ClientConnectorError,
            lambda problem: Meaning(
                "network",
                f"cannot be reached ({_reason(problem.os_error)})",
                PLAIN if getattr(problem.os_error, "reason", "") in _NO_TLS else address,
            ),
        ),
    ]


_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"}
PLAIN = "what answers there speaks no TLS: the address of a server of your own begins with http:// then"
PROXY = "check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the host in NO_PROXY"


def _reason(problem: BaseException) -> str:
    """The system's own words for an error: they name no host and no address."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return problem.verify_message
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or "TLS error").replace("_", " ").lower()
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno).lower()
    return type(problem).__name__


_clients: PerLoop[_AiohttpClient] = PerLoop(lambda: partial(_AiohttpClient, _kit()))
