"""Chat Completions: the events of a stream as chunks. Pure and incremental; it keeps no clock and opens nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from onrecord.conversation.usage import Usage
from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import UNREADABLE, Json, dumps, kept, peek
from onrecord.models.chunks import CallChunk, Chunk, CitationChunk, Finished, NativeItem, TextChunk, ThinkingChunk
from onrecord.models.classify_errors import stream_error
from onrecord.models.reply_errors import reply_error
from onrecord.net.sse import ErrorEvent
from onrecord.providers.openai_chat.calls import CallParts
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.citations import annotated, fresh, named_by, searched
from onrecord.providers.openai_chat.events import FINISH_OF, Delta, Event, read_event, read_string, read_usage
from onrecord.providers.openai_chat.extras import Extras
from onrecord.providers.openai_chat.unread import Unread

__all__ = ("Parser",)

DONE = b"[DONE]"
_KEY = b'"content":"'
_PAD = b'"obfuscation":"'
_TELLING = 6  # four random letters, and the end of the object
_PROBE = "a probe, of no meaning"
_LEARNING = 8  # times in a row that what was learned brought nothing
_PAYS = 16  # events read the short way that pay for learning again


class Parser:
    """Reads one reply: `feed` it the data of each event, then `close` it.

    A failure the stream itself reports, JSON that is none, and a stream that ends early raise `ModelError`, whose
    ``started`` is true once a chunk was handed out or a call began. No error quotes content.
    """

    __slots__ = (
        "_before", "_calls", "_cited", "_dialect", "_extras", "_finish", "_matched", "_model", "_provider", "_refused",
        "_said", "_seen", "_shape", "_tries", "_unread", "_usage", "done", "started",
    )  # fmt: skip

    def __init__(self, provider: str, dialect: Dialect) -> None:
        self._provider, self._dialect = provider, dialect
        self.done = False
        self.started = False
        self._said: list[TextChunk] = []
        self._extras: Extras | None = None  # fields that the vendor wants back
        self._cited: set[str] = set()
        self._unread = Unread()
        self._calls = CallParts()
        self._finish = ""
        self._usage: Usage | None = None
        self._model = ""
        self._seen = False  # any choice at all
        self._refused = False
        self._shape: tuple[bytes, bytes, bool] | None = None
        self._matched, self._tries = 0, 0
        self._before = b""

    def feed(self, data: bytes, /) -> Sequence[Chunk]:
        """The chunks of one event. Raises ModelError."""
        if (shape := self._shape) is not None:
            # Most events differ from the one before in one string: where the rest is the same, only that is read.
            head, tail, padded = shape
            if data.startswith(head):
                start = len(head) - 1
                end = data.rfind(tail, start + 1) if padded else len(data) - len(tail)
                if end > start and (_is_pad(data, end + len(tail)) if padded else data.endswith(tail)):
                    try:
                        text = read_string(data[start : end + 1])
                    except UNREADABLE:  # not one string after all
                        return self._feed(data)
                    self._matched += 1
                    if not text:
                        return ()
                    chunk = TextChunk(text)
                    self._said.append(chunk)
                    return (chunk,)
        return self._feed(data)

    def _feed(self, data: bytes) -> Sequence[Chunk]:
        if self.done:
            return ()
        if len(data) < 16 and data.strip() == DONE:
            self.done = True
            self._shape = None
            return ()
        if type(data) is ErrorEvent:
            raise stream_error(self._provider, peek(data), started=self.started)
        if data == self._before and _is_once(data):
            return ()
        self._before = data
        chunks = self._read(data)
        if len(chunks) == 1 and type(chunks[0]) is TextChunk:
            if self._matched >= _PAYS:
                self._tries = 0
            if self._tries < _LEARNING:
                self._learn(data, chunks[0].text)
        return chunks

    def whole(self, body: bytes, /) -> Sequence[Chunk]:
        """The chunks of an answer that is one JSON object, from servers that do not stream. Raises ModelError."""
        chunks = self._read(body)
        if not self._seen and b'"choices"' not in body:
            raise self._error("invalid", "sent an answer that is not of its protocol")
        self.done = True
        return chunks

    def close(self) -> Sequence[Chunk]:
        """The rest: calls, the continuation and the end. Raises ModelError when the reply is not whole."""
        if not self.done and not self._finish:
            raise self._error("network", "ended its stream early")
        calls = self._calls.finished()
        if any(not call.name for call in calls):
            raise self._error("invalid", "sent a tool call without a name")
        spoke = bool(self._said)
        if not self._seen and not spoke and not calls:
            raise self._error("overload", "sent an empty answer")
        if self._finish == "length" and not spoke and not calls and not self._unread:
            thought = f" ({self._usage.reasoning_tokens} tokens went to reasoning)" if self._usage else ""
            raise self._error(
                "invalid", f"used up the output cap before it said anything{thought}", hint="raise max_tokens"
            )
        out: list[Chunk] = [*calls]
        if item := self._native(calls):
            out.append(item)
        lost = self._unread.lost() if self._unread else ()
        out.append(Finished(finish=self._how(calls), usage=self._usage, model=self._model, lost=lost))
        return out

    # ---- one event

    def _read(self, data: bytes) -> Sequence[Chunk]:
        try:
            event = read_event(data)
        except UNREADABLE:
            raise self._error("invalid", "sent an event that is not of its protocol") from None
        error = event.error
        if error is not UNSET and bytes(error) != b"null":
            raise stream_error(self._provider, {"error": peek(bytes(error))}, started=self.started)
        if event.object == "error" or event.type == "error":
            raise stream_error(self._provider, peek(data), started=self.started)
        if event.model and not self._model:
            self._model = event.model
        if event.usage is not UNSET and (usage := read_usage(event.usage)) is not None:
            self._usage = usage
        out: list[Chunk] = []
        for choice in event.choices or ():
            if choice.index:
                continue
            self._seen = True
            if (delta := choice.delta or choice.message) is not None:
                self._add(delta, out)
            if choice.finish_reason:
                self._end(choice.finish_reason)
        if (event.citations or event.web_search) and (citations := fresh(named_by(event), self._cited)):
            out.append(CitationChunk(citations))
        if out:
            self.started = True
        return out

    def _add(self, delta: Delta, out: list[Chunk]) -> None:
        if delta.reasoning_content is not None or delta.reasoning is not None or delta.reasoning_details:
            thought = delta.reasoning_content or (delta.reasoning if isinstance(delta.reasoning, str) else "")
            if thought:
                out.append(ThinkingChunk(thought))
            self._keep(delta)
        content = delta.content
        if content:
            for piece in (content,) if isinstance(content, str) else content:
                self._say(piece, out)
        if delta.refusal:
            self._refused = True
            self._text(TextChunk(delta.refusal, refusal=True), out)
        if delta.tool_calls:
            self.started = True
            for call in delta.tool_calls:
                self._calls.add(call)
        if delta.annotations and (citations := annotated(delta.annotations)):
            out.append(CitationChunk(citations))
        if delta.images or delta.audio:
            self._unread.media(delta)
        if delta.executed_tools and (citations := fresh(searched(delta.executed_tools), self._cited)):
            out.append(CitationChunk(citations))

    def _say(self, piece: str | dict[str, Any], out: list[Chunk]) -> None:
        if isinstance(piece, str):
            self._text(TextChunk(piece), out)
        elif isinstance(text := piece.get("text"), str) and text:
            self._text(TextChunk(text), out)
        elif isinstance(thinking := piece.get("thinking"), (list, str)):
            texts = (one.get("text") if isinstance(one, dict) else one for one in thinking)
            if thought := "".join(one for one in texts if isinstance(one, str)):
                out.append(ThinkingChunk(thought))
        elif piece.get("type") != "text":
            self._unread.piece(len(self._said), piece)

    def _text(self, chunk: TextChunk, out: list[Chunk]) -> None:
        self._said.append(chunk)
        out.append(chunk)

    def _keep(self, delta: Delta) -> None:
        if self._dialect.keeps:
            extras = self._extras = self._extras or Extras()
            for name in self._dialect.keeps:
                extras.add(name, getattr(delta, name, None))

    def _end(self, reason: str) -> None:
        if reason in {"insufficient_system_resource", "network_error"}:
            raise self._error("overload", "broke off its reply")
        if reason == "error":
            raise self._error("overload", "reported an error in its stream")
        self._finish = FINISH_OF.get(reason, "unknown")

    # ---- the end

    def _how(self, calls: Sequence[CallChunk]) -> str:
        finish = self._finish or "unknown"
        if calls and finish in {"stop", "unknown"}:
            return "calls"
        if finish == "stop" and self._refused:
            return "refusal"
        return finish

    def _native(self, calls: Sequence[CallChunk]) -> NativeItem | None:
        """The reply as one message with the vendor's extra fields; None where the portable form says as much."""
        extras = {} if self._extras is None else self._extras.fields()
        signed = bool(calls) and self._calls.has_extras
        if not (signed or self._unread or (extras and (calls or self._dialect.keeps_all))):
            return None
        if self._refused or not self._calls.can_return():
            return None
        message: dict[str, Json] = {"role": "assistant"} | self._unread.fields(self._said) | extras
        if calls:
            message["tool_calls"] = self._calls.native()
        try:
            return NativeItem(raw=kept(dumps(message)))
        except UNREADABLE:
            raise self._error("invalid", "sent extra fields that cannot be kept") from None

    def _error(self, kind: ErrorKind, what: str, *, hint: str = "") -> ModelError:
        return reply_error(self._provider, kind, what, started=self.started, hint=hint)

    # ---- the short way

    def _learn(self, data: bytes, text: str) -> None:
        """Remembers what surrounds the text of this event, once it is proven that nothing else depends on the text.

        The event is read twice more with other words in the same place: where everything but the text stays equal,
        the place is the text's own JSON string, and any one JSON string may stand there.
        """
        self._shape, self._matched = None, 0
        self._tries += 1
        at = data.find(_KEY + text.encode() + b'"')
        if at < 0:
            return
        start = at + len(_KEY)
        head, tail = data[:start], data[start + len(text.encode()) :]
        pad = tail.find(_PAD)
        padded = pad >= 0 and _is_pad(tail, pad + len(_PAD))
        if padded:
            tail = tail[: pad + len(_PAD)]
        rest = b'0a"}' if padded else b""
        if _same(data, text, head + _PROBE.encode() + tail + rest):
            self._shape = (head, tail, padded)


