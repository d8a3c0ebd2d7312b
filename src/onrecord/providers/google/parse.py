"""generateContent: the events of a stream as chunks. Pure and incremental; it keeps no clock and opens nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from onrecord.conversation.usage import Usage
from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import UNREADABLE, peek
from onrecord.models.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    Finished,
    SearchChunk,
    TextChunk,
    ThinkingChunk,
)
from onrecord.models.classify_errors import stream_error
from onrecord.models.reply_errors import reply_error
from onrecord.net.sse import ErrorEvent
from onrecord.providers.google.events import (
    BREAKS,
    FINISH_OF,
    Candidate,
    Event,
    Feedback,
    FunctionCall,
    HostedCall,
    WordsCandidate,
    WordsEvent,
    read_event,
    read_list,
    read_part,
    read_usage,
    read_words,
)
from onrecord.providers.google.grounding import citations_of, read_grounding
from onrecord.providers.google.native_parts import NativeParts

__all__ = ("Parser",)

_COUNTED = b"TokenCount"
_WORD = re.compile(r"[A-Z_]{1,48}\Z")
"""A reason as the protocol words it."""


class Parser:
    """Reads one reply: `feed` it the data of each event, then `close` it.

    A failure the stream itself reports, a blocked prompt, JSON that is none, and a stream that ends early raise
    `ModelError`, whose ``started`` is true once a chunk was handed out. No error quotes content. The protocol has no
    end mark, so ``done`` is true only for an answer read by `whole`.
    """

    __slots__ = (
        "_called", "_calls", "_finish", "_grounding", "_ids", "_model", "_native", "_provider", "_said", "_searched",
        "_usage", "done", "started",
    )  # fmt: skip

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self.done = False
        self.started = False
        self._said: list[str] = []
        self._native = NativeParts()
        self._calls = 0
        # The last event that held a call and counted tokens: the same once more counts no more of them, so it is a
        # repetition of some proxy and no second call.
        self._called: bytes | None = None
        self._ids: set[str] = set()
        self._finish = ""
        self._usage: Raw | UnsetType = UNSET
        self._model = ""
        self._grounding: Raw | None = None
        self._searched = False

    def feed(self, data: bytes, /) -> Sequence[Chunk]:
        """The chunks of one event. Raises ModelError."""
        if type(data) is ErrorEvent:
            raise stream_error(self._provider, peek(data), started=self.started)
        event = self._event(data)
        if event.usage_metadata is not UNSET:
            self._usage = event.usage_metadata  # each counts everything so far; only the last is read
        if not self._model and event.model_version:
            self._model = event.model_version
        if event.error is not UNSET and bytes(event.error) != b"null":
            raise stream_error(self._provider, {"error": peek(bytes(event.error))}, started=self.started)
        out: list[Chunk] = []
        for candidate in event.candidates or ():
            if not candidate.index:
                self._candidate(candidate, out)
        if out:
            self.started = True
            if type(event) is Event and _COUNTED in data and any(type(chunk) is CallChunk for chunk in out):
                self._called = data
        elif event.prompt_feedback is not None and not event.candidates:
            self._check(event.prompt_feedback)
        return out

    def whole(self, body: bytes, /) -> Sequence[Chunk]:
        """The chunks of an answer that is one JSON object, or a list of those that a stream has. Raises ModelError."""
        out: list[Chunk] = []
        for event in self._listed(body):
            out += self.feed(event)
        if not out and not self._finish:
            raise self._error("invalid", "sent an answer that is not of its protocol")
        self.done = True
        return out

    def close(self) -> Sequence[Chunk]:
        """The rest: sources, the continuation and the end. Raises ModelError when the reply is not whole."""
        if not self._finish:
            raise self._error("network", "ended its stream early")
        usage = read_usage(self._usage) if self._usage is not UNSET else None
        finish = FINISH_OF.get(self._finish, "unknown")
        if not self._said and not self._calls and not self._native.shows:
            raise self._empty(finish, usage)
        out: list[Chunk] = []
        grounding = None if self._grounding is None else read_grounding(self._grounding)
        if grounding is not None and (citations := citations_of(grounding, "".join(self._said))):
            out.append(CitationChunk(citations))
        out += self._native.items()
        if self._calls and finish in {"stop", "unknown"}:
            finish = "calls"
        out.append(Finished(finish=finish, usage=usage, model=self._model))
        return out

    # ---- one event

    def _event(self, data: bytes) -> WordsEvent | Event:
        """One event; a list with an error in it is how some failures come."""
        try:
            return read_words(data)
        except UNREADABLE:
            pass  # not words alone
        if data == self._called:
            return Event()
        try:
            return read_event(data)
        except UNREADABLE:
            held = peek(data)
        if isinstance(held, list) and held and isinstance(held[0], dict) and "error" in held[0]:
            raise stream_error(self._provider, held, started=self.started)
        raise self._error("invalid", "sent an event that is not of its protocol")

    def _check(self, feedback: Feedback) -> None:
        """What became of a prompt that got no candidates."""
        if reason := feedback.block_reason:
            told = reason if _WORD.match(reason) else "no stated reason"
            raise self._error("content", f"refused the prompt ({told})")

    def _listed(self, body: bytes) -> Sequence[bytes]:
        if not body.lstrip().startswith(b"["):
            return (body,)
        try:
            return [bytes(event) for event in read_list(body)]
        except UNREADABLE:
            raise self._error("invalid", "sent an answer that is not of its protocol") from None

    def _candidate(self, candidate: WordsCandidate | Candidate, out: list[Chunk]) -> None:
        content = candidate.content
        if content is not None:
            for part in content.parts or ():
                if isinstance(part, Raw):
                    self._part(part, out)
                elif part.text:
                    self._words(part.text, out, thought=part.thought)
        grounding = candidate.grounding_metadata
        if grounding is not UNSET and len(bytes(grounding)) > 2:
            self._grounding = grounding
            if not self._searched and (held := read_grounding(grounding)) is not None and held.web_search_queries:
                self._searched = True
                out.append(SearchChunk(id="search", status="completed"))
        if candidate.finish_reason:
            self._end(candidate.finish_reason)

    def _words(self, text: str, out: list[Chunk], *, thought: bool) -> None:
        self._native.words(text, thought)
        if thought:
            out.append(ThinkingChunk(text))
        else:
            self._said.append(text)
            out.append(TextChunk(text))

    def _part(self, raw: Raw, out: list[Chunk]) -> None:
        try:
            part = read_part(raw)
            self._native.part(raw, part)
        except UNREADABLE:
            raise self._error("invalid", "sent a part that is not of its protocol") from None
        if part.text:
            if part.thought:
                out.append(ThinkingChunk(part.text))
            else:
                self._said.append(part.text)
                out.append(TextChunk(part.text))
        elif part.function_call is not None:
            out.append(self._call(part.function_call))
        elif part.tool_call is not None:
            self._hosted(part.tool_call, "searching", out)
        elif part.tool_response is not None:
            self._hosted(part.tool_response, "completed", out)

    def _call(self, call: FunctionCall) -> CallChunk:
        if call.will_continue or call.partial_args is not UNSET:
            raise self._error(
                "invalid", "sends the arguments of a call in pieces", hint="leave streamFunctionCallArguments off"
            )
        if not call.name:
            raise self._error("invalid", "sent a tool call without a name")
        given = self._arguments(call.args) if call.args is not UNSET else ""
        wire = named = call.id or ""
        if not named or "#" in named or named in self._ids:
            wire = f"{named}#{self._calls}"
        self._calls += 1
        self._ids.add(wire)
        return CallChunk(wire_id=wire, name=call.name, raw_args=given if given not in {"", "null"} else "{}")

    def _arguments(self, raw: Raw) -> str:
        """An object on this wire: the white space in it is the server's and not the model's."""
        try:
            return msgspec.json.format(bytes(raw), indent=-1).decode()
        except UNREADABLE:
            raise self._error("invalid", "sent a tool call whose arguments are no Unicode") from None

    def _hosted(self, call: HostedCall, status: str, out: list[Chunk]) -> None:
        if call.tool_type is not None and "SEARCH" in call.tool_type.upper():
            self._searched = True
            out.append(SearchChunk(id=call.id or "search", status=status))

    def _end(self, reason: str) -> None:
        if (broken := BREAKS.get(reason)) is not None:
            kind, what, hint = broken
            raise self._error(kind, f"{what} ({reason})", hint=hint)
        self._finish = reason

    # ---- the end

    def _empty(self, finish: str, usage: Usage | None) -> ModelError:
        """The error of a reply without words and calls."""
        if finish == "content":
            return self._error("content", f"stopped its reply before it said anything ({self._finish})")
        if finish == "length":
            thought = f" ({usage.reasoning_tokens} tokens went to reasoning)" if usage else ""
            return self._error(
                "invalid", f"used up the output cap before it said anything{thought}", hint="raise max_tokens"
            )
        return self._error("overload", "sent an empty answer")

    def _error(self, kind: ErrorKind, what: str, *, hint: str = "") -> ModelError:
        return reply_error(self._provider, kind, what, started=self.started, hint=hint)
