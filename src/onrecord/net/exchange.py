"""One request and its answer: proxies, the one resend, silence before the answer, and who is to blame."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from onrecord.errors import ErrorKind, ModelError
from onrecord.net.heads import Known
from onrecord.net.proxies import proxy_for
from onrecord.net.reply import Reply, Response
from onrecord.net.silence import Alarm, Silence, Watch

__all__ = ("Client", "Clients", "Endpoint", "Exchange", "Meaning", "Sent", "Wire")


class Endpoint(NamedTuple):
    """A parsed address. ``host`` is how messages name it, ``target`` what the client takes."""

    url: str
    target: Any
    scheme: str
    name: str
    port: int
    host: str


class Meaning(NamedTuple):
    """What a client's exception means: a kind, what happened (after "provider: host "), what to do."""

    kind: ErrorKind
    what: str
    hint: str = ""


_WAIT = "try again, give it more time (silence_s=), or ask another model"


class Wire(Protocol):
    """The connection a request went out on: whether it was reset, and with what."""

    lost: BaseException | None


class Sent:
    """A request body on its way.

    ``touch`` is called whenever a part of it has gone out, ``wire`` is set once it has a connection; ``known`` is what
    the client may remember of the request.
    """

    __slots__ = ("content", "known", "touch", "wire")

    def __init__(self, content: bytes, touch: Callable[[], None]) -> None:
        self.content, self.touch = content, touch
        self.wire: Wire | None = None
        self.known: Known | None = None


class Client(Protocol):
    """What an exchange needs of the HTTP client of its loop."""

    alarm: Alarm

    def endpoint(self, url: str) -> Endpoint | None:
        """The parsed address, or None when it is no http or https URL."""

    async def request(
        self,
        method: str,
        endpoint: Endpoint,
        body: Sent | None,
        headers: Mapping[str, str],
        proxy: str | None,
        connect_s: float,
    ) -> Response:
        """Sends, and waits for the head of the answer."""

    def is_stale(self, body: Sent, problem: BaseException) -> bool:
        """Whether a kept connection failed before a byte of the answer came."""

    def drop_idle(self, endpoint: Endpoint) -> None:
        """Closes every connection to the endpoint that is not in use."""

    def meaning(self, problem: BaseException) -> Meaning:
        """What an exception of `request` or of a body's stream means."""


class Clients(Protocol):
    """Where an exchange finds the client of its loop."""

    def now(self, loop: asyncio.AbstractEventLoop, /) -> Client | None:
        """The client, if there is one already."""

    async def open(self, loop: asyncio.AbstractEventLoop, /) -> Client:
        """The client, made if need be."""


class Exchange:
    """An async context manager: entered it is a `Reply`, left it is over."""

    __slots__ = (
        "_body",
        "_client",
        "_clients",
        "_connect_s",
        "_headers",
        "_host",
        "_method",
        "_provider",
        "_reply",
        "_silence_s",
        "_url",
        "_wire",
    )

    def __init__(
        self,
        clients: Clients,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        provider: str,
        silence_s: float,
        connect_s: float,
    ) -> None:
        self._clients, self._method, self._url, self._body, self._headers = clients, method, url, body, headers
        self._provider, self._silence_s, self._connect_s = provider, silence_s, connect_s
        self._host = ""
        self._client: Client
        self._wire: Wire | None = None
        self._reply: Reply | None = None

    async def __aenter__(self) -> Reply:
        loop = asyncio.get_running_loop()
        self._client = client = self._clients.now(loop) or await self._clients.open(loop)
        endpoint = client.endpoint(self._url)
        if endpoint is None:
            raise self.error("invalid", "has an address that is no http or https URL", hint="check the base URL")
        self._host = endpoint.host
        proxy = proxy_for(endpoint.scheme, endpoint.name, endpoint.port)
        if proxy is not None and not proxy.startswith(("http://", "https://")):
            raise self.error(
                "invalid",
                "would be reached through a proxy that is not an HTTP proxy",
                hint="set HTTPS_PROXY or HTTP_PROXY to an http:// address, or name the host in NO_PROXY",
            )
        watch = Watch(client.alarm, self._silence_s)
        try:
            response = await self._send(endpoint, proxy, watch)
        except BaseException:
            watch.stop()
            raise
        watch.answered(response.content)
        self._reply = reply = Reply(response, watch, self)
        return reply

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reply is not None:
            self._reply.cut()
            self._reply = None  # the two would keep each other until a garbage collection

    async def _send(self, endpoint: Endpoint, proxy: str | None, watch: Watch) -> Response:
        client, content = self._client, self._body
        resent = False
        while True:
            body = None if content is None else Sent(content, watch.touch)
            try:
                response = await client.request(self._method, endpoint, body, self._headers, proxy, self._connect_s)
            except asyncio.CancelledError:
                if watch.took_over():
                    raise self.failure(Silence(watch.limit)) from None
                raise
            except Exception as problem:  # noqa: BLE001 - every one of them is a failed request
                if resent or body is None or not client.is_stale(body, problem):
                    raise self.failure(problem) from None
                # The peer has closed a kept-alive connection. What else is kept to it is as old: none of it is tried.
                resent = True
                client.drop_idle(endpoint)
            else:
                self._wire = None if body is None else body.wire
                return response

    def error(
        self, kind: ErrorKind, what: str, *, hint: str = "", status: int | None = None, started: bool = False
    ) -> ModelError:
        """A `ModelError` that begins with the provider and the host."""
        subject = f"{self._provider}: {self._host}" if self._host else self._provider
        return ModelError(
            f"{subject} {what}", kind=kind, provider=self._provider, status=status, started=started, hint=hint
        )

    def failure(self, problem: BaseException, *, status: int | None = None, started: bool = False) -> ModelError:
        """What an exception of the client means. It is never quoted: its text may hold keys from the address."""
        if isinstance(problem, Silence):
            where = "in the middle of its answer" if status is not None else "before it answered"
            kind, what, hint = Meaning("timeout", f"sent {problem.nothing} for {problem.seconds:g} s {where}", _WAIT)
        else:
            kind, what, hint = self._client.meaning(problem)
        return self.error(kind, what, hint=hint, status=status, started=started)

    def reset(self) -> BaseException | None:
        """The reset that ended an answer of no stated length, if one did."""
        wire, reply = self._wire, self._reply
        if wire is None or wire.lost is None or reply is None:
            return None
        stated = "content-length" in reply.headers or "transfer-encoding" in reply.headers
        return None if stated else wire.lost
