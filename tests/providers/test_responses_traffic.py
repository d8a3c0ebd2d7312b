"""Recorded Responses streams of two vendors replay through client and parser, however the network cuts them."""

from __future__ import annotations

import asyncio
import json
import os
import random
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import pytest

from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.models.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    Finished,
    NativeItem,
    SearchChunk,
    TextChunk,
    ThinkingChunk,
)
from onrecord.models.request import Request
from onrecord.net.sse import EventParser
from onrecord.providers.openai_responses.client import openai_responses
from onrecord.providers.openai_responses.parse import Parser
from tests.models.requests import request, user
from tests.net.loopback import Peer, serving

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ONRECORD_SHARED") or ROOT.parent / "shared")
TRAFFIC = SHARED / "data" / "traffic"
ASKED: Request = request(user("hi"))
SHORT = 6_000


class Recorded(NamedTuple):
    """One exchange with a vendor; an answer that was no stream is one JSON object."""

    name: str
    path: str
    content_type: str
    body: bytes

    @property
    def streams(self) -> bool:
        return self.content_type.startswith("text/event-stream")


def recorded() -> list[Recorded]:
    """All recorded exchanges of the protocol."""
    found: list[Recorded] = []
    for vendor in ("openai_responses", "deepseek_responses"):
        for file in sorted((TRAFFIC / vendor).glob("*.json")):
            for n, held in enumerate(json.loads(file.read_text(encoding="utf-8"))):
                said = held["response"]
                body = (said if isinstance(said, str) else json.dumps(said)).encode()
                name = file.stem.removeprefix("openai_").removeprefix("responses_").rstrip("_")
                found.append(Recorded(f"{name}/{n}", held["path"], held["content_type"], body))
    return found


RECORDED = recorded()
needs_traffic = pytest.mark.skipif(
    not RECORDED, reason="no recorded traffic: set ONRECORD_SHARED to the folder that has data/traffic in it"
)
each_recorded = pytest.mark.parametrize("one", RECORDED, ids=[one.name for one in RECORDED])
each_stream = pytest.mark.parametrize(
    "one", [one for one in RECORDED if one.streams], ids=[one.name for one in RECORDED if one.streams]
)


class Heard(NamedTuple):
    """A reply as what it means: pieces of text joined."""

    text: str
    thinking: str
    calls: tuple[tuple[str, str, str], ...]
    searches: tuple[str, ...]
    cited: tuple[str, ...]
    native: tuple[bytes, ...]
    lost: tuple[str, ...]
    end: Finished | None
    error: str


def heard(chunks: list[Chunk], error: ModelError | None) -> Heard:
    """Everything a reply said and how it ended."""
    ends = [one for one in chunks if isinstance(one, Finished)]
    assert len(ends) == (0 if error else 1)
    text = "".join(one.text for one in chunks if isinstance(one, TextChunk))
    sources = [source for one in chunks if isinstance(one, CitationChunk) for source in one.citations]
    items = [one for one in chunks if isinstance(one, NativeItem)]
    return Heard(
        text=text,
        thinking="".join(one.text for one in chunks if isinstance(one, ThinkingChunk)),
        calls=tuple((one.wire_id, one.name, one.raw_args) for one in chunks if isinstance(one, CallChunk)),
        searches=tuple(one.status for one in chunks if isinstance(one, SearchChunk)),
        cited=tuple(f"{source.url} {text[source.start : source.stop]}" for source in sources),
        native=tuple(bytes(one.raw) for one in items),
        lost=tuple(one.lost for one in items if one.lost),
        end=ends[0] if ends else None,
        error=f"{error.kind} {error.started} {error}" if error else "",
    )


def by_parser(*pieces: bytes) -> Heard:
    """Events and parser without a network."""
    events, out = EventParser(), list[bytes]()
    for piece in pieces:
        out += events.feed(piece)
    return by_events(*out, *events.close())


def by_events(*events: bytes) -> Heard:
    """The parser alone."""
    parser, out = Parser("acme"), list[Chunk]()
    try:
        for data in events:
            out += parser.feed(data)
        out += parser.close()
    except ModelError as error:
        return heard(out, error)
    return heard(out, None)


