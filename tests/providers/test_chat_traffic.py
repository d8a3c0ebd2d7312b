"""Recorded Chat Completions: one of them cut everywhere over a connection, and what a person reads in the files.

What every wire does with its recordings is in ``test_every_wire_recorded``.
"""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

import pytest

from onrecord.conversation.usage import Usage
from tests.net.loopback import Peer, serving
from tests.providers.wires import CHAT, Heard, Recorded, by_model, by_parser, needs_traffic

pytestmark = [pytest.mark.integration, needs_traffic]

CHATS = CHAT.recorded()


async def test_one_stream_cut_at_every_byte_offset_over_a_connection() -> None:
    """The shortest that calls a tool: two writes, the cut anywhere."""
    one = min((one for one in CHATS if b"tool_calls" in one.body), key=lambda held: len(held.body))
    whole = by_parser(one, one.body)
    assert whole.calls
    head = f"HTTP/1.1 200 X\r\nContent-Type: {one.content_type}\r\nContent-Length: {len(one.body)}\r\n\r\n".encode()
    gate = asyncio.Semaphore(16)

    async def script(peer: Peer) -> None:
        while True:
            at = int((await peer.request()).line.split("/")[1])
            await peer.send(head + one.body[:at])
            await asyncio.sleep(0)
            await peer.send(one.body[at:])

    async with serving(script) as server:

        async def cut(at: int) -> Heard:
            async with gate:
                return await by_model(one.wire.make(f"http://127.0.0.1:{server.port}/{at}/v1", one.vendor))

        told = await asyncio.gather(*map(cut, range(len(one.body))))
    assert set(map(repr, told)) == {repr(whole)}
    assert len(server.requests) == len(one.body)


# ---- facts ----------------------------------------------------------------------------------------------------------


class Fact(NamedTuple):
    """What a person reads in a recording; of long words the beginning, the end and how long they are.

    ``usage`` counts read, written, cached and reasoning tokens; ``keeps`` are the fields that go back to the vendor.
    """

    text: str = ""
    thinking: tuple[str, str, int] = ("", "", 0)
    calls: tuple[tuple[str, str, str], ...] = ()
    usage: tuple[int, int, int, int] | None = None
    model: str = ""
    finish: str = "stop"
    keeps: str = ""
    error: str = ""


