"""Responses: the events of a stream as chunks. Pure and incremental; it keeps no clock and opens nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw

from onrecord.conversation.usage import Usage
from onrecord.jsonio import UNREADABLE, dumps, kept
from onrecord.models.chunks import CallChunk, Chunk, Finished, NativeItem, SearchChunk
from onrecord.models.written_forms import NAMES
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
from onrecord.providers.openai_responses.stream_failures import FOREIGN, Failing
from onrecord.providers.openai_responses.words import Place, Words

__all__ = ("Parser",)

DONE = b"[DONE]"
SEARCHES = frozenset({"in_progress", "searching", "completed", "failed"})
_NONE: Sequence[Chunk] = ()


class Parser(Failing):
    """Reads one reply: `feed` it the data of each event, then `close` it.

    Pieces of text are handed out as they come and held against the finished item; calls and native items are taken
    from finished items alone. A failure that the stream reports, an incomplete reply, JSON that is none, and a stream
    that ends early raise `ModelError`, whose ``started`` is true once a chunk was handed out or a call began. No error
    quotes content.
    """

    __slots__ = (
        "_calls", "_first", "_items", "_model", "_number", "_open", "_returns", "_searches", "_times", "_usage",
        "_words", "done",
    )  # fmt: skip

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self.done = False
        self._first: int | None = None  # the numbers of the first event and of the last
        self._number = -2
        self._words = Words()
        self._items: dict[int, NativeItem] = {}
        self._open: set[int] = set()
        self._searches: dict[str, str] = {}
        self._calls: set[str] = set()
        self._times: dict[str, int] = {}
        self._returns = True  # whether its items can go back
        self._usage: Usage | None = None
        self._model = ""

    def feed(self, data: bytes, /) -> Sequence[Chunk]:
        """The chunks of one event. Raises ModelError."""
        if self.done:
            return _NONE
        if type(data) is ErrorEvent:
            raise self.reported(error_of_event(data))
        try:
            event = read_event(data)
        except UNREADABLE as problem:
            if data.strip() == DONE:  # of servers that end all their streams alike
                return _NONE
            raise self.unread(problem) from None
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
            index, part = event.output_index, event.content_index
            at = (index, part) if type(index) is type(part) is int else self._place(event)
            return (self._words.say(at, text),)
        out: list[Chunk] = []
        self._read(event, data, out)
        if out:
            self.started = True
        return out

    def whole(self, body: bytes, /) -> Sequence[Chunk]:
        """The chunks of an answer that is one JSON object, from servers that do not stream. Raises ModelError."""
        out: list[Chunk] = []
        self._end(self.held(read_answer, body), out)
        return out

    def close(self) -> Sequence[Chunk]:
        """The rest: the continuation and the end. Raises ModelError when the reply is not whole."""
        if not self.done:
            raise self.early()
        if not self._items and not self._words.chars:
            raise self.error("overload", "sent an empty answer")
        items = [self._items[index] for index in sorted(self._items)]
        out: list[Chunk] = [*items] if self._returns else []
        lost = () if self._returns else tuple(item.lost for item in items if item.lost)
        finish = "calls" if self._calls else "refusal" if self._words.refused else "stop"
        out.append(Finished(finish=finish, usage=self._usage, model=self._model, lost=lost))
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
            case "error":
                raise self.reported(error_of_event(data))
            case "":
                held = error_of_event(data)
                raise self.reported(held) if held else self.error("invalid", FOREIGN)
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
        if isinstance(id, str) and isinstance(status, str) and status in SEARCHES and self._searches.get(id) != status:
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
        if self.held(read_item, event.item).type == "function_call":
            self.started = True

    def _finish(self, index: int, raw: Raw, out: list[Chunk]) -> None:
        native = self.held(kept, raw)  # a slice would hold the whole event for ever
        item = self.held(read_item, native)
        match item.type:
            case "message":
                if not self._words.finish(index, item, out):
                    raise self.lost("lost a part of its stream")
            case "function_call":
                out.append(self._call(item))
            case "reasoning":
                self._words.finish_thought(index, item, out)
            case "web_search_call":
                self._searched(item.id, item.status, out)
            case _:
                pass
        self._open.discard(index)
        self._items[index] = NativeItem(raw=native, lost=lost_of(item))

    def _call(self, item: Item) -> CallChunk:
        name, args = item.name, item.arguments
        if not isinstance(name, str) or not name:
            raise self.error("invalid", "sent a tool call without a name")
        named = item.call_id or item.id
        wire = given = named if isinstance(named, str) else ""
        while not wire or wire in self._calls:
            self._times[given] = self._times.get(given, 0) + 1
            wire = f"{given or 'call'}_{self._times[given]}"
        self._calls.add(wire)
        # Otherwise its result could not be told from another's, or the item itself would be refused.
        self._returns = self._returns and wire == item.call_id and NAMES.fit(name)
        self.started = True
        raw_args = args if isinstance(args, str) else "" if args is None else dumps(args).decode()
        return CallChunk(wire_id=wire, name=name, raw_args=raw_args)

    # ---- the end

    def _ended(self, event: Event, out: list[Chunk]) -> None:
        answer = self.held(read_answer, b"null" if event.response is UNSET else event.response)
        if answer.status is None:
            answer.status = event.type.rpartition(".")[2]
        self._end(answer, out)

    def _end(self, answer: Answer, out: list[Chunk]) -> None:
        self._usage, self._model = usage_of(answer), answer.model or ""
        status, error = answer.status, error_of(answer)
        if status == "incomplete":
            raise self.incomplete(answer, self._usage)
        if status == "failed" or error:
            raise self.reported({"error": error})
        if status != "completed":
            raise self.error("invalid", "answered with a response that is not completed")
        output = answer.output or ()
        if len(output) > len(self._items):  # the event of an item is missing, or nothing was streamed at all
            for index, raw in enumerate(output):
                if index not in self._items:
                    self._finish(index, raw, out)
        if self._open:
            raise self.lost("ended its reply with an item unfinished")
        self.done = True

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
