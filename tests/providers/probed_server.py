"""A loopback server that answers a probe's questions as a small model would, with abilities left out at will."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onrecord.jsonio import Json
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Peer, Script, chunk
from tests.providers.chat_server import delta, sse, status

__all__ = ("answering_as",)

NO_TOOLS = status(400, body='{"error":{"message":"small does not support tools","type":"invalid_request_error"}}')
NO_FORMAT = status(400, body='{"error":{"message":"response_format is not supported","code":"bad_format"}}')
FACTS = '{"place_name":"Lisbon","degrees_celsius":17}'


def answering_as(
    *,
    tools: str = "",
    schema: str = "",
    both: str = "",
    streams: bool = True,
    counts: bool = True,
    refuses: Mapping[str, bytes] = {},
) -> Script:
    """A server that can do everything, but for what is said otherwise.

    ``tools`` is ``refused``, ``ignored``, ``wrong name``, ``no json`` or ``deaf`` (for results); ``schema`` and
    ``both`` (tools beside a schema) are ``refused`` or ``ignored``. ``refuses`` maps a word of a body to an answer.
    """

    async def script(peer: Peer) -> None:
        while True:
            asked = await peer.request()
            answer = next((given for word, given in refuses.items() if word.encode() in asked.body), None)
            held = json.loads(asked.body)
            await peer.send(answer or _answer(held, tools, schema, both, streams, counts))

    return script


def _answer(asked: dict[str, Any], tools: str, schema: str, both: str, streams: bool, counts: bool) -> bytes:
    formed = asked.get("response_format", {}).get("type")
    if asked.get("tools"):
        return _with_tools(asked, tools, both if formed else "", streams, counts)
    if formed == "json_schema" and schema == "refused":
        return NO_FORMAT
    in_prompt = "JSON Schema" in str(asked["messages"][0]["content"])
    if (formed == "json_schema" and schema != "ignored") or formed == "json_object":
        return _said(FACTS, streams, counts)
    if in_prompt:
        return _said(f"Here it is: {FACTS}", streams, counts)
    return _said("one, two, three", streams, counts)


def _with_tools(asked: dict[str, Any], tools: str, both: str, streams: bool, counts: bool) -> bytes:
    if tools == "refused":
        return NO_TOOLS
    if both == "refused":
        return NO_FORMAT
    if asked["messages"][-1]["role"] == "tool":
        return _said("It is nice." if tools == "deaf" else "17 degrees, and clear.", streams, counts)
    if "ignored" in {tools, both}:
        return _said("I cannot know.", streams, counts)
    name = "look_up" if tools == "wrong name" else "weather_of"
    return _called(name, "Lisbon" if tools == "no json" else '{"place":"Lisbon"}')


def _said(text: str, streams: bool, counts: bool) -> bytes:
    usage: Json = {"prompt_tokens": 9, "completion_tokens": 3} if counts else None
    if not streams:
        message = {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}], "usage": usage}
        body = json.dumps(message).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    half = len(text) // 2
    events = (delta(text[:half]), delta(text[half:]), delta(finish="stop"), {"choices": [], "usage": usage})
    return SSE_HEAD + chunk(sse(*events)) + LAST_CHUNK


def _called(name: str, arguments: str) -> bytes:
    call = {"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments}}
    return SSE_HEAD + chunk(sse(delta(tool_calls=[call]), delta(finish="tool_calls"))) + LAST_CHUNK
