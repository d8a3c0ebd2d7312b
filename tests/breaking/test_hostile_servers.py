"""Servers that are broken or mean: a ModelError that quotes nothing, or a reply that can be stored and read."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import traceback
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ModelError
from onrecord.providers.openai_chat.calls import CallParts
from onrecord.providers.openai_chat.events import Call, Function
from onrecord.turn.result import TurnResult
from tests.breaking.hostile import EVENT, HEADS, ODD, once, places, put, stream
from tests.breaking.keeping import kept
from tests.net.loopback import Loopback, Peer, serving
from tests.providers.chat_server import HELLO, delta, model_at, status
from tests.turn.acting import tool

pytestmark = pytest.mark.integration

WORDS = "words-of-the-server"


async def asked(server: Loopback, **fields: Any) -> TurnResult[Any]:
    """A turn against the server; what it leaves can be stored and loaded."""
    agent = Agent(model_at(server, **({"silence_s": 2.0} | fields)), tools=[tool()], rounds=1)
    async with asyncio.timeout(10):
        result = await agent.turn("hi")
    await kept(result)
    return result


@pytest.mark.parametrize("answer", HEADS.values(), ids=HEADS)
async def test_an_answer_without_a_reply_is_a_model_error(answer: bytes) -> None:
    """At once: nothing hangs, and no other exception comes out."""
    async with serving(once(answer)) as server:
        with pytest.raises(ModelError):
            await asked(server)


@pytest.mark.parametrize("code", [101, 199, 204, 205, 301, 304, 400, 401, 402, 404, 408, 418, 429, 500, 529, 600, 999])
@pytest.mark.parametrize("body", [WORDS, json.dumps({"error": {"message": WORDS}}), '{"error":' + "[" * 100_000])
async def test_a_status_with_any_body_is_a_model_error_without_its_words(code: int, body: str) -> None:
    """Servers echo prompts and keys in their errors, and send anything as a time to wait."""
    fields = (f"Location: http://127.0.0.1:1/{WORDS}", f"Retry-After: {WORDS}", f"X-Ratelimit-Reset: {WORDS}")
    async with serving(once(status(code, *fields, body=body))) as server:
        with pytest.raises(ModelError) as failed:
            await asked(server)
        assert len(server.requests) == 1
    shown = "".join(traceback.format_exception(failed.value)) + repr(vars(failed.value))
    assert WORDS not in shown


@pytest.mark.parametrize(
    "field",
    ["Retry-After: nan", "Retry-After: inf", "Retry-After: -1e308", "Retry-After: Wed, 99 Oct 99999 07:28:00 GMT",
     "x-ratelimit-reset: 1e308", "x-ratelimit-reset: 99999999999d", "retry-after-ms: 9" + "9" * 5000],
    ids=lambda field: field[:30],
)  # fmt: skip
async def test_times_to_wait_that_are_none_are_not_waited_for(field: str) -> None:
    """With the waits of `Reliable` on, too: what cannot be read is not slept."""
    async with serving(once(status(429, field))) as server:
        with pytest.raises(ModelError) as failed:
            await asked(server)
    assert failed.value.kind == "rate"


async def test_an_old_or_packed_answer_is_read() -> None:
    """HTTP 1.0, and gzip that nobody asked for."""
    head = b" 200 OK\r\nContent-Type: text/event-stream\r\n"
    packed = b"HTTP/1.1" + head + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(HELLO)
    for answer in (b"HTTP/1.0" + head + b"\r\n" + HELLO, packed):
        async with serving(once(answer)) as server:
            assert (await asked(server)).text == "Hello"


async def test_any_value_in_any_field_of_an_event_is_survived() -> None:
    """Each place of an event that is read, with values of every kind: an error or a turn that can be kept."""
    holds: list[bytes] = [b""]

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(holds[0])

    ended: set[str] = set()
    told: list[str] = []
    async with serving(script) as server:
        for at in places(EVENT):
            for value in ODD:
                holds[0] = stream(put(EVENT, at, value), delta(finish="stop"))
                try:
                    ended.add((await asked(server)).status)
                except ModelError as error:
                    ended.add("failed")
                    told.append(f"{error} {error.__dict__}")
    assert ended >= {"answered", "failed"}
    assert not any("words" in each for each in told)


async def test_a_reply_with_very_many_calls_costs_no_more_per_call() -> None:
    """Twenty thousand calls, each in a place of its own and with an id of its own."""
    parts = CallParts()
    began = time.process_time()
    for at in range(20_000):
        parts.add(Call(index=at, id=f"id{at}", function=Function(name="lookup", arguments="{}")))
    assert len(parts.finished()) == 20_000
    assert time.process_time() - began < 2  # looking through all calls for each takes half a minute


def test_calls_with_the_same_id_are_told_apart() -> None:
    """Also where a server's own id looks like one that was made for another call."""
    parts = CallParts()
    for at, named in enumerate(["a", "a#2", "a", "a", ""]):
        parts.add(Call(index=at, id=named or None, function=Function(name="lookup")))
    parts.add(Call(index=9, id="call_4", function=Function(name="lookup")))
    ids = [call.wire_id for call in parts.finished()]
    assert len(set(ids)) == len(ids) == 6