FACTS: dict[str, Fact] = {
    "openai/openai_moderation_stream/0": Fact(text="Paris.", usage=(13, 11, 0, 0), model="gpt-5-2025-08-07"),
    "openai/run_stream_sync_streams_real_model/0": Fact(
        calls=(("call_ZR5UUuTt3pf61kjwAJIYdVMj", "get_capital", '{"country":"UK"}'),),
        usage=(53, 15, 0, 0),
        model="gpt-4o-mini-2024-07-18",
        finish="calls",
    ),
    "openai/run_stream_sync_streams_real_model/1": Fact(
        text="The capital of the UK is London.", usage=(78, 9, 0, 0), model="gpt-4o-mini-2024-07-18"
    ),
    "openrouter/openrouter_stream_error/0": Fact(
        thinking=("We need to respond", "The user", 42),
        finish="",
        error="invalid 400 True openrouter reported an error in its stream (400)",
    ),
    "openrouter/openrouter_stream_with_reasoning/0": Fact(
        text=(
            "I\u2019m ChatGPT, a large-language-model assistant created by OpenAI. I generate text responses and can "
            "help answer questions, explain concepts, brainstorm ideas, draft or edit writing, and more. While I "
            "strive to be accurate and helpful, I don\u2019t have personal feelings or consciousness, and my knowledge "
            "is limited to the information I was trained on (most of it up to late 2023). If there\u2019s something "
            "specific you\u2019d like help with, just let me know!"
        ),
        usage=(9, 104, 0, 0),
        model="openai/o3",
        keeps="content reasoning_details role",
    ),
    "openrouter/openrouter_streaming_reasoning/0": Fact(
        text="2 + 2 = 4",
        thinking=("This is a simple arithmetic question.", " 2+2 equals 4.", 51),
        usage=(43, 36, 0, 13),
        model="anthropic/claude-sonnet-4.5",
        keeps="content reasoning reasoning_details role",
    ),
    "deepseek/deepseek_model_thinking_stream/0": Fact(
        text="Hello there! 😊 How can I help you today?",
        thinking=('Hmm, the user just said "Hello".', "and that's okay too.", 882),
        usage=(6, 212, 0, 198),
        model="deepseek-reasoner",
    ),
    "groq/tool_use_failed_error_streaming/0": Fact(
        thinking=("We need to call the tool with invalid parameters first", '"test". Let\'s do that.', 412),
        finish="",
        error="invalid 400 True groq reported an error in its stream (tool_use_failed)",
    ),
    "groq/tool_use_failed_error_streaming/1": Fact(
        thinking=("We need to call the function", 'e.g., "example".', 92),
        calls=(("fc_bfb39741-3748-4def-9886-a93fc9c64a90", "get_something_by_name", '{"name":"example"}'),),
        usage=(304, 49, 0, 23),
        model="openai/gpt-oss-120b",
        finish="calls",
    ),
    "groq/tool_use_failed_error_streaming/2": Fact(
        text="The tool returned the expected result for the valid call.",
        thinking=("The user wants to test error handling", "Now respond concisely.", 176),
        usage=(339, 58, 0, 38),
        model="openai/gpt-oss-120b",
    ),
    "zai/zai_thinking_stream/0": Fact(
        text="4",
        thinking=("\n1.  **Analyze the User's Request:**", '**Draft the final response:** "4".', 2173),
        usage=(13, 564, 0, 561),
        model="glm-4.7",
    ),
}


def test_every_recording_has_its_facts() -> None:
    """A new one is read by a person first."""
    assert sorted(one.name for one in CHATS) == sorted(FACTS)


@pytest.mark.parametrize("one", CHATS, ids=[one.name for one in CHATS])
def test_what_a_recording_said_is_known(one: Recorded) -> None:
    """The parser's reading against a person's."""
    told, fact = by_parser(one, one.body), FACTS[one.name]
    begins, ends, size = fact.thinking
    assert (told.text, told.refusal, told.finish, told.model, told.error) == (
        fact.text, "", fact.finish, fact.model, fact.error,
    )  # fmt: skip
    assert (told.thinking[: len(begins)], told.thinking[-len(ends) :] if ends else "") == (begins, ends)
    assert len(told.thinking) == size
    assert tuple((held.wire_id, held.name, held.raw_args) for held in told.calls) == fact.calls
    read, written, cached, reasoned = fact.usage or (0, 0, 0, 0)
    usage = Usage(input_tokens=read, output_tokens=written, cached_input_tokens=cached, reasoning_tokens=reasoned)
    assert told.usage == (usage if fact.usage else None)
    assert (told.citations, told.searches, told.lost) == ((), (), ())
    assert " ".join(sorted(name for held in told.native for name in json.loads(held))) == fact.keeps


@pytest.mark.parametrize("one", CHATS, ids=[one.name for one in CHATS])
def test_a_recording_read_the_plain_way_says_the_same(one: Recorded) -> None:
    """No piece is missing or doubled: all pieces of its JSON, joined."""
    events = [json.loads(line[6:]) for line in one.body.decode().splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for event in events for choice in event.get("choices", ())]
    told = by_parser(one, one.body)
    assert told.text == "".join(delta.get("content") or "" for delta in deltas)
    thoughts = (delta.get("reasoning_content") or delta.get("reasoning") or "" for delta in deltas)
    assert told.thinking == "".join(thoughts)
    sealed = [held for delta in deltas for held in delta.get("reasoning_details") or () if held.get("data")]
    kept = [held for item in told.native for held in json.loads(item).get("reasoning_details", ())]
    assert [held["data"] for held in sealed] == [held["data"] for held in kept if held.get("data")]