def _same(data: bytes, text: str, probe: bytes) -> bool:
    """Whether the probe says `_PROBE` where the event says ``text``, both say nothing else, and are otherwise equal."""
    try:
        said, probed = read_event(data), read_event(probe)
    except UNREADABLE:
        return False
    return _only_text(said) == text and _only_text(probed) == _PROBE and _blank(said) == _blank(probed)


def _only_text(event: Event) -> str | None:
    """The text of an event whose one effect is to add it; an effect that is the same twice does not count."""
    if not event.choices or len(event.choices) > 1 or (delta := event.choices[0].delta) is None:
        return None
    if delta.refusal or delta.tool_calls or delta.reasoning_content or delta.reasoning:
        return None
    if delta.reasoning_details or delta.annotations or delta.executed_tools or delta.images or delta.audio:
        return None
    if not isinstance(delta.content, str):
        return None
    return delta.content


def _blank(event: Event) -> Event:
    choices = [replace(choice, delta=None) for choice in event.choices or ()]
    return replace(event, choices=choices)


def _is_pad(data: bytes, start: int) -> bool:
    """Whether only letters and digits, then the end of the object, follow."""
    return data.endswith(b'"}') and (data[start:-2].isalnum() or len(data) == start + 2)


def _is_once(data: bytes) -> bool:
    """Whether the event is padded with random letters, so that the same bytes again are the same event again.

    Some proxy doubled it: a doubled fragment could make other arguments of a call. Events without padding may come
    twice on purpose, and nothing tells.
    """
    at = data.rfind(_PAD)
    return at >= 0 and len(data) - at - len(_PAD) >= _TELLING and _is_pad(data, at + len(_PAD))
