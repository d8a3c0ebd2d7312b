"""Messages over a loopback server: requests, keys, failures, and replies that pause."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from msgspec.structs import replace

from onrecord.conversation.content import Audio, Citation, File
from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.chunks import Attempted, Chunk, CitationChunk, Finished, NativeItem, SearchChunk, TextChunk
from onrecord.models.names import model_named
from onrecord.models.request import HeadMarks, Settings, Span, View
from onrecord.models.retry import Reliable
from onrecord.providers.anthropic import AnthropicModel, anthropic
from onrecord.providers.anthropic.client import BINDING, FILES
from onrecord.testing.conformance.model import ModelCallsTools, ModelConformance, ModelFails
from tests.models.requests import offer, request, system, user
from tests.net.loopback import Loopback, Peer, answering, serving
from tests.providers.anthropic_events import begin, called, delta, ended, event, reply, start, stop, text, thought
from tests.providers.anthropic_server import (
    COUNTED,
    GOOD,
    HELLO,
    SAID,
    SECRET,
    answer,
    ask,
    failure,
    model_at,
    sse,
)
from tests.providers.chat_server import each, status

pytestmark = pytest.mark.integration


# ---- what every model promises --------------------------------------------------------------------------------------


class TestMessagesModel(ModelConformance, ModelCallsTools, ModelFails):
    """The conformance suite of models, over a server on this machine."""

    @pytest_asyncio.fixture
    async def server(self) -> AsyncIterator[Loopback]:
        """A server that answers as its ``answers`` say."""
        self.answers = {"next": GOOD}

        async def script(peer: Peer) -> None:
            while True:
                asked = await peer.request()
                good = b'"tool_result"' in asked.body
                await peer.send(GOOD if good else self.answers["next"])

        async with serving(script) as server:
            yield server

    @pytest.fixture
    def make_model(self, server: Loopback) -> Any:
        """A model that answers in words."""
        return lambda: model_at(server)

    @pytest.fixture
    def make_caller(self, server: Loopback) -> Any:
        """A model whose next reply calls this tool."""

        def make(name: str, args: Any) -> Any:
            blocks = (thought(0, "hm"), called(1, "toolu_1", name, json.dumps(args)))
            self.answers["next"] = answer(*reply(*blocks, reason="tool_use"))
            return model_at(server)

        return make

    @pytest.fixture
    def make_failing(self, server: Loopback) -> Any:
        """A model whose next reply fails."""
        body = '{"type":"error","error":{"type":"overloaded_error","message":"canary-said"}}'
        self.answers["next"] = status(529, body=body)
        return lambda: model_at(server)


# ---- requests -------------------------------------------------------------------------------------------------------


async def test_a_request_goes_to_the_endpoint_with_the_key_in_its_header() -> None:
    """And the version of the protocol; the body as projected."""
    async with serving(answering(GOOD)) as server:
        model, asked = model_at(server), request(user("hi"))
        assert await ask(model, asked) == SAID
        (sent,) = server.requests
    assert sent.line == "POST /v1/messages HTTP/1.1"
    assert (sent.fields["x-api-key"], sent.fields["anthropic-version"]) == (SECRET, "2023-06-01")
    assert not {"authorization", "anthropic-beta"} & sent.fields.keys()
    assert sent.body == model.wire(asked).body


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_a_base_url_is_taken_with_its_version_and_without(suffix: str) -> None:
    """As vendors document it for Anthropic's own clients; the scope of a reply is the same."""
    async with serving(answering(GOOD)) as server:
        url = f"http://127.0.0.1:{server.port}/api/anthropic"
        model = anthropic("glm-4.6", api_key="k", base_url=url + suffix, provider="zai", retry=False)
        await ask(model)
        assert model.card.name == "zai:glm-4.6"
        assert model.card.base_url == url + "/v1"
        assert server.requests[0].line == "POST /api/anthropic/v1/messages HTTP/1.1"


async def test_a_request_that_brings_an_authorization_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some vendors take a bearer instead; then no other key goes out."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)

    async def own() -> dict[str, str]:
        return {"authorization": "Bearer b"}

    async with serving(answering(GOOD)) as server:
        await ask(model_at(server, api_key=None, headers={"Authorization": "Bearer a"}))
        await ask(model_at(server, api_key=None), request(user("hi"), headers=own))
        first, second = server.requests
    assert (first.fields["authorization"], second.fields["authorization"]) == ("Bearer a", "Bearer b")
    assert SECRET.encode() not in first.head + second.head


