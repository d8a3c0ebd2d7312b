"""Reading an open answer: the whole body or its events, with an eye on silence."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from operator import not_
from typing import Protocol

from onrecord.errors import ErrorKind, ModelError
from onrecord.net.pieces import taker
from onrecord.net.silence import Silence, Watch
from onrecord.net.sse import EventParser, EventTooLarge

__all__ = ("Blame", "Reply")

MIB = 1 << 20
LARGEST = 64 * MIB
"""The largest answer that is read. Far above any real one: a stream without end ends here, and not with the memory."""


class Stream(Protocol):
    """What is used of the body's reader."""

    async def readany(self) -> bytes: ...
    def at_eof(self) -> bool: ...
    def set_exception(self, exc: BaseException, /) -> None: ...
    def _read_nowait(self, n: int, /) -> bytes: ...


class Response(Protocol):
    """What is used of the client's response."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def content(self) -> Stream: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...


class Blame(Protocol):
    """Makes the errors of one exchange: it knows provider, host and the client's exceptions."""

    def error(
        self, kind: ErrorKind, what: str, *, hint: str = "", status: int | None = None, started: bool = False
    ) -> ModelError:
        """An error in our own words."""

    def failure(self, problem: BaseException, *, status: int | None = None, started: bool = False) -> ModelError:
        """What an exception of the client means."""

    def reset(self) -> BaseException | None:
        """The reset that ended an answer of no stated length, if one did."""


class Reply:
    """An open answer: status and headers are here, the body is still coming.

    Read it once, with `read` or with `event_batches`. Header names are looked up in any case.
    """

    __slots__ = ("_blame", "_response", "_watch", "headers", "status")

    def __init__(self, response: Response, watch: Watch, blame: Blame) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._watch = watch
        self._blame = blame

    @property
    def ended(self) -> bool:
        """Whether the whole answer has come and been read, so that waiting for its end would be for nothing."""
        return self._response.content.at_eof()

    async def read(self, limit: int = LARGEST) -> bytes:
        """The whole body, or a `ModelError` when it is larger than ``limit``."""
        stream, watch = self._response.content, self._watch
        pieces: list[bytes] = []
        size = 0
        try:
            while not stream.at_eof():
                watch.since = watch.clock()
                piece = await stream.readany()
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    break
        except Exception as problem:  # noqa: BLE001 - every one of them is the network's
            raise self._blame.failure(problem, status=self.status) from None
        finally:
            watch.stop()
        if size > limit:
            raise self._too_large(limit, started=False)
        self._check_end(started=False)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def event_batches(
        self, *, silence_s: float, progress_s: float = 300.0, max_event: int = 32 * MIB, limit: int | None = None,
        idle: Callable[[bytes], object] = not_,
    ) -> AsyncGenerator[list[bytes], None]:  # fmt: skip
        """The ``data`` of the events, one list for each read from the network that completed any.

        Ends when the answer ends as HTTP says it should, and raises `ModelError` when it is cut, when nothing comes
        for ``silence_s``, when no event comes for ``progress_s`` though something does, when one event is over
        ``max_event`` or the answer over ``limit`` (default: `LARGEST`). Events for which ``idle`` holds (those without
        data) are delivered and are no progress: they only say that the sender is still there. Events that came whole
        before a cut are delivered first. The consumer's own time never counts. An event its sender marked as an error
        is an `onrecord.net.sse.ErrorEvent`.
        """
        watch, stream = self._watch, self._response.content
        parser = EventParser(max_event)
        feed, clock, read = parser.feed, watch.clock, taker(stream)
        watch.lower(silence_s)
        started, progress, most = False, 0.0, LARGEST if limit is None else limit
        left = most
        try:
            while True:
                now = watch.since = clock()
                progress = progress or now
                piece = await read()
                if not piece:
                    break
                if (left := left - len(piece)) < 0:
                    raise self._too_large(most, started=started)  # noqa: TRY301 - told like a cut
                events = feed(piece)
                if not all(map(idle, events)):
                    progress = 0.0
                elif clock() - progress > progress_s:
                    raise Silence(progress_s, nothing="nothing but keep-alives")  # noqa: TRY301 - told like any silence
                if events:
                    watch.since = 0.0
                    yield events
                    started = True
            watch.stop()
            self._check_end(started=started)
            if events := parser.close():
                yield events
        except ModelError:
            raise
        except EventTooLarge:
            raise self._blame.error(
                "invalid", f"sent one event of more than {max_event} bytes", status=self.status, started=started
            ) from None
        except Exception as problem:  # noqa: BLE001 - every one of them is the network's
            if events := _arrived(stream, parser):
                watch.since = 0.0
                yield events
                started = True
            raise self._blame.failure(problem, status=self.status, started=started) from None
        finally:
            self.cut()

    async def aclose(self) -> None:
        """Ends the exchange: cuts the connection unless the whole answer has been read."""
        self.cut()

    def cut(self) -> None:
        """`aclose` for callers that cannot wait; it never has to."""
        self._watch.stop()
        if not self._response.closed:
            self._response.close()

    def _too_large(self, limit: int, *, started: bool) -> ModelError:
        what, hint = f"sent an answer of more than {limit} bytes", "ask for less in one answer"
        return self._blame.error("invalid", what, status=self.status, started=started, hint=hint)

    def _check_end(self, *, started: bool) -> None:
        """Without a stated length the end of the connection is the end of the body, unless it was a reset."""
        if (problem := self._blame.reset()) is not None:
            raise self._blame.failure(problem, status=self.status, started=started)


def _arrived(stream: Stream, parser: EventParser) -> list[bytes]:
    """The events that had already arrived when the stream failed."""
    try:
        return parser.feed(stream._read_nowait(-1))  # noqa: SLF001 - the public reads raise the failure instead
    except Exception:  # noqa: BLE001 - the failure of the stream is what gets reported
        return []
