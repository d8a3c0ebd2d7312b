"""Vendors that fall silent, as a model's caller meets them: which waits are bounded, and who answers instead."""

from __future__ import annotations

import asyncio

import pytest

from onrecord.errors import ModelError
from onrecord.models.chunks import Attempted, Chunk, Finished, TextChunk
from onrecord.models.fallback import Fallback
from onrecord.providers import http_model
from onrecord.providers.http_model import PROGRESS_S, SILENCE_S, HttpModel
from tests.models.requests import request, user
from tests.net.loopback import SSE_HEAD, Peer, chunk, serving
from tests.providers.chat_server import FIRST, GOOD, delta, each, failure, model_at, sse, status
from tests.providers.wires import WIRES, Wire

pytestmark = pytest.mark.integration


async def silent(peer: Peer) -> None:
    """Takes the request and says nothing."""
    await peer.request()
    await peer.gone()


async def begins(peer: Peer) -> None:
    """Says one word and then nothing."""
    await peer.request()
    await peer.send(SSE_HEAD + chunk(FIRST))
    await peer.gone()


async def keeps_alive(peer: Peer) -> None:
    """Says nothing but that it is still there."""
    await peer.request()
    await peer.send(SSE_HEAD)
    for _ in range(200):
        await peer.send(chunk(b": still here\n\n"))
        await asyncio.sleep(0.01)


async def all_of(model: Fallback) -> list[Chunk]:
    """A whole reply."""
    return [chunk async for chunk in model.stream(request(user("hi")))]


async def test_silence_lasts_a_minute_and_keep_alives_five_unless_told_otherwise() -> None:
    """The larger of both bounds keep-alives."""
    assert (SILENCE_S, PROGRESS_S) == (60.0, 300.0)
    async with serving(silent) as server:
        usual, patient = model_at(server), model_at(server, silence_s=600.0)
        assert isinstance(usual, HttpModel)
        assert isinstance(patient, HttpModel)
        assert (usual._silence_s, usual._progress_s) == (60.0, 300.0)
        assert (patient._silence_s, patient._progress_s) == (600.0, 600.0)


async def test_a_vendor_that_only_keeps_the_connection_alive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is never silent."""
    monkeypatch.setattr(http_model, "PROGRESS_S", 0.15)
    async with serving(keeps_alive) as server:
        model = model_at(server, silence_s=0.1)
        chunks = model.stream(request(user("hi")))
        with pytest.raises(ModelError, match="nothing but keep-alives") as caught:
            await anext(chunks)
    assert (caught.value.kind, caught.value.started) == ("timeout", False)


STILL_HERE = {
    "chat": b": OPENROUTER PROCESSING\n\n",
    "responses": b'event: keepalive\ndata: {"type":"keepalive","sequence_number":3}\n\n',
    "messages": b'event: ping\ndata: {"type": "ping"}\n\n',
    "google": b": still here\n\n",
}
"""How the vendors of each wire say that they are still there: some in events of their own."""


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_on_every_wire_keep_alives_hold_off_silence_and_are_no_progress(wire: Wire) -> None:
    """Whatever form they have, before the first word and behind it; what the model says is progress."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        for said in (b"", wire.hello[0]):
            await peer.send(chunk(said + STILL_HERE[wire.name]))
            for _ in range(5):
                await asyncio.sleep(0.02)
                await peer.send(chunk(STILL_HERE[wire.name]))
        for _ in range(200):
            await peer.send(chunk(STILL_HERE[wire.name]))
            await asyncio.sleep(0.01)

    async with serving(script) as server:
        model = wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0])
        assert isinstance(model, HttpModel)
        model._silence_s, model._progress_s = 0.1, 0.18
        out: list[Chunk] = []
        with pytest.raises(ModelError, match="nothing but keep-alives") as caught:  # noqa: PT012 - what came counts
            async for one in model.stream(request(user("hi"))):
                out.append(one)  # noqa: PERF401 - what came before the error counts
    assert caught.value.kind == "timeout"
    assert caught.value.started is bool(out)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_on_every_wire_keep_alives_between_words_change_nothing(wire: Wire) -> None:
    """The reply is what was said."""
    whole = b"".join(STILL_HERE[wire.name] + event for event in wire.hello)
    async with serving(each(SSE_HEAD + chunk(whole) + b"0\r\n\r\n")) as server:
        model = wire.make(f"http://127.0.0.1:{server.port}/v1", wire.vendors[0])
        out = [one async for one in model.stream(request(user("hi")))]
    assert "".join(one.text for one in out if isinstance(one, TextChunk)) == "Hello"


async def test_another_vendor_answers_for_one_that_is_silent() -> None:
    """And the next call goes straight there."""
    async with serving(silent) as first, serving(each(GOOD)) as second:
        model = Fallback(model_at(first, silence_s=0.1), model_at(second))
        for _ in range(2):
            out = await all_of(model)
            assert [c.text for c in out if isinstance(c, TextChunk)] == ["Hel", "lo"]
            assert len(first.requests) == 1
        assert list(model.cooling) == [model.labels[0]]
        told, *_, ended = await all_of(model)
    assert not isinstance(told, Attempted)
    assert isinstance(ended, Finished)
    assert ended.provider == "openai-compatible"


async def test_nobody_answers_for_one_that_falls_silent_in_mid_sentence() -> None:
    """Its words were handed out."""
    async with serving(begins) as first, serving(each(GOOD)) as second:
        out: list[Chunk] = []
        chunks = Fallback(model_at(first, silence_s=0.1), model_at(second)).stream(request(user("hi")))
        with pytest.raises(ModelError) as caught:  # noqa: PT012 - what came before it counts
            while True:
                out.append(await anext(chunks))
        assert (out, caught.value.kind, caught.value.started) == ([TextChunk("Hel")], "timeout", True)
        assert second.requests == []


async def test_s7_a_reply_cut_at_the_output_cap_without_a_word_is_invalid_and_not_asked_again() -> None:
    """All went into reasoning: another try would pay for the same."""
    cut = SSE_HEAD + chunk(sse(delta("", finish="length"))) + b"0\r\n\r\n"
    error = await failure(each(cut))
    assert error.kind == "invalid"
    async with serving(each(cut)) as server:
        model = Fallback(model_at(server, retry=True), model_at(server))
        with pytest.raises(ModelError, match="output cap"):
            _ = [c async for c in model.stream(request(user("hi")))]
        assert len(server.requests) == 1


async def test_waits_are_inside_and_other_vendors_outside() -> None:
    """A vendor that asks for a minute is left alone for that minute, at once."""
    busy = status(429, "Retry-After: 60")
    async with serving(each(busy)) as first, serving(each(GOOD)) as second:
        model = Fallback(model_at(first, retry=True), model_at(second))
        out = [c async for c in model.stream(request(user("hi")))]
        assert [c.error for c in out if isinstance(c, Attempted)] == ["rate"]
        assert (len(first.requests), len(second.requests)) == (1, 1)
        assert 55 < model.cooling[model.labels[0]] <= 60
