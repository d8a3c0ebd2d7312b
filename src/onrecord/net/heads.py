"""Asking again on a kept connection: the head of a request is written once, and only the body is new.

Most requests of a conversation go to the same place with the same headers over a connection that is still open. What
the HTTP client does for each of them (URL, cookies, redirects, headers checked and merged) comes out the same, and is
most of what a request costs. So the head that the client wrote the first time is kept and sent again; the client's
pool, its parser and its streams stay in use. Whatever is not so simple is the client's: a new connection, a proxy, a
large body, a client whose parts are not those known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

__all__ = ("Heads", "Known", "ask_again", "knows")

KEPT = 64
"""Heads remembered; keys change, so a full memory is emptied."""


class Known:
    """What is known of a request that was sent before: where its connections are kept, and its head."""

    __slots__ = ("key", "start")

    def __init__(self, key: object, line: str, headers: Mapping[str, str]) -> None:
        self.key = key
        told = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name.lower() != "content-length")
        self.start = f"{line}\r\n{told}Content-Length: ".encode()

    def head(self, size: int) -> bytes:
        """The head of a request with a body of this size."""
        return b"%b%d\r\n\r\n" % (self.start, size)


class Heads:
    """The requests known so far, by address and headers. Never shown: a head may hold a key."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Known] = {}

    def find(self, url: str, headers: Mapping[str, str]) -> Known | None:
        """What is known of a request to this address with these headers."""
        return self._known.get((url, *headers, *headers.values()))

    def learn(self, url: str, headers: Mapping[str, str], known: Known) -> None:
        """Remembers a request that the client has just sent."""
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[(url, *headers, *headers.values())] = known


class Answer:
    """An answer on a kept connection, which goes back to the pool when all of it has come."""

    __slots__ = ("_connection", "closed", "content", "headers", "status")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.closed = False
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.content: Any = None

    async def begin(self) -> None:
        """Waits for the head; answers that only promise another one are passed over."""
        protocol = self._connection.protocol
        while True:
            message, content = await protocol.read()
            if message.code >= 200 or message.code == 101:
                break
        self.status, self.headers, self.content = message.code, message.headers, content
        content.on_eof(self._ended)

    def _ended(self) -> None:
        if not self.closed:
            self.closed = True
            self._connection.release()

    def close(self) -> None:
        """Cuts the connection, unless the answer has ended."""
        if not self.closed:
            self.closed = True
            if self.content is not None and self.content.exception() is None:
                self.content.set_exception(ConnectionResetError())  # for whoever still waits for more
            self._connection.close()


async def ask_again(connector: Any, known: Known, body: Any, head_line: int) -> Answer | None:
    """Sends on a kept connection what the client would send, and waits for the head of the answer.

    None when no kept connection takes it; then nothing was sent. ``head_line`` bounds the lines of the head.
    """
    connection = await connector._get(known.key, [])  # noqa: SLF001 - see `knows`
    if connection is None:
        return None
    answer = Answer(connection)
    try:
        wire = connection.protocol
        if wire.writing_paused or not wire.is_connected():
            answer.close()
            return None
        body.wire = wire
        wire.uses += 1
        wire.heard = False
        wire.set_response_params(read_until_eof=True, max_line_size=head_line, max_field_size=head_line)
        wire.transport.write(known.head(len(body.content)) + body.content)
        await answer.begin()
    except BaseException:
        answer.close()
        raise
    return answer


def knows(connector: type[Any], handler: type[Any]) -> bool:
    """Whether the client's parts are those that this module was written for."""
    taken = signature(handler.set_response_params).parameters.keys()
    wanted = {"self", "timer", "skip_payload", "read_until_eof", "auto_decompress", "read_timeout", "read_bufsize"}
    more = {"timeout_ceil_threshold", "max_line_size", "max_field_size", "max_headers"}
    return taken == wanted | more and list(signature(connector._get).parameters) == ["self", "key", "traces"]  # noqa: SLF001 - looked at, not called
