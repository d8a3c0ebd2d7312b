"""Responses over a loopback server: requests, keys, connections, and answers that are no stream."""

from __future__ import annotations

import asyncio
import json

import pytest

from onrecord.conversation.content import Audio, File
from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.chunks import Finished, NativeItem, TextChunk
from onrecord.models.names import model_named
from onrecord.models.retry import Reliable
from onrecord.providers.openai_responses.client import openai_responses
from tests.models.requests import request, user
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Peer, Script, answering, chunk, serving
from tests.providers.chat_server import SECRET, ask, each, status
from tests.providers.responses_events import USAGE, added, called, ended, message, raw, spoken
from tests.providers.responses_server import END, FIRST, HELLO, SAID, model_at, sse, streamed

pytestmark = pytest.mark.integration


async def failure(script: Script) -> ModelError:
    """The error of a request that has to fail; it holds no key and nothing that was said."""
    async with serving(script) as server:
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server), request(user("the-secret-words")))
    told = f"{caught.value} {caught.value.hint} {caught.value!r} {caught.value.__dict__}"
    assert SECRET not in told
    assert "the-secret-words" not in told
    return caught.value


# ---- requests and keys --------------------------------------------------------------------------------------------


async def test_a_request_goes_to_the_endpoint_with_the_bytes_of_its_wire() -> None:
    """The key as a bearer, the body as projected; the reply ends in its items and its end."""
    async with serving(answering(HELLO)) as server:
        model, asked = model_at(server), request(user("hi"))
        chunks = await ask(model, asked)
        (sent,) = server.requests
    assert (chunks[:2], chunks[-1]) == (SAID, END)
    assert isinstance(chunks[2], NativeItem)
    assert sent.line == "POST /v1/responses HTTP/1.1"
    assert sent.fields["authorization"] == f"Bearer {SECRET}"
    assert sent.body == model.wire(asked).body
    assert json.loads(sent.body)["include"] == ["reasoning.encrypted_content"]


async def test_c4_what_cannot_be_carried_is_never_sent() -> None:
    """Client half of the case: told by name, each once."""
    async with serving(answering(HELLO)) as server:
        parts = (Audio(data=b"a"), Audio(data=b"b"), File(file_id="f1"))
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server), request(user("read", *parts)))
        assert server.requests == []
    assert caught.value.kind == "invalid"
    assert str(caught.value).count("audio: Responses takes none") == 1
    assert "a file by file id" in str(caught.value)


async def test_a_key_is_read_at_each_call_and_its_absence_says_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the variable, before anything is sent."""
    async with serving(answering(HELLO)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        model = openai_responses("gpt-5-mini", retry=False)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert (caught.value.kind, caught.value.hint) == ("auth", "set the environment variable OPENAI_API_KEY")
        assert server.requests == []
        monkeypatch.setenv("OPENAI_API_KEY", "first")
        await ask(model)
        assert [sent.fields["authorization"] for sent in server.requests] == ["Bearer first"]


async def test_a_server_of_somebody_else_is_not_sent_the_key_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own, given by hand, or none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    async with serving(answering(HELLO)) as server:
        await ask(model_at(server, "deepseek-v4-flash", provider="deepseek", api_key=None))
        await ask(model_at(server, "deepseek-v4-flash", provider="deepseek"))
        first, second = server.requests
    assert "authorization" not in first.fields
    assert second.fields["authorization"] == f"Bearer {SECRET}"
    assert "include" not in json.loads(second.body)


def test_a_server_of_somebody_else_needs_an_address() -> None:
    """OpenAI's is not guessed for it."""
    with pytest.raises(ConfigurationError) as caught:
        openai_responses("m", provider="acme")
    assert caught.value.hint == "give base_url="


def test_a_model_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """With waits; a name without a model is refused with an example."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    model = model_named("openai-responses:gpt-5-mini")
    assert isinstance(model, Reliable)
    assert (model.card.name, model.card.base_url) == ("openai-responses:gpt-5-mini", "https://api.openai.com/v1")
    assert not isinstance(openai_responses("gpt-5-mini", retry=False), Reliable)
    with pytest.raises(ConfigurationError) as caught:
        model_named("openai-responses")
    assert "openai-responses:gpt-5-mini" in caught.value.hint


async def test_e2_a_busy_server_is_asked_again_before_anything_came() -> None:
    """Over this wire as over any; the waits themselves are tested with `Reliable`."""

    async def no_wait(seconds: float) -> None:
        pass

    async with serving(each(status(503), HELLO)) as server:
        chunks = await ask(Reliable(model_at(server), sleep=no_wait))
    assert (chunks[1:3], chunks[-1]) == (SAID, END)


# ---- replies and connections ----------------------------------------------------------------------------------------


async def test_a_server_that_does_not_stream_is_read_as_a_whole() -> None:
    """By its content type."""
    body = json.dumps({"status": "completed", "model": "m-1", "output": [message("Hello")], "usage": USAGE})
    async with serving(answering(status(200, "Content-Type: application/json; charset=utf-8", body=body))) as server:
        chunks = await ask(model_at(server))
    assert chunks[0] == TextChunk("Hello")
    assert isinstance(chunks[-1], Finished)


async def test_connections_are_used_again() -> None:
    """The end of the answer is read, not only the end of the reply."""
    async with serving(answering(HELLO)) as server:
        model = model_at(server)
        for _ in range(3):
            await ask(model)
        assert server.connections == 1


async def test_a_server_that_keeps_the_connection_open_after_the_end_is_not_waited_for() -> None:
    """The reply is whole at its last event."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(*spoken("Hel", "lo"), ended())))
        await peer.gone()

    async with serving(script) as server, asyncio.timeout(5):
        assert (await ask(model_at(server)))[-1] == END


async def test_an_event_of_two_megabytes_is_read() -> None:
    """An item says all of its text once more."""
    text = "x" * 2_000_000
    async with serving(answering(streamed(*spoken(text), ended(output=[message(text)])))) as server:
        assert (await ask(model_at(server)))[0] == TextChunk(text)


async def test_a_stream_that_breaks_off_is_no_reply() -> None:
    """By the connection or by its end; what came first decides whether it may be asked for again."""
    begun = await failure(answering(SSE_HEAD + chunk(FIRST) + LAST_CHUNK))
    assert (begun.kind, begun.started) == ("network", True)
    unseen = await failure(answering(SSE_HEAD + chunk(sse(added(called(args="")))) + LAST_CHUNK))
    assert (unseen.kind, unseen.started) == ("network", True)

    async def reset(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(added(message()))))
        await asyncio.sleep(0.01)
        peer.reset()

    assert (await failure(reset)).kind == "network"


async def test_an_error_inside_a_stream_of_status_200_is_told() -> None:
    """By its code, under the name that the stream gives it."""
    told = {"type": "error", "code": "rate_limit_exceeded", "message": "the-secret-words", "param": None}
    data = b"event: error\ndata: " + raw(told)[0] + b"\n\n"
    error = await failure(answering(SSE_HEAD + chunk(data) + LAST_CHUNK))
    assert (error.kind, error.started) == ("rate", False)


async def test_a_web_page_is_no_reply() -> None:
    """What another address than the API's answers with."""
    page = status(200, "Content-Type: text/html; charset=utf-8", body="<html>Sign in</html>")
    assert (await failure(answering(page))).kind == "invalid"


async def test_a_refused_key_says_where_it_came_from() -> None:
    """And never what it is."""
    error = await failure(answering(status(401, body=f'{{"error":{{"message":"bad key {SECRET}"}}}}')))
    assert (error.kind, error.hint.startswith("the key given as api_key= was refused")) == ("auth", True)
