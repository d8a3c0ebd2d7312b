"""Chat Completions: what of a reply goes back to its vendor, and what needs not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.models.chunks import NativeItem
from onrecord.providers.openai_chat.cards import Dialect
from tests.providers.chat_events import DONE, event, fragment, read

pytestmark = pytest.mark.unit

KEEPING = Dialect(keeps=("reasoning_content", "reasoning_details"))


def native_of(*deltas: Any, dialect: Dialect = KEEPING) -> Any:
    """The native item of a reply, as what it means."""
    chunks = read(*(event(delta) for delta in deltas), event(finish="stop"), DONE, dialect=dialect)
    items = [json.loads(bytes(chunk.raw)) for chunk in chunks if isinstance(chunk, NativeItem)]
    assert len(items) <= 1
    return items[0] if items else None


def late(**fields: Any) -> Any:
    """A fragment with fields that may be null; by itself it ends the arguments."""
    return {"tool_calls": [{"index": 0, "function": {"arguments": "}"}, **fields}]}


def test_a_plain_reply_needs_no_native_item() -> None:
    """Its portable form says as much, and costs no memory."""
    assert native_of({"content": "a"}) is None
    assert native_of({"content": "a"}, fragment(0, "a", "f", "{}")) is None


def test_reasoning_goes_back_with_calls_where_the_vendor_wants_it() -> None:
    """Whole, with the text and the calls as sent."""
    deltas = ({"reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "a"}, fragment(0, "a", "f", "{}"))
    assert native_of(*deltas) == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "hm",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert native_of(*deltas, dialect=Dialect()) is None
    assert native_of({"reasoning_content": "hm"}, {"content": "a"}) is None
    always = Dialect(keeps=("reasoning_content",), keeps_all=True)
    assert native_of({"reasoning_content": "hm"}, {"content": "a"}, dialect=always)


def test_structured_reasoning_is_put_together_block_by_block() -> None:
    """Pieces of one block are joined; signatures and sealed blocks stay what they are."""
    text = {"type": "reasoning.text", "index": 0, "format": None}
    deltas = (
        {"reasoning_details": [{**text, "text": "h"}]},
        {"reasoning_details": [{**text, "text": "m"}]},
        {"reasoning_details": [{**text, "text": "", "signature": "s"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "1", "index": 1}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "2", "index": 1}]},
        fragment(0, "a", "f", "{}"),
    )
    assert native_of(*deltas)["reasoning_details"] == [
        {**text, "text": "hm", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "1", "index": 1},
        {"type": "reasoning.encrypted", "data": "2", "index": 1},
    ]


def test_a_signed_call_goes_back_with_its_signature() -> None:
    """Whatever the dialect: the vendor put it there to see it again."""
    extra = {"google": {"thought_signature": "s"}}
    item = native_of(fragment(0, "a", "f", "{}", extra_content=extra), dialect=Dialect())
    assert item["tool_calls"][0]["extra_content"] == extra
    item = native_of(fragment(0, "a", "f", "{", extra_content=extra), late(extra_content=None), dialect=Dialect())
    assert item["tool_calls"][0]["extra_content"] == extra
    assert native_of(late(extra_content=None, id="a", function={"name": "f"}), dialect=Dialect()) is None


def test_a_reply_whose_native_form_could_be_refused_later_has_none() -> None:
    """Broken arguments would make every later request fail; a refusal has its own form."""
    assert native_of({"reasoning_content": "hm"}, fragment(0, "a", "f", '{"x')) is None
    assert native_of({"reasoning_content": "hm", "refusal": "no"}, fragment(0, "a", "f", "{}")) is None
