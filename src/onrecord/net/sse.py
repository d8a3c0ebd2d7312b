"""Server-sent events, read from pieces of any size.

`EventParser` is pure: bytes in, the ``data`` of every completed event out. It knows nothing of sockets or JSON.
"""

from __future__ import annotations

import re

__all__ = ("ErrorEvent", "EventParser", "EventTooLarge")

_BOM = b"\xef\xbb\xbf"
_BLANK = b"\n\n"
_DATA = b"data: "
_EVENT = b"event: "
_NAMED = re.compile(rb"(?<![^\n])event: (?!error\n)[^\n]*\ndata: ([^\n]+)(?=\n\n|\Z)").findall


class ErrorEvent(bytes):
    """The data of an event that its sender marked as an error: ``event: error``, or a field named ``error``.

    It is ordinary bytes, so a parser that goes by the JSON inside may ignore the difference.
    """

    __slots__ = ()


class EventTooLarge(Exception):
    """One event grew over the limit; the stream cannot be read any further."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"one event is larger than {limit} bytes")
        self.limit = limit


class EventParser:
    """Splits a stream of bytes into events, whatever the places where it is cut.

    Lines may end in LF, CR LF or CR; a byte order mark at the start, comments and the fields ``id``, ``retry`` and
    ``event`` are skipped, except that an event named ``error`` comes out as an `ErrorEvent`. Several ``data`` lines of
    one event are joined by LF. Events without data are dropped.
    """

    __slots__ = ("_after_cr", "_held", "_limit", "_started")

    def __init__(self, max_event: int = 32 << 20) -> None:
        self._limit = max_event
        self._held = bytearray()  # bytes of an event that has not ended yet
        self._after_cr = False
        self._started = False

    @property
    def pending(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._held)

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of every event that ``piece`` completes, in order."""
        if not self._started:
            piece = self._skip_bom(piece)
        if self._after_cr or b"\r" in piece:
            piece = self._only_lf(piece)
        held = self._held
        if held:
            # Only the new bytes are searched, so a huge event in many pieces costs one pass over it.
            seen = len(held) - 1
            held += piece
            if held.find(_BLANK, seen) < 0:
                if len(held) > self._limit:
                    raise EventTooLarge(self._limit)
                return []
            piece = bytes(held)
            held.clear()
        end = piece.rfind(_BLANK)
        if end < 0:
            held += piece
            if len(held) > self._limit:
                raise EventTooLarge(self._limit)
            return []
        if end + 2 < len(piece):
            held += memoryview(piece)[end + 2 :]
        if len(piece) > self._limit:
            self._check_each(piece)
        return _read_plain(piece, end) or _read_blocks(piece[:end])

    def close(self) -> list[bytes]:
        """What is left at the proper end of the stream: servers often leave out the last blank line."""
        rest = bytes(self._held)
        self._held.clear()
        return _read_blocks(rest) if rest else []

    def _skip_bom(self, piece: bytes) -> bytes:
        piece = bytes(self._held) + piece
        self._held.clear()
        if len(piece) < len(_BOM) and _BOM.startswith(piece):
            self._held += piece
            return b""
        self._started = True
        return piece.removeprefix(_BOM)

    def _only_lf(self, piece: bytes) -> bytes:
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if piece.endswith(b"\r"):
            # The line has ended already; a LF in front of the next piece belongs to it.
            self._after_cr = True
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _check_each(self, piece: bytes) -> None:
        start = 0
        while start < len(piece):
            end = piece.find(_BLANK, start)
            end = len(piece) if end < 0 else end
            if end - start > self._limit:
                raise EventTooLarge(self._limit)
            start = end + 2


def _read_plain(piece: bytes, end: int) -> list[bytes]:
    """The events of what most servers send, in a few calls into C; none for what is of any other shape."""
    if piece.startswith(_DATA):
        # One `data: ` line per event and nothing else.
        events = piece[6:end].split(b"\n\ndata: ")
        if piece.count(b"\n", 0, end) == 2 * (len(events) - 1) and b"" not in events:
            return events
    elif piece.startswith(_EVENT):
        # A name before each such line.
        events = _NAMED(piece, 0, end)
        if piece.count(b"\n", 0, end) == 3 * len(events) - 2:
            return events
    return []


def _read_blocks(text: bytes) -> list[bytes]:
    events: list[bytes] = []
    for block in text.split(_BLANK):
        head, _, tail = block.partition(b"\n")
        if head.startswith(b"event: ") and tail.startswith(_DATA) and b"\n" not in tail and head != b"event: error":
            data: bytes | None = tail[6:]
        elif not tail and head.startswith(_DATA):
            data = head[6:]
        else:
            data = _read_block(block)
        if data:
            events.append(data)
    return events


def _read_block(block: bytes) -> bytes | None:
    """Reads one event by the rules of the format, line by line."""
    lines: list[bytes] = []
    failed = False
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            value = value.removeprefix(b" ")
        if name == b"data":
            lines.append(value)
        elif name == b"event":
            failed = value == b"error"
        elif name == b"error" and colon:
            lines.append(value)
            failed = True
    data = b"\n".join(lines)
    return ErrorEvent(data) if failed and data else data
