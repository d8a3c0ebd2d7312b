"""What a Chat Completions stream is made of, as far as anything reads it; every other field is skipped."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from onrecord.conversation.usage import Usage, counted
from onrecord.jsonio import UNREADABLE

__all__ = ("FINISH_OF", "Call", "Choice", "Delta", "Event", "Function", "read_event", "read_string", "read_usage")


# Read and dropped by the thousand, and JSON has no cycles: the garbage collector need not look (``gc=False``).
class Function(Struct, gc=False):
    """A call's name and arguments, or a fragment of them; some servers send the arguments as an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class Call(Struct, gc=False):
    """A call or a fragment of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Raw | UnsetType = UNSET


class Delta(Struct, gc=False):
    """What an event adds to the reply; in an answer that is no stream, all of it.

    ``content`` is a list of typed pieces on some wires. Vendors put reasoning in either of two fields. Sources of the
    text are ``annotations``, or what searches found that the vendor ran (``executed_tools``). ``images`` and ``audio``
    are of the model's own making.
    """

    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    reasoning_content: str | None = None
    reasoning: str | dict[str, Any] | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    annotations: list[dict[str, Any]] | None = None
    executed_tools: Any = None
    images: Any = None
    audio: Any = None


class Choice(Struct, gc=False):
    """One of the replies asked for; only the first is ever read."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class Event(Struct, gc=False):
    """One event of a stream, or a whole answer. ``type`` is ``error`` where a server sends errors as events.

    ``citations`` (addresses) and ``web_search`` (pages) are sources of the whole text, as some vendors name them.
    """

    choices: list[Choice] | None = None
    model: str | None = None
    usage: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    object: str | None = None
    type: str | None = None
    citations: Any = None
    web_search: Any = None


class _Prompted(Struct):
    cached_tokens: float | None = None


class _Completed(Struct):
    reasoning_tokens: float | None = None


class _Counts(Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    total_tokens: float | None = None
    prompt_tokens_details: _Prompted | None = None
    completion_tokens_details: _Completed | None = None
    prompt_cache_hit_tokens: float | None = None


read_event = Decoder(Event).decode
read_string = Decoder(str).decode
_counts = Decoder(_Counts).decode

FINISH_OF = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "content",
    "sensitive": "content",
    "refusal": "refusal",
}
"""How a reply ended, by the wire's word for it."""


def read_usage(raw: Raw) -> Usage | None:
    """The tokens counted; None where nothing was counted, or nothing that can be read."""
    try:
        counts = _counts(raw)
    except UNREADABLE:
        return None
    if counts.prompt_tokens is None and counts.completion_tokens is None:
        return None
    prompted, completed = counts.prompt_tokens_details, counts.completion_tokens_details
    cached = prompted.cached_tokens if prompted and prompted.cached_tokens else counts.prompt_cache_hit_tokens
    reasoning = counted(completed.reasoning_tokens) if completed else 0
    given, written = counted(counts.prompt_tokens), counted(counts.completion_tokens)
    if reasoning and counts.total_tokens == given + written + reasoning:
        written += reasoning  # some vendors count what is thought apart from what is said; it is paid for all the same
    return Usage(
        input_tokens=given, output_tokens=written, cached_input_tokens=counted(cached), reasoning_tokens=reasoning
    )
