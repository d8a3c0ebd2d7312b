"""Every wire as tests over all of them see it: how to make its models and parsers, and what its vendors sent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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
from onrecord.models.model import Model
from onrecord.models.request import Request
from onrecord.net.sse import EventParser
from onrecord.providers.anthropic.client import anthropic
from onrecord.providers.anthropic.parse import Parser as MessagesParser
from onrecord.providers.google.client import google
from onrecord.providers.google.parse import Parser as GoogleParser
from onrecord.providers.http_model import StreamParser
from onrecord.providers.openai_chat.cards import Dialect, openai_card
from onrecord.providers.openai_chat.parse import Parser as ChatParser
from onrecord.providers.openai_compatible import VENDORS, openai_compatible
from onrecord.providers.openai_responses.client import openai_responses
from onrecord.providers.openai_responses.parse import Parser as ResponsesParser
from tests.models.requests import request, user

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ONRECORD_SHARED") or ROOT.parent / "shared")
TRAFFIC = SHARED / "data" / "traffic"
ASKED: Request = request(user("hi"))


class Recorded(NamedTuple):
    """One exchange with a vendor."""

    wire: Wire
    vendor: str
    name: str
    status: int
    content_type: str
    body: bytes


class Wire(NamedTuple):
    """One protocol: ``make`` builds a model of a vendor behind a base URL, without waits.

    ``hello`` is a whole stream that says "Hello", in pieces; ``failing`` an event that reports an overload.
    """

    name: str
    vendors: tuple[str, ...]
    make: Callable[[str, str], Model]
    parser: Callable[[str], StreamParser]
    hello: tuple[bytes, ...]
    failing: bytes

    def recorded(self) -> list[Recorded]:
        """All recorded streams of the protocol."""
        found: list[Recorded] = []
        for vendor in self.vendors:
            for file in sorted((TRAFFIC / vendor).glob("*.json")):
                for n, held in enumerate(json.loads(file.read_text(encoding="utf-8"))):
                    if not isinstance(held["response"], str):
                        continue  # an answer that was not streamed
                    name, body = f"{vendor}/{file.stem}/{n}", held["response"].encode()
                    found.append(Recorded(self, vendor, name, held["status"], held["content_type"], body))
        return found


def sse(*events: Any, named: bool = False) -> tuple[bytes, ...]:
    """Events as servers write them; ``named`` with the line that repeats their type."""
    out: list[bytes] = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        kind = f"event: {event['type']}\n" if named else ""
        out.append(f"{kind}data: {data}\n\n".encode())
    return tuple(out)


def chat_dialect(vendor: str) -> Dialect:
    """How the vendor's Chat Completions differs."""
    return VENDORS[vendor].dialect if vendor in VENDORS else openai_card("gpt-5")[1]


def _chat(url: str, vendor: str) -> Model:
    return openai_compatible(url, "m", api_key=KEY, provider=vendor, dialect=chat_dialect(vendor), retry=False)


def _choice(finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


KEY = "sk-the-key"

CHAT = Wire(
    name="chat",
    vendors=("openai", "openrouter", "deepseek", "groq", "zai"),
    make=_chat,
    parser=lambda vendor: ChatParser(vendor, chat_dialect(vendor)),
    hello=sse(_choice(content="Hel"), _choice(content="lo"), _choice("stop"), "[DONE]"),
    failing=sse({"error": {"code": "server_error", "message": "overloaded"}})[0],
)


def _candidate(text: str, **fields: Any) -> dict[str, Any]:
    content = {"parts": [{"text": text}], "role": "model"}
    return {"candidates": [{"content": content, "index": 0, **fields}], "modelVersion": "m-1"}


GOOGLE = Wire(
    name="google",
    vendors=("google",),
    make=lambda url, _: google("gemini-3.8-flash", api_key=KEY, base_url=url, retry=False),
    parser=GoogleParser,
    hello=sse(_candidate("Hel"), _candidate("lo"), _candidate("", finishReason="STOP")),
    failing=sse({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})[0],
)


def _responses(url: str, vendor: str) -> Model:
    return openai_responses("m", base_url=url, api_key=KEY, provider=vendor, retry=False)


def _responses_hello() -> Iterator[dict[str, Any]]:
    said = {"type": "output_text", "text": "Hello", "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield {"type": "response.output_text.delta", **place, "delta": "Hel"}
    yield {"type": "response.output_text.delta", **place, "delta": "lo"}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"status": "completed", "model": "m-1", "output": [item]}}


