"""Streams that no vendor would send: on every wire a whole reply that can be kept, or a `ModelError`, and nothing else.

Recorded streams are mutated with a fixed seed, and what once went wrong is tested by name. A reply costs what it is
long: tests of size would run for minutes where something is looked at again and again.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import AssistantMessage, Continuation, Round
from onrecord.errors import ModelError
from onrecord.models.chunks import CallChunk, Chunk, CitationChunk, Finished, NativeItem
from onrecord.models.held_reply import round_of
from onrecord.models.model import scope_of
from onrecord.net.sse import ErrorEvent, EventParser
from onrecord.session.codec import decode_message, encode_message
from tests.models.requests import request
from tests.providers.moving import KITS
from tests.providers.wires import (
    CHAT,
    GOOGLE,
    MESSAGES,
    RECORDED,
    RESPONSES,
    WIRES,
    Recorded,
    Wire,
    each_wire,
    needs_traffic,
)

pytestmark = pytest.mark.unit

MANY = 8_000
"""Of something in one reply: a walk over all for each takes seconds then, and one walk takes a blink."""
BLINK_S = 4.0

ODD: Sequence[Any] = (
    None, True, 0, -1, 1e308, -1e308, 2**63, 2**200, -(2**70), 0.5, "", "x", "\x00", [], {}, [None], [[]], [{}],
    {"text": 5}, "error", "DEEP", "HALF",
)  # fmt: skip
FIELDS = ("index", "type", "delta", "error", "id", "usage", "text", "content", "output_index", "name", "annotations")


def vendor_of(wire: Wire) -> str:
    """Of Chat's vendors one that wants its reasoning back."""
    return "zai" if wire is CHAT else wire.vendors[0]


def heard(wire: Wire, events: Sequence[bytes], vendor: str = "") -> list[Chunk]:
    """All chunks of a reply. ModelError."""
    parser, out = wire.parser(vendor or vendor_of(wire)), list[Chunk]()
    for event in events:
        out += parser.feed(event)
    out += parser.close()
    return out


def events_of(body: bytes) -> list[bytes]:
    """The data of a stream's events."""
    parser = EventParser()
    return [*parser.feed(body), *parser.close()]


def keeps(wire: Wire, chunks: Sequence[Chunk]) -> None:
    """The reply can be stored, read, and shown on every wire, its own included."""
    assert [type(chunk) for chunk in chunks].count(Finished) == 1
    ended = chunks[-1]
    assert isinstance(ended, Finished)
    if ended.usage is not None:
        assert all(0 <= getattr(ended.usage, name) <= 2**54 for name in ended.usage.__struct_fields__)
    card = wire.make("http://127.0.0.1:9/v1", vendor_of(wire)).card
    items = tuple(Raw(bytes(one.raw)) for one in chunks if isinstance(one, NativeItem))
    held = Continuation(protocol=card.protocol, scope=scope_of(card, "s"), items=items) if items else None
    said = round_of(chunks, "r")
    calls = tuple(_answered(call) for call in said.calls)
    message = AssistantMessage(id="a", rounds=(Round(id="r", content=said.content, calls=calls, continuation=held),))
    again = decode_message(encode_message(message))
    assert isinstance(again, AssistantMessage)
    conversation = Conversation.of([again])
    for other in WIRES:
        model = other.make("http://127.0.0.1:9/v1", vendor_of(other))
        asked = request(conversation=conversation, scope=scope_of(model.card, "s"))
        json.loads(model.wire(asked).body)


def _answered(call: Any) -> Any:
    return replace(call, status="absent")


