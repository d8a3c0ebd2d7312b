"""Recorded Chat Completions: one of them cut everywhere over a connection, and what a person reads in the files.

What every wire does with its recordings is in ``test_every_wire_recorded``.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from tests.net.loopback import Peer, serving
from tests.providers.wires import CHAT, Heard, Recorded, by_model, by_parser, needs_traffic

pytestmark = [pytest.mark.integration, needs_traffic]

CHATS = CHAT.recorded()


async def test_one_stream_cut_at_every_byte_offset_over_a_connection() -> None:
    """The shortest that calls a tool: two writes, the cut anywhere."""
    one = min((one for one in CHATS if b"tool_calls" in one.body), key=lambda held: len(held.body))
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
        return await by_model(one.wire.make(f"http://127.0.0.1:{server.port}/v1", one.vendor))


def test_what_the_recorded_vendors_said_is_known() -> None:
    """The parser's own reading against what a person reads in the files."""
    by_name = {one.name: by_parser(one, one.body) for one in CHATS}
    assert by_name["openai/openai_moderation_stream/0"].text == "Paris."
    assert by_name["openai/run_stream_sync_streams_real_model/0"].calls[0].raw_args == '{"country":"UK"}'
    assert by_name["openai/run_stream_sync_streams_real_model/1"].text.endswith("London.")
    assert by_name["zai/zai_thinking_stream/0"].text == "4"
    assert by_name["deepseek/deepseek_model_thinking_stream/0"].thinking.startswith("H")
    sealed = json.loads(by_name["openrouter/openrouter_stream_with_reasoning/0"].native[0])["reasoning_details"]
    assert {block["type"] for block in sealed} == {"reasoning.encrypted"}
    assert by_name["openrouter/openrouter_stream_error/0"].error.startswith("invalid 400 True")
    assert by_name["groq/tool_use_failed_error_streaming/0"].error.startswith("invalid 400 True")
    assert "tool_use_failed" in by_name["groq/tool_use_failed_error_streaming/0"].error
    assert Counter(bool(one.error) for one in by_name.values()) == {False: len(by_name) - 2, True: 2}
    assert all(one.usage is not None for one in by_name.values() if not one.error)
