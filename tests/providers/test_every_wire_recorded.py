"""Recorded streams of real vendors through client and parser of their wire, however the network treats them."""

from __future__ import annotations

import asyncio
import gzip
import json
import random

import pytest

from tests.net.loopback import Peer, serving
from tests.providers.wires import (
    CHAT,
    Heard,
    Recorded,
    by_model,
    by_parser,
    each_recorded,
    events_of,
    needs_traffic,
)

pytestmark = [pytest.mark.integration, needs_traffic]

CUTS = 160
"""How many cuts of a long stream are tried; short ones are cut everywhere."""


async def by_client(one: Recorded, *pieces: bytes, headers: str = "", reset: bool = False) -> Heard:
    """The whole way, from a server that writes these pieces, each in a packet of its own, and then leaves."""
    head = f"HTTP/1.1 {one.status} X\r\nContent-Type: {one.content_type}\r\n{headers}Connection: close\r\n\r\n"

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head.encode())
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0)
        if reset:
            peer.reset()

    async with serving(script) as server:
        return await by_model(one.wire.make(f"http://127.0.0.1:{server.port}/v1", one.vendor))


def pieces_of(body: bytes, size: int) -> list[bytes]:
    """The body in pieces of one size."""
    return [body[at : at + size] for at in range(0, len(body), size)]


@each_recorded
async def test_a_stream_is_heard_alike_in_one_piece_and_in_many(one: Recorded) -> None:
    """Over a real connection, against the parser alone; packed too."""
    whole = by_parser(one, one.body)
    assert await by_client(one, one.body) == whole
    assert await by_client(one, *pieces_of(one.body, 193)) == whole
    packed = gzip.compress(one.body)
    assert await by_client(one, *pieces_of(packed, 61), headers="Content-Encoding: gzip\r\n") == whole


@each_recorded
def test_a_stream_is_heard_alike_wherever_it_is_cut(one: Recorded) -> None:
    """In two pieces at each offset where it is short, at random offsets where it is long; and byte by byte."""
    whole, size = by_parser(one, one.body), len(one.body)
    some = random.Random(size).sample(range(size), min(size, CUTS))  # noqa: S311 - no secret
    for at in range(size + 1) if size < 1_200 else some:
        assert by_parser(one, one.body[:at], one.body[at:]) == whole
    if size < 40_000:
        assert by_parser(one, *pieces_of(one.body, 1)) == whole


@each_recorded
def test_noise_that_the_protocol_allows_changes_nothing(one: Recorded) -> None:
    """A byte order mark, comments, other line ends, events of the future, one of over a megabyte."""
    whole, events = by_parser(one, one.body), events_of(one.body)
    assert by_parser(one, b"\xef\xbb\xbf", one.body) == whole
    assert by_parser(one, one.body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")) == whole
    assert by_parser(one, b": a comment\n\n".join(events)) == whole
    future = b'event: some.future.event\ndata: {"type":"some.future.event","pad":"%b"}\n\n'
    assert by_parser(one, future % b"x", *events) == whole
    assert by_parser(one, events[0], future % (b"x" * (1 << 20)), *events[1:]) == whole


def said_no_more_than(part: Heard, whole: Heard) -> bool:
    """Whether what was handed out before an error is the beginning of the reply."""
    return (
        whole.text.startswith(part.text)
        and whole.thinking.startswith(part.thinking)
        and whole.calls[: len(part.calls)] == part.calls
    )


def same_words(one: Heard, other: Heard) -> bool:
    """Whether two replies say the same and end alike; what came last, such as the usage, may be missing."""
    return (one.text, one.thinking, one.calls, one.finish) == (other.text, other.thinking, other.calls, other.finish)


@each_recorded
def test_a_stream_dropped_after_any_event_is_whole_or_an_error(one: Recorded) -> None:
    """Never part of a reply as if it were all of it."""
    whole, events = by_parser(one, one.body), events_of(one.body)
    for count in range(len(events)):
        part = by_parser(one, *events[:count])
        if part.error:
            assert part.error.split()[0] in {"network", whole.error.split(" ", 1)[0] if whole.error else "network"}
            assert said_no_more_than(part, whole)
        else:
            assert same_words(part, whole)


@each_recorded
async def test_a_connection_reset_after_some_event_is_whole_or_an_error(one: Recorded) -> None:
    """The same over a real connection."""
    whole, events = by_parser(one, one.body), events_of(one.body)
    chosen = random.Random(len(events)).sample(range(len(events)), min(len(events), 6))  # noqa: S311 - no secret
    for count in chosen:
        part = await by_client(one, b"".join(events[:count]), reset=True)
        assert part.error or same_words(part, whole)
        assert said_no_more_than(part, whole)


@each_recorded
def test_a_doubled_event_never_makes_a_wrong_call(one: Recorded) -> None:
    """A proxy that repeats an event: the reply is right, or an error, or, on wires without numbers, a text repeats.

    Arguments of a call are the dangerous part: they are as sent, or no JSON object, or refused; never other JSON. Chat
    streams without padding number nothing, so there a doubled fragment of arguments cannot be told from a fragment.
    """
    whole, events = by_parser(one, one.body), events_of(one.body)
    if one.wire is CHAT and b"obfuscation" not in one.body:
        events = [event for event in events if b'"tool_calls"' not in event] or events
        whole = by_parser(one, *events)
    for at in range(0, len(events), max(1, len(events) // 60)):
        told = by_parser(one, *events[: at + 1], *events[at:])
        if told.error:
            continue
        assert told.finish == whole.finish
        for call in told.calls:
            assert call in whole.calls or not _is_object(call.raw_args)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