def whole(one: Recorded) -> Heard:
    """What a recording says."""
    if one.streams:
        return by_parser(one.body)
    parser = Parser("acme")
    return heard([*parser.whole(one.body), *parser.close()], None)


def events_of(one: Recorded) -> list[bytes]:
    """The events of a stream."""
    parser = EventParser()
    return [*parser.feed(one.body), *parser.close()]


async def by_client(one: Recorded, *cuts: int) -> Heard:
    """The whole way, from a server that writes up to each cut in a packet of its own."""
    head = f"HTTP/1.1 200 X\r\nContent-Type: {one.content_type}\r\nConnection: close\r\n\r\n"

    async def script(peer: Peer) -> None:
        asked = await peer.request()
        assert asked.line == f"POST {one.path} HTTP/1.1"
        await peer.send(head.encode())
        for start, stop in zip((0, *cuts), (*cuts, len(one.body)), strict=True):
            await peer.send(one.body[start:stop])
            await asyncio.sleep(0)

    out: list[Chunk] = []
    async with serving(script) as server:
        url = f"http://127.0.0.1:{server.port}{one.path.removesuffix('/responses')}"
        model = openai_responses("m", base_url=url, provider="acme", retry=False)
        try:
            async with aclosing(model.stream(ASKED)) as chunks:
                async for item in chunks:
                    out.append(item)  # noqa: PERF401 - what came before an error counts
        except ModelError as error:
            return heard(out, error)
    return heard(out, None)


# ---- whole, and cut -------------------------------------------------------------------------------------------------


@needs_traffic
@each_recorded
async def test_a_recording_is_heard_alike_in_one_piece_and_in_many(one: Recorded) -> None:
    """Over a real connection, against the parser alone."""
    expected = whole(one)
    assert expected.error == ""
    assert await by_client(one) == expected
    assert await by_client(one, *range(311, len(one.body), 311)) == expected


@needs_traffic
@each_stream
def test_a_recorded_stream_is_heard_alike_wherever_it_is_cut(one: Recorded) -> None:
    """In two pieces at each offset where it is short, at random ones where it is long; and byte by byte."""
    expected = whole(one)
    size, chance = len(one.body), random.Random(one.name)  # noqa: S311 - a test, the same each time
    places = range(size + 1) if size < SHORT else sorted(chance.sample(range(size), 200))
    for at in places:
        assert by_parser(one.body[:at], one.body[at:]) == expected
    assert by_parser(*(one.body[at : at + 1] for at in range(size))) == expected


@needs_traffic
async def test_the_shortest_stream_is_cut_all_over_on_its_way() -> None:
    """It calls a tool: two writes, the cut at every seventh byte of the whole way."""
    one = min((one for one in RECORDED if one.streams), key=lambda held: len(held.body))
    expected = whole(one)
    assert expected.calls
    gate = asyncio.Semaphore(16)

    async def cut(at: int) -> Heard:
        async with gate:
            return await by_client(one, at)

    told = await asyncio.gather(*(cut(at) for at in range(0, len(one.body), 7)))
    assert set(map(repr, told)) == {repr(expected)}


# ---- repeated, lost, broken off -------------------------------------------------------------------------------------


@needs_traffic
@each_stream
def test_events_that_come_twice_say_nothing_twice(one: Recorded) -> None:
    """Each of them once more, at once and together with the one before. Streams without numbers cannot tell."""
    events, expected = events_of(one), whole(one)
    if b'"sequence_number"' not in one.body:
        pytest.skip("its events have no numbers")
    assert by_events(*(event for event in events for _ in range(2))) == expected
    for at in range(1, len(events), 3):
        assert by_events(*events[: at + 1], *events[at - 1 :]) == expected


