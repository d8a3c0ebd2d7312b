"""Messages: what of a reply goes back to its vendor, to the byte, and what is lost on others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from onrecord.models.chunks import NativeItem
from onrecord.providers.anthropic.content_blocks import replayable
from tests.providers.anthropic_events import (
    called,
    delta,
    end_of,
    natives,
    read,
    reply,
    start,
    stop,
    text,
    thought,
)

pytestmark = pytest.mark.unit

FOUND = (
    b'{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"https://e.test", "n":1.50}],"new": null}'
)


def items(*blocks: tuple[bytes, ...], **fields: Any) -> list[NativeItem]:
    """The native blocks of a reply."""
    return [one for one in read(*reply(*blocks, **fields)) if isinstance(one, NativeItem)]


def test_plain_text_needs_no_native_block() -> None:
    """Its portable form says as much, and costs no memory."""
    assert items(text(0, "a"), text(1, "b")) == []
    assert items(text(0, "a", citations=[])) == []


def test_thinking_goes_back_signed_with_what_followed_it() -> None:
    """Whole, in the order of the reply; blank texts cannot go back."""
    blocks = (thought(0, "h", "m"), text(1, "\n"), text(2, "a"), called(3, "t1", "f", '{"n": 1.50}', caller={"x": 1}))
    assert [bytes(one.raw) for one in items(*blocks, reason="tool_use")] == [
        b'{"type":"thinking","thinking":"hm","signature":"sig"}',
        b'{"type":"text","text":"a"}',
        b'{"type":"tool_use","id":"t1","name":"f","input":{"n": 1.50},"caller":{"x":1}}',
    ]


def test_a_block_that_came_whole_goes_back_to_the_byte() -> None:
    """Also what nobody here knows of it."""
    sealed = b'{"type":"redacted_thinking","data":"x","new":{"a": [1,  2]}}'
    whole = (
        b'{"type":"content_block_start","index":0,"content_block":%b}' % sealed,
        stop(0),
        *called(1, "s1", "web_search", "{}", kind="server_tool_use"),
        b'{"type":"content_block_start","index":2,"content_block":%b}' % FOUND,
        stop(2),
        *text(3, "a"),
    )
    held = [bytes(one.raw) for one in items(whole)]
    assert (held[0], held[2]) == (sealed, FOUND)


def test_citations_stay_in_their_block() -> None:
    """With the fields that only the vendor reads, behind those that it came with."""
    first, second = ({"type": "c", "url": f"https://e.test/{n}", "encrypted_index": "x"} for n in (1, 2))
    block = (start(0, type="text", text="", citations=[first]), delta(0, "citations_delta", citation=second))
    (held,) = natives(*reply((*block, *text(0, "a")[1:])))
    assert held == {"type": "text", "text": "a", "citations": [first, second]}
    (held,) = natives(*reply((start(0, type="text", text="a", citations=[first]), stop(0))))
    assert held == {"type": "text", "text": "a", "citations": [first]}


def test_calls_of_one_id_are_told_apart_in_what_goes_back() -> None:
    """Results name them, and the vendor takes each id once."""
    held = natives(*reply(called(0, "a", "f"), called(1, "a", "f"), reason="tool_use"))
    assert [one["id"] for one in held] == ["a", "a_2"]


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ((thought(0, "hm"), called(1, "a", "f", '{"n":')), "max_tokens"),
        ((thought(0, "hm"), called(1, "a", "f", "[1]")), "tool_use"),
        ((thought(0, "hm"), text(1, "No.")), "refusal"),
    ],
)
def test_a_reply_that_could_be_refused_later_is_told_in_portable_form(blocks: Any, reason: str) -> None:
    """Broken arguments, or what was refused, would make every later request fail."""
    assert items(*blocks, reason=reason) == []


# ---- what has no portable form ------------------------------------------------------------------------------------


def test_thinking_searches_and_summaries_are_nothing_that_others_miss() -> None:
    """They go back to the vendor, and are left out elsewhere."""
    compacted = (
        start(4, type="compaction", content=None), delta(4, "compaction_delta", content="a "),
        delta(4, "compaction_delta", content="summary"), stop(4),
    )  # fmt: skip
    whole = (
        *thought(0, "hm"), *called(1, "s1", "web_search", "{}", kind="server_tool_use"),
        b'{"type":"content_block_start","index":2,"content_block":%b}' % FOUND, stop(2), *text(3, "a"), *compacted,
    )  # fmt: skip
    held = items(whole)
    assert len(held) == 5
    assert [one.lost for one in held] == [""] * 5
    assert json.loads(bytes(held[4].raw)) == {"type": "compaction", "content": "a summary"}
    assert end_of(*reply(whole)).lost == ()


def test_what_the_provider_ran_and_what_nobody_knows_is_named_once() -> None:
    """By its type, never by its content; a name that is none of a type is not repeated."""
    ran = called(0, "s1", "bash_code_execution", '{"command":"x"}', kind="server_tool_use")
    result = (start(1, type="bash_code_execution_tool_result", tool_use_id="s1", content={}), stop(1))
    future = (start(2, type="dream", scene="x"), delta(2, "dream_delta", scene="y", place={"a": 1}), stop(2))
    odd = (start(3, type="A secret: 4711"), stop(3))
    held = items(ran, result, future, odd, text(4, "a"))
    assert [one.lost for one in held] == [
        "a call of 'bash_code_execution', which the provider ran", "", "a block of type 'dream'",
        "a block of unknown type", "",
    ]  # fmt: skip
    assert json.loads(bytes(held[2].raw)) == {"type": "dream", "scene": "xy", "place": {"a": 1}}


def test_a_change_of_a_known_block_that_nobody_knows_is_named() -> None:
    """The block could not be put together as the vendor has it."""
    block = (start(0, type="text", text=""), delta(0, "text_delta", "a"), delta(0, "italics_delta", at=0), stop(0))
    assert end_of(*reply(block)).lost == ("a part of unknown type",)


def test_what_is_lost_is_named_also_where_nothing_goes_back() -> None:
    """A refused reply tells it with its end."""
    future = (start(0, type="dream"), stop(0))
    assert end_of(*reply(future, text(1, "No."), reason="refusal")).lost == ("a block of type 'dream'",)


# ---- what goes back of what was kept ------------------------------------------------------------------------------


def raws(*blocks: bytes) -> list[Raw]:
    """Native blocks."""
    return [Raw(one) for one in blocks]


THOUGHT = b'{"type":"thinking","thinking":"hm","signature":"s"}'
TEXT = b'{"type":"text","text":"a"}'
ASKED = b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'


@pytest.mark.parametrize(
    ("held", "kept", "thoughts"),
    [
        ((THOUGHT, TEXT), (THOUGHT, TEXT), 1),
        ((TEXT, THOUGHT, TEXT), (TEXT, THOUGHT, TEXT), 0),
        ((THOUGHT, TEXT, THOUGHT), (THOUGHT, TEXT), 1),
        ((THOUGHT, b'{"type":"text","text":" "}', TEXT), (THOUGHT, TEXT), 1),
        ((THOUGHT,), (), 0),
        ((THOUGHT, TEXT, ASKED), (), 0),
        ((FOUND, TEXT), (), 0),
        ((ASKED, FOUND, TEXT), (ASKED, FOUND, TEXT), 0),
        ((b'{"type":3}', TEXT), (b'{"type":3}', TEXT), 0),
    ],
)
def test_only_what_the_vendor_takes_goes_back(held: Any, kept: Any, thoughts: int) -> None:
    """No reply ends in thinking, no text is blank, and no search stands without its result."""
    found, items = replayable(raws(*held))
    assert (found, [bytes(one) for one in items]) == (thoughts, list(kept))
