"""Responses: the events of a stream as chunks. Pure and incremental; it keeps no clock and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, DecodeError, Raw

from onrecord.conversation.usage import Usage
from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, NativeItem, SearchChunk
from onrecord.models.classify_errors import stream_error
from onrecord.net.sse import ErrorEvent
from onrecord.providers.openai_responses.events import (
    Answer,
    Event,
    Item,
    error_of,
    error_of_event,
    lost_of,
    read_answer,
    read_event,
    read_item,
    usage_of,
)
from onrecord.providers.openai_responses.words import Place, Words

__all__ = ("Parser",)

T = TypeVar("T")

DONE = b"[DONE]"
FOREIGN = "sent an event that is not of its protocol"
SEARCHES = frozenset({"in_progress", "searching", "completed", "failed"})
_NONE: Sequence[Chunk] = ()


class Parser:
    """Reads one reply: `feed` it the data of each event, then `close` it.

    Pieces of text are handed out as they come and held against the finished item; calls and native items are taken
    from finished items alone. A failure that the stream reports, an incomplete reply, JSON that is none, and a stream
    that ends early raise `ModelError`, whose ``started`` is true once a chunk was handed out or a call began. No error
    quotes content.
    """

    __slots__ = (
        "_calls", "_first", "_items", "_model", "_number", "_open", "_provider", "_searches", "_usage", "_words",
        "done", "started",
    )  # fmt: skip

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self.done = False
        self.started = False
        self._first: int | None = None  # the numbers of the first event and of the last
        self._number = -2
        self._words = Words()
        self._items: dict[int, NativeItem] = {}
        self._open: set[int] = set()
        self._searches: dict[str, str] = {}
        self._calls = 0
        self._usage: Usage | None = None
        self._model = ""

    def feed(self, data: bytes, /) -> Sequence[Chunk]:
        """The chunks of one event. Raises ModelError."""
        if self.done:
            return _NONE
        if type(data) is ErrorEvent:
            raise stream_error(self._provider, error_of_event(data), started=self.started)
        try:
            event = read_event(data)
        except (DecodeError, UnicodeDecodeError) as problem:
            if data.strip() == DONE:  # of servers that end all their streams alike
                return _NONE
            raise self._unread(problem) from None
        number = event.sequence_number
        if number == self._number + 1:
            self._number = number
        elif type(number) is int and self._is_again(number):
            return _NONE
        if event.type == "response.output_text.delta":
            text = event.delta
            if type(text) is not str or not text:
                return _NONE
            self.started = True
            return (self._words.say(self._place(event), text),)
        out: list[Chunk] = []
        self._read(event, data, out)
        if out:
            self.started = True
        return out

    def whole(self, body: bytes, /) -> Sequence[Chunk]:
        """The chunks of an answer that is one JSON object, from servers that do not stream. Raises ModelError."""
        out: list[Chunk] = []
        self._end(self._held(read_answer, body), out)
        return out

    def close(self) -> Sequence[Chunk]:
        """The rest: the continuation and the end. Raises ModelError when the reply is not whole."""
        if not self.done:
            raise self._early()
        if not self._items and not self._words.chars:
            raise self._error("overload", "sent an empty answer")
        out: list[Chunk] = [self._items[index] for index in sorted(self._items)]
        finish = "calls" if self._calls else "refusal" if self._words.refused else "stop"
        out.append(Finished(finish=finish, usage=self._usage, model=self._model))
        return out

    # ---- events

    def _read(self, event: Event, data: bytes, out: list[Chunk]) -> None:
        """What is read of a stream, text apart. Everything else repeats it, or is of a future nobody knows yet."""
        match event.type:
            case "response.output_item.added" | "response.output_item.done":
                self._item(event, out)
            case (
                "response.refusal.delta"
                | "response.reasoning_summary_text.delta"
                | "response.reasoning_text.delta"
                | "response.output_text.annotation.added"
            ):
                self._say(event, out)
            case (
                "response.web_search_call.in_progress"
                | "response.web_search_call.searching"
                | "response.web_search_call.completed"
                | "response.web_search_call.failed"
            ):
                self._searched(event.item_id, event.type.rpartition(".")[2], out)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self._ended(event, out)
            case "error" | "":
                raise self._reported(event, data)
            case _:
                pass

    def _say(self, event: Event, out: list[Chunk]) -> None:
        """What an event adds in words, text apart."""
        words, delta = self._words, event.delta
        match event.type:
            case "response.refusal.delta":
                if isinstance(delta, str) and delta:
                    out.append(words.say(self._place(event), delta, refusal=True))
            case "response.reasoning_summary_text.delta":
                words.think(self._place(event)[0], "summary", event.summary_index, delta, out)
            case "response.reasoning_text.delta":
                words.think(self._place(event)[0], "text", event.content_index, delta, out)
            case _:
                words.annotate(self._place(event), event.annotation, out)

    def _searched(self, id: Any, status: Any, out: list[Chunk]) -> None:
        if isinstance(id, str) and status in SEARCHES and self._searches.get(id) != status:
            self._searches[id] = status
            out.append(SearchChunk(id=id, status=status))

    def _item(self, event: Event, out: list[Chunk]) -> None:
        """An item begins or is finished."""
        index = self._place(event)[0]
        if event.item is UNSET or index in self._items:
            return
        if event.type == "response.output_item.done":
            self._finish(index, event.item, out)
            return
        self._open.add(index)
        if self._held(read_item, event.item).type == "function_call":
            self.started = True

    def _finish(self, index: int, raw: Raw, out: list[Chunk]) -> None:
        item = self._held(read_item, raw)
        match item.type:
            case "message":
                if not self._words.finish(index, item, out):
                    raise self._error("network", "lost a part of its stream", hint="try again")
            case "function_call":
                out.append(self._call(item))
            case "reasoning":
                self._words.finish_thought(index, item, out)
            case "web_search_call":
                self._searched(item.id, item.status, out)
            case _:
                pass
        self._open.discard(index)
        # A copy, since a slice would hold the whole event for as long as the conversation lives.
        self._items[index] = NativeItem(raw=raw.copy(), lost=lost_of(item))

    def _call(self, item: Item) -> CallChunk:
        name, args, wire_id = item.name, item.arguments, item.call_id or item.id
        if not isinstance(name, str) or not name:
            raise self._error("invalid", "sent a tool call without a name")
        self._calls += 1
        self.started = True
        raw_args = args if isinstance(args, str) else "" if args is None else dumps(args).decode()
        return CallChunk(wire_id=wire_id if isinstance(wire_id, str) else "", name=name, raw_args=raw_args)

    # ---- the end

    def _ended(self, event: Event, out: list[Chunk]) -> None:
        answer = self._held(read_answer, b"null" if event.response is UNSET else event.response)
        if answer.status is None:
            answer.status = event.type.rpartition(".")[2]
        self._end(answer, out)

    def _end(self, answer: Answer, out: list[Chunk]) -> None:
        self._usage, self._model = usage_of(answer), answer.model or ""
        status, error = answer.status, error_of(answer)
        if status == "incomplete":
            raise self._incomplete(answer)
        if status == "failed" or error:
            raise stream_error(self._provider, {"error": error}, started=self.started)
        if status != "completed":
            raise self._error("invalid", "answered with a response that is not completed")
        output = answer.output or ()
        if len(output) > len(self._items):  # the event of an item is missing, or nothing was streamed at all
            for index, raw in enumerate(output):
                if index not in self._items:
                    self._finish(index, raw, out)
        if self._open:
            raise self._error("network", "ended its reply with an item unfinished", hint="try again")
        self.done = True

    def _incomplete(self, answer: Answer) -> ModelError:
        reason = answer.incomplete_details.reason if answer.incomplete_details else None
        if reason == "content_filter":
            return self._error("content", "cut its reply off: its content filter stopped it")
        if reason == "max_output_tokens":
            spent = self._usage.reasoning_tokens if self._usage else 0
            thought = f" ({spent} tokens went to reasoning)" if spent else ""
            return self._error("invalid", f"reached the output cap in its reply{thought}", hint="raise max_tokens")
        return self._error("overload", "broke off its reply")

    # ---- what the others need

    def _is_again(self, number: int) -> bool:
        """Whether an event came before, by its number; a server that gives all the same number does not count."""
        if self._first is None:
            self._first = number
        elif number <= self._number:
            return self._number > self._first
        self._number = number
        return False

    def _place(self, event: Event) -> Place:
        """What an event is about; without a number of its item, the one after those that are finished."""
        index, part = event.output_index, event.content_index
        return index if type(index) is int else len(self._items), part if type(part) is int else 0

    def _held(self, read: Callable[[bytes], T], raw: bytes) -> T:
        try:
            return read(raw)
        except (DecodeError, UnicodeDecodeError):
            raise self._error("invalid", FOREIGN) from None

    def _unread(self, problem: Exception) -> ModelError:
        """Data that is JSON up to where it ends was cut in the middle; anything else is of another protocol."""
        cut = isinstance(problem, DecodeError) and "truncated" in str(problem)
        return self._early() if cut else self._error("invalid", FOREIGN)

    def _early(self) -> ModelError:
        return self._error(
            "network", "ended its stream early", hint="try again; whether this reply was paid for is not known"
        )

    def _reported(self, event: Event, data: bytes) -> ModelError:
        held = error_of_event(data)
        if not event.type and not held:  # neither an event of this wire nor an error
            return self._error("invalid", FOREIGN)
        return stream_error(self._provider, held, started=self.started)

    def _error(self, kind: ErrorKind, what: str, *, hint: str = "") -> ModelError:
        return ModelError(
            f"{self._provider} {what}", kind=kind, provider=self._provider, started=self.started, hint=hint
        )
