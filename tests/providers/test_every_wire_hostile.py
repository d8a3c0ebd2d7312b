"""Servers that mean harm or are broken, on every wire: a clear error, bounded memory, and no key for anybody else."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import aclosing

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import TextChunk
from onrecord.models.model import Model
from onrecord.net import reply
from onrecord.providers.api_keys import Key
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, Peer, Script, chunk, serving
from tests.providers.wires import ASKED, KEY, Heard, Wire, by_model, each_wire

pytestmark = [pytest.mark.integration, each_wire]

MIB = 1 << 20


async def met(wire: Wire, script: Script) -> tuple[Heard, Loopback]:
    """What a model of the wire made of a server. No error shows the key or the conversation."""
    async with serving(script) as server:
        told = await by_model(wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0]))
    assert not server.failures
    assert KEY not in told.error
    return told, server


def answer(head: str, body: bytes = b"") -> Script:
    """One answer, byte by byte as given."""

    async def script(peer: Peer) -> None:
        await peer.request()
        lines = "".join(f"{line}\r\n" for line in head.split("\n"))
        await peer.send(f"{lines}Connection: close\r\n\r\n".encode() + body)

    return script


EVENTS = "HTTP/1.1 200 OK\nContent-Type: text/event-stream"


async def test_a_reply_in_order_is_heard(wire: Wire) -> None:
    """So that the tests below fail for the reason that they name."""
    told, server = await met(wire, answer(EVENTS, b"".join(wire.hello)))
    assert (told.text, told.finish, told.error) == ("Hello", "stop", "")
    assert [KEY in value for value in server.requests[0].fields.values()].count(True) == 1
    assert KEY not in server.requests[0].line


@pytest.mark.parametrize("odd", ["\n", "\r\nX-Evil: 1", "\x00", "\x7f", "\ud800"], ids=ascii)
async def test_a_key_that_no_header_can_hold_stays_where_it_is(
    wire: Wire, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, and nothing that the error leads to holds the key: whoever encodes it quotes what it cannot."""
    monkeypatch.setattr(Key, "read", lambda _: f"{KEY}{odd}tail")
    async with serving(answer(EVENTS)) as server:
        with pytest.raises(ModelError) as caught:
            await drained(wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0]))
    assert caught.value.kind == "invalid"
    assert not server.requests
    problem: BaseException | None = caught.value
    while problem is not None:
        assert KEY not in repr(problem)
        problem = problem.__cause__ or problem.__context__


async def drained(model: Model) -> None:
    """Asks, for what it raises."""
    async for _ in model.stream(ASKED):
        pass


async def test_trailing_garbage_changes_nothing(wire: Wire) -> None:
    """What comes behind the end was never part of the reply."""
    told, _ = await met(wire, answer(EVENTS, b"".join(wire.hello) + b"data: {{{{\n\ndata: [1,2\n\n\xff\xfe"))
    assert told.text == "Hello" or told.error.startswith("invalid")


async def test_garbage_inside_is_an_error(wire: Wire) -> None:
    """An event that is not of the protocol is never passed over as if nothing had been lost."""
    told, _ = await met(wire, answer(EVENTS, wire.hello[0] + b"data: {{{{\n\n" + b"".join(wire.hello[1:])))
    assert told.error.startswith("invalid")


