"""Live: what is being said in a session, for any number of readers, beside what is committed.

Committed entries have ids and are read from the store, so a reader that comes back misses nothing and sees nothing
twice. Running text has offsets. Each reader keeps its own place in one shared list: a slow one delays nobody, and
reads in one piece what others read in many.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Literal

from msgspec import Struct

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Delta, MarkDelta, TextDelta
from onrecord.record.entry import Entry
from onrecord.session.store import Store

__all__ = ("Committed", "Draft", "Gone", "Live", "LiveItem", "Place", "Progress")


class _Entry(Struct, frozen=True, gc=False):
    entry: Entry


class Committed(_Entry, frozen=True, gc=False):
    """An entry that is stored. ``entry.seq`` is its id: ``after=`` it, nothing comes twice."""


class Place(Struct, frozen=True, gc=False):
    """Where a reader stands in the running text of a take: ``at`` characters in."""

    turn: str
    take: int
    at: int = 0


class Progress(Struct, frozen=True, gc=False, kw_only=True):
    """What was released since the last one; ``at`` is the offset of its first text in the take's running text."""

    turn: str
    take: int
    at: int
    items: tuple[Delta, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(item.text for item in self.items if isinstance(item, TextDelta))

    @property
    def place(self) -> Place:
        """Where a reader stands that has read this."""
        return Place(self.turn, self.take, self.at + len(self.text))


class _Take(Struct, frozen=True, gc=False):
    turn: str
    take: int


class Gone(_Take, frozen=True, gc=False):
    """This take came to nothing: what it released is in no entry, and another take may follow."""


LiveItem = Committed | Progress | Gone


class Draft:
    """What one take has released so far. One writer, many readers."""

    __slots__ = ("deltas", "end", "listeners", "take", "text", "turn", "was_read")

    def __init__(self) -> None:
        self.turn, self.take = "", 0
        self.deltas: list[Delta] = []
        self.text = 0
        self.end: Literal["", "committed", "gone"] = ""
        self.was_read = False
        self.listeners: list[Callable[[], None]] = []

    def add(self, delta: Delta) -> None:
        """Releases one more delta."""
        self.deltas.append(delta)
        for listener in self.listeners:
            listener()


class _Channel:
    """One session's draft and readers. ``commits`` counts what this host has stored."""

    __slots__ = ("commits", "draft", "readers")

    def __init__(self) -> None:
        self.draft: Draft | None = None
        self.commits = 0
        self.readers: set[_Reader] = set()

    def wake(self) -> None:
        for reader in self.readers:
            reader.wake()


class _Reader:
    __slots__ = ("waiter",)

    def __init__(self) -> None:
        self.waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Whether something woke it before the time was up."""
        self.waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self.waiter
        except TimeoutError:
            return False
        return True


class Live:
    """The live side of a host."""

    def __init__(self, store: Store, poll_s: float) -> None:
        self._store, self._poll_s = store, poll_s
        self._channels: dict[SessionKey, _Channel] = {}
        self._closed = False

    def begin(self, key: SessionKey, draft: Draft) -> None:
        """A take begins; readers of its session follow it from now on."""
        channel = self._channels.get(key)
        if channel is not None:
            channel.draft = draft
            draft.listeners.append(channel.wake)

    def ended(self, key: SessionKey, draft: Draft, end: Literal["committed", "gone"]) -> None:
        """The take has been stored, or came to nothing."""
        draft.end = end
        channel = self._channels.get(key)
        if channel is None:
            return
        if channel.draft is draft:
            channel.draft = None
        channel.commits += end == "committed"
        channel.wake()

    def close(self) -> None:
        """Ends all readers."""
        self._closed = True
        for channel in self._channels.values():
            channel.wake()

    async def follow(
        self, key: SessionKey, running: Callable[[], Draft | None], *, after: int, place: Place | None
    ) -> AsyncGenerator[LiveItem, None]:
        """Entries behind ``after``, then running text behind ``place``, and so on for ever.

        ``running`` tells the draft of the take that runs when reading begins. Of a take that ended before its reader
        came to it only the entries come: they hold all of its text.
        """
        channel = self._channels.setdefault(key, _Channel())
        if channel.draft is None and (draft := running()) is not None:
            self.begin(key, draft)
        reader = _Reader()
        channel.readers.add(reader)
        try:
            async with aclosing(self._items(key, channel, reader, after, place)) as items:
                async for item in items:
                    yield item
        finally:
            channel.readers.discard(reader)
            if not channel.readers and self._channels.get(key) is channel:
                del self._channels[key]
                if channel.draft is not None:
                    channel.draft.listeners.remove(channel.wake)

    async def _items(
        self, key: SessionKey, channel: _Channel, reader: _Reader, after: int, place: Place | None
    ) -> AsyncGenerator[LiveItem, None]:
        seen, stale, draft, index = channel.commits, True, None, 0
        while not self._closed:
            if draft is not None and index < len(draft.deltas):
                progress, index = _progress(draft, index, place)
                if progress is not None:
                    draft.was_read = True
                    yield progress
                continue
            if draft is not None and draft.end:
                if draft.end == "gone" and draft.deltas:
                    yield Gone(draft.turn, draft.take)
                draft = None
            if stale or seen != channel.commits:
                stale, seen = False, channel.commits
                async for entry in self._store.entries(key, after=after):
                    after = entry.seq
                    yield Committed(entry)
                continue
            if draft is None and channel.draft is not None:
                draft, index = channel.draft, 0
                continue
            stale = not await reader.wait(self._poll_s)


def _progress(draft: Draft, index: int, place: Place | None) -> tuple[Progress | None, int]:
    """What the draft holds from ``index`` on, without what a reader at ``place`` has read of it."""
    items, stop = draft.deltas[index:], len(draft.deltas)
    read = place.at if place is not None and (place.turn, place.take) == (draft.turn, draft.take) else 0
    if read:
        items = [cut for item in items if (cut := _behind(item, read)) is not None]
    if not items:
        return None, stop
    at = next((item.at for item in items if isinstance(item, (TextDelta, MarkDelta))), read)
    return Progress(turn=draft.turn, take=draft.take, at=at, items=tuple(items)), stop


def _behind(item: Delta, read: int) -> Delta | None:
    """The part of a delta behind the first ``read`` characters; what has no place in the text comes again."""
    if isinstance(item, MarkDelta):
        return item if item.at >= read else None
    if not isinstance(item, TextDelta) or item.at >= read:
        return item
    rest = item.text[read - item.at :]
    return TextDelta(rest, read) if rest else None
