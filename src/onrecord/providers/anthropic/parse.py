"""Messages: the events of a stream as chunks. Pure and incremental; it keeps no clock and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import UNREADABLE, kept, loads, peek
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
from onrecord.providers.anthropic.blocks import Block
from onrecord.providers.anthropic.message_events import (
    DELTAS,
    FINISH_OF,
    PAUSED,
    Counts,
    Delta,
    Event,
    Message,
    read_counts,
    read_event,
    read_fields,
    read_message,
    read_string,
    with_status,
)
from onrecord.providers.anthropic.reply_blocks import Blocks, Odd

__all__ = ("Parser",)

FOREIGN = "sent an event that is not of its protocol"
_DEPTH = 2
"""How many objects a piece of words ends with."""
_CHUNK_OF: Mapping[str, type[TextChunk | ThinkingChunk]] = {"text": TextChunk, "thinking": ThinkingChunk}
_EVENTS = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "error",
    }
)  # fmt: skip


class Parser:
    """Reads one reply: `feed` it the data of each event, then `close` it.

    A failure the stream itself reports, JSON that is none, blocks that contradict each other, and a stream that ends
    early raise `ModelError`, whose ``started`` is true once a chunk was handed out or a call began. No error quotes
    content. A reply that paused ends in `PAUSED` for a caller that ``resumes`` it, and is cut for any other.
    """

    __slots__ = (
        "_at", "_blocks", "_counts", "_finish", "_full", "_head", "_id", "_length", "_lost", "_make", "_model",
        "_provider", "_put", "_resumes", "done", "started",
    )  # fmt: skip

    def __init__(self, provider: str, *, resumes: bool = False) -> None:
        self._provider, self._resumes = provider, resumes
        self.done = False
        self.started = False
        self._blocks = Blocks()
        # Pieces that are read the short way: what they begin with, where their words do, and what becomes of those.
        self._head, self._at = b"", 0
        self._put: Callable[[str], None] | None = None
        self._make: type[TextChunk | ThinkingChunk] | None = None
        self._length = 0  # of the text in blocks that have ended
        self._counts: Counts | None = None
        self._finish = ""
        self._full = False  # the context window
        self._lost: list[str] = []
        self._model, self._id = "", ""

    def feed(self, data: bytes, /) -> Sequence[Chunk]:
        """The chunks of one event. Raises ModelError."""
        if (put := self._put) is not None and data.startswith(self._head):
            # Most events are a piece of words for the block that is open: its string is all that is read.
            bare = data.rstrip(b" }")
            if data.count(b"}", len(bare)) == _DEPTH:
                try:
                    words = read_string(bare[self._at :])
                except UNREADABLE:  # not one string after all
                    return self._read(data)
                if not words:
                    return ()
                put(words)
                if (make := self._make) is None:
                    return ()
                self.started = True
                return (make(words),)
        return self._read(data)

    def whole(self, body: bytes, /) -> Sequence[Chunk]:
        """The chunks of an answer that is one JSON object, from servers that do not stream. Raises ModelError."""
        try:
            message = read_message(body)
        except UNREADABLE:
            raise self._error("invalid", "sent an answer that is not of its protocol") from None
        if message.type == "error" or _is_told(message.error):
            raise stream_error(self._provider, with_status(peek(body)), started=self.started)
        if not message.stop_reason and message.content is None:
            raise self._error("invalid", "sent an answer that is not of its protocol")
        out: list[Chunk] = []
        try:
            self._begin(message)
            for index, raw in enumerate(message.content or ()):
                self._start(index, bytes(kept(raw)), out)
                self._stop(index, out)
        except Odd as odd:
            raise self._error("invalid", str(odd)) from None
        except UNREADABLE:
            raise self._error("invalid", "sent an answer that is not of its protocol") from None
        self._end(message.stop_reason)
        self.done = True
        return out

    def close(self) -> Sequence[Chunk]:
        """The rest: the continuation and the end. Raises ModelError when the reply is not whole."""
        if not self._finish or not self._blocks.are_whole:
            raise self._error("network", "ended its stream early")
        finish, calls = self._finish, self._blocks.calls
        if finish == "length" and not self._length and not calls:
            raise self._silence()
        if calls and finish in {"stop", "unknown"}:
            finish = "calls"
        elif finish == PAUSED and not self._resumes:
            finish = "length"
        items, lost = self._blocks.natives(refused=finish == "refusal")
        usage = self._counts.usage() if self._counts else None
        lost = list(dict.fromkeys((*lost, *self._lost)))
        return [*items, Finished(finish=finish, usage=usage, model=self._model, lost=tuple(lost))]

    # ---- one event

    def _read(self, data: bytes) -> Sequence[Chunk]:
        if self.done:
            return ()
        event = self._event(data)
        out: list[Chunk] = []
        try:
            self._hear(event, data, out)
        except Odd as odd:
            raise self._error("invalid", str(odd)) from None
        except UNREADABLE:  # something inside that was only skipped so far
            raise self._error("invalid", FOREIGN) from None
        return out

    def _hear(self, event: Event, data: bytes, out: list[Chunk]) -> None:
        match event.type:
            case "content_block_delta":
                self._change(event, data, out)
            case "content_block_start" if event.content_block is not UNSET and event.index is not None:
                self._start(event.index, bytes(kept(event.content_block)), out)
            case "content_block_stop" if event.index is not None:
                self._stop(event.index, out)
            case "message_start" if event.message is not None:
                self._begin(event.message)
            case "message_delta":
                self._count(event.usage)
                self._end(event.delta.stop_reason if event.delta is not None else None)
            case "message_stop":
                self.done = True
            case "content_block_start" | "content_block_stop" | "message_start" as kind:
                raise Odd(f"sent a {kind} without what it is about")
            case _:  # a ping, or an event of the future
                pass

    def _event(self, data: bytes) -> Event:
        reports = type(data) is ErrorEvent
        try:
            event = read_event(data)
        except UNREADABLE:
            if reports:
                raise stream_error(self._provider, None, started=self.started) from None
            if (future := _unheard_of(data)) is None:
                raise self._error("invalid", FOREIGN) from None
            return future
        if reports or event.type == "error" or (event.type is None and _is_told(event.error)):
            raise stream_error(self._provider, with_status(peek(data)), started=self.started)
        return event

    def _begin(self, message: Message) -> None:
        if self._id and message.id and message.id != self._id:
            raise Odd("began a second reply in the stream of the first")
        self._id = message.id or self._id
        self._model = self._model or message.model or ""
        self._count(message.usage)

    def _start(self, index: int, raw: bytes, out: list[Chunk]) -> None:
        block = self._blocks.start(index, raw, self._length)
        if block is None:
            return
        if block.kind == "tool_use":
            self.started = True
        elif (status := _search_begins(block)) is not None:
            self.started = True
            out.append(status)
        elif given := block.given():
            out += self._say(block, given)
        self._put = None
        if (delta := DELTAS.get(block.kind)) is not None:
            kind, field = delta
            self._head = (
                f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":"'.encode()
            )
            self._at = len(self._head) - 1
            self._put, self._make = block.parts.append, _CHUNK_OF.get(block.kind)

    def _change(self, event: Event, data: bytes, out: list[Chunk]) -> None:
        block = self._blocks.open_at(event.index)
        if (delta := event.delta) is None:
            raise Odd("added nothing to a block of its reply")
        words = _words(block, delta)
        if words:
            block.parts.append(words)
            out += self._say(block, words)
        elif words is None and not block.change(delta, data):
            self._lost.append("a part of unknown type")

    def _say(self, block: Block, words: str) -> Sequence[Chunk]:
        if (make := _CHUNK_OF.get(block.kind)) is None:
            return ()
        self.started = True
        return (make(words),)

    def _stop(self, index: int, out: list[Chunk]) -> None:
        block = self._blocks.stop(index)
        if block is None:
            return
        self._put = None
        if block.kind == "text":
            self._length = block.start + len(block.head.text or "") + len(block.words())
        if block.kind == "tool_use":
            wire, name, arguments = self._blocks.call(block)
            out.append(CallChunk(wire_id=wire, name=name, raw_args=arguments))
        elif block.is_search:
            out.append(SearchChunk(id=block.head.id or "", status="searching"))
        elif block.sources:
            span = {"start": block.start, "stop": self._length}
            out.append(CitationChunk(tuple(replace(source, **span) for source in block.sources)))

    def _count(self, usage: Raw | UnsetType) -> None:
        if usage is not UNSET:
            counts = read_counts(usage)
            self._counts = counts if self._counts is None else self._counts.grown(counts)

    def _end(self, reason: str | None) -> None:
        if reason:
            self._finish = FINISH_OF.get(reason, "unknown")
            self._full = reason == "model_context_window_exceeded"

    # ---- failures

    def _silence(self) -> ModelError:
        if self._full:
            return self._error("context", "reached the end of its context window before it said anything")
        usage = self._counts.usage() if self._counts else None
        thought = usage.reasoning_tokens if usage else 0
        told = f" ({thought} tokens went to reasoning)" if thought else ""
        return self._error("invalid", f"used up the output cap before it said anything{told}", hint="raise max_tokens")

    def _error(self, kind: ErrorKind, what: str, *, hint: str = "") -> ModelError:
        return reply_error(self._provider, kind, what, started=self.started, hint=hint)


def _is_told(error: Raw | UnsetType) -> bool:
    return error is not UNSET and bytes(error) != b"null"


def _search_begins(block: Block) -> SearchChunk | None:
    """What a block that begins tells of a search: that there is one, or how one ended."""
    if block.is_search:
        return SearchChunk(id=block.head.id or "", status="in_progress")
    if block.kind != "web_search_tool_result":
        return None
    failed = isinstance(loads(block.raw).get("content"), dict)  # pages are listed, an error is an object
    return SearchChunk(id=block.head.tool_use_id or "", status="failed" if failed else "completed")


def _words(block: Block, delta: Delta) -> str | None:
    """The words that a piece adds to its block; None for what is no words, or none of this block."""
    expected = DELTAS.get(block.kind)
    if expected is None or delta.type != expected[0]:
        return None
    return delta.text if expected[1] == "text" else delta.thinking if expected[1] == "thinking" else delta.partial_json


def _unheard_of(data: bytes) -> Event | None:
    """An event of a type that nobody knows, whose fields mean what nobody knows; None for what is no such event."""
    try:
        fields = read_fields(data)
        kind = loads(fields["type"])
    except (*UNREADABLE, KeyError):
        return None
    return Event(type=kind) if isinstance(kind, str) and kind not in _EVENTS else None
