"""Recorded Responses of two vendors: what a person reads in the files, and streams that repeat or lose an event.

What every wire does with its recordings is in ``test_every_wire_recorded``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from onrecord.conversation.usage import Usage
from onrecord.models.chunks import Chunk, CitationChunk, NativeItem, SearchChunk
from onrecord.net.sse import EventParser
from onrecord.providers.openai_responses.client import openai_responses
from onrecord.providers.openai_responses.parse import Parser
from tests.net.loopback import Peer, serving
from tests.providers.wires import (
    RESPONSES,
    TRAFFIC,
    Heard,
    Recorded,
    by_model,
    by_parser,
    events_of,
    heard,
    needs_traffic,
)  # fmt: skip

STREAMS = RESPONSES.recorded()
each_stream = pytest.mark.parametrize("one", STREAMS, ids=[one.name for one in STREAMS])
pytestmark = [pytest.mark.integration, needs_traffic]


async def cut_in_two(one: Recorded, at: int) -> Heard:
    """The whole way, in two writes; the connection ends with the reply."""
    head = f"HTTP/1.1 200 X\r\nContent-Type: {one.content_type}\r\nConnection: close\r\n\r\n".encode()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head + one.body[:at])
        await asyncio.sleep(0)
        await peer.send(one.body[at:])

    async with serving(script) as server:
        return await by_model(one.wire.make(f"http://127.0.0.1:{server.port}/v1", one.vendor))


async def test_the_shortest_stream_is_cut_all_over_on_its_way() -> None:
    """It calls a tool: two writes, the cut at every seventh byte."""
    one = min(STREAMS, key=lambda held: len(held.body))
    whole = by_parser(one, one.body)
    assert whole.calls
    gate = asyncio.Semaphore(16)

    async def cut(at: int) -> Heard:
        async with gate:
            return await cut_in_two(one, at)

    told = await asyncio.gather(*(cut(at) for at in range(0, len(one.body), 7)))
    assert set(map(repr, told)) == {repr(whole)}


@each_stream
def test_events_that_come_twice_say_nothing_twice(one: Recorded) -> None:
    """Each at once, and with the one before. Only streams with numbers can tell a repetition from a repeated word."""
    events, whole = events_of(one.body), by_parser(one, one.body)
    if b'"sequence_number"' not in one.body:
        events = [event for event in events if b".delta" not in event]  # what is left says all the same
    assert by_parser(one, *(event for event in events for _ in range(2))) == whole
    for at in range(1, len(events), 3):
        assert by_parser(one, *events[: at + 1], *events[at - 1 :]) == whole


@each_stream
def test_a_stream_that_lost_an_event_gives_the_whole_reply_or_an_error(one: Recorded) -> None:
    """Of text, calls and sources there is all or nothing; what was only told on the way may be missing."""
    events, whole = events_of(one.body), by_parser(one, one.body)
    for at in range(len(events)):
        got = by_parser(one, *events[:at], *events[at + 1 :])
        if got.error:
            assert got.error.startswith("network ")
        else:
            assert got._replace(thinking="", searches=(), native=()) == (
                whole._replace(thinking="", searches=(), native=())
            )
            assert len(got.native) == len(whole.native)


def test_the_recorded_vendors_were_asked_where_this_wire_asks() -> None:
    """One has its paths below ``/v1``, the other at the root."""
    for vendor, base in (("openai_responses", "https://h/v1"), ("deepseek_responses", "https://h")):
        (path,) = {held["path"] for file in (TRAFFIC / vendor).glob("*.json") for held in json.loads(file.read_text())}
        model: Any = openai_responses("m", base_url=base, provider="acme", retry=False)
        assert model.address() == f"https://h{path}"


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


def recorded() -> dict[str, Any]:
    """All recorded answers of the protocol, streams as text and others as JSON."""
    found: dict[str, Any] = {}
    for vendor in RESPONSES.vendors:
        for file in sorted((TRAFFIC / vendor).glob("*.json")):
            name = file.stem.removeprefix("openai_").removeprefix("responses_").rstrip("_")
            for n, held in enumerate(json.loads(file.read_text(encoding="utf-8"))):
                found[f"{name}/{n}"] = held["response"]
    return found


def pieces_read(said: Any) -> Sequence[Chunk]:
    """All chunks of a recorded answer."""
    parser, out = Parser("acme"), list[Chunk]()
    if not isinstance(said, str):
        return [*parser.whole(json.dumps(said).encode()), *parser.close()]
    for data in EventParser().feed(said.encode()):
        out += parser.feed(data)
    return [*out, *parser.close()]


SAID = recorded()


def test_every_recording_has_its_facts() -> None:
    """A new one is read by a person first."""
    assert sorted(SAID) == sorted(FACTS)


@pytest.mark.parametrize("name", SAID)
def test_what_a_recording_said_is_known(name: str) -> None:
    """The parser's reading against a person's; what another vendor cannot be shown is named."""
    chunks, fact = pieces_read(SAID[name]), FACTS[name]
    told = heard(chunks, None)
    read, written, cached, reasoned = fact.usage
    assert told.usage == Usage(
        input_tokens=read, output_tokens=written, cached_input_tokens=cached, reasoning_tokens=reasoned
    )
    assert (told.text, told.refusal, told.finish, told.model) == (fact.text, "", fact.finish, fact.model)
    assert tuple((one.wire_id, one.name, one.raw_args) for one in told.calls) == fact.calls
    sources = [source for one in chunks if isinstance(one, CitationChunk) for source in one.citations]
    assert tuple(f"{one.url} {told.text[one.start : one.stop]}" for one in sources) == fact.cited
    assert told.thinking.startswith(fact.thinking)
    assert bool(told.thinking) == bool(fact.thinking)
    assert [one.status for one in chunks if isinstance(one, SearchChunk)].count("completed") == fact.searches
    items = [bytes(one.raw) for one in chunks if isinstance(one, NativeItem)]
    assert " ".join(json.loads(item)["type"] for item in items) == fact.items
    assert len(told.lost) == fact.lost
    if isinstance(SAID[name], str):
        assert all(item.decode() in SAID[name] for item in items)  # not a byte was touched