RESPONSES = Wire(
    name="responses",
    vendors=("openai_responses", "deepseek_responses"),
    make=_responses,
    parser=ResponsesParser,
    hello=sse(*_responses_hello(), named=True),
    failing=sse({"type": "error", "code": "server_error", "message": "overloaded", "param": None}, named=True)[0],
)


def _messages_hello() -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "model": "m-1", "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
    yield {"type": "message_stop"}


MESSAGES = Wire(
    name="messages",
    vendors=("anthropic",),
    make=lambda url, _: anthropic("claude-opus-5", api_key=KEY, base_url=url, retry=False),
    parser=MessagesParser,
    hello=sse(*_messages_hello(), named=True),
    failing=sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, named=True)[0],
)

WIRES: tuple[Wire, ...] = (CHAT, RESPONSES, MESSAGES, GOOGLE)
RECORDED = [one for wire in WIRES for one in wire.recorded()]
each_wire = pytest.mark.parametrize("wire", WIRES, ids=[wire.name for wire in WIRES])
each_recorded = pytest.mark.parametrize("one", RECORDED, ids=[one.name for one in RECORDED])
if os.environ.get("ONRECORD_SHARED") and not RECORDED:
    raise FileNotFoundError(f"ONRECORD_SHARED names a folder without data/traffic: {SHARED}")
needs_traffic = pytest.mark.skipif(
    not RECORDED, reason="no recorded traffic: set ONRECORD_SHARED to the folder that has data/traffic in it"
)


class Heard(NamedTuple):
    """A reply as what it means: pieces of text joined."""

    text: str
    refusal: str
    thinking: str
    calls: tuple[CallChunk, ...]
    citations: tuple[object, ...]
    searches: tuple[object, ...]
    native: tuple[str, ...]
    finish: str
    usage: object
    model: str
    lost: tuple[str, ...]
    error: str


def heard(chunks: Sequence[Chunk], error: ModelError | None) -> Heard:
    """Everything a reply said and how it ended."""
    ends = [one for one in chunks if isinstance(one, Finished)]
    assert len(ends) == (0 if error else 1)
    assert not ends or chunks[-1] is ends[0]
    end = ends[0] if ends else Finished(finish="")
    natives = [one for one in chunks if isinstance(one, NativeItem)]
    return Heard(
        text="".join(one.text for one in chunks if isinstance(one, TextChunk) and not one.refusal),
        refusal="".join(one.text for one in chunks if isinstance(one, TextChunk) and one.refusal),
        thinking="".join(one.text for one in chunks if isinstance(one, ThinkingChunk)),
        calls=tuple(one for one in chunks if isinstance(one, CallChunk)),
        citations=tuple(held for one in chunks if isinstance(one, CitationChunk) for held in one.citations),
        searches=tuple((one.id, one.status) for one in chunks if isinstance(one, SearchChunk)),
        native=tuple(json.dumps(json.loads(bytes(one.raw)), sort_keys=True) for one in natives),
        finish=end.finish,
        usage=end.usage,
        model=end.model,
        lost=(*(one.lost for one in natives if one.lost), *end.lost),
        error=f"{error.kind} {error.status} {error.started} {error}" if error else "",
    )


def by_parser(one: Recorded, *pieces: bytes) -> Heard:
    """Events and parser without a network; what came before an error counts."""
    events, parser = EventParser(), one.wire.parser(one.vendor)
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


async def by_model(model: Model) -> Heard:
    """A reply over a real connection."""
    out: list[Chunk] = []
    try:
        async with aclosing(model.stream(ASKED)) as chunks:
            async for item in chunks:
                out.append(item)  # noqa: PERF401 - what came before an error counts
    except ModelError as error:
        return heard(out, error)
    return heard(out, None)


def events_of(body: bytes) -> list[bytes]:
    """A stream cut after each event."""
    lines, out, at = body.splitlines(keepends=True), [], 0
    for line in lines:
        at += len(line)
        if not line.strip():
            out.append(at)
    stops = [0, *out] if out and out[-1] == len(body) else [0, *out, len(body)]
    return [body[a:b] for a, b in pairwise(stops) if body[a:b].strip()]