async def test_a_key_is_read_at_each_call_and_its_absence_says_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the variable, before anything is sent."""
    async with serving(answering(GOOD)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.port}")
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        model = model_named("anthropic:claude-sonnet-4-5")
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert (caught.value.kind, caught.value.hint) == ("auth", "set the environment variable ANTHROPIC_API_KEY")
        assert server.requests == []
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        assert await ask(model) == SAID
        assert server.requests[0].fields["x-api-key"] == "k"


async def test_a_file_that_the_vendor_keeps_is_asked_for_with_its_beta() -> None:
    """The vendor refuses the file without it; beside other betas, and only where such a file is shown."""
    shown = request(user("read", File(file_id="file_1")), user('{"type":"file","file_id":"file_1"}', id="u1"))
    words = request(user('{"type":"file","file_id":"file_1"}'))
    async with serving(each(GOOD)) as server:
        for asked in (shown, words):
            await ask(model_at(server), asked)
            await ask(model_at(server, "claude-opus-5-5"), asked)
            await ask(
                model_at(server, headers={"Anthropic-Beta": "mine"}), replace(asked, settings=Settings(search=True))
            )
        told = [sent.fields.get("anthropic-beta") for sent in server.requests]
        assert all(sent.fields["x-api-key"] == SECRET for sent in server.requests)
    assert told == [FILES, f"{FILES},{BINDING}", f"{FILES},mine", None, BINDING, "mine"]


async def test_betas_of_ours_and_of_the_caller_share_their_header() -> None:
    """A model whose thinking is tied to what came before says that it knows."""
    async with serving(answering(GOOD)) as server:
        await ask(model_at(server, "claude-opus-5-5"))
        await ask(model_at(server, "claude-opus-5-5", headers={"Anthropic-Beta": "files-api-2025-04-14"}))
        await ask(model_at(server, headers={"anthropic-beta": "files-api-2025-04-14"}))
        told = [sent.fields["anthropic-beta"] for sent in server.requests]
    ours = "thinking-binding-controls-2026-08-01"
    assert told == [ours, f"{ours},files-api-2025-04-14", "files-api-2025-04-14"]


async def test_a_request_that_cannot_be_carried_is_never_sent() -> None:
    """Settings and media alike, by name."""
    async with serving(answering(GOOD)) as server:
        for asked in (request(user(Audio(data=b"a"))), request(user("hi"), settings=Settings(thinking=3))):
            with pytest.raises(ModelError) as caught:
                await ask(model_at(server), asked)
            assert caught.value.kind == "invalid"
        assert server.requests == []


def test_a_name_without_a_model_and_an_address_that_is_none_are_refused() -> None:
    """While building; a model's repr shows no key."""
    with pytest.raises(ConfigurationError, match="names no model"):
        model_named("anthropic:")
    for url in ("ftp://e.test", "http://k@e.test", "http://e.test?key=k"):
        with pytest.raises(ConfigurationError):
            anthropic("claude-sonnet-4-5", base_url=url)
    model = anthropic("claude-sonnet-4-5", api_key=SECRET)
    assert isinstance(model, Reliable)
    assert isinstance(model.model, AnthropicModel)
    assert SECRET not in f"{model!r} {model.card!r} {vars(model.model)!r}"
    assert model.card.base_url == "https://api.anthropic.com/v1"


async def test_a_model_under_another_card_is_asked_by_that_one() -> None:
    """As a probe does that found out more than the name says."""
    async with serving(answering(GOOD)) as server:
        model = model_at(server)
        assert isinstance(model, AnthropicModel)
        other = model.under(replace(model.card, tools=False))
        assert other is not None
        for one in (model, other):
            await ask(one, request(user("hi"), offers=(offer(),)))
        assert [b'"tools"' in sent.body for sent in server.requests] == [True, False]


# ---- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        (400, "invalid_request_error", "invalid"),
        (401, "authentication_error", "auth"),
        (402, "billing_error", "quota"),
        (403, "permission_error", "auth"),
        (404, "not_found_error", "model"),
        (413, "request_too_large", "invalid"),
        (429, "rate_limit_error", "rate"),
        (500, "api_error", "overload"),
        (529, "overloaded_error", "overload"),
    ],
)
async def test_a_failed_status_is_told_by_the_table(code: int, name: str, kind: str) -> None:
    """With the vendor's own type and nothing else of the body."""
    body = json.dumps({"type": "error", "error": {"type": name, "message": "the-secret-words"}})
    error = await failure(answering(status(code, "Retry-After: 7", body=body)))
    assert (error.kind, error.status, error.provider, error.retry_after) == (kind, code, "anthropic", 7.0)
    assert str(error) == f"anthropic answered with status {code} ({name})"


async def test_a_prompt_that_is_too_long_is_told_as_such() -> None:
    """So that something can be done about it."""
    body = '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8"}}'
    assert (await failure(answering(status(400, body=body)))).kind == "context"


async def test_a_busy_server_is_asked_again_also_when_it_says_so_in_its_stream() -> None:
    """Before anything of the reply reached the caller."""
    busy = answer(begin(), event("error", error={"type": "overloaded_error", "message": "Overloaded"}))

    async def no_wait(seconds: float) -> None:
        pass

    async with serving(each(busy, GOOD)) as server:
        first, *rest = await ask(Reliable(model_at(server), sleep=no_wait))
    assert isinstance(first, Attempted)
    assert (first.status, rest) == (529, SAID)


