"""One request and its answer, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import socket

import pytest

from onrecord.errors import ModelError
from onrecord.net import transport
from onrecord.net.transport import close, get, post, prewarm
from tests.net.asking import BODY, HEADERS, ask, refused
from tests.net.loopback import JSON, OK, Loopback, answering, serving

pytestmark = pytest.mark.integration


async def test_what_goes_out_and_what_comes_back() -> None:
    """Body and headers arrive as given, with few of the client's own; status and headers come back."""
    async with serving(answering(OK)) as server:
        async with post(server.url, BODY, headers=HEADERS, provider="acme") as reply:
            assert reply.status == 200
            assert reply.headers["content-TYPE"] == "application/json"
            assert await reply.read() == JSON
        (asked,) = server.requests
        assert asked.line == "POST /v1/chat?key=sk-in-the-address HTTP/1.1"
        assert asked.body == BODY
        assert asked.fields == {
            "host": f"127.0.0.1:{server.port}",
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "onrecord",
            "authorization": "Bearer sk-in-a-header",
            "content-type": "application/json",
            "content-length": str(len(BODY)),
        }


async def test_get() -> None:
    """A list of models is asked for without a body."""
    async with serving(answering(OK)) as server:
        async with get(server.url, headers=HEADERS, provider="acme") as reply:
            assert await reply.read() == JSON
        assert server.requests[0].line.startswith("GET ")


async def test_connections_are_kept() -> None:
    """Calls one after the other share a connection, calls at once do not wait for each other."""
    async with serving(answering(OK)) as server:
        await prewarm()
        for _ in range(3):
            assert await ask(server) == JSON
        assert server.connections == 1
        await asyncio.gather(*(ask(server) for _ in range(40)))
        assert server.connections <= 40
        assert len(server.requests) == 43


