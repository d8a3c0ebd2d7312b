"""Reliable: what is asked again, after which wait, and what never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from onrecord.errors import ErrorKind, ModelError
from onrecord.models.chunks import Attempted, CallChunk, Chunk, Finished, TextChunk
from onrecord.models.classify_errors import answer_error
from onrecord.models.request import Request, Wire
from onrecord.models.retry import Reliable
from tests.models.requests import CARD, request, user

pytestmark = pytest.mark.unit

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ANSWER: list[Chunk | ModelError] = [TextChunk("hi"), Finished()]


def failed(status: int | None, kind: ErrorKind = "overload", *, started: bool = False, **headers: str) -> ModelError:
    """An error as a wire raises it."""
    if status is None:
        return ModelError("acme broke", kind=kind, started=started)
    error = answer_error("acme", status, {k.replace("_", "-"): v for k, v in headers.items()}, b"", now=NOW)
    error.started = started
    return error


class Scripted:
    """A model that replays one script per request."""

    card = CARD

    def __init__(self, *scripts: list[Chunk | ModelError]) -> None:
        self.scripts, self.asked, self.closed = list(scripts), 0, 0

    def wire(self, asked: Request, /) -> Wire:
        """Bytes of no meaning."""
        return Wire(body=b"wire")

    def extend(self, asked: Request, /, limit: int = 500) -> int:
        """Says the limit back."""
        return limit

    async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
        """The next script."""
        script = self.scripts[min(self.asked, len(self.scripts) - 1)]
        self.asked += 1
        try:
            for item in script:
                if isinstance(item, ModelError):
                    raise item
                yield item
        finally:
            self.closed += 1


class Waits(list[float]):
    """Waits without waiting."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def ask(*scripts: list[Chunk | ModelError]) -> tuple[list[Chunk], ModelError | None, Scripted, Waits]:
    """What comes out, the error that ends it, the model asked, and the waits."""
    model, waits, out = Scripted(*scripts), Waits(), list[Chunk]()
    try:
        async for chunk in Reliable(model, sleep=waits).stream(request(user("q"))):
            out.append(chunk)
    except ModelError as error:
        return out, error, model, waits
    return out, None, model, waits


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529, 599])
async def test_e2_a_busy_provider_is_asked_four_times_then_the_error_surfaces(status: int) -> None:
    """Three waits of 3, 6 and 12 seconds; each failed attempt but the last is told."""
    out, error, model, waits = await ask([failed(status)])
    assert error is not None
    assert error.status == status
    assert (model.asked, model.closed, list(waits)) == (4, 4, [3.0, 6.0, 12.0])
    kind = {408: "timeout", 429: "rate"}.get(status, "overload")
    assert out == [
        Attempted(attempt=n, error=kind, status=status, wait_s=wait, model="acme:m")
        for n, wait in ((1, 3.0), (2, 6.0), (3, 12.0))
    ]


async def test_an_answer_after_a_wait_is_the_answer() -> None:
    """And ends the attempts."""
    out, error, model, waits = await ask([failed(503)], ANSWER)
    assert error is None
    assert out[1:] == ANSWER
    assert (model.asked, list(waits)) == (2, [3.0])


@pytest.mark.parametrize(
    ("stated", "wait"),
    [
        ("30", 30.0),
        ("0", 0.0),
        ("-5", 0.0),
        ("1.5", 1.5),
        ("soon", 3.0),
        ("", 3.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:59:00 GMT", 0.0),
    ],
)
async def test_e4_retry_after_takes_the_place_of_the_wait(stated: str, wait: float) -> None:
    """Seconds or an HTTP date, up to and including thirty seconds; what cannot be read changes nothing."""
    _, error, model, waits = await ask([failed(429, retry_after=stated)], ANSWER)
    assert error is None
    assert (model.asked, list(waits)) == (2, [wait])


@pytest.mark.parametrize("stated", ["31", "30.5", "86400", "Sun, 01 Mar 2026 12:00:31 GMT"])
async def test_e4_retry_after_of_more_than_thirty_seconds_fails_at_once(stated: str) -> None:
    """Nobody is left waiting; the error says how long it would be."""
    out, error, model, waits = await ask([failed(429, retry_after=stated)], ANSWER)
    assert error is not None
    assert error.retry_after is not None
    assert error.retry_after > 30
    assert (model.asked, list(waits), out) == (1, [], [])


@pytest.mark.parametrize(
    "error",
    [
        failed(400),
        failed(401),
        failed(403),
        failed(404),
        failed(409),
        failed(422),
        failed(600),
        failed(None, "network"),
        failed(None, "timeout"),
        failed(None, "unknown"),
    ],
)
async def test_e5_other_failures_are_never_asked_again(error: ModelError) -> None:
    """Nobody knows what a broken connection has already cost."""
    out, raised, model, waits = await ask([error], ANSWER)
    assert raised is error
    assert (model.asked, list(waits), out) == (1, [], [])


@pytest.mark.parametrize("first", [TextChunk("hel"), CallChunk(wire_id="c", name="f", raw_args="{}")])
async def test_e6_nothing_is_asked_again_after_something_reached_the_caller(first: Chunk) -> None:
    """A text or a call that was handed out cannot be taken back."""
    out, error, model, waits = await ask([first, failed(503)], ANSWER)
    assert error is not None
    assert (out, model.asked, list(waits)) == ([first], 1, [])


async def test_e6_nothing_is_asked_again_once_a_call_began_unseen() -> None:
    """The error says that the reply had begun, though no chunk of it had come out."""
    out, error, model, _ = await ask([failed(503, started=True)], ANSWER)
    assert error is not None
    assert (out, model.asked) == ([], 1)


async def test_a_provider_that_says_not_to_retry_is_not_asked_again() -> None:
    """Its header wins over the status."""
    _, error, model, _ = await ask([failed(503, x_should_retry="false")], ANSWER)
    assert error is not None
    assert error.should_retry is False
    assert model.asked == 1


async def test_attempts_of_an_inner_wrapper_are_no_part_of_the_reply() -> None:
    """They pass through and do not end the attempts."""
    told = Attempted(attempt=1, error="rate")
    out, error, model, _ = await ask([told, failed(503)], ANSWER)
    assert error is None
    assert out[0] is told
    assert model.asked == 2


async def test_cancelling_cancels_the_wait() -> None:
    """No attempt follows."""
    model, waiting = Scripted([failed(503)]), asyncio.Event()

    async def wait_for_ever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def consume() -> None:
        async with aclosing(Reliable(model, sleep=wait_for_ever).stream(request(user("q")))) as chunks:
            async for _ in chunks:
                pass

    async with asyncio.TaskGroup() as group:
        task = group.create_task(consume())
        await waiting.wait()
        task.cancel()
    assert task.cancelled()
    assert model.asked == 1


async def test_closing_the_stream_closes_the_model_s() -> None:
    """So that the call is aborted at once and not when memory is collected."""
    model = Scripted([TextChunk("a"), TextChunk("b"), Finished()])
    async with aclosing(Reliable(model).stream(request(user("q")))) as chunks:
        assert await anext(chunks) == TextChunk("a")
    assert model.closed == 1


async def test_it_passes_for_the_model_it_wraps() -> None:
    """Card, bytes and slices are the model's."""
    model = Reliable(Scripted(ANSWER))
    assert (model.card, model.wire(request(user("q"))).body, model.extend(request(user("q")), 7)) == (CARD, b"wire", 7)
    assert repr(model).startswith("Reliable(")
