"""Everything that has come is taken in one piece, and the client's stream keeps its accounts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from onrecord.net.pieces import taker

pytestmark = pytest.mark.integration


def stream_of(*chunks: bytes, limit: int = 1 << 16) -> StreamReader:
    """A stream into which these HTTP chunks have come."""
    loop = asyncio.get_running_loop()
    protocol = ResponseHandler(loop=loop)
    protocol.transport = asyncio.Transport()
    stream = StreamReader(protocol, limit, loop=loop)
    for chunk in chunks:
        feed(stream, chunk)
    return stream


def feed(stream: Any, chunk: bytes) -> None:
    """One more HTTP chunk."""
    stream.begin_http_chunk_receiving()
    stream.feed_data(chunk)
    stream.end_http_chunk_receiving()


def accounts(stream: Any) -> tuple[object, ...]:
    """What the stream knows of what lies in it."""
    return stream._size, stream._cursor, list(stream._buffer), stream._buffer_offset, stream.total_bytes


@pytest.mark.parametrize("chunks", [(b"a",), (b"a", b"bc"), tuple(b"%d" % n for n in range(200))])
async def test_the_accounts_are_those_of_the_clients_own_read(chunks: tuple[bytes, ...]) -> None:
    """Taken by either, the same bytes come and the same stream is left, also for what comes after."""
    ours, theirs = stream_of(*chunks), stream_of(*chunks)
    for _ in range(3):
        assert await taker(ours)() == await theirs.readany()
        assert accounts(ours) == accounts(theirs)
        for stream in (ours, theirs):
            feed(stream, b"more")
            feed(stream, b"and more")
    assert [await ours.readchunk() for _ in range(2)] == [await theirs.readchunk() for _ in range(2)]


async def test_what_was_taken_in_part_is_not_taken_again() -> None:
    """A piece of which a reader had the beginning gives its rest."""
    stream = stream_of(b"abc", b"def")
    assert await stream.read(2) == b"ab"
    assert await taker(stream)() == b"cdef"
    assert not stream._size


async def test_it_waits_until_something_comes() -> None:
    """Nothing there is no end; the end is an empty piece."""
    stream = stream_of()
    waiting = asyncio.ensure_future(taker(stream)())
    await asyncio.sleep(0)
    assert not waiting.done()
    feed(stream, b"x")
    feed(stream, b"y")
    stream.feed_eof()
    assert await waiting == b"xy"
    assert await taker(stream)() == b""


async def test_a_failure_is_raised_before_what_lies_there() -> None:
    """As the client's own read does."""
    stream = stream_of(b"a", b"b")
    stream.set_exception(ConnectionResetError())
    with pytest.raises(ConnectionResetError):
        await taker(stream)()


async def test_reading_that_was_stopped_goes_on() -> None:
    """A stream that was full lets the network go on once it is empty."""
    resumed: list[bool] = []

    class Protocol(ResponseHandler):
        def pause_reading(self) -> None: ...
        def resume_reading(self, resume_parser: bool = True) -> None:
            resumed.append(resume_parser)

    loop = asyncio.get_running_loop()
    stream = StreamReader(Protocol(loop=loop), 4, loop=loop)
    for n in range(20):
        feed(stream, b"chunk %d" % n)
    await taker(stream)()
    assert resumed == [True]


async def test_other_streams_are_read_by_their_own_method() -> None:
    """An answer without a body has a stream of its own kind."""
    assert await taker(EMPTY_PAYLOAD)() == b""
