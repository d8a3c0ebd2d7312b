"""Chat Completions over a loopback server: failures, and what is asked again after which wait."""

from __future__ import annotations

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Attempted, Chunk, TextChunk
from onrecord.models.retry import Reliable
from tests.models.requests import request, user
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Peer, Script, answering, chunk, serving
from tests.providers.chat_server import FIRST, GOOD, HELLO, SAID, ask, delta, each, failure, model_at, sse, status

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (302, "invalid"),
        (400, "invalid"),
        (401, "auth"),
        (402, "quota"),
        (404, "model"),
        (429, "rate"),
        (500, "overload"),
    ],
)
async def test_a_failed_status_is_told_by_the_table(code: int, kind: str) -> None:
    """With the provider's own code and nothing else of the body."""
    body = '{"error":{"code":"told_code","message":"the-secret-words"}}'
    error = await failure(answering(status(code, "Retry-After: 7", "X-Should-Retry: false", body=body)))
    assert (error.kind, error.status, error.provider, error.started) == (kind, code, "openai-compatible", False)
    assert (error.retry_after, error.should_retry) == (7.0, False)
    assert str(error) == f"openai-compatible answered with status {code} (told_code)"


async def test_a_failed_status_whose_body_never_ends_is_still_told() -> None:
    """The status says enough."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\nhalf")
        peer.reset()

    error = await failure(script)
    assert (error.status, error.kind) == (500, "overload")


async def test_a_cut_before_anything_was_said_has_not_started() -> None:
    """Events that only open the reply are nothing anyone was shown, so the request may be made again."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(delta("", role="assistant"))[:-16]))

    error = await failure(script)
    assert (error.kind, error.started) == ("network", False)


@pytest.mark.parametrize("cut", range(0, len(HELLO) - 14, 37))
async def test_a_stream_cut_anywhere_is_a_network_failure(cut: int) -> None:
    """What had come whole was handed out, and the error says whether anything was."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(HELLO[:cut] or b"\n"))

    error = await failure(script)
    assert error.kind == "network"
    assert error.started is (HELLO[:cut].count(b"\n\n") >= 1)


async def test_silence_is_a_timeout() -> None:
    """Between the request and the answer, and between events."""

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number == 2:
            await peer.send(SSE_HEAD + chunk(FIRST))
        await peer.gone()

    async with serving(script) as server:
        for started in (False, True):
            with pytest.raises(ModelError) as caught:
                await ask(model_at(server, silence_s=0.1))
            assert (caught.value.kind, caught.value.started) == ("timeout", started)


# ---- with waits -------------------------------------------------------------------------------------------------


async def with_waits(script: Script) -> tuple[list[Chunk], ModelError | None, int, list[float]]:
    """Chunks, error, number of requests and waits of a model that is asked again."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    out: list[Chunk] = []
    async with serving(script) as server:
        stream = Reliable(model_at(server), sleep=sleep).stream(request(user("hi")))
        try:
            while True:
                out.append(await anext(stream))
        except StopAsyncIteration:
            return out, None, len(server.requests), waits
        except ModelError as error:
            return out, error, len(server.requests), waits


async def test_e2_four_times_429_makes_four_requests_and_surfaces() -> None:
    """Over HTTP."""
    out, error, requests, waits = await with_waits(answering(status(429)))
    assert error is not None
    assert (error.status, requests, waits, len(out)) == (429, 4, [3.0, 6.0, 12.0], 3)


@pytest.mark.parametrize(("stated", "requests", "waited"), [("31", 1, []), ("30", 2, [30.0]), ("soon", 2, [3.0])])
async def test_e4_retry_after_over_http(stated: str, requests: int, waited: list[float]) -> None:
    """Over thirty seconds fails at once, thirty waits, nonsense waits as usual."""
    out, error, asked, waits = await with_waits(each(status(503, f"Retry-After: {stated}"), GOOD))
    assert (asked, waits) == (requests, waited)
    assert (error is None) is (requests == 2)
    assert [item for item in out if not isinstance(item, Attempted)] == (SAID if requests == 2 else [])


@pytest.mark.parametrize("code", [400, 401, 404])
async def test_e5_other_statuses_are_asked_once(code: int) -> None:
    """Asking again would not help."""
    _, error, requests, waits = await with_waits(each(status(code), GOOD))
    assert error is not None
    assert (requests, waits) == (1, [])


async def test_e5_a_reset_connection_is_asked_once() -> None:
    """Nobody knows what the provider has done by then."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.reset()

    _, error, requests, waits = await with_waits(script)
    assert error is not None
    assert (error.kind, requests, waits) == ("network", 1, [])


async def test_e6_a_failure_after_a_text_is_not_asked_again() -> None:
    """The text is out."""
    events = sse(delta("Hel"), {"error": {"code": 503}})
    out, error, requests, _ = await with_waits(answering(SSE_HEAD + chunk(events) + LAST_CHUNK))
    assert error is not None
    assert (error.status, requests, out) == (503, 1, [TextChunk("Hel")])


async def test_e6_a_failure_after_a_call_began_unseen_is_not_asked_again() -> None:
    """Not a chunk has come out, and yet the reply had begun."""
    began = delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}])
    out, error, requests, _ = await with_waits(
        answering(SSE_HEAD + chunk(sse(began, {"error": {"code": 503}})) + LAST_CHUNK)
    )
    assert error is not None
    assert (error.started, requests, out) == (True, 1, [])


async def test_s7_a_reply_cut_at_its_cap_before_a_word_is_invalid_and_asked_once() -> None:
    """The same request would end the same way."""
    cut = SSE_HEAD + chunk(sse(delta(reasoning_content="let me see"), delta(finish="length"))) + LAST_CHUNK
    async with serving(answering(cut)) as server:
        with pytest.raises(ModelError, match="used up the output cap") as caught:
            await ask(Reliable(model_at(server)))
        assert len(server.requests) == 1
    assert caught.value.kind == "invalid"


async def test_a_busy_error_inside_a_stream_that_had_not_begun_is_asked_again() -> None:
    """Its status is inside."""
    busy = SSE_HEAD + chunk(sse(delta(""), {"error": {"code": 503}})) + LAST_CHUNK
    out, error, requests, waits = await with_waits(each(busy, GOOD))
    assert error is None
    assert (out[1:], requests, waits) == (SAID, 2, [3.0])