async def test_a_closed_session_is_opened_again() -> None:
    """`close` is for this loop and for now."""
    async with serving(answering(OK)) as server:
        await ask(server)
        await close()
        await close()
        await ask(server)
        assert server.connections == 2


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 3_000_000, 24_000_000])
async def test_bodies_of_any_size(size: int) -> None:
    """A body of tens of megabytes arrives whole, and warns of nothing."""
    body = bytes(range(256)) * (size // 256 + 1)
    async with serving(answering(OK)) as server:
        assert await ask(server, body[:size]) == JSON
        assert server.requests[0].body == body[:size]


async def test_the_loop_runs_on_while_a_large_body_goes_out() -> None:
    """Sending is cut into slices that wait for the peer."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with serving(answering(OK)) as server:
        await ask(server)
        ticking = asyncio.create_task(tick())
        await ask(server, bytes(16_000_000))
        ticking.cancel()
    assert ticks > 20


async def test_a_connection_given_up_says_no_more() -> None:
    """Neither unsent bytes nor a farewell keep it open: it is aborted, not closed when all is said."""
    ends: list[str] = []

    class Line(asyncio.Transport):
        def abort(self) -> None:
            ends.append("abort")

        def close(self) -> None:
            ends.append("close")

    wire = transport._wire_class()(loop=asyncio.get_running_loop())
    wire.connection_made(Line())
    wire.close()
    assert ends == ["abort"]


async def test_a_redirect_is_an_answer() -> None:
    """Nothing is followed, with a key in the header least of all."""
    moved = b"HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(moved)) as server:
        async with post(server.url, BODY, headers=HEADERS, provider="acme") as reply:
            assert (reply.status, reply.headers["location"]) == (307, "/elsewhere")
            assert await reply.read() == b""
        assert len(server.requests) == 1


async def test_no_cookie_is_kept() -> None:
    """A cookie set by the server never comes back to it, on a connection that the client makes anew either."""
    setting = OK.replace(b"OK\r\n", b"OK\r\nSet-Cookie: a=b\r\nConnection: close\r\n", 1)
    async with serving(answering(setting)) as server:
        server.host = "localhost"  # jars keep nothing of a bare address
        await ask(server)
        await ask(server)
        assert "cookie" not in server.requests[1].fields


async def test_a_compressed_answer_is_unpacked() -> None:
    """We ask for plain bytes, and read gzip all the same."""
    packed = gzip.compress(JSON)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with serving(answering(head + packed)) as server:
        assert await ask(server) == JSON


@pytest.mark.parametrize("chunked", [True, False])
async def test_an_answer_over_the_limit(chunked: bool) -> None:
    """A body is read up to the limit and not a network read more."""
    head = b"Transfer-Encoding: chunked\r\n\r\nc8\r\n" if chunked else b"Content-Length: 200\r\n\r\n"
    answer = b"HTTP/1.1 500 Oh\r\n" + head + b"x" * 200 + (b"\r\n0\r\n\r\n" if chunked else b"")
    async with serving(answering(answer)) as server:
        async with post(server.url, BODY, headers=HEADERS, provider="acme") as reply:
            with pytest.raises(ModelError, match="more than 100 bytes") as caught:
                await reply.read(limit=100)
        assert (caught.value.kind, caught.value.status) == ("invalid", 500)
        async with post(server.url, BODY, headers=HEADERS, provider="acme") as reply:
            assert len(await reply.read(limit=200)) == 200


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX-Bomb: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Many: y\r\n" * 5_000 + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 100_000,
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: lots\r\n\r\n",
    ],
    ids=["long header", "many headers", "long status", "no HTTP", "bad length"],
)
async def test_heads_that_cannot_be_read(answer: bytes) -> None:
    """A head is bounded and has to be HTTP."""
    async with serving(answering(answer)) as server:
        error = await refused(server)
    assert error.kind == "invalid"


async def test_a_long_header_in_reason_is_read() -> None:
    """Providers put a few kilobytes into one header, and proxies into the words behind the status."""
    for more in (b"\r\nX-Policy: ", b" "):
        async with serving(answering(OK.replace(b"OK\r\n", b"OK" + more + b"x" * 20_000 + b"\r\n", 1))) as server:
            assert [await ask(server), await ask(server)] == [JSON, JSON]


async def test_nobody_listens() -> None:
    """A refused connection is told with what to check."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        error = await refused(Loopback(port=free.getsockname()[1]))
    assert error.kind == "network"
    assert "connection refused" in str(error)
    assert "server runs" in error.hint


async def test_an_address_in_numbers_is_told_apart_from_its_port() -> None:
    """One of version 6 stands in brackets, as in the address."""
    with pytest.raises(ModelError, match=r"^acme: \[::1\]:9 cannot be reached"):
        async with post("http://[::1]:9/v1", BODY, headers=HEADERS, provider="acme"):
            pass


async def test_a_name_that_does_not_resolve() -> None:
    """Names of the reserved domain `invalid` exist nowhere."""
    with pytest.raises(ModelError, match=r"^acme: nowhere\.invalid has a name that cannot be resolved") as caught:
        async with post("https://nowhere.invalid/v1", BODY, headers=HEADERS, provider="acme", silence_s=15):
            pass
    assert caught.value.kind == "network"


@pytest.mark.parametrize("url", ["ftp://host/", "host/v1", "", "http://", "http://[bad/", "http://host:99999999/"])
async def test_addresses_that_are_none(url: str) -> None:
    """An address that cannot be asked is said to be that, without being quoted."""
    with pytest.raises(ModelError, match="no http or https URL") as caught:
        async with post(url, BODY, headers=HEADERS, provider="acme"):
            pass
    assert caught.value.kind == "invalid"


async def test_addresses_kept_are_few() -> None:
    """Addresses that change all the time do not fill the memory."""
    await prewarm()
    client = transport._clients.now(asyncio.get_running_loop())
    assert client is not None
    for n in range(600):
        assert client.endpoint(f"http://host/{n}") is not None
    assert len(client._endpoints) <= 256


async def test_a_header_with_a_line_break() -> None:
    """It is refused before anything is sent, and not repeated in the message."""
    async with serving(answering(OK)) as server:
        with pytest.raises(ModelError, match="character it must not") as caught:
            async with post(server.url, BODY, headers={"Authorization": "sk-1\r\nX: y"}, provider="acme"):
                pass
        assert caught.value.kind == "invalid"
        assert "sk-1" not in str(caught.value)
        assert not server.requests
