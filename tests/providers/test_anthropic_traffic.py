"""Recorded streams of Anthropic replay through client and parser, however the network cuts them."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from onrecord.conversation.content import Citation
from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, CitationChunk, Finished, NativeItem, SearchChunk, TextChunk, ThinkingChunk
from onrecord.net.sse import EventParser
from onrecord.providers.anthropic.parse import Parser
from tests.models.requests import native, request, said, settled, user
from tests.net.loopback import Peer, serving
from tests.providers.anthropic_requests import check_rules, projection
from tests.providers.anthropic_server import ask, model_at
from tests.providers.wires import TRAFFIC, needs_traffic

pytestmark = pytest.mark.integration

HERE = TRAFFIC / "anthropic"


class Recorded(NamedTuple):
    """One exchange."""

    name: str
    body: bytes


def recorded() -> list[Recorded]:
    """All recorded exchanges of the protocol."""
    return [
        Recorded(file.stem, held["response"].encode())
        for file in sorted(HERE.glob("*.json"))
        for held in json.loads(file.read_text(encoding="utf-8"))
    ]


RECORDED = recorded()
each_recorded = pytest.mark.parametrize("one", RECORDED, ids=[one.name for one in RECORDED])


class Heard(NamedTuple):
    """A reply as what it means: pieces of text joined."""

    text: str
    thinking: str
    citations: tuple[Citation, ...]
    searches: tuple[str, ...]
    natives: tuple[bytes, ...]
    lost: tuple[str, ...]
    end: Finished | None
    error: str


def heard(chunks: list[Chunk], error: ModelError | None = None) -> Heard:
    """Everything a reply said and how it ended."""
    ends = [one for one in chunks if isinstance(one, Finished)]
    assert len(ends) == (0 if error else 1)
    items = [one for one in chunks if isinstance(one, NativeItem)]
    return Heard(
        text="".join(one.text for one in chunks if isinstance(one, TextChunk)),
        thinking="".join(one.text for one in chunks if isinstance(one, ThinkingChunk)),
        citations=tuple(c for one in chunks if isinstance(one, CitationChunk) for c in one.citations),
        searches=tuple(one.status for one in chunks if isinstance(one, SearchChunk)),
        natives=tuple(bytes(one.raw) for one in items),
        lost=tuple(one.lost for one in items if one.lost),
        end=ends[0] if ends else None,
        error=f"{error.kind} {error.status} {error}" if error else "",
    )


def by_parser(*pieces: bytes) -> Heard:
    """Events and parser without a network."""
    events, parser = EventParser(), Parser("anthropic")
    out: list[Chunk] = []
    try:
        for data in [data for piece in pieces for data in events.feed(piece)] + events.close():
            out += parser.feed(data)
        out += parser.close()
    except ModelError as error:
        return heard(out, error)
    return heard(out)


async def by_client(one: Recorded, size: int) -> Heard:
    """The whole way, from a server that writes pieces of this size, each in a packet of its own."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(
            b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"
        )
        for start in range(0, len(one.body), size):
            await peer.send(one.body[start : start + size])
            await asyncio.sleep(0)

    async with serving(script) as server:
        return heard(await ask(model_at(server)))


def blocks_of(body: bytes) -> list[dict[str, Any]]:
    """The blocks of a recorded reply, put together as plainly as can be."""
    blocks: list[dict[str, Any]] = []
    for line in body.decode().splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            blocks.append(event["content_block"])
        elif event.get("type") == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            match delta["type"]:
                case "text_delta":
                    block["text"] += delta["text"]
                case "thinking_delta":
                    block["thinking"] += delta["thinking"]
                case "signature_delta":
                    block["signature"] = delta["signature"]
                case "citations_delta":
                    block["citations"].append(delta["citation"])
                case "input_json_delta":
                    block["json"] = block.get("json", "") + delta["partial_json"]
    for block in blocks:
        if "json" in block:
            block["input"] = json.loads(block.pop("json"))
    return blocks


# Read in the recordings by a person: model, input and output tokens, citations, searches, blocks that go back.
FACTS: dict[str, tuple[str, int, int, int, int, int]] = {
    "anthropic_code_execution_tool_stream": ("claude-sonnet-4-6", 4714, 304, 0, 0, 5),
    "anthropic_model_thinking_part_redacted_stream": ("claude-sonnet-4-5-20250929", 92, 189, 0, 0, 3),
    "anthropic_model_thinking_part_stream": ("claude-sonnet-4-20250514", 43, 282, 0, 0, 2),
    "anthropic_web_search_tool_stream": ("claude-sonnet-4-20250514", 31772, 644, 9, 2, 22),
    "request_stream_fallback_for_high_max_tokens": ("claude-sonnet-4-5-20250929", 20, 5, 0, 0, 0),
}


