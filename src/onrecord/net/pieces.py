"""Taking what has come of a body in one piece.

A server that streams sends each event as an HTTP chunk of its own, and many of them come in one read from the network.
The client's stream hands them over one by one, with the accounts it keeps for each; here they are joined at once and
the accounts are made up in one go. A stream that is not built as known here is read by its own method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

__all__ = ("taker",)

_PARTS = (
    "_buffer", "_buffer_offset", "_cursor", "_eof", "_exception", "_http_chunk_splits", "_protocol", "_read_nowait",
    "_size", "_wait",
)  # fmt: skip
_known: dict[type, bool] = {}


def taker(stream: Any) -> Callable[[], Awaitable[bytes]]:
    """How to take all that has come of this body, waiting until something has; empty bytes at its end."""
    kind = type(stream)
    if (known := _known.get(kind)) is None:
        known = _known[kind] = kind.__name__ == "StreamReader" and all(hasattr(stream, part) for part in _PARTS)
    return partial(_take, stream) if known else stream.readany


async def _take(stream: Any) -> bytes:
    if stream._exception is not None:
        raise stream._exception
    while not stream._buffer and not stream._eof:
        await stream._wait("readany")
    buffer, splits = stream._buffer, stream._http_chunk_splits
    if len(buffer) < 2 or stream._buffer_offset:
        data: bytes = stream._read_nowait(-1)
        return data
    data = b"".join(buffer)
    buffer.clear()
    stream._size -= len(data)
    stream._cursor += len(data)
    if splits:  # where chunks ended; the last end is what the next one is told from
        last = splits[-1]
        splits.clear()
        splits.append(last)
    stream._protocol.resume_reading()  # which it may have stopped while so much lay here
    return data