# ---- mutations ------------------------------------------------------------------------------------------------------
def _places(held: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    items = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    for name, value in items:
        yield from _places(value, (*at, name))


def _changed(dice: random.Random, event: bytes) -> bytes:
    try:
        held = json.loads(event)
    except (ValueError, RecursionError):
        return event
    places = list(_places(held))
    if not places:
        return event
    at = dice.choice(places)
    inner = held
    for name in at[:-1]:
        inner = inner[name]
    if dice.random() < 0.8:
        inner[at[-1]] = dice.choice(ODD)
    elif isinstance(inner, dict):
        inner[dice.choice(FIELDS)] = dice.choice(ODD)
    else:
        inner.pop(at[-1])
    text = json.dumps(held).replace('"DEEP"', "[" * 3000 + "]" * 3000).replace('"HALF"', '"\\udc00"')
    return text.encode()


def mutated(dice: random.Random, events: Sequence[bytes]) -> list[bytes]:
    """The events with one to three things wrong."""
    out = list(events)
    for _ in range(dice.choice([1, 1, 2, 3])):
        at = dice.randrange(len(out))
        match dice.randrange(10):
            case 0:
                out.insert(at, out[at])
            case 1:
                del out[at]
                out = out or [b"{}"]
            case 2:
                out[at] = out[at][: dice.randrange(len(out[at]) + 1)] or b"{}"
            case 3:
                data = bytearray(out[at])
                data[dice.randrange(len(data))] = dice.choice([0, 0xFF, 0x22, 0x5C, 0x80])
                out[at] = bytes(data)
            case 4:
                out[at] = ErrorEvent(out[at])
            case _:
                out[at] = _changed(dice, out[at])
    return out


@needs_traffic
@each_wire
def test_a_mutated_stream_is_a_reply_that_can_be_kept_or_an_error(wire: Wire) -> None:
    """Whatever field says whatever: no other exception, and nothing that could not be stored or sent again."""
    dice = random.Random(wire.name)  # noqa: S311 - no secret
    streams: list[tuple[Recorded, list[bytes]]] = [
        (one, events) for one in RECORDED if one.wire is wire and len(events := events_of(one.body)) < 120
    ]
    whole = 0
    for _ in range(250):
        one, events = dice.choice(streams)
        try:
            chunks = heard(wire, mutated(dice, events), one.vendor)
        except ModelError:
            continue
        whole += 1
        if whole % 4 == 0:
            keeps(wire, chunks)
    assert whole > 10


# ---- what is only skipped while an event is read ---------------------------------------------------------------------
SKIPPED = {"deep": b"[" * 2000 + b"]" * 2000, "no Unicode": b'"\xff"', "half a pair": b'"\\ud800"'}


@each_wire
@pytest.mark.parametrize("odd", SKIPPED.values(), ids=SKIPPED)
def test_nothing_is_kept_that_could_not_be_read_again(wire: Wire, odd: bytes) -> None:
    """A native item is stored as it came, so what nobody reads in it is looked at all the same."""
    for event in range(len(events := events_of(KITS[wire.name].calls()))):
        spoiled = [b'{"more":' + odd + b"," + data[1:] if i == event else data for i, data in enumerate(events)]
        marked = [_inside(data, odd) if i == event else data for i, data in enumerate(events)]
        for stream in (spoiled, marked):
            try:
                chunks = heard(wire, stream)
            except ModelError:
                continue
            keeps(wire, chunks)


def _inside(data: bytes, odd: bytes) -> bytes:
    """The event with the odd value in every object, so in those that are kept whole, too."""
    return data.replace(b"{", b'{"more": %b, ' % odd).replace(b", }", b"}") if data.startswith(b"{") else data


# ---- size -----------------------------------------------------------------------------------------------------------
def _data(*events: Any) -> list[bytes]:
    return [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]


def _choice(finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def _chat(*said: dict[str, Any]) -> list[bytes]:
    return _data(*(_choice(**one) for one in said), _choice("stop"), b"[DONE]")


def _messages(*blocks: dict[str, Any]) -> list[bytes]:
    events: list[Any] = [{"type": "message_start", "message": {"id": "m"}}]
    for at, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    return _data(*events, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"})


def _item(at: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def _big() -> Iterator[tuple[str, Wire, list[bytes]]]:
    call = {"name": "f", "arguments": "{}"}
    yield (
        "fragments of arguments",
        CHAT,
        _chat(*({"tool_calls": [{"index": 0, "id": "c", "function": call}]} for _ in range(MANY))),
    )
    yield (
        "calls of one id",
        CHAT,
        _chat(*({"tool_calls": [{"index": i, "id": "c", "function": call}]} for i in range(MANY))),
    )
    yield (
        "reasoning to give back",
        CHAT,
        _chat(*({"reasoning_content": "thought " * 8} for _ in range(MANY)), {"content": "so"}),
    )
    found = [{"search_results": {"results": [{"url": f"http://a/{i}"}]}} for i in range(MANY)]
    yield "searches", CHAT, _chat({"content": "so", "executed_tools": found})
    used = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    yield "blocks of one id", MESSAGES, _messages(*[used] * MANY)
    asked = [{"type": "server_tool_use", "id": f"s{i}", "name": "web_search", "input": {}} for i in range(MANY)]
    told = [{"type": "web_search_tool_result", "tool_use_id": f"s{i}", "content": []} for i in range(MANY)]
    yield "results", MESSAGES, _messages(*asked, *told)
    function = {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": "{}"}
    completed = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    yield "items of one id", RESPONSES, _data(*(_item(i, function) for i in range(MANY)), completed)
    parts = [{"functionCall": {"name": "f", "id": "c", "args": {}}}] * MANY
    yield "parts of one id", GOOGLE, _data({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})


BIG = list(_big())


@pytest.mark.parametrize(("wire", "events"), [one[1:] for one in BIG], ids=[one[0] for one in BIG])
def test_a_reply_costs_no_more_than_its_length(wire: Wire, events: list[bytes]) -> None:
    """And each of its calls has an id of its own."""
    began = time.process_time()
    chunks = heard(wire, events)
    assert time.process_time() - began < BLINK_S
    ids = [chunk.wire_id for chunk in chunks if isinstance(chunk, CallChunk)]
    assert len(set(ids)) == len(ids)


# ---- by name --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("told", [-5, -1e308, 1e308, 2**200])
def test_tokens_are_a_count_whatever_a_server_says(told: float) -> None:
    """A negative one would give a budget back, and a huge one could not be stored everywhere."""
    both = {"input_tokens": told, "output_tokens": told}
    replies = {
        "chat": _data(_choice("stop", content="x"), {"usage": {"prompt_tokens": told, "completion_tokens": told}}),
        "messages": _data(
            {"type": "message_start", "message": {"id": "m", "usage": both}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ),
        "google": _data({
            "candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": told, "candidatesTokenCount": told},
        }),
        "responses": _data({
            "type": "response.completed",
            "response": {"status": "completed", "usage": both, "output": [{
                "type": "message", "content": [{"type": "output_text", "text": "x"}],
            }]},
        }),
    }  # fmt: skip
    for wire in WIRES:
        keeps(wire, heard(wire, replies[wire.name]))


@pytest.mark.parametrize("name", ["a.b", "部屋", "two words", "x" * 65])
def test_a_call_of_a_name_that_the_vendor_refuses_is_not_sent_back_as_it_came(name: str) -> None:
    """Models make names up. One such item would have every later request refused."""
    call = {"index": 0, "id": "c", "extra_content": {"x": 1}, "function": {"name": name, "arguments": "{}"}}
    item = {"type": "function_call", "id": "i", "call_id": "c", "name": name, "arguments": "{}"}
    completed = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    block = {"type": "tool_use", "id": "t", "name": name * 2, "input": {}}
    for wire, events in (
        (CHAT, _chat({"tool_calls": [call]})), (RESPONSES, _data(completed)), (MESSAGES, _messages(thought, block)),
    ):  # fmt: skip
        chunks = heard(wire, events)
        assert any(isinstance(chunk, CallChunk) and chunk.name.startswith(name) for chunk in chunks)
        assert not any(isinstance(chunk, NativeItem) for chunk in chunks)


def test_a_source_with_absurd_offsets_is_a_source_all_the_same() -> None:
    """Offsets are taken as told here; where they are of no passage, the round says so (`onrecord.turn.citing`)."""
    source = {"url": "http://a", "start_index": -(2**70), "end_index": 2**70}
    chunks = heard(CHAT, _chat({"content": "x", "annotations": [{"type": "url_citation", "url_citation": source}]}))
    assert [one.url for chunk in chunks if isinstance(chunk, CitationChunk) for one in chunk.citations] == ["http://a"]
