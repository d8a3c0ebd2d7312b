"""What a generateContent stream is made of, as far as anything reads it; every other field is skipped."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from onrecord.conversation.usage import Usage, counted
from onrecord.errors import ErrorKind
from onrecord.jsonio import UNREADABLE

__all__ = (
    "BREAKS", "FINISH_OF", "Candidate", "Event", "Feedback", "Part", "WordsCandidate", "WordsEvent", "read_event",
    "read_list", "read_part", "read_usage", "read_words",
)  # fmt: skip


# Read and dropped by the thousand, and JSON has no cycles: the garbage collector need not look (``gc=False``).
class Words(Struct, gc=False, forbid_unknown_fields=True):
    """A part that is words and nothing else: most parts there are."""

    text: str
    thought: bool = False


class WordsContent(Struct, gc=False):
    """What an event of nothing but words adds to the reply."""

    parts: list[Words] = []


class WordsCandidate(Struct, gc=False, rename="camel"):
    """One of the replies asked for; only the first is ever read."""

    index: int | None = None
    content: WordsContent | None = None
    finish_reason: str | None = None
    grounding_metadata: Raw | UnsetType = UNSET


class Feedback(Struct, gc=False, rename="camel"):
    """What became of the prompt."""

    block_reason: str | None = None


class WordsEvent(Struct, gc=False, rename="camel"):
    """An event whose parts are words; another one does not decode as this."""

    candidates: list[WordsCandidate] | None = None
    usage_metadata: Raw | UnsetType = UNSET
    model_version: str | None = None
    prompt_feedback: Feedback | None = None
    error: Raw | UnsetType = UNSET


class Content(Struct, gc=False):
    """What an event adds to the reply, part by part as it came."""

    parts: list[Raw] | None = None


class Candidate(Struct, gc=False, rename="camel"):
    """One of the replies asked for, with parts of any kind."""

    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    grounding_metadata: Raw | UnsetType = UNSET


class Event(Struct, gc=False, rename="camel"):
    """Any event of a stream, or a whole answer."""

    candidates: list[Candidate] | None = None
    usage_metadata: Raw | UnsetType = UNSET
    model_version: str | None = None
    prompt_feedback: Feedback | None = None
    error: Raw | UnsetType = UNSET


class FunctionCall(Struct, gc=False, rename="camel"):
    """A call of a function; ``will_continue`` and ``partial_args`` where it comes in pieces."""

    name: str | None = None
    id: str | None = None
    args: Raw | UnsetType = UNSET
    will_continue: bool | None = None
    partial_args: Raw | UnsetType = UNSET


class HostedCall(Struct, gc=False, rename="camel"):
    """A tool that Google runs itself, or what it returned."""

    tool_type: str | None = None
    id: str | None = None


class Blob(Struct, gc=False, rename="camel"):
    """Media of the model's own making."""

    mime_type: str | None = None


class Part(Struct, gc=False, rename="camel"):
    """A part of any kind; what is none of these is kept and not read."""

    text: str | None = None
    thought: bool | None = None
    function_call: FunctionCall | None = None
    tool_call: HostedCall | None = None
    tool_response: HostedCall | None = None
    inline_data: Blob | None = None
    executable_code: Raw | UnsetType = UNSET
    code_execution_result: Raw | UnsetType = UNSET


class _Counts(Struct, rename="camel"):
    prompt_token_count: float | None = None
    candidates_token_count: float | None = None
    thoughts_token_count: float | None = None
    tool_use_prompt_token_count: float | None = None
    cached_content_token_count: float | None = None


read_words = Decoder(WordsEvent).decode
read_event = Decoder(Event).decode
read_part = Decoder(Part).decode
read_list = Decoder(list[Raw]).decode
_counts = Decoder(_Counts).decode

FINISH_OF = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content",
    "RECITATION": "content",
    "LANGUAGE": "content",
    "BLOCKLIST": "content",
    "PROHIBITED_CONTENT": "content",
    "SPII": "content",
    "IMAGE_SAFETY": "content",
    "IMAGE_PROHIBITED_CONTENT": "content",
    "IMAGE_RECITATION": "content",
}
"""How a reply ended, by the wire's word for it."""

BREAKS: dict[str, tuple[ErrorKind, str, str]] = {
    "MALFORMED_FUNCTION_CALL": (
        "invalid",
        "broke off: the model wrote a tool call that is none",
        "try again; simpler parameters and descriptions make it rarer",
    ),
    "UNEXPECTED_TOOL_CALL": (
        "invalid",
        "broke off: the model called a tool that it was not offered",
        "offer the tool, or leave what speaks of it out of the prompt",
    ),
    "TOO_MANY_TOOL_CALLS": (
        "invalid",
        "broke off: the model made too many tool calls in a row",
        "try again, with fewer tools or a narrower task",
    ),
    "MISSING_THOUGHT_SIGNATURE": (
        "invalid",
        "broke off: a call in the history lacks its signature",
        "history edited by hand loses it; leave that round out, or use another model",
    ),
    "MALFORMED_RESPONSE": ("overload", "broke off its reply", "try again"),
}
"""Ends that are failures: kind, what happened, what to do."""


def read_usage(raw: Raw) -> Usage | None:
    """The tokens counted; None where nothing was counted, or nothing that can be read.

    What was thought is part of the output, and what a search of Google's own put before the model of the input: so
    the two add up to what Google counts in all.
    """
    try:
        counts = _counts(raw)
    except UNREADABLE:
        return None
    if counts.prompt_token_count is None and counts.candidates_token_count is None:
        return None
    thought = counted(counts.thoughts_token_count)
    return Usage(
        input_tokens=counted(counts.prompt_token_count) + counted(counts.tool_use_prompt_token_count),
        output_tokens=counted(counts.candidates_token_count) + thought,
        cached_input_tokens=counted(counts.cached_content_token_count),
        reasoning_tokens=thought,
    )
