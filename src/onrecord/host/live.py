"""Live: what is being said in a session, for any number of readers, beside what is committed.

Committed entries have ids and are read from the store, so a reader that comes back misses nothing and sees nothing
twice. Running text has offsets. Each reader keeps its own place in one shared list: a slow one delays nobody, and
reads in one piece what others read in many.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Delta, MarkDelta, TextDelta
from onrecord.record.entry import Entry
from onrecord.record.leaving import Leaves, delta_leaving, leaving
from onrecord.session.store import Store

log = logging.getLogger("onrecord.host")
L = TypeVar("L")

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

    def listen(self, emit: Callable[[Delta], None]) -> None:
        """Tells each delta from now on to somebody who reads it at once."""

        def pass_on() -> None:
            self.was_read = True
            emit(self.deltas[-1])

        self.listeners.append(pass_on)

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
    """What one reader waits for. One timer serves many waits: a reader is woken for every delta."""

    __slots__ = ("_is_late", "_loop", "_seconds", "_timer", "_waiter")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_late = False

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait(self) -> bool:
        """Whether so much time has passed since this last was so that others may have stored something."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._late)
        if not self._is_late:
            self._waiter = self._loop.create_future()
            await self._waiter
        if not self._is_late:
            return False
        self._is_late = False
        return True

    def _late(self) -> None:
        self._timer, self._is_late = None, True
        self.wake()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


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

    def ended(
        self, key: SessionKey, draft: Draft, end: Literal["committed", "gone"], *, is_filed: bool = False
    ) -> None:  # fmt: skip
        """The take has been stored, or came to nothing, though the record may say so (``is_filed``)."""
        draft.end = end
        channel = self._channels.get(key)
        if channel is None:
            return
        if channel.draft is draft:
            channel.draft = None
        channel.commits += end == "committed" or is_filed
        channel.wake()

    def close(self) -> None:
        """Ends all readers."""
        self._closed = True
        for channel in self._channels.values():
            channel.wake()

    async def follow(
        self, key: SessionKey, running: Callable[[], Draft | None], *, after: int, place: Place | None, leaves: Leaves
    ) -> AsyncGenerator[LiveItem, None]:
        """Entries behind ``after``, then running text behind ``place``, and so on for ever.

        ``running`` tells the draft of the take that runs when reading begins. Of a take that ended before its reader
        came to it only the entries come: they hold all of its text. ``leaves`` says how entries look to this reader.
        """
        channel = self._channels.setdefault(key, _Channel())
        if channel.draft is None and (draft := running()) is not None:
            self.begin(key, draft)
        reader = _Reader(self._poll_s)
        channel.readers.add(reader)
        seen, stale, draft, index = channel.commits, True, None, 0
        try:
            while not self._closed:
                if draft is not None and index < len(draft.deltas):
                    progress, index = _progress(draft, index, place)
                    if progress is not None and (progress := _shown(progress, leaves)) is not None:
                        draft.was_read = True
                        yield progress
                    continue
                if draft is not None and draft.end:
                    if draft.end == "gone" and draft.deltas:
                        yield Gone(draft.turn, draft.take)
                    draft = None
                if stale or seen != channel.commits:
                    stale, seen = False, channel.commits
                    async with aclosing(self._store.entries(key, after=after)) as entries:
                        async for entry in entries:
                            after = entry.seq
                            if (left := _left(partial(leaves, entry), f"entry {entry.seq}")) is not None:
                                yield Committed(left)
                    continue
                if draft is None and channel.draft is not None:
                    draft, index = channel.draft, 0
                    continue
                stale = await reader.wait()
        finally:
            reader.close()
            self._leave(key, channel, reader)

    def _leave(self, key: SessionKey, channel: _Channel, reader: _Reader) -> None:
        channel.readers.discard(reader)
        if not channel.readers and self._channels.get(key) is channel:
            del self._channels[key]
            if channel.draft is not None:
                channel.draft.listeners.remove(channel.wake)


def _left(make: Callable[[], L], what: str) -> L | None:
    """Something as readers get it. What cannot be redacted is shown to nobody."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - an application's redaction raises what it likes; nothing unredacted leaves for that
        log.warning("%s is shown to no reader: its redaction failed (%s)", what, type(error).__name__)
        return None


def _shown(progress: Progress, leaves: Leaves) -> Progress | None:
    """What leaves of a piece of news. What cannot be redacted is shown to nobody."""
    if leaves is leaving:
        return progress
    items = [
        one if type(one) is TextDelta else _left(partial(delta_leaving, one, leaves), "a live sign")
        for one in progress.items
    ]
    shown = tuple(one for one in items if one is not None)
    return replace(progress, items=shown) if shown else None


def _progress(draft: Draft, index: int, place: Place | None) -> tuple[Progress | None, int]:
    """What the draft holds from ``index`` on, without what a reader at ``place`` has read of it."""
    items, stop = draft.deltas[index:], len(draft.deltas)
    read = place.at if place is not None and (place.turn, place.take) == (draft.turn, draft.take) else 0
    if read:
        items = [cut for item in items if (cut := _behind(item, read)) is not None]
    if not items:
        return None, stop
    for item in items:  # mostly the first one; a generator would cost as much as the rest
        if isinstance(item, (TextDelta, MarkDelta)):
            at = item.at
            break
    else:
        at = max(read, _said_before(draft, index))
    return Progress(turn=draft.turn, take=draft.take, at=at, items=tuple(items)), stop


def _said_before(draft: Draft, index: int) -> int:
    """How much text was released before this delta: where a reader stands who is told of a call alone."""
    while index:
        index -= 1
        item = draft.deltas[index]
        if isinstance(item, TextDelta):
            return item.at + len(item.text)
        if isinstance(item, MarkDelta):
            return item.at
    return 0


def _behind(item: Delta, read: int) -> Delta | None:
    """The part of a delta behind the first ``read`` characters; what has no place in the text comes again."""
    if isinstance(item, MarkDelta):
        return item if item.at >= read else None
    if not isinstance(item, TextDelta) or item.at >= read:
        return item
    rest = item.text[read - item.at :]
    return TextDelta(rest, read) if rest else None