@needs_traffic
@each_stream
def test_a_stream_that_lost_an_event_gives_the_whole_reply_or_an_error(one: Recorded) -> None:
    """Never a part: of text and of calls there is all or nothing. What was only told on the way may be missing."""
    events, expected = events_of(one), whole(one)
    for at in range(len(events)):
        got = by_events(*events[:at], *events[at + 1 :])
        if got.error:
            assert got.error.startswith("network ")
        else:
            assert (got.text, got.calls, got.cited, got.lost) == (
                expected.text, expected.calls, expected.cited, expected.lost,
            )  # fmt: skip
            assert (len(got.native), got.end) == (len(expected.native), expected.end)


@needs_traffic
@each_stream
def test_a_stream_broken_off_at_any_event_is_an_error(one: Recorded) -> None:
    """The connection ends behind each event but the last: no reply, and it says whether something was handed out."""
    events = events_of(one)
    for at in range(len(events)):
        got = by_events(*events[:at])
        assert got.end is None
        assert got.error.startswith("network ")
        began = any(_is_call(event) for event in events[:at])
        said = bool(got.text or got.thinking or got.searches)
        assert got.error.split()[1] == str(said or began)


def _is_call(event: bytes) -> bool:
    held: dict[str, dict[str, object]] = json.loads(event)
    return held.get("item", {}).get("type") == "function_call"


@needs_traffic
@each_stream
async def test_a_connection_that_ends_early_is_an_error(one: Recorded) -> None:
    """Over the wire, at a few places: never a reply."""
    for share in (0.2, 0.5, 0.9):
        cut = one._replace(body=one.body[: int(len(one.body) * share)])
        assert (await by_client(cut)).error.startswith("network ")


@needs_traffic
@each_stream
def test_the_form_of_a_stream_changes_nothing(one: Recorded) -> None:
    """A byte order mark, comments, other line ends, events of the future between the others."""
    expected = whole(one)
    future = b'event: response.dreamt\ndata: {"type":"response.dreamt","delta":{"x":1}}\n\n'
    assert by_parser(b"\xef\xbb\xbf: hello\n\n" + one.body) == expected
    assert by_parser(one.body.replace(b"\n", b"\r\n")) == expected
    assert by_parser(one.body.replace(b"\n\n", b"\n\n: ping\n\n" + future)) == expected
    assert by_parser(one.body + b"data: [DONE]\n\ntrailing garbage") == expected


# ---- facts ----------------------------------------------------------------------------------------------------------


