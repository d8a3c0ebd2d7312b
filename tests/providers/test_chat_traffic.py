"""Recorded streams of real vendors replay through client and parser, however the network cuts them."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import CallChunk, Chunk, Finished, NativeItem, TextChunk, ThinkingChunk
from onrecord.models.request import Request
from onrecord.net.sse import EventParser
from onrecord.providers.openai_chat.cards import openai_card
from onrecord.providers.openai_chat.parse import Parser
from onrecord.providers.openai_compatible import VENDORS, openai_compatible
from tests.models.requests import request, user
from tests.net.loopback import Peer, serving

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ONRECORD_SHARED") or ROOT.parent / "shared")
TRAFFIC = SHARED / "data" / "traffic"
CHAT_VENDORS = ("openai", "openrouter", "deepseek", "groq", "zai")
ASKED: Request = request(user("hi"))


class Recorded(NamedTuple):
    """One exchange with a vendor."""

    vendor: str
    name: str
    status: int
    content_type: str
    body: bytes


def recorded() -> list[Recorded]:
    """All recorded exchanges of the protocol."""
    found: list[Recorded] = []
    for vendor in CHAT_VENDORS:
        for file in sorted((TRAFFIC / vendor).glob("*.json")):
            for n, held in enumerate(json.loads(file.read_text(encoding="utf-8"))):
                name = f"{vendor}/{file.stem}/{n}"
                found.append(Recorded(vendor, name, held["status"], held["content_type"], held["response"].encode()))
    return found


RECORDED = recorded()
needs_traffic = pytest.mark.skipif(
    not RECORDED, reason="no recorded traffic: set ONRECORD_SHARED to the folder that has data/traffic in it"
)
each_recorded = pytest.mark.parametrize("one", RECORDED, ids=[one.name for one in RECORDED])


class Heard(NamedTuple):
    """A reply as what it means: pieces of text joined."""

    text: str
    refusal: str
    thinking: str
    calls: tuple[CallChunk, ...]
    native: Any
    finish: str
    usage: object
    model: str
    error: str


def heard(chunks: list[Chunk], error: ModelError | None) -> Heard:
    """Everything a reply said and how it ended."""
    ends = [one for one in chunks if isinstance(one, Finished)]
    assert len(ends) == (0 if error else 1)
    end = ends[0] if ends else Finished(finish="")
    items = [json.loads(bytes(one.raw)) for one in chunks if isinstance(one, NativeItem)]
    return Heard(
        text="".join(one.text for one in chunks if isinstance(one, TextChunk) and not one.refusal),
        refusal="".join(one.text for one in chunks if isinstance(one, TextChunk) and one.refusal),
        thinking="".join(one.text for one in chunks if isinstance(one, ThinkingChunk)),
        calls=tuple(one for one in chunks if isinstance(one, CallChunk)),
        native=items[0] if items else None,
        finish=end.finish,
        usage=end.usage,
        model=end.model,
        error=f"{error.kind} {error.status} {error.started} {error}" if error else "",
    )


def by_parser(one: Recorded, *pieces: bytes) -> Heard:
    """Events and parser without a network."""
    events, parser = EventParser(), Parser(one.vendor, dialect_of(one.vendor))
    out: list[Chunk] = []
    try:
        for piece in pieces:
            for data in events.feed(piece):
                out += parser.feed(data)
        for data in events.close():
            out += parser.feed(data)
        out += parser.close()
    except ModelError as error:
        return heard(out, error)
    return heard(out, None)


def dialect_of(vendor: str) -> Any:
    """How the vendor's protocol differs."""
    return VENDORS[vendor].dialect if vendor in VENDORS else openai_card("gpt-5")[1]


