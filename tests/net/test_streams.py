"""Events of a streamed answer, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from onrecord.errors import ModelError
from onrecord.net.sse import ErrorEvent
from onrecord.net.transport import post
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, Peer, answering, chunk, serving

pytestmark = pytest.mark.integration


async def events(server: Loopback, *, silence_s: float = 5.0, progress_s: float = 300.0) -> AsyncIterator[bytes]:
    """The events of one answer, one by one."""
    async with post(server.url, b"{}", headers={}, provider="acme") as reply:
        async for batch in reply.event_batches(silence_s=silence_s, progress_s=progress_s, max_event=32 << 20):
            assert batch
            for event in batch:
                yield event


async def drain(
    server: Loopback, seen: list[bytes], *, silence_s: float = 5.0, progress_s: float = 300.0, pause: float = 0.0
) -> None:
    """Puts the events into ``seen`` as they come, so that they are there after a failure."""
    async for event in events(server, silence_s=silence_s, progress_s=progress_s):
        seen.append(event)
        await asyncio.sleep(pause)


async def test_events_arrive_as_they_are_sent() -> None:
    """An event is there before the server sends the next one; the end is the end."""
    go = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        for number in range(5):
            await peer.send(chunk(b"data: %d\n\n" % number))
            await go.wait()
            go.clear()
        await peer.send(chunk(b": bye\n\nevent: error\ndata: bad\n\ndata: [DONE]") + LAST_CHUNK)
        await peer.gone()

    seen = []
    async with serving(script) as server:
        async for event in events(server):
            seen.append(event)
            go.set()
    assert seen == [b"0", b"1", b"2", b"3", b"4", b"bad", b"[DONE]"]
    assert isinstance(seen[5], ErrorEvent)


async def test_a_connection_is_kept_after_a_whole_stream() -> None:
    """Reading to the end gives the connection back, leaving earlier closes it."""
    stream = SSE_HEAD + chunk(b"data: 1\n\n") + chunk(b"data: 2\n\n") + LAST_CHUNK
    async with serving(answering(stream)) as server:
        for _ in range(3):
            seen: list[bytes] = []
            await drain(server, seen)
            assert seen == [b"1", b"2"]
        assert server.connections == 1


async def test_twenty_megabytes_in_one_event() -> None:
    """Images come as one event."""
    data = json.dumps({"image": "x" * (20 << 20)}).encode()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        for start in range(0, len(data), 1 << 16):
            await peer.send(chunk((b"" if start else b"data: ") + data[start : start + (1 << 16)]))
        await peer.send(chunk(b"\n\n") + LAST_CHUNK)
        await peer.gone()

    seen: list[bytes] = []
    async with serving(script) as server:
        await drain(server, seen)
    assert seen == [data]


async def test_an_event_over_the_limit() -> None:
    """The stream is given up, with the limit named."""
    async with (
        serving(answering(SSE_HEAD + chunk(b"data: " + b"x" * 2_000))) as server,
        post(server.url, b"{}", headers={}, provider="acme") as reply,
    ):
        with pytest.raises(ModelError, match="more than 1000 bytes") as caught:
            _ = [batch async for batch in reply.event_batches(silence_s=5, max_event=1_000)]
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("framing", ["chunked", "length", "none"])
@pytest.mark.parametrize("reset", [True, False])
async def test_a_stream_cut_short(framing: str, reset: bool) -> None:
    """What came whole is delivered, then the cut is told; where HTTP states no end, only a reset is one."""
    head = {
        "chunked": SSE_HEAD,
        "length": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n",
        "none": b"HTTP/1.1 200 OK\r\n\r\n",
    }[framing]

    async def script(peer: Peer) -> None:
        await peer.request()
        data = b"data: 1\n\ndata: 2\n\ndata: 3"
        await peer.send(head + (chunk(data) if framing == "chunked" else data))
        if reset:
            await asyncio.sleep(0.05)
            peer.reset()

    seen: list[bytes] = []
    async with serving(script) as server:
        if framing == "none" and not reset:
            await drain(server, seen)
            assert seen == [b"1", b"2", b"3"]
            return
        with pytest.raises(ModelError) as caught:
            await drain(server, seen)
    assert seen == [b"1", b"2"]
    assert (caught.value.kind, caught.value.started, caught.value.status) == ("network", True, 200)


async def test_events_before_a_cut_reach_a_slow_consumer() -> None:
    """Also when they and the cut arrived while the consumer was busy."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await asyncio.sleep(0.02)
        await peer.send(chunk(b"data: 2\n\ndata: half"))

    seen: list[bytes] = []
    async with serving(script) as server:
        with pytest.raises(ModelError, match="cut its answer off"):
            await drain(server, seen, pause=0.08)
    assert seen == [b"1", b"2"]