class Fact(NamedTuple):
    """What a person reads in a recording."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    searches: int = 0
    cited: tuple[str, ...] = ()
    items: str = ""
    lost: int = 0
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    model: str = ""
    finish: str = "stop"


SOURCE = "https://www.britannica.com/place/Mount-Columbia?utm_source=openai"
FACTS: dict[str, Fact] = {
    "include_raw_annotations_streaming/0": Fact(
        text=(
            f"The tallest mountain in Alberta is **Mount Columbia** (3,747 m / 12,294 ft). ([britannica.com]({SOURCE}))"
        ),
        searches=2,
        cited=(f"{SOURCE} ([britannica.com]({SOURCE}))",),
        items="web_search_call web_search_call message",
        usage=(12243, 140, 0, 100),
        model="gpt-5.2-2025-12-11",
    ),
    "include_raw_annotations_streaming/1": Fact(
        text=(
            "Alberta\u2019s tallest mountain (highest point) is **Mount Columbia**, at **3,747 m (12,294 ft)**. "
            f"([britannica.com]({SOURCE}))"
        ),
        searches=1,
        cited=(f"{SOURCE} ([britannica.com]({SOURCE}))",),
        items="web_search_call message",
        usage=(8234, 79, 0, 34),
        model="gpt-5.2-2025-12-11",
    ),
    "include_raw_annotations_streaming/2": Fact(
        text="2+2 = 4", items="message", usage=(20, 10, 0, 0), model="gpt-5.2-2025-12-11"
    ),
    "model_web_search_tool_stream/0": Fact(
        text=(
            "San Francisco weather today (Tuesday, September 16, 2025): Mostly sunny and pleasant. Current conditions "
            "around 71°F; expected high near 73°F and low around 58°F. "
            "A light jacket is useful for the cooler evening. "
        ),
        searches=1,
        items="reasoning web_search_call reasoning message",
        usage=(9463, 582, 8320, 512),
        model="gpt-5-2025-08-07",
    ),
    "model_web_search_tool_stream/1": Fact(
        text=(
            "Mexico City weather today (Tuesday, September 16, 2025): Cloudy. Current around 73°F; high near 74°F and "
            "low around 56°F. Showers return midweek. "
        ),
        searches=1,
        items="reasoning web_search_call reasoning message",
        usage=(9703, 638, 8576, 576),
        model="gpt-5-2025-08-07",
    ),
    "phase_streamed_on_part_start/0": Fact(
        text="I\u2019ll check the capital lookup tool for “PotatoLand.”",
        calls=(("call_LabG58Uhrq9kZvR52BYKjToD", "get_capital", '{"country":"PotatoLand"}'),),
        items="reasoning message function_call",
        usage=(63, 69, 0, 26),
        model="gpt-5.5-2026-04-23",
        finish="calls",
    ),
    "phase_streamed_on_part_start/1": Fact(
        text="The capital of PotatoLand is **Potato City**.",
        items="message",
        usage=(147, 16, 0, 0),
        model="gpt-5.5-2026-04-23",
    ),
    "stream/0": Fact(
        calls=(("call_kL0PCQV7M2WMoVX8V8OtYSAL", "get_capital", '{"country":"France"}'),),
        items="function_call",
        usage=(255, 16, 0, 0),
        model="gpt-4o-2024-08-06",
        finish="calls",
    ),
    "stream/1": Fact(
        text="The capital of France is Paris.", items="message", usage=(278, 9, 0, 0), model="gpt-4o-2024-08-06"
    ),
    "streaming_usage/0": Fact(
        calls=(("call_CWXgs68YprAjp6t0371hiPOI", "final_result", '{"result":6666}'),),
        items="reasoning function_call",
        usage=(53, 469, 0, 448),
        model="gpt-5-2025-08-07",
        finish="calls",
    ),
    "thinking_with_code_execution_tool_stream/0": Fact(
        text=f"123456^123 equals:\n{123456**123}",
        thinking="**Calculating a large integer**\n\nI need to compute 123456 raised to the power of 123.",
        items="reasoning code_interpreter_call code_interpreter_call code_interpreter_call message",
        lost=3,
        usage=(3727, 347, 3200, 128),
        model="gpt-5-2025-08-07",
    ),
    "deepseek_responses_function_tool_stream/0": Fact(
        thinking="The user asks about temperature in Tokyo. I'll call the tool.",
        calls=(("call_00_xjY8Z2BvSlzgEmmw0DtH0464", "get_temperature", '{"city": "Tokyo"}'),),
        items="reasoning function_call",
        usage=(366, 59, 256, 14),
        model="deepseek-v4-flash",
        finish="calls",
    ),
    "deepseek_responses_function_tool_stream/1": Fact(
        text="The current temperature in Tokyo is **21.0°C**.",
        items="message",
        usage=(440, 14, 384, 0),
        model="deepseek-v4-flash",
    ),
}


@needs_traffic
def test_every_recording_has_its_facts() -> None:
    """A new one is read by a person first."""
    assert sorted(one.name for one in RECORDED) == sorted(FACTS)


@needs_traffic
@each_recorded
def test_what_a_recording_said_is_known(one: Recorded) -> None:
    """The parser's reading against a person's; what another vendor cannot be shown is named."""
    told, fact = whole(one), FACTS[one.name]
    assert told.end is not None
    read, written, cached, reasoned = fact.usage
    assert told.end == Finished(
        finish=fact.finish,
        model=fact.model,
        usage=Usage(input_tokens=read, output_tokens=written, cached_input_tokens=cached, reasoning_tokens=reasoned),
    )
    assert (told.text, told.calls, told.cited) == (fact.text, fact.calls, fact.cited)
    assert told.thinking.startswith(fact.thinking)
    assert bool(told.thinking) == bool(fact.thinking)
    assert told.searches.count("completed") == fact.searches
    assert " ".join(json.loads(item)["type"] for item in told.native) == fact.items
    assert len(told.lost) == fact.lost
    assert all(item in one.body for item in told.native)  # not a byte was touched
