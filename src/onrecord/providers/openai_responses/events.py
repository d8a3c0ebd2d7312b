"""What a Responses stream is made of, as far as anything reads it; every other field is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from onrecord.conversation.content import Citation
from onrecord.conversation.usage import Usage, counted
from onrecord.jsonio import UNREADABLE, Json, peek

__all__ = (
    "Answer",
    "Event",
    "Item",
    "citations_of",
    "error_of",
    "error_of_event",
    "lost_of",
    "read_answer",
    "read_event",
    "read_item",
    "usage_of",
)


class Event(Struct, gc=False):
    """One event. Only ``type`` is of a type: an event of the future may use the other names for anything."""

    type: str = ""
    delta: Any = None
    sequence_number: Any = None
    output_index: Any = None
    content_index: Any = None
    summary_index: Any = None
    item_id: Any = None
    item: Raw | UnsetType = UNSET
    annotation: Any = None
    response: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Item(Struct, gc=False):
    """An output item. As with events, only ``type`` is of a type."""

    type: str = ""
    id: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    status: Any = None
    content: Any = None
    summary: Any = None
    encrypted_content: Any = None


class _Incomplete(Struct):
    reason: str | None = None


class Answer(Struct, gc=False):
    """The response itself: whole, or as the last event of a stream has it."""

    status: str | None = None
    model: str | None = None
    output: list[Raw] | None = None
    usage: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    incomplete_details: _Incomplete | None = None


class _Prompted(Struct):
    cached_tokens: float | None = None


class _Completed(Struct):
    reasoning_tokens: float | None = None


class _Counts(Struct):
    input_tokens: float | None = None
    output_tokens: float | None = None
    input_tokens_details: _Prompted | None = None
    output_tokens_details: _Completed | None = None


read_event = Decoder(Event).decode
read_item = Decoder(Item).decode
read_answer = Decoder(Answer).decode
_counts = Decoder(_Counts).decode


def usage_of(answer: Answer) -> Usage | None:
    """The tokens counted; None where nothing was counted, or nothing that can be read."""
    if answer.usage is UNSET:
        return None
    try:
        counts = _counts(answer.usage)
    except UNREADABLE:  # null, or another form
        return None
    if counts.input_tokens is None and counts.output_tokens is None:
        return None
    prompted, completed = counts.input_tokens_details, counts.output_tokens_details
    return Usage(
        input_tokens=counted(counts.input_tokens),
        output_tokens=counted(counts.output_tokens),
        cached_input_tokens=counted(prompted.cached_tokens if prompted else None),
        reasoning_tokens=counted(completed.reasoning_tokens if completed else None),
    )


def error_of(answer: Answer) -> Json:
    """The error that a response holds; None where it holds none."""
    return None if answer.error is UNSET else peek(bytes(answer.error))


def error_of_event(data: bytes) -> Json:
    """What an event of an error tells: in a field of its own, or flat beside the event's own fields."""
    held = peek(data)
    if isinstance(held, dict) and not held.get("error"):
        return {name: value for name, value in held.items() if name in {"code", "message", "param", "status"}}
    return held


def lost_of(item: Item) -> str:
    """What of a finished item has no portable form; reasoning, searches and compaction never count."""
    if item.type in {"function_call", "reasoning", "web_search_call", "compaction"}:
        return ""
    if item.type != "message":
        return f"an item of type {item.type[:64]!r}"
    parts = item.content if isinstance(item.content, list) else []
    kinds = (part.get("type") if isinstance(part, dict) else None for part in parts)
    named = (kind if isinstance(kind, str) else "None" for kind in kinds)
    return ", ".join(f"content of type {kind[:64]!r}" for kind in named if kind not in {"output_text", "refusal"})


def citations_of(annotations: Sequence[Any], base: int) -> tuple[Citation, ...]:
    """The web sources among annotations of a text that begins ``base`` characters into the reply."""
    found: list[Citation] = []
    for held in annotations:
        if not isinstance(held, dict) or not isinstance(url := held.get("url"), str):
            continue
        start, stop, title = held.get("start_index"), held.get("end_index"), held.get("title")
        if type(start) is not int or type(stop) is not int:  # true is no place
            start = stop = -base
        name = title if isinstance(title, str) else ""
        found.append(Citation(url=url, title=name, start=base + start, stop=base + stop))
    return tuple(found)