async def test_a_cut_before_the_first_event() -> None:
    """Nothing was shown, and the error says so."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b": hello\n\n"))

    async with serving(script) as server:
        with pytest.raises(ModelError) as caught:
            await drain(server, [])
    assert (caught.value.kind, caught.value.started) == ("network", False)


async def test_silence_in_the_middle() -> None:
    """A gap between two reads has a limit of its own, shorter than the one for the first byte."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await peer.gone()

    seen: list[bytes] = []
    async with serving(script) as server:
        with pytest.raises(ModelError, match=r"sent nothing for 0\.1 s in the middle") as caught:
            await drain(server, seen, silence_s=0.1)
    assert seen == [b"1"]
    assert (caught.value.kind, caught.value.started) == ("timeout", True)


async def test_a_busy_consumer_is_no_silence() -> None:
    """The consumer's time does not count, before its next wait has lasted too long."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await asyncio.sleep(0.15)
        await peer.send(chunk(b"data: 2\n\n") + LAST_CHUNK)
        await peer.gone()

    seen = []
    async with serving(script) as server:
        async for event in events(server, silence_s=0.1):
            seen.append(event)
            await asyncio.sleep(0.2)
    assert seen == [b"1", b"2"]


async def test_keep_alives_alone_end_too() -> None:
    """Comments hold off silence, not the limit for progress; events hold off both."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        for _ in range(6):
            await peer.send(chunk(b"data: 1\n\n"))
            await asyncio.sleep(0.02)
            await peer.send(chunk(b": ping\n\n"))
            await asyncio.sleep(0.02)
        for _ in range(100):
            await peer.send(chunk(b": ping\n\n"))
            await asyncio.sleep(0.01)

    seen: list[bytes] = []
    async with serving(script) as server:
        with pytest.raises(ModelError, match="nothing but keep-alives") as caught:
            await drain(server, seen, silence_s=0.2, progress_s=0.12)
    assert seen == [b"1"] * 6
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize("how", ["cancel", "break", "aclose", "leave", "raise"])
async def test_leaving_early_closes_the_connection_at_once(how: str) -> None:
    """The server sees it, whatever way the consumer leaves."""
    left = asyncio.Event()

    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await peer.gone()
        left.set()

    async def consume(server: Loopback) -> None:
        async with post(server.url, b"{}", headers={}, provider="acme") as reply:
            batches = reply.event_batches(silence_s=5)
            async for _ in batches:
                if how == "break":
                    break
                if how == "raise":
                    raise KeyError
                if how == "aclose":
                    await batches.aclose()
                    await asyncio.wait_for(left.wait(), 1)
                if how == "leave":
                    await reply.aclose()
                    await asyncio.wait_for(left.wait(), 1)
                    return

    async with serving(endless) as server:
        task = asyncio.create_task(consume(server))
        if how == "cancel":
            await asyncio.sleep(0.05)
            task.cancel()
        await asyncio.wait([task], timeout=1)
        assert task.done()
        assert task.cancelled() == (how == "cancel")
        if not task.cancelled():
            assert isinstance(task.exception(), KeyError) == (how == "raise")
        await asyncio.wait_for(left.wait(), 1)


async def test_another_task_may_read_the_stream() -> None:
    """Silence is told to whoever reads, not to whoever asked."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await peer.gone()

    async with serving(script) as server, post(server.url, b"{}", headers={}, provider="acme") as reply:

        async def read() -> list[list[bytes]]:
            return [batch async for batch in reply.event_batches(silence_s=0.1)]

        (told,) = await asyncio.gather(asyncio.create_task(read()), return_exceptions=True)
        assert isinstance(told, ModelError)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