@needs_traffic
@each_recorded
def test_each_recorded_reply_is_what_the_recording_says(one: Recorded) -> None:
    """Text, thinking, sources, usage, end; each block whole, and back to the vendor as it came."""
    told, blocks = by_parser(one.body), blocks_of(one.body)
    model, given, used, citations, searches, count = FACTS[one.name]
    assert told.error == ""
    assert told.end is not None
    assert told.end.usage is not None
    assert (told.end.model, told.end.finish) == (model, "stop")
    assert (told.end.usage.input_tokens, told.end.usage.output_tokens) == (given, used)
    assert told.text == "".join(block["text"] for block in blocks if block["type"] == "text")
    assert told.thinking == "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    assert told.searches == ("in_progress", "searching", "completed") * searches
    assert len(told.natives) == count
    assert [json.loads(item) for item in told.natives] == (blocks if count else [])
    assert len(told.citations) == citations
    cited = [(block["text"], one["url"]) for block in blocks for one in block.get("citations") or ()]
    assert [(told.text[c.start : c.stop], c.url) for c in told.citations] == cited


@needs_traffic
def test_what_the_recorded_replies_said_is_known() -> None:
    """The parser's reading against what a person reads in the files."""
    told = {one.name: by_parser(one.body) for one in RECORDED}
    assert told["request_stream_fallback_for_high_max_tokens"].text == "2"
    ran = told["anthropic_code_execution_tool_stream"]
    assert "**-428,330,955.97745**" in ran.text
    assert ran.thinking == "Let me calculate this mathematical expression."
    assert ran.lost == ("a call of 'bash_code_execution', which the provider ran",)
    sealed = told["anthropic_model_thinking_part_redacted_stream"]
    assert sealed.thinking == ""
    assert sealed.text.startswith("I notice that you've sent what appears to be")
    searched = told["anthropic_web_search_tool_stream"]
    first = searched.citations[0]
    assert (first.url, first.title) == (
        "https://www.npr.org/sections/news/",
        "News: U.S. and World News Headlines : NPR",
    )
    assert searched.text[first.start : first.stop].startswith("European leaders held a high-stakes meeting")
    assert all(not one.lost for name, one in told.items() if one is not ran)
    assert set(told) == set(FACTS)


@needs_traffic
@each_recorded
async def test_a_recorded_stream_is_heard_alike_in_one_piece_and_in_many(one: Recorded) -> None:
    """Over a real connection, against the parser alone."""
    whole = by_parser(one.body)
    assert await by_client(one, len(one.body)) == whole
    assert await by_client(one, 193) == whole


@needs_traffic
@each_recorded
def test_a_recorded_stream_is_heard_alike_wherever_it_is_cut(one: Recorded) -> None:
    """In two pieces at each offset where it is short, at many where it is long; and byte by byte."""
    whole = by_parser(one.body)
    for at in range(0, len(one.body) + 1, 1 if len(one.body) < 4_000 else len(one.body) // 150):
        assert by_parser(one.body[:at], one.body[at:]) == whole
    assert by_parser(*(one.body[at : at + 1] for at in range(len(one.body)))) == whole
    assert by_parser(b"\xef\xbb\xbf" + one.body.replace(b"\n", b"\r\n")) == whole


@needs_traffic
@each_recorded
def test_a_recorded_stream_that_is_dropped_is_never_taken_for_a_whole_one(one: Recorded) -> None:
    """After any event but the last two: those say how the reply ended, and only that."""
    whole, events = by_parser(one.body), one.body.split(b"\n\n")[:-1]
    for at in range(len(events) + 1):
        told = by_parser(*(event + b"\n\n" for event in events[:at]))
        if at >= len(events) - 1:
            assert told == whole
        else:
            assert told.error == "network None anthropic ended its stream early"
            assert whole.text.startswith(told.text)


@needs_traffic
@each_recorded
def test_a_recorded_reply_goes_back_to_its_vendor_as_it_came(one: Recorded) -> None:
    """The next request of the conversation holds its blocks to the byte, and is one that the vendor takes."""
    told = by_parser(one.body)
    held = native(*told.natives, protocol="anthropic-messages", scope="s") if told.natives else None
    talk = (user("hi"), said(settled("r", told.text, continuation=held)), user("so?", id="u1"))
    body = projection().wire(request(*talk, scope="s")).body
    check_rules(body)
    if told.natives:
        assert b'{"role":"assistant","content":[' + b",".join(told.natives) + b"]}" in body
