"""Listening: a model's stream becomes a round, its text passes the filters, and deltas reach whoever reads along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from msgspec import Raw, Struct

from onrecord.conversation.content import CallRef, Citation, Mark, Refusal, Text, Thinking
from onrecord.conversation.messages import Continuation, Round, ToolCall
from onrecord.conversation.outgoing import (
    CitationDelta,
    Delta,
    MarkDelta,
    ReasoningDelta,
    SearchDelta,
    TextDelta,
)
from onrecord.conversation.usage import ModelUse, Usage
from onrecord.errors import FeatureFailed, ModelError, OnrecordError
from onrecord.jsonio import read_object, writable
from onrecord.models.chunks import (
    Attempted,
    CallChunk,
    Chunk,
    CitationChunk,
    Finished,
    NativeItem,
    SearchChunk,
    TextChunk,
    ThinkingChunk,
)
from onrecord.models.raised_errors import raised_error
from onrecord.models.request import Request, TextFilter
from onrecord.record.kinds import ModelAttempted, Noted
from onrecord.record.receipts import LeftMark
from onrecord.turn.askable import can_be_kept
from onrecord.turn.citing import cited
from onrecord.turn.contained import ends_take, fail
from onrecord.turn.turn import Turn

__all__ = ("Heard", "heard_again", "listen", "release", "release_mark")

Filters = Sequence[tuple[str, TextFilter]]
Said = Text | Refusal | Thinking | CallRef

BETWEEN = "\n\n"
"""What stands between two messages of a turn, in the conversation and in a stream."""

_KEPT = (Attempted, CitationChunk, Finished, NativeItem)
"""Chunks that go into the record as they are; words of the others are made readable."""


class Heard(Struct, frozen=True, kw_only=True):
    """A reply: its round, the text after filters, and the same with marks in place (empty when there are none).

    ``usage`` is what it cost, with the failed attempts before it.
    """

    round: Round
    text: str
    shown: tuple[Text | Mark, ...]
    usage: Usage | None


def heard_again(turn: Turn, held: Round, filters: Filters, *, live: bool) -> Heard:
    """A reply that waited for an answer, heard once more: its words pass the filters and reach whoever reads along."""
    items = [*(_through(filters, held.text) if held.text else ()), *_ended(filters)]
    if live:
        release_all(turn, items)
    return _heard(held, items, None, filtered=bool(filters))


def _heard(held: Round, items: Sequence[str | Mark], usage: Usage | None, *, filtered: bool) -> Heard:
    """What was heard of a round whose words are these items; only a filter puts marks among them."""
    marked = filtered and any(isinstance(item, Mark) for item in items)
    words = [item for item in items if isinstance(item, str)] if marked else cast("Sequence[str]", items)
    return Heard(round=held, text=writable("".join(words)), shown=joined(items) if marked else (), usage=usage)


def release(turn: Turn, text: str) -> None:
    """Shows a piece of text to a live reader; from here on it can never be taken back."""
    emit = turn.emit
    if emit is not None and text:
        if turn.apart:
            _part(turn, emit)
        at = turn.streamed
        turn.streamed = at + len(text)
        turn.streaming.append(text)
        emit(TextDelta(text, at))


def release_mark(turn: Turn, mark: Mark) -> None:
    """Shows a mark at its place."""
    if turn.emit is not None:
        if turn.apart:
            _part(turn, turn.emit)
        turn.streaming.append(mark)
        turn.emit(MarkDelta(mark, turn.streamed))


def _part(turn: Turn, emit: Callable[[Delta], None]) -> None:
    """Between two messages of a turn a reader sees the blank line that the conversation has there."""
    turn.apart, at = False, turn.streamed
    turn.streamed = at + len(BETWEEN)
    emit(TextDelta(BETWEEN, at))


def release_all(turn: Turn, items: Iterable[str | Mark]) -> None:
    """Shows words and marks in their order."""
    for item in items:
        if isinstance(item, str):
            release(turn, item)
        else:
            release_mark(turn, item)


class _Ear:
    """Collects one reply."""

    __slots__ = (
        "calls", "citations", "content", "filters", "finished", "items", "kind", "live", "lost", "natives", "request",
        "spent", "texts", "thinks", "turn",
    )  # fmt: skip

    def __init__(self, turn: Turn, request: Request, filters: Filters, *, live: bool) -> None:
        self.turn, self.request, self.filters, self.live = turn, request, filters, live
        self.thinks = turn.plan.on_thinking
        self.content: list[Said] = []
        self.texts: list[str] = []
        self.kind: type[Text | Refusal | Thinking] = Text
        self.calls: list[tuple[str, str, str]] = []
        self.natives: list[Raw] = []
        self.lost: list[str] = []
        self.citations: list[Citation] = []
        self.items: list[str | Mark] = []
        self.finished: Finished | None = None
        self.spent: Usage | None = None

    def text(self, text: str, kind: type[Text | Refusal | Thinking]) -> None:
        if kind is not self.kind:
            self.flush()
            self.kind = kind
        self.texts.append(text)
        if kind is Thinking:
            if self.live and self.turn.emit is not None and self.thinks is None:
                self.turn.emit(ReasoningDelta(text))
        elif self.filters:
            self.show(_through(self.filters, text))
        else:
            self.items.append(text)
            if self.live:
                release(self.turn, text)

    def show(self, items: Sequence[str | Mark]) -> None:
        self.items += items
        if self.live:
            release_all(self.turn, items)

    def breach(self, chunk: Chunk) -> ModelError:
        """The error for a chunk whose fields are not of their types: stored, it could never be read again."""
        name, provider = self.request.model.card.name, self.request.model.card.provider
        told = f"model {name!r} gave a {type(chunk).__name__} whose fields are not of their types"
        return ModelError(told, kind="unknown", provider=provider)

    def spend(self, usage: Usage | None, model: str) -> None:
        """Adds what an attempt cost: a failed one at once, since the next may end the call."""
        if usage is not None:
            self.turn.count(usage, model)
            self.spent = usage if self.spent is None else self.spent + usage

    def flush(self) -> None:
        if self.texts:
            words, self.texts = writable("".join(self.texts)), []
            if self.kind is Thinking and self.thinks is not None:
                words = _rewritten(self.turn, *self.thinks, words)
                if not words:
                    return
                if self.live and self.turn.emit is not None:
                    self.turn.emit(ReasoningDelta(words))
            self.content.append(self.kind(words))

    def other(self, chunk: Chunk, where: str, rid: str) -> None:
        emit = self.turn.emit if self.live else None
        if isinstance(chunk, _KEPT) and not can_be_kept(chunk, type(chunk)):
            raise self.breach(chunk)
        if isinstance(chunk, CallChunk):
            self.flush()
            self.content.append(CallRef(f"{rid}/c{len(self.calls)}"))
            words = (chunk.wire_id, chunk.name, chunk.raw_args)
            if not all(isinstance(word, str) for word in cast("tuple[object, ...]", words)):
                raise self.breach(chunk)
            self.calls.append((writable(chunk.wire_id), writable(chunk.name), writable(chunk.raw_args)))
        elif isinstance(chunk, Finished):
            self.finished = chunk
        elif isinstance(chunk, NativeItem):
            self.natives.append(chunk.raw)
            if chunk.lost:
                self.lost.append(chunk.lost)
        elif isinstance(chunk, Attempted):
            self.turn.note(
                ModelAttempted(
                    round=rid, attempt=chunk.attempt, error=chunk.error, status=chunk.status, wait_s=chunk.wait_s,
                    model=chunk.model, feedback=chunk.feedback, usage=chunk.usage,
                    left_out=tuple(LeftMark(unit=issue.unit, what=issue.what) for issue in chunk.left_out),
                ),
                where=where,
            )  # fmt: skip
            self.spend(chunk.usage, chunk.model)
        elif isinstance(chunk, CitationChunk):
            self.citations += chunk.citations
            if emit is not None:
                emit(CitationDelta(chunk.citations))
        elif isinstance(chunk, SearchChunk) and emit is not None:
            emit(SearchDelta(id=chunk.id, status=chunk.status))

    def round(self, rid: str, latency_ms: int) -> Round:
        self.flush()
        card, ended = self.request.model.card, self.finished or Finished(finish="unknown")
        scope = ended.scope or self.request.scope
        if self.citations:
            self.content = cited(self.content, self.citations)
        return Round(
            id=rid,
            content=tuple(self.content),
            calls=tuple(
                ToolCall(id=f"{rid}/c{i}", wire_id=wire_id, name=name, raw_args=raw, args=read_object(raw) or {})
                for i, (wire_id, name, raw) in enumerate(self.calls)
            ),
            use=ModelUse(
                provider=ended.provider or card.provider, model=ended.model or card.model, scope=scope,
                usage=ended.usage, finish=ended.finish, latency_ms=latency_ms,
            ),
            continuation=Continuation(
                protocol=ended.protocol or card.protocol, scope=scope, items=tuple(self.natives)
            )
            if self.natives
            else None,
            lost=(*self.lost, *ended.lost),
        )  # fmt: skip


def _rewritten(turn: Turn, feature: str, rewrite: Callable[[str], object], words: str) -> str:
    """What a feature makes of a stretch of reasoning; nothing is kept of one that it fails on."""
    try:
        got = rewrite(words)
        problem = "" if isinstance(got, str) else f"it returned {type(got).__name__}, not a text"
    except BaseException as error:
        if ends_take(error):
            raise
        got, problem = "", type(error).__name__
    if problem:
        turn.note(Noted(by=feature, text=f"reasoning was dropped: {problem}"))
    return writable(got) if isinstance(got, str) else ""


async def listen(turn: Turn, request: Request, rid: str, filters: Filters, *, live: bool, where: str = "main") -> Heard:
    """Drains one reply and counts what it cost. ModelError from the model; any other exception of it becomes one."""
    ear = _Ear(turn, request, filters, live=live)
    began = turn.effects.now()
    take_text: Callable[[str, type[Text | Refusal | Thinking]], None] = ear.text
    try:
        chunks = request.model.stream(request)
        try:
            async for chunk in chunks:
                if type(chunk) is TextChunk:
                    take_text(chunk.text, Refusal if chunk.refusal else Text)
                elif type(chunk) is ThinkingChunk:
                    ear.text(chunk.text, Thinking)
                else:
                    ear.other(chunk, where, rid)
        finally:
            await chunks.aclose()
        if filters:
            ear.show(_ended(filters))
        settled = ear.round(rid, int((turn.effects.now() - began).total_seconds() * 1000))
    except OnrecordError:
        raise
    except BaseException as error:
        if ends_take(error):
            raise
        card = request.model.card
        raise raised_error(card.provider, card.name, error) from error
    use = settled.use
    if use is not None:
        ear.spend(use.usage, f"{use.provider}:{use.model}")
    return _heard(settled, ear.items, ear.spent, filtered=bool(filters))


def joined(items: Sequence[str | Mark]) -> tuple[Text | Mark, ...]:
    """Neighbouring strings become one text each, which can be stored: streams cut surrogate pairs in two."""
    out: list[Text | Mark] = []
    words: list[str] = []
    for item in (*items, None):
        if isinstance(item, str):
            words.append(item)
            continue
        if words:
            out.append(Text(writable("".join(words))))
            words = []
        if item is not None:
            out.append(item)
    return tuple(out)


def _through(filters: Filters, item: str | Mark) -> list[str | Mark]:
    items: list[str | Mark] = [item]
    for name, each in filters:
        try:
            items = [out for one in items for out in each.feed(one)]
        except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
            fail(name, "text", error)
        _check_items(name, items)
    return items


def _check_items(name: str, items: Sequence[object]) -> None:
    for item in items:
        if not isinstance(item, (str, Mark)):
            raise FeatureFailed(name, "text", f"it gave a {type(item).__name__}, not text or a mark")


def _ended(filters: Filters) -> list[str | Mark]:
    items: list[str | Mark] = []
    for index, (name, each) in enumerate(filters):
        try:
            rest = list(each.close())
        except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
            fail(name, "text", error)
        _check_items(name, rest)
        items += [out for one in rest for out in _through(filters[index + 1 :], one)]
    return items
