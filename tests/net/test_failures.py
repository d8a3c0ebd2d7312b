"""What goes wrong between request and answer: silence, cuts, dead connections."""

from __future__ import annotations

import asyncio

import pytest

from tests.net.asking import ask, refused
from tests.net.loopback import JSON, OK, Peer, Script, serving

pytestmark = pytest.mark.integration


async def test_silence_before_the_answer() -> None:
    """A server that takes the request and says nothing is left after `silence_s`."""

    async def mute(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with serving(mute) as server:
        error = await refused(server, silence_s=0.1)
    assert error.kind == "timeout"
    assert "sent nothing for 0.1 s before it answered" in str(error)


async def test_a_slow_upload_is_no_silence() -> None:
    """As long as the body moves, nobody expects an answer."""

    async def slow_reader(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        left = 24_000_000
        while left:
            left -= len(await peer.reader.read(min(left, 1 << 20)))
            await asyncio.sleep(0.01)
        await peer.send(OK)
        await peer.gone()

    async with serving(slow_reader) as server:
        assert await ask(server, bytes(24_000_000), silence_s=0.2) == JSON


async def test_a_cancellation_from_outside_stays_one() -> None:
    """`CancelledError` is never wrapped, and the server sees the connection go."""
    seen, left = asyncio.Event(), asyncio.Event()

    async def mute(peer: Peer) -> None:
        await peer.request()
        seen.set()
        await peer.gone()
        left.set()

    async with serving(mute) as server:
        task = asyncio.create_task(ask(server))
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(left.wait(), 1)


async def test_cancelling_an_upload_ends_it_at_once() -> None:
    """Bytes still to be sent do not keep the connection open."""
    left = asyncio.Event()

    async def stalled(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.1)
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await peer.gone()
        left.set()

    async with serving(stalled) as server:
        task = asyncio.create_task(ask(server, bytes(64_000_000)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(left.wait(), 1)


def dying(first: bytes, *, reset: bool, then: bytes = OK) -> Script:
    """Answers once on the first connection; the second request there gets ``first`` and the end. Others work."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            if peer.number == 1 and peer.asked == 2:
                await peer.send(first)
                if reset:
                    await asyncio.sleep(0.02)
                    peer.reset()
                return
            await peer.send(then)

    return script


@pytest.mark.parametrize("reset", [True, False])
async def test_a_dead_kept_connection_is_replaced_once(reset: bool) -> None:
    """The request goes out again on a new connection, and only then."""
    async with serving(dying(b"", reset=reset)) as server:
        assert await ask(server) == JSON
        assert await ask(server) == JSON
        assert (server.connections, len(server.requests)) == (2, 3)


async def test_a_connection_closed_while_idle_is_replaced() -> None:
    """The most usual case: the server closes a kept connection after a while."""

    async def short_lived(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)

    async with serving(short_lived) as server:
        for _ in range(3):
            assert await ask(server) == JSON
            await asyncio.sleep(0.02)
        assert (server.connections, len(server.requests)) == (3, 3)


async def test_the_resend_takes_no_other_old_connection() -> None:
    """With several stale connections kept, one resend is still enough."""
    stale = asyncio.Event()

    async def restarted(peer: Peer) -> None:
        while True:
            await peer.request()
            if peer.number <= 5 and stale.is_set():
                return
            await asyncio.sleep(0.02)
            await peer.send(OK)

    async with serving(restarted) as server:
        await asyncio.gather(*(ask(server) for _ in range(5)))
        assert server.connections == 5
        stale.set()
        assert await ask(server) == JSON
        assert server.connections == 6
        assert len(server.requests) == 7


async def test_a_second_failure_is_an_error() -> None:
    """The resend is not resent."""

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number > 1:
            return
        await peer.send(OK)
        await peer.request()

    async with serving(script) as server:
        await ask(server)
        error = await refused(server)
        assert error.kind == "network"
        assert (server.connections, len(server.requests)) == (2, 3)


@pytest.mark.parametrize("reset", [True, False])
async def test_a_new_connection_that_fails_is_not_tried_again(reset: bool) -> None:
    """The server may have begun to work on the request."""

    async def script(peer: Peer) -> None:
        await peer.request()
        if reset:
            peer.reset()

    async with serving(script) as server:
        error = await refused(server)
        assert error.kind == "network"
        assert len(server.requests) == 1


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("first", [b"H", b"HTTP/1.1 200 OK\r\nContent-"])
async def test_one_byte_of_an_answer_forbids_the_resend(first: bytes, reset: bool) -> None:
    """On a kept connection too."""
    async with serving(dying(first, reset=reset)) as server:
        await ask(server)
        error = await refused(server)
        assert error.kind in {"network", "invalid"}
        assert len(server.requests) == 2


@pytest.mark.parametrize("reset", [True, False])
async def test_a_body_cut_short(reset: bool) -> None:
    """Less than the stated length is an error, however the connection ended."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK[:-3])
        if reset:
            await asyncio.sleep(0.02)
            peer.reset()

    async with serving(script) as server:
        error = await refused(server)
    assert error.kind == "network"
    assert error.status == 200


@pytest.mark.parametrize("reset", [True, False])
async def test_a_body_of_no_stated_length(reset: bool) -> None:
    """It ends with the connection, properly closed; a reset is a cut."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + JSON)
        if reset:
            await asyncio.sleep(0.02)
            peer.reset()

    async with serving(script) as server:
        if reset:
            assert (await refused(server)).kind == "network"
        else:
            assert await ask(server) == JSON