async def test_a_stream_that_is_cut_is_a_network_failure() -> None:
    """What came before the cut came; nothing is made of it."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\n" + sse(*HELLO[:3]))

    error = await failure(script)
    assert (error.kind, error.started) == ("network", True)


async def test_a_server_that_does_not_stream_is_read_as_a_whole() -> None:
    """By its content type."""
    body = json.dumps(
        {
            "type": "message", "model": "m-1", "content": [{"type": "text", "text": "Hello"}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 1},
        }
    )  # fmt: skip
    async with serving(answering(status(200, "Content-Type: application/json", body=body))) as server:
        assert await ask(model_at(server)) == [TextChunk("Hello"), SAID[-1]]


# ---- replies that pause ---------------------------------------------------------------------------------------------

SEARCHING = request(user("hi"), settings=Settings(search=True))
CITED = {"type": "web_search_result_location", "url": "https://e.test/a", "title": "A"}
ASKED = called(0, "s1", "web_search", '{"query":"x"}', kind="server_tool_use")
FOUND = (start(0, type="web_search_tool_result", tool_use_id="s1", content=[{"url": "https://e.test/a"}]), stop(0))
PAUSES = reply(text(1, "I look. "), ASKED, reason="pause_turn", output_tokens=5)
GOES_ON = reply(
    FOUND, (start(1, type="text", text=""), delta(1, "citations_delta", citation=CITED), *text(1, "Sunny.")[1:]),
    output_tokens=7,
)  # fmt: skip


async def test_a_reply_that_pauses_is_continued_and_comes_out_as_one() -> None:
    """What the model said so far is the last entry of the next request; places count from the first beginning."""
    async with serving(each(answer(*PAUSES), answer(*GOES_ON))) as server:
        model = model_at(server)
        chunks = await ask(model, SEARCHING)
        first, second = (json.loads(sent.body) for sent in server.requests)
    assert second["messages"][:-1] == first["messages"]
    assert second["messages"][-1] == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look. "},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        ],
    }
    assert {**first, "messages": 0} == {**second, "messages": 0}
    assert "".join(one.text for one in chunks if isinstance(one, TextChunk)) == "I look. Sunny."
    assert [one.status for one in chunks if isinstance(one, SearchChunk)] == ["in_progress", "searching", "completed"]
    (cited,) = [one for one in chunks if isinstance(one, CitationChunk)]
    assert cited.citations == (Citation(url="https://e.test/a", title="A", start=8, stop=14),)
    kinds = [json.loads(bytes(one.raw))["type"] for one in chunks if isinstance(one, NativeItem)]
    assert kinds == ["text", "server_tool_use", "web_search_tool_result", "text"]
    assert chunks[-1] == Finished(finish="stop", model="m-1", usage=Usage(input_tokens=20, output_tokens=12))
    assert len([one for one in chunks if isinstance(one, Finished)]) == 1


async def test_a_reply_that_pauses_is_continued_with_the_marks_of_its_request() -> None:
    """Also of one with marks that are set nowhere, or that last."""
    talk = [user("hi", id=f"u{n}") for n in range(6)]
    lasts: tuple[Literal["short", "long"], ...] = ("short", "long")
    for ttl in lasts:
        view = View(spans=(Span(0, 6),), marks=(2, 5, 98, 99), head=HeadMarks(system=1, tools=True, ttl=ttl))
        asked = request(*talk, view=view, settings=Settings(search=True), pieces=(system("Be kind."),))
        async with serving(each(answer(*PAUSES), answer(*GOES_ON))) as server:
            await ask(model_at(server), asked)
            first, second = (json.loads(sent.body) for sent in server.requests)
        assert second["messages"][:-1] == first["messages"]
        assert {**first, "messages": 0} == {**second, "messages": 0}
        assert json.dumps(second).count("cache_control") == 4


async def test_a_reply_that_pauses_without_end_is_cut() -> None:
    """After five times, with what there is."""
    async with serving(answering(answer(*PAUSES))) as server:
        chunks = await ask(model_at(server), SEARCHING)
        assert len(server.requests) == 6
    assert ends(chunks).finish == "length"


async def test_a_pause_with_nothing_to_go_on_from_is_a_cut() -> None:
    """There is nothing that could be sent back."""
    async with serving(answering(answer(*reply(text(0, "So"), reason="pause_turn")))) as server:
        assert ends(await ask(model_at(server), SEARCHING)) == Finished(finish="length", model="m-1", usage=COUNTED)
        assert ends(await ask(model_at(server))).finish == "length"  # nobody asked for a search
        assert len(server.requests) == 2


async def test_a_failure_of_a_continued_reply_has_started() -> None:
    """So nobody asks from the beginning once words have been heard."""
    error = await failure(each(answer(*PAUSES), status(529)), settings=Settings(search=True))
    assert (error.status, error.started) == (529, True)


def ends(chunks: list[Chunk]) -> Finished:
    """The last chunk."""
    assert isinstance(chunks[-1], Finished)
    return chunks[-1]


async def test_a_search_that_does_not_pause_is_one_request() -> None:
    """The same chunks as any reply's."""
    async with serving(answering(answer(begin(), *text(0, "a"), *ended()))) as server:
        chunks = await ask(model_at(server), SEARCHING)
        assert len(server.requests) == 1
    assert chunks == [TextChunk("a"), Finished(finish="stop", model="m-1", usage=COUNTED)]
