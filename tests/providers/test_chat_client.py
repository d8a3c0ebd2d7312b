"""Chat Completions over a loopback server: requests, replies, keys and connections."""

from __future__ import annotations

import asyncio
import json
import pickle

import pytest

from onrecord.conversation.content import File
from onrecord.errors import ModelError
from onrecord.models.chunks import CallChunk, Finished, TextChunk
from onrecord.models.request import Request
from onrecord.models.retry import Reliable
from onrecord.providers.api_keys import Key, merged_headers
from onrecord.providers.openai_chat.client import openai
from onrecord.providers.openai_compatible import openai_compatible
from tests.models.requests import request, user
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Peer, answering, chunk, serving
from tests.providers.chat_server import (
    GOOD,
    HELLO,
    SAID,
    SECRET,
    ask,
    delta,
    each,
    failure,
    model_at,
    sse,
    status,
)

pytestmark = pytest.mark.integration

# ---- requests ---------------------------------------------------------------------------------------------------


async def test_a_request_goes_to_the_endpoint_with_the_bytes_of_its_wire() -> None:
    """The key as a bearer, the body as projected."""
    async with serving(answering(GOOD)) as server:
        model, asked = model_at(server), request(user("hi"))
        assert await ask(model, asked) == SAID
        (sent,) = server.requests
    assert sent.line == "POST /v1/chat/completions HTTP/1.1"
    assert sent.fields["authorization"] == f"Bearer {SECRET}"
    assert sent.fields["content-type"] == "application/json"
    assert sent.body == model.wire(asked).body


async def test_a_wire_that_the_caller_already_has_is_sent_as_it_is() -> None:
    """Nothing is projected twice."""
    async with serving(answering(GOOD)) as server:
        model, asked = model_at(server), request(user("hi"))
        wire = model.wire(asked)
        given = Request(**{name: getattr(asked, name) for name in asked.__struct_fields__} | {"wire": wire})
        assert await ask(model, given) == SAID
        assert server.requests[0].body is not None
        assert server.requests[0].body == wire.body


async def test_connections_are_used_again() -> None:
    """The end of the answer is read, not only the end of the reply."""
    async with serving(answering(GOOD)) as server:
        model = model_at(server)
        for _ in range(3):
            await ask(model)
        assert server.connections == 1


async def test_a_connection_whose_answer_ends_a_little_later_is_used_again() -> None:
    """The reply is over at its end mark; the rest of the answer is waited for, though not for long."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(SSE_HEAD + chunk(HELLO))
            await asyncio.sleep(0.02)
            await peer.send(LAST_CHUNK)

    async with serving(script) as server:
        model = model_at(server)
        assert [await ask(model), await ask(model)] == [SAID, SAID]
        assert server.connections == 1


async def test_what_a_request_shows_is_stable_once_it_was_sent() -> None:
    """Looking at the bytes is not sending them."""
    async with serving(answering(GOOD)) as server:
        model, asked = model_at(server), request(user("hi"))
        assert model.wire(asked).stable_until is None
        await ask(model, asked)
        assert model.wire(asked).stable_until == 1


async def test_b5_a_request_that_cannot_be_carried_is_never_sent() -> None:
    """The client refuses too when it is asked directly."""
    async with serving(answering(GOOD)) as server:
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server), request(user("read", File(url="https://e.test/a"))))
        assert caught.value.kind == "invalid"
        assert "a file by URL" in str(caught.value)
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server), request(*[user("read", File(url=f"https://e.test/{n}")) for n in range(9)]))
        assert str(caught.value).count("a file by URL") == 1  # told once, however often it is there
        assert server.requests == []


# ---- headers and keys -------------------------------------------------------------------------------------------


def test_e24_headers_are_merged_by_name_in_any_case() -> None:
    """The request's win; authorization is there once."""
    merged = merged_headers(
        {"authorization": "Bearer a", "X-Custom": "old"}, {"Authorization": "Bearer b", "x-custom": "new"}
    )
    assert {name.lower(): value for name, value in merged.items()} == {"authorization": "Bearer b", "x-custom": "new"}
    assert len(merged) == 2
    assert "Authorization" in merged


async def test_e24_one_authorization_reaches_the_wire_beside_a_configured_key() -> None:
    """Three sources, the request's wins over the configured header, which wins over the key."""

    async def own() -> dict[str, str]:
        return {"Authorization": "Bearer b", "x-custom": "new"}

    async with serving(answering(GOOD)) as server:
        model = model_at(server, api_key="k", headers={"authorization": "Bearer a", "X-Custom": "old"})
        await ask(model, request(user("hi"), headers=own))
        await ask(model)
        first, second = (sent.head.decode().lower() for sent in server.requests)
    assert first.count("authorization:") == 1
    assert "authorization: bearer b" in first
    assert first.count("x-custom:") == 1
    assert "x-custom: new" in first
    assert "authorization: bearer a" in second


async def test_no_key_sends_no_authorization() -> None:
    """Servers of one's own need none."""
    async with serving(answering(GOOD)) as server:
        await ask(model_at(server, api_key=None))
        assert "authorization" not in server.requests[0].fields


async def test_headers_of_a_request_are_asked_for_at_each_attempt() -> None:
    """A token may have expired while waiting."""
    asked = 0

    async def token() -> dict[str, str]:
        nonlocal asked
        asked += 1
        return {"authorization": f"Bearer {asked}"}

    async def no_wait(seconds: float) -> None:
        pass

    async with serving(each(status(503), GOOD)) as server:
        model = Reliable(model_at(server), sleep=no_wait)
        assert (await ask(model, request(user("hi"), headers=token)))[1:] == SAID
        assert [sent.fields["authorization"] for sent in server.requests] == ["Bearer 1", "Bearer 2"]


