"""What a Messages stream is made of, as far as anything reads it; every other field is skipped."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from onrecord.conversation.usage import Usage, counted
from onrecord.jsonio import UNREADABLE, Json

__all__ = (
    "DELTAS",
    "FINISH_OF",
    "PAUSED",
    "Counts",
    "Delta",
    "Event",
    "Head",
    "Message",
    "Source",
    "read_counts",
    "read_event",
    "read_fields",
    "read_head",
    "read_message",
    "read_source",
    "read_string",
    "with_status",
)


# Read and dropped by the thousand, and JSON has no cycles: the garbage collector need not look (``gc=False``).
class Delta(Struct, gc=False):
    """What an event adds to a block, or says about the whole reply."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    citation: Raw | UnsetType = UNSET
    stop_reason: str | None = None


class _Details(Struct, gc=False):
    thinking_tokens: float | None = None


class Counts(Struct, gc=False):
    """Tokens as the wire counts them: what was read from a cache or written to one is not in ``input_tokens``."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_input_tokens: float | None = None
    cache_creation_input_tokens: float | None = None
    output_tokens_details: _Details | None = None

    def grown(self, more: Counts) -> Counts:
        """The larger of both counts: later ones count everything so far, and some servers leave fields at zero."""
        told = more.output_tokens_details or self.output_tokens_details
        return Counts(
            _larger(self.input_tokens, more.input_tokens),
            _larger(self.output_tokens, more.output_tokens),
            _larger(self.cache_read_input_tokens, more.cache_read_input_tokens),
            _larger(self.cache_creation_input_tokens, more.cache_creation_input_tokens),
            told,
        )

    def usage(self) -> Usage | None:
        """The tokens counted, cached ones within the input; None where nobody counted."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        cached, written = counted(self.cache_read_input_tokens), counted(self.cache_creation_input_tokens)
        thought = self.output_tokens_details.thinking_tokens if self.output_tokens_details else None
        return Usage(
            input_tokens=counted(self.input_tokens) + cached + written,
            output_tokens=counted(self.output_tokens),
            cached_input_tokens=cached,
            reasoning_tokens=counted(thought),
            cache_write_tokens=written,
        )


def _larger(one: float | None, other: float | None) -> float | None:
    return max(one, other) if one is not None and other is not None else other if one is None else one


class Message(Struct, gc=False):
    """The reply: empty where a stream begins, whole in an answer that is none."""

    id: str | None = None
    model: str | None = None
    content: list[Raw] | None = None
    stop_reason: str | None = None
    usage: Raw | UnsetType = UNSET
    type: str | None = None
    error: Raw | UnsetType = UNSET


class Event(Struct, gc=False):
    """One event of a stream."""

    type: str | None = None
    index: int | None = None
    delta: Delta | None = None
    content_block: Raw | UnsetType = UNSET
    message: Message | None = None
    usage: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Head(Struct, gc=False):
    """What tells content blocks apart, and ties the result of a tool to its call."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    text: str | None = None


class Source(Struct, gc=False):
    """A citation, as far as it names a page."""

    url: str | None = None
    source: str | None = None
    title: str | None = None


read_event = Decoder(Event).decode
read_message = Decoder(Message).decode
read_string = Decoder(str).decode
read_fields = Decoder(dict[str, Raw]).decode
_heads = Decoder(Head).decode
_sources = Decoder(Source).decode
_counts = Decoder(Counts).decode


def read_head(raw: bytes | Raw) -> Head:
    """What tells a content block apart; empty where that cannot be read."""
    try:
        return _heads(raw)
    except UNREADABLE:
        return Head()


def read_source(raw: Raw) -> Source:
    """The page that a citation names; empty where that cannot be read."""
    try:
        return _sources(raw)
    except UNREADABLE:
        return Source()


def read_counts(raw: Raw) -> Counts:
    """The tokens counted so far; empty where that cannot be read."""
    try:
        return _counts(raw)
    except UNREADABLE:
        return Counts()


DELTAS: dict[str, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
    "server_tool_use": ("input_json_delta", "partial_json"),
}
"""Of each kind of block that is streamed in pieces of words: the type of a piece, and the field with the words."""

PAUSED = "paused"
"""How a reply ends that its sender continues when asked to. The client asks; no caller ever sees this word."""

FINISH_OF = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "calls",
    "pause_turn": PAUSED,
    "refusal": "refusal",
    "sensitive": "content",
}
"""How a reply ended, by the wire's word for it."""

_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def with_status(held: Json) -> Json:
    """An error object with the status that its type stands for: inside a stream it comes without one."""
    error = held.get("error") if isinstance(held, dict) else None
    if isinstance(error, dict) and isinstance(kind := error.get("type"), str) and kind in _STATUS_OF:
        return {"error": {"status_code": _STATUS_OF[kind], **error}}
    return held