@pytest.mark.parametrize(
    ("head", "body", "kind"),
    [
        ("HTTP/1.1 200 OK\nContent-Type: text/html", b"<html>Sign in</html>", "invalid"),
        ("HTTP/1.1 200 OK\nContent-Type: text/plain", b"what?", "network"),
        ("HTTP/1.1 200 OK\nContent-Type: image/png", b"\x89PNG\r\n\x1a\n", "network"),
        (EVENTS, b"", "network"),
        ("HTTP/1.1 204 No Content", b"", "network"),
        ("HTTP/1.1 200 OK\nContent-Type: application/json", b'{"half":', "invalid"),
        ("HTTP/1.1 200 OK\nContent-Type: application/json", b'{"hello":"world"}', "invalid"),
        ("HTTP/1.1 502 Bad Gateway\nContent-Type: text/html", b"<html>bad gateway</html>", "overload"),
        ("HTTP/1.1 404 Not Found\nContent-Type: text/html", b"<html>nothing here</html>", "model"),
        (EVENTS + "\nContent-Encoding: gzip", b"no gzip at all", "network"),
        (
            "HTTP/1.1 200 OK\nContent-Type: application/json",
            b'{"error":{"code":"x","message":"overloaded"}}',
            "overload",
        ),
    ],
)
async def test_answers_that_are_none_are_told(wire: Wire, head: str, body: bytes, kind: str) -> None:
    """By kind, and without a word of what came."""
    told, _ = await met(wire, answer(head, body))
    assert told.error.split()[0] == kind
    assert not told.text
    assert "html" not in told.error
    assert told.error.split()[2] == "False"


@pytest.mark.parametrize(
    ("head", "body", "told"),
    [
        ("HTTP/1.1 404 Not Found\nContent-Type: text/html", b"<html>nothing here</html>", "the base URL"),
        ("HTTP/1.1 404 Not Found\nContent-Type: text/plain", b"404: Not Found", "the base URL"),
        ("HTTP/1.1 405 Method Not Allowed", b"", "the base URL"),
        ("HTTP/1.1 404 Not Found\nContent-Type: application/json", b'{"error":"no such model"}', "the model's name"),
        ("HTTP/1.1 200 OK\nContent-Type: application/json", b'{"hello":"world"}', "the base URL"),
    ],
)
async def test_an_address_that_leads_elsewhere_is_told_from_a_model_that_is_not_there(
    wire: Wire, head: str, body: bytes, told: str
) -> None:
    """An API says in JSON what it does not have; a web server knows only paths."""
    async with serving(answer(head, body)) as server:
        with pytest.raises(ModelError) as caught:
            await drained(wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0]))
    assert f"check {told}" in (caught.value.hint or "")


async def test_an_error_inside_a_stream_is_told(wire: Wire) -> None:
    """A status of 200 promises nothing."""
    told, _ = await met(wire, answer(EVENTS, wire.hello[0] + wire.failing))
    assert told.error.startswith("overload")


async def test_a_key_never_follows_a_redirect(wire: Wire) -> None:
    """Neither to another host nor at all."""

    async def other(peer: Peer) -> None:
        await peer.request()

    async with serving(other) as elsewhere:
        head = f"HTTP/1.1 307 Go\nLocation: http://localhost:{elsewhere.port}/v1/steal"
        told, server = await met(wire, answer(head))
    assert told.error.startswith("invalid 307")
    assert len(server.requests) == 1
    assert not elsewhere.requests


async def test_an_endless_stream_ends_in_an_error(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never stops talking; here the limit is lower, so that the test is short."""
    monkeypatch.setattr(reply, "LARGEST", 2 * MIB)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        many = chunk(b": nothing\n\n" * 1_000 + b"".join(wire.hello[:1]))
        while True:
            await peer.send(many)

    told, _ = await met(wire, script)
    assert told.error.startswith("invalid")
    assert "bytes" in told.error


async def test_a_line_of_a_hundred_megabytes_is_not_kept(wire: Wire) -> None:
    """It ends where no event is that long, and what was held is bounded."""
    piece = chunk(b"x" * MIB)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: "))
        for _ in range(100):
            await peer.send(piece)
        await peer.send(LAST_CHUNK)

    tracemalloc.start()
    try:
        told, _ = await met(wire, script)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told.error.startswith("invalid")
    assert peak < 100 * MIB


async def test_leaving_a_stream_cuts_the_call(wire: Wire) -> None:
    """The provider stops writing, and charging."""
    gone = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"".join(wire.hello[:3])))
        await peer.gone()
        gone.set()

    async with serving(script) as server:
        model = wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0])
        async with aclosing(model.stream(ASKED)) as chunks:
            assert await anext(chunks) == TextChunk("Hel")
        await asyncio.wait_for(gone.wait(), 5)