async def test_a_key_is_read_at_each_call_and_its_absence_says_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the variable, before anything is sent."""
    async with serving(answering(GOOD)) as server:
        model = openai("gpt-5-mini", base_url=f"http://127.0.0.1:{server.port}/v1", retry=False)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert (caught.value.kind, caught.value.hint) == ("auth", "set the environment variable OPENAI_API_KEY")
        assert server.requests == []
        monkeypatch.setenv("OPENAI_API_KEY", "first")
        await ask(model)
        monkeypatch.setenv("OPENAI_API_KEY", "second")
        await ask(model)
        assert [sent.fields["authorization"] for sent in server.requests] == ["Bearer first", "Bearer second"]


async def test_a_refused_key_says_where_it_came_from() -> None:
    """And never what it is."""
    error = await failure(answering(status(401, body=f'{{"error":{{"message":"bad key {SECRET}"}}}}')))
    assert (error.kind, error.status, error.hint) == (
        "auth",
        401,
        "the key given as api_key= was refused: check it, and that it belongs to this endpoint",
    )


def test_a_key_from_a_file_or_a_shell_has_no_blanks_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line break behind it would be no header, and a key of blanks is none."""
    monkeypatch.setenv("A_KEY", " sk-1\n")
    assert (Key(variable="A_KEY").read(), Key("sk-2\n").read()) == ("sk-1", "sk-2")
    assert "in the environment variable A_KEY was refused" in Key(variable="A_KEY").hint
    monkeypatch.setenv("A_KEY", " ")
    assert (Key(variable="A_KEY").read(), Key(variable="A_KEY").hint) == (None, "set the environment variable A_KEY")


async def test_a_web_page_is_no_reply() -> None:
    """What another address than the API's answers with: told as such, not as a reply that ended early."""
    page = status(200, "Content-Type: text/html; charset=utf-8", body="<html>Sign in</html>")
    error = await failure(answering(page))
    assert (str(error), error.kind) == ("openai-compatible answered with a web page", "invalid")
    assert "check the base URL" in error.hint


async def test_a_refused_request_names_the_parameter_and_how_to_see_more() -> None:
    """A name of the request, never the provider's words: those may quote the conversation."""
    body = '{"error":{"message":"you said 4711","type":"invalid_request_error","param":"stream_options"}}'
    error = await failure(answering(status(400, body=body)))
    assert str(error) == "openai-compatible answered with status 400 (invalid_request_error: stream_options)"
    assert "testing.wire" in error.hint


async def test_a_stated_wait_is_in_the_hint() -> None:
    """Ninety seconds are too long to wait for, so the caller is told."""
    error = await failure(answering(status(429, "Retry-After: 90")))
    assert error.hint == "wait 90 s, and send fewer requests at once"


def test_a_key_is_never_shown() -> None:
    """Not by repr, not in a pickle."""
    key = Key(SECRET, variable="ACME_API_KEY")
    model = openai_compatible("http://localhost:1/v1", "m", api_key=SECRET, headers={"Authorization": SECRET})
    assert SECRET not in f"{key!r} {model!r} {model.card!r} {vars(model)!r}"
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert (Key().hint, Key(variable="A_KEY").hint) == ("pass api_key=", "set the environment variable A_KEY")


async def test_openai_takes_an_organization() -> None:
    """As a header."""
    async with serving(answering(GOOD)) as server:
        model = openai("gpt-4o", api_key="k", base_url=f"http://127.0.0.1:{server.port}/v1", organization="org-1")
        await ask(model)
        assert server.requests[0].fields["openai-organization"] == "org-1"


# ---- replies ----------------------------------------------------------------------------------------------------


async def test_a_server_that_does_not_stream_is_read_as_a_whole() -> None:
    """By its content type."""
    message = {"role": "assistant", "content": "Hello"}
    body = json.dumps({"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}]})
    async with serving(answering(status(200, "Content-Type: application/json; charset=utf-8", body=body))) as server:
        assert await ask(model_at(server)) == [TextChunk("Hello"), Finished(finish="stop", model="m-1")]


async def test_an_event_of_twenty_megabytes_is_read() -> None:
    """In many pieces."""
    text = "x" * 20_000_000
    async with serving(answering(SSE_HEAD + chunk(sse(delta(text), delta(finish="stop"))) + LAST_CHUNK)) as server:
        first, *_ = await ask(model_at(server))
    assert first == TextChunk(text)


async def test_a_server_that_keeps_the_connection_open_after_the_end_is_not_waited_for() -> None:
    """The reply is whole at its end mark."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(HELLO))
        await peer.gone()

    async with serving(script) as server, asyncio.timeout(5):
        assert await ask(model_at(server)) == SAID


async def test_cancelling_a_stream_cuts_the_call() -> None:
    """While nothing comes."""
    asked, gone = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.gone()
        gone.set()

    async with serving(script) as server, asyncio.TaskGroup() as group:
        task = group.create_task(ask(model_at(server)))
        await asked.wait()
        task.cancel()
        await asyncio.wait_for(gone.wait(), 5)
    assert task.cancelled()


async def test_calls_come_out_whole() -> None:
    """At the end of the reply."""
    parts = (
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}],
        [{"index": 0, "function": {"arguments": "}"}}],
    )
    events = sse(*(delta(tool_calls=part) for part in parts), delta(finish="tool_calls"))
    async with serving(answering(SSE_HEAD + chunk(events) + LAST_CHUNK)) as server:
        out = await ask(model_at(server), request(user("hi")))
    assert out == [CallChunk(wire_id="a", name="f", raw_args="{}"), Finished(finish="calls", model="m-1")]
