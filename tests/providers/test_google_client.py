"""generateContent over a loopback server: addresses, keys, replies, failures and waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord import Agent, tool
from onrecord.conversation.messages import AssistantMessage
from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.chunks import Attempted, TextChunk
from onrecord.models.model import scope_of
from onrecord.models.names import model_named
from onrecord.models.request import Settings
from onrecord.models.retry import Reliable
from onrecord.providers.google import GoogleModel, google, google_card
from tests.models.requests import offer, request, user
from tests.net.loopback import Peer, answering, serving
from tests.providers.chat_server import ask, each, status
from tests.providers.google_events import SIGNATURE, STOP, calling, event
from tests.providers.google_server import GOOD, SAID, SECRET, model_at, streamed

pytestmark = pytest.mark.integration

# ---- addresses and keys -------------------------------------------------------------------------------------------


async def test_a_request_goes_to_the_models_address_with_the_key_in_a_header() -> None:
    """And never in the address; the body as projected."""
    async with serving(answering(GOOD)) as server:
        model, asked = model_at(server), request(user("hi"))
        assert await ask(model, asked) == SAID
        (sent,) = server.requests
    assert sent.line == "POST /v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse HTTP/1.1"
    assert sent.fields["x-goog-api-key"] == SECRET
    assert "authorization" not in sent.fields
    assert sent.body == model.wire(asked).body


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("tunedModels/hotel 7", "tunedModels/hotel%207"),
        ("a/b?c#d", "models/a%2Fb%3Fc%23d"),
        ("../files", "models/..%2Ffiles"),
    ],
)
async def test_a_models_name_is_one_part_of_the_address(name: str, path: str) -> None:
    """Whatever characters it has; a folder of Google's may lead it."""
    async with serving(answering(GOOD)) as server:
        await ask(model_at(server, name))
        (sent,) = server.requests
    assert sent.line == f"POST /v1beta/{path}:streamGenerateContent?alt=sse HTTP/1.1"


async def test_the_key_is_read_at_each_call_from_either_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """``GEMINI_API_KEY`` before ``GOOGLE_API_KEY``, a given one before both; its absence says where it goes."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with serving(answering(GOOD)) as server:
        model = model_at(server, api_key=None)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert (caught.value.kind, caught.value.hint) == ("auth", "set the environment variable GEMINI_API_KEY")
        assert server.requests == []
        monkeypatch.setenv("GOOGLE_API_KEY", "older")
        await ask(model)
        monkeypatch.setenv("GEMINI_API_KEY", "newer\n")
        await ask(model)
        await ask(model_at(server))
        assert [sent.fields["x-goog-api-key"] for sent in server.requests] == ["older", "newer", SECRET]


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_a_refused_key_says_where_it_came_from(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Google refuses a bad key with status 400, in words."""
    for other in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, SECRET)
    body = {
        "code": 400,
        "message": f"API key not valid. Please pass a valid API key. {SECRET}",
        "status": "INVALID_ARGUMENT",
    }
    error, _ = await failure(status(400, body=json.dumps({"error": body})), api_key=None)
    assert (error.kind, error.status) == ("auth", 400)
    assert f"in the environment variable {name} was refused" in error.hint


async def test_a_request_may_bring_its_own_key() -> None:
    """Of a tenant, say; the model's own is then not sent."""

    async def own() -> dict[str, str]:
        return {"X-Goog-Api-Key": "tenant"}

    async with serving(answering(GOOD)) as server:
        await ask(model_at(server), request(user("hi"), headers=own))
        (sent,) = server.requests
    assert sent.head.lower().count(b"x-goog-api-key") == 1
    assert sent.fields["x-goog-api-key"] == "tenant"


def test_a_key_is_never_shown_and_never_part_of_the_scope() -> None:
    """Not by repr, not in the card."""
    model = google("gemini-2.5-flash", api_key=SECRET, headers={"x-goog-api-key": SECRET}, retry=False)
    assert SECRET not in f"{model!r} {model.card!r} {scope_of(model.card, 's')}"


def test_a_model_is_named_and_its_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """``google:MODEL``."""
    monkeypatch.delenv("GOOGLE_BASE_URL", raising=False)
    model = model_named("google:gemini-2.5-flash")
    assert isinstance(model, Reliable)
    assert model.card.base_url == "https://generativelanguage.googleapis.com/v1beta"
    monkeypatch.setenv("GOOGLE_BASE_URL", "http://localhost:1/v1beta")
    assert model_named("google:gemini-2.5-flash").card.base_url == "http://localhost:1/v1beta"
    with pytest.raises(ConfigurationError) as caught:
        model_named("google:")
    assert "google:gemini-3.8-flash" in (caught.value.hint or "")
    with pytest.raises(ConfigurationError) as caught:
        google("m", base_url="localhost/v1beta")
    assert "/v1beta" in (caught.value.hint or "")


# ---- replies --------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_carried_is_never_sent() -> None:
    """The client refuses too when it is asked directly."""
    async with serving(answering(GOOD)) as server:
        asked = request(user("hi"), settings=Settings(search=True), offers=(offer(),))
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server, "gemini-2.5-flash"), asked)
        assert server.requests == []
    assert caught.value.kind == "invalid"
    assert "a search of the provider's own beside tools" in str(caught.value)


