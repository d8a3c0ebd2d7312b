"""How replies end on every wire: whole, empty, cut, filtered, not streamed, and refused for a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.models.chunks import TextChunk
from onrecord.models.fallback import Fallback
from onrecord.models.learned import Learned
from onrecord.providers import http_model
from onrecord.providers.probe import probe
from tests.models.requests import offer, request, user
from tests.net.loopback import SSE_HEAD, Peer, Script, chunk, serving
from tests.providers.chat_server import each
from tests.providers.moving import Event, candidates, choice, message, messages_blocks, responses_stream
from tests.providers.wires import ASKED, WIRES, Heard, Wire, by_model, each_wire, sse

pytestmark = pytest.mark.integration

THOUGHT = "Let me see."
TEXT: Event = {"type": "output_text", "text": "Hel", "annotations": []}
REASONING: Event = {
    "id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}],
}  # fmt: skip
THINKING: Any = ({"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"}, ())
COUNTS: Event = {"input_tokens": 10, "output_tokens": 5}


def _cut_off(reason: str, *items: Event) -> bytes:
    """A response that its vendor did not complete."""
    held = {"status": "incomplete", "output": list(items), "incomplete_details": {"reason": reason}}
    said = [{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"}] * len(items)
    return b"".join(sse(*said, {"type": "response.incomplete", "response": held}, named=True))


def _chat(*events: Any) -> bytes:
    return b"".join(sse(*events, "[DONE]"))


REPLIES: dict[str, dict[str, bytes]] = {
    "nothing": {
        "chat": _chat(choice("stop")),
        "responses": responses_stream([]),
        "messages": messages_blocks("end_turn"),
        "google": candidates([]),
    },
    "a thought alone": {
        "chat": _chat(choice(reasoning_content=THOUGHT), choice("stop")),
        "responses": responses_stream([REASONING]),
        "messages": messages_blocks("end_turn", THINKING),
        "google": candidates([{"text": THOUGHT, "thought": True}]),
    },
    "cut before a word": {
        "chat": _chat(choice(reasoning_content=THOUGHT), choice("length")),
        "responses": _cut_off("max_output_tokens"),
        "messages": messages_blocks("max_tokens", THINKING),
        "google": candidates([{"text": THOUGHT, "thought": True}], finish="MAX_TOKENS"),
    },
    "cut in its words": {
        "chat": _chat(choice(content="Hel"), choice("length")),
        "responses": _cut_off("max_output_tokens", message(TEXT)),
        "messages": messages_blocks("max_tokens", ({"type": "text", "text": "Hel"}, ())),
        "google": candidates([{"text": "Hel"}], finish="MAX_TOKENS"),
    },
    "filtered": {
        "chat": _chat(choice(content="Hel"), choice("content_filter")),
        "responses": _cut_off("content_filter", message(TEXT)),
        "messages": messages_blocks("sensitive", ({"type": "text", "text": "Hel"}, ())),
        "google": candidates([{"text": "Hel"}], finish="SAFETY"),
    },
}
ENDS: dict[str, tuple[str, str, str, str]] = {
    # what becomes of it over Chat, Responses, Messages and generateContent: an end, or the kind of an error
    "nothing": ("stop", "error: overload", "stop", "error: overload"),
    "a thought alone": ("stop", "stop", "stop", "error: overload"),
    "cut before a word": ("error: invalid",) * 4,
    "cut in its words": ("length", "error: invalid", "length", "length"),
    "filtered": ("content", "error: content", "content", "content"),
}


async def told(wire: Wire, script: Script) -> Heard:
    """What a model of the wire made of a server; the request was sent once."""
    async with serving(script) as server:
        heard = await by_model(wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0]))
    assert not server.failures
    assert len(server.requests) == 1
    return heard


def streamed(body: bytes) -> Script:
    """An answer in events."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    return each(head.encode() + body)


@pytest.mark.parametrize("said", ENDS)
@pytest.mark.parametrize(("at", "wire"), list(enumerate(WIRES)), ids=[wire.name for wire in WIRES])
async def test_s7_how_a_reply_ends_is_told_in_one_vocabulary(at: int, wire: Wire, said: str) -> None:
    """A reply that its cap left without a word is invalid everywhere, and asked for once (case S7).

    Responses calls a cut reply failed (seed 002); the others hand out what there is, with the reason.
    """
    heard = await told(wire, streamed(REPLIES[said][wire.name]))
    end = ENDS[said][at]
    assert (f"error: {heard.error.split()[0]}" if heard.error else heard.finish) == end
    assert heard.text == ("Hel" if said in {"cut in its words", "filtered"} else "")
    if said == "a thought alone":
        assert heard.thinking == THOUGHT
    if said == "cut before a word":
        assert "output cap" in heard.error