async def by_client(one: Recorded, size: int) -> Heard:
    """The whole way, from a server that writes pieces of this size, each in a packet of its own."""
    head = f"HTTP/1.1 {one.status} X\r\nContent-Type: {one.content_type}\r\nConnection: close\r\n\r\n"

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head.encode())
        for start in range(0, len(one.body), size):
            await peer.send(one.body[start : start + size])
            await asyncio.sleep(0)

    out: list[Chunk] = []
    async with serving(script) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        model = openai_compatible(url, "m", provider=one.vendor, dialect=dialect_of(one.vendor), retry=False)
        try:
            async with aclosing(model.stream(ASKED)) as chunks:
                async for item in chunks:
                    out.append(item)  # noqa: PERF401 - what came before an error counts
        except ModelError as error:
            return heard(out, error)
    return heard(out, None)


@needs_traffic
@each_recorded
async def test_a_recorded_stream_is_heard_alike_in_one_piece_and_in_many(one: Recorded) -> None:
    """Over a real connection, against the parser alone."""
    whole = by_parser(one, one.body)
    assert await by_client(one, len(one.body)) == whole
    assert await by_client(one, 193) == whole


@needs_traffic
@each_recorded
def test_a_recorded_stream_is_heard_alike_wherever_it_is_cut(one: Recorded) -> None:
    """In two pieces at each offset where it is short, at every 97th where it is long; and byte by byte."""
    whole = by_parser(one, one.body)
    for at in range(0, len(one.body) + 1, 1 if len(one.body) < 6_000 else 97):
        assert by_parser(one, one.body[:at], one.body[at:]) == whole
    assert by_parser(one, *(one.body[at : at + 1] for at in range(len(one.body)))) == whole


@needs_traffic
async def test_one_stream_cut_at_every_byte_offset_over_a_connection() -> None:
    """The shortest that calls a tool: two writes, the cut anywhere."""
    one = min((one for one in RECORDED if b"tool_calls" in one.body), key=lambda held: len(held.body))
    whole = by_parser(one, one.body)
    assert whole.calls
    gate = asyncio.Semaphore(16)

    async def cut(at: int) -> Heard:
        async with gate:
            return await by_client_in_two(one, at)

    for start in range(0, len(one.body), 500):
        told = await asyncio.gather(*(cut(at) for at in range(start, min(start + 500, len(one.body)))))
        assert set(map(repr, told)) == {repr(whole)}


async def by_client_in_two(one: Recorded, at: int) -> Heard:
    """The whole way, in two writes."""
    head = f"HTTP/1.1 200 X\r\nContent-Type: {one.content_type}\r\nConnection: close\r\n\r\n".encode()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head + one.body[:at])
        await asyncio.sleep(0)
        await peer.send(one.body[at:])

    async with serving(script) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        model = openai_compatible(url, "m", provider=one.vendor, dialect=dialect_of(one.vendor), retry=False)
        async with aclosing(model.stream(ASKED)) as chunks:
            return heard([item async for item in chunks], None)


@needs_traffic
def test_what_the_recorded_vendors_said_is_known() -> None:
    """The parser's own reading against what a person reads in the files."""
    by_name = {one.name: by_parser(one, one.body) for one in RECORDED}
    assert by_name["openai/openai_moderation_stream/0"].text == "Paris."
    assert by_name["openai/run_stream_sync_streams_real_model/0"].calls[0].raw_args == '{"country":"UK"}'
    assert by_name["openai/run_stream_sync_streams_real_model/1"].text.endswith("London.")
    assert by_name["zai/zai_thinking_stream/0"].text == "4"
    assert by_name["deepseek/deepseek_model_thinking_stream/0"].thinking.startswith("H")
    sealed = by_name["openrouter/openrouter_stream_with_reasoning/0"].native["reasoning_details"]
    assert {block["type"] for block in sealed} == {"reasoning.encrypted"}
    assert by_name["openrouter/openrouter_stream_error/0"].error.startswith("invalid 400 True")
    assert by_name["groq/tool_use_failed_error_streaming/0"].error.startswith("invalid 400 True")
    assert "tool_use_failed" in by_name["groq/tool_use_failed_error_streaming/0"].error
    assert Counter(bool(one.error) for one in by_name.values()) == {False: len(by_name) - 2, True: 2}
    assert all(one.usage is not None for one in by_name.values() if not one.error)