async def test_a_body_may_have_fields_of_its_own() -> None:
    """Below those of a request's settings."""
    async with serving(answering(GOOD)) as server:
        card, dialect = google_card("gemini-2.5-flash", base_url=f"http://127.0.0.1:{server.port}/v1beta")
        model = GoogleModel(card, dialect=dialect, extra={"labels": {"team": "a"}, "serviceTier": "flex"})
        await ask(model, request(user("hi"), settings=Settings(extra={"serviceTier": "priority"})))
        body = json.loads(server.requests[0].body)
    assert (body["labels"], body["serviceTier"]) == ({"team": "a"}, "priority")


@tool(read_only=True)
async def price(city: str) -> str:
    """Price of a stay."""
    return f"a room in {city}"


async def test_a_signed_call_comes_back_to_google_byte_for_byte() -> None:
    """In the next request of the turn, and in the next turn; its result names no id that Google never gave."""
    signed = calling("price", {"city": "Lisbon"}, SIGNATURE)
    bodies: list[dict[str, Any]] = []
    replies = iter([
        streamed(event({"text": "hm", "thought": True}), event(signed), STOP),
        streamed(event("Cheap."), event({"text": "", "thoughtSignature": "late"}), STOP),
        GOOD,
    ])  # fmt: skip

    async def script(peer: Peer) -> None:
        while True:
            bodies.append(json.loads((await peer.request()).body))
            await peer.send(next(replies))

    async with serving(script) as server:
        agent = Agent(model_at(server), tools=[price])
        first = await agent.turn("What does Lisbon cost?", session="s")
        await agent.turn("And now?", session=first.session)
    thought = {"text": "hm", "thought": True}
    result = {"functionResponse": {"name": "price", "response": {"result": "a room in Lisbon"}}}
    assert bodies[1]["contents"][1:] == [
        {"role": "model", "parts": [thought, signed]}, {"role": "user", "parts": [result]},
    ]  # fmt: skip
    assert bodies[2]["contents"][:3] == bodies[1]["contents"]
    assert bodies[2]["contents"][3]["parts"] == [{"text": "Cheap."}, {"text": "", "thoughtSignature": "late"}]
    assert first.session is not None
    message = first.session.conversation.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert [held.use.finish for held in message.rounds if held.use] == ["calls", "stop"]


# ---- failures and waits ---------------------------------------------------------------------------------------------


async def failure(*answers: bytes, **fields: Any) -> tuple[ModelError, int]:
    """The error of a request that has to fail, which shows neither key nor words; and how often it was sent."""
    async with serving(each(*answers)) as server:
        with pytest.raises(ModelError) as caught:
            await ask(model_at(server, **fields), request(user("the-secret-words")))
        sent = len(server.requests)
    told = f"{caught.value} {caught.value.hint} {caught.value!r} {caught.value.__dict__}"
    assert SECRET not in told
    assert "the-secret-words" not in told
    return caught.value, sent


@pytest.mark.parametrize(
    ("code", "word", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "Unknown name", "invalid"),
        (400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed", "context"),
        (400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", "auth"),
        (403, "PERMISSION_DENIED", "no", "auth"),
        (404, "NOT_FOUND", "models/x is not found for API version v1beta", "model"),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan", "rate"),
        (500, "INTERNAL", "oops", "overload"),
        (503, "UNAVAILABLE", "The model is overloaded", "overload"),
        (504, "DEADLINE_EXCEEDED", "too slow", "overload"),
    ],
)
async def test_googles_failures_are_told_by_kind(code: int, word: str, message: str, kind: str) -> None:
    """With its own short word, as an object or in a list."""
    held = {"error": {"code": code, "message": f"{message} the-secret-words", "status": word}}
    for body in (held, [held]):
        error, sent = await failure(status(code, body=json.dumps(body)))
        assert (error.kind, error.status, sent) == (kind, code, 1)
        assert str(error) == f"google answered with status {code} ({word})"


def exhausted(delay: str) -> bytes:
    """A busy answer that says when to come back, as Google does: in the body."""
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    error = {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}
    return status(429, body=json.dumps({"error": error}))


@pytest.mark.parametrize(("delay", "waited"), [("17.5s", 17.5), ("30s", 30.0), ("0s", 0.0)])
async def test_a_wait_that_google_states_in_the_body_is_kept(delay: str, waited: float) -> None:
    """To the second, before the request is sent again."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with serving(each(exhausted(delay), GOOD)) as server:
        chunks = await ask(Reliable(model_at(server), sleep=sleep))
    assert waits == [waited]
    assert isinstance(chunks[0], Attempted)
    assert chunks[1:] == SAID


async def test_a_wait_that_is_too_long_fails_at_once_and_is_told() -> None:
    """Over thirty seconds."""
    error, sent = await failure(exhausted("34.4s"), retry=True)
    assert (error.kind, error.retry_after, sent) == ("rate", 34.4, 1)
    assert "34.4 s" in error.hint


async def test_a_stream_that_stops_without_a_reason_is_a_network_failure() -> None:
    """Even where the connection ends well."""
    async with serving(answering(streamed(event("Hel")))) as server:
        stream = model_at(server).stream(request(user("hi")))
        assert await anext(stream) == TextChunk("Hel")
        with pytest.raises(ModelError) as caught:
            await anext(stream)
    assert (caught.value.kind, caught.value.started) == ("network", True)