WHOLE: dict[str, Any] = {
    "chat": {
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    },
    "responses": {
        "status": "completed",
        "model": "m-1",
        "output": [message({"type": "output_text", "text": "Hello", "annotations": []})],
        "usage": COUNTS,
    },
    "messages": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hello"}], "usage": COUNTS,
    },
    "google": {
        "candidates": [{"content": {"parts": [{"text": "Hello"}], "role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "m-1",
    },
}  # fmt: skip


@each_wire
async def test_an_answer_that_is_one_object_is_the_same_reply(wire: Wire) -> None:
    """From servers and proxies that do not stream, whatever they were asked."""
    body = json.dumps(WHOLE[wire.name]).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    heard = await told(wire, each(head.encode() + body))
    assert (heard.text, heard.finish, heard.model, heard.error) == ("Hello", "stop", "m-1", "")
    assert heard.usage == Usage(input_tokens=10, output_tokens=5)


@each_wire
@pytest.mark.parametrize("status", [429, 503])
async def test_e4_a_stated_wait_is_part_of_the_error(wire: Wire, status: int) -> None:
    """So that waits and cooldowns heed it on each wire (case E4)."""
    head = f"HTTP/1.1 {status} Busy\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{{}}"
    async with serving(each(head.encode())) as server:
        model = wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0])
        with pytest.raises(ModelError) as caught:
            _ = [one async for one in model.stream(ASKED)]
    error = caught.value
    assert (error.retry_after, error.status, error.started) == (7.0, status, False)
    assert error.kind == ("rate" if status == 429 else "overload")


CALL: Mapping[str, Any] = {"id": "c1", "type": "function", "function": {"name": "price", "arguments": ""}}
BEGUN: dict[str, tuple[Any, Any]] = {
    # an event that says nothing yet, and one that begins a call
    "chat": (choice(role="assistant", content=""), choice(tool_calls=[{"index": 0, **CALL}])),
    "responses": (
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "price", "arguments": ""},
        },
    ),
    "messages": (
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "model": "m-1"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "c1", "name": "price", "input": {}},
        },
    ),
    "google": (
        {"usageMetadata": {"promptTokenCount": 10}, "modelVersion": "m-1"},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "price", "args": {}}}], "role": "model"}}]},
    ),
}


@each_wire
@pytest.mark.parametrize("began", [False, True])
async def test_e6_a_connection_lost_after_a_call_began_says_that_it_began(wire: Wire, began: bool) -> None:
    """Nobody may ask again then, nor ask another model, though nothing was shown (cases E6 and S4)."""

    async def script(peer: Peer) -> None:
        await peer.request()
        said = sse(*BEGUN[wire.name], named=wire.name in {"responses", "messages"})
        await peer.send(SSE_HEAD + chunk(b"".join(said if began else said[:1])))

    async with serving(script) as first, serving(each(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")) as second:
        models = [wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0]) for server in (first, second)]
        heard = await by_model(models[0])
        assert heard.error.startswith(f"network 200 {began} ")
        with pytest.raises(ModelError):
            _ = [one async for one in Fallback(*models).stream(ASKED)]
        assert len(second.requests) == (0 if began else 1)


@each_wire
async def test_c9_a_server_that_takes_no_tools_is_asked_without_them_next_time(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools and choice go together, on each wire and over a real connection (case C9)."""
    monkeypatch.setattr(http_model, "LEARNED", Learned())
    refusal = json.dumps({"error": {"message": "this model does not support tools", "type": "invalid_request_error"}})
    no = f"HTTP/1.1 400 No\r\nContent-Type: application/json\r\nContent-Length: {len(refusal)}\r\n\r\n{refusal}"
    said = b"".join(wire.hello)
    yes = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(said)}\r\n\r\n".encode() + said
    asked = request(user("hi"), offers=(offer("find_a_room"),), choice="required")
    async with serving(each(no.encode(), yes)) as server:
        model = wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0])
        with pytest.raises(ModelError, match="400"):
            _ = [one async for one in model.stream(asked)]
        assert [one.text async for one in model.stream(asked) if isinstance(one, TextChunk)] == ["Hel", "lo"]
        first, second = (sent.body for sent in server.requests)
    assert b"find_a_room" in first
    assert not {"tools", "tool_choice", "toolConfig"} & json.loads(second).keys()


@each_wire
async def test_a_probe_asks_an_endpoint_of_each_wire_as_it_is(wire: Wire) -> None:
    """One that says "Hello" to everything streams, calls no tool and keeps to no schema."""
    said = b"".join(wire.hello)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(said)}\r\n\r\n".encode()

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(head + said)

    async with serving(script) as server:
        found = await probe(wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0]), samples=1, waits_s=())
    works = {finding.name: finding.works for finding in found.findings}
    assert found.error is None
    assert works["streaming"]
    assert not works["tools"]
    assert not works["schema"]
    assert (found.card.tools, found.card.structured) == (False, "prompt")
