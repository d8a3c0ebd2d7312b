"""Asking again on a kept connection says what the first request said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest

from onrecord.errors import ModelError
from onrecord.net import heads, transport
from onrecord.net.transport import post
from tests.net.asking import BODY, HEADERS, ask, refused
from tests.net.loopback import JSON, OK, SSE_HEAD, Loopback, Peer, answering, chunk, serving

pytestmark = pytest.mark.integration


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The heads that were sent again."""
    sent: list[bytes] = []
    real = heads.Known.head

    def head(self: heads.Known, size: int) -> bytes:
        sent.append(real(self, size))
        return sent[-1]

    monkeypatch.setattr(heads.Known, "head", head)
    return sent


async def test_the_second_request_says_what_the_first_said(known: list[bytes]) -> None:
    """Line and fields are equal, only the length is the new body's."""
    async with serving(answering(OK)) as server:
        await ask(server)
        assert await ask(server, BODY + b" ") == JSON
        first, second = server.requests
        assert len(known) == 1
        assert second.line == first.line
        assert second.fields == {**first.fields, "content-length": str(len(BODY) + 1)}
        assert second.head.lower().count(b"\r\ncontent-length:") == 1
        assert second.body == BODY + b" "
        assert server.connections == 1


async def test_a_large_body_is_the_client_s(known: list[bytes]) -> None:
    """It goes out in slices, on the same connection; one of just the size for a single piece does not."""
    async with serving(answering(OK)) as server:
        for size in (1, transport.WHOLE, transport.WHOLE + 1):
            assert await ask(server, bytes(size)) == JSON
        assert [len(asked.body) for asked in server.requests] == [1, transport.WHOLE, transport.WHOLE + 1]
        assert len(known) == 1
        assert server.connections == 1


async def test_other_headers_are_another_request(known: list[bytes]) -> None:
    """A key that changed goes out, at once and again."""
    async with serving(answering(OK)) as server:
        await ask(server)
        for _ in range(2):
            async with post(server.url, BODY, headers={**HEADERS, "X-Tenant": "b"}, provider="acme") as reply:
                await reply.read()
        assert ["x-tenant" in asked.fields for asked in server.requests] == [False, True, True]
        assert len(known) == 1


async def test_a_client_of_other_parts_does_it_all_itself(known: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the client is not the one known, nothing is sent past it."""
    monkeypatch.setattr(transport, "knows", lambda *_: False)
    transport._kit.cache_clear()
    try:
        async with serving(answering(OK)) as server:
            for _ in range(3):
                assert await ask(server) == JSON
            assert not known
            assert server.connections == 1
    finally:
        transport._kit.cache_clear()


def test_parts_that_are_not_those_known() -> None:
    """A client whose parts take other arguments is left alone."""

    class Handler:
        def set_response_params(self, *, timer: object = None) -> None: ...

    class Connector:
        async def _get(self, key: object, traces: object) -> None: ...

    assert not heads.knows(Connector, Handler)


async def test_an_answer_that_only_promises_another(known: list[bytes]) -> None:
    """Early hints are passed over, as the client does."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)

    async with serving(script) as server:
        assert [await ask(server), await ask(server)] == [JSON, JSON]
        assert len(known) == 1


async def test_an_answer_of_no_stated_length(known: list[bytes]) -> None:
    """It goes on until its connection ends, as the first answer of a connection may."""

    async def until_the_end(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + JSON[:4])
        await peer.send(JSON[4:])

    async with serving(_once_then(until_the_end)) as server:
        assert [await ask(server), await ask(server)] == [JSON, JSON]
        assert len(known) == 1
        assert server.connections == 1


async def test_a_connection_that_still_sends_or_is_gone_is_not_used_again() -> None:
    """It is closed, nothing is written to it, and the client is left to open another."""
    closed: list[bool] = []

    class Connector:
        def __init__(self, *, paused: bool, connected: bool) -> None:
            wire = SimpleNamespace(writing_paused=paused, is_connected=lambda: connected)
            self._kept = SimpleNamespace(protocol=wire, close=lambda: closed.append(True))

        async def _get(self, key: object, traces: object) -> SimpleNamespace:
            return self._kept

    known, body = heads.Known("key", "POST / HTTP/1.1", {}), SimpleNamespace(content=BODY)
    assert await heads.ask_again(Connector(paused=True, connected=True), known, body, 1 << 15) is None
    assert await heads.ask_again(Connector(paused=False, connected=False), known, body, 1 << 15) is None
    assert closed == [True, True]


async def _second(server: Loopback) -> ModelError:
    await ask(server)
    return await refused(server, silence_s=0.3)


def _once_then(then: Callable[[Peer], Awaitable[None]]) -> Callable[[Peer], Awaitable[None]]:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await then(peer)

    return script


async def test_failures_of_a_second_request_are_told_like_those_of_a_first(known: list[bytes]) -> None:
    """What is no HTTP, and silence, each in the words they always have."""

    async def babbles(peer: Peer) -> None:
        await peer.send(b"SMTP ready\r\n\r\n")

    async with serving(_once_then(babbles)) as server:
        assert (await _second(server)).kind == "invalid"
    async with serving(_once_then(Peer.gone)) as server:
        assert (await _second(server)).kind == "timeout"
    assert len(known) == 2


async def test_leaving_early_cuts_the_connection_and_ends_other_readers(known: list[bytes]) -> None:
    """A task that still reads an answer which was left learns that it is over."""

    async def streams(peer: Peer) -> None:
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await peer.gone()

    async with serving(_once_then(streams)) as server:
        await ask(server)
        async with post(server.url, BODY, headers=HEADERS, provider="acme") as reply:
            assert reply.status == 200
            reader = asyncio.create_task(reply.read())
            await asyncio.sleep(0.05)
            assert not reader.done()
        with pytest.raises(ModelError) as caught:
            await reader
        assert caught.value.kind == "network"
        assert len(known) == 1


async def test_heads_are_few() -> None:
    """Keys that change all the time do not fill the memory."""
    kept = heads.Heads()
    for n in range(200):
        kept.learn("u", {"Authorization": f"k{n}"}, heads.Known(None, "POST / HTTP/1.1", {}))
    assert len(kept._known) <= heads.KEPT
    assert kept.find("u", {"Authorization": "k199"})
    assert kept.find("u", {"Authorization": "k0"}) is None
