"""Each vendor by its name: its address, its key, its headers, and how its requests differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.model import Model
from onrecord.models.names import model_named
from onrecord.models.request import Settings
from onrecord.providers.openai_chat import openai
from onrecord.providers.openai_compatible import VENDORS, azure, openai_compatible, openrouter, vendor_model
from tests.models.requests import offer, request, user
from tests.net.loopback import answering, serving
from tests.providers.chat_server import GOOD, SAID, SECRET, ask, status

pytestmark = pytest.mark.integration

NAMES = ["openai", *VENDORS]
OF_THE_PROTOCOL = {"host", "content-type", "content-length", "accept", "accept-encoding", "user-agent", "connection"}


def here(provider: str, port: int, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The vendor's model, at a server of ours, with a key in its variable."""
    variable = VENDORS[provider].key if provider in VENDORS else "OPENAI_API_KEY"
    monkeypatch.setenv(variable or f"{provider.upper()}_API_KEY", SECRET)
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", f"http://127.0.0.1:{port}/v1")
    return model_named(f"{provider}:vendor/model-1")


def body(name: str | Model, **settings: Any) -> dict[str, Any]:
    """What a model is sent."""
    model = model_named(name) if isinstance(name, str) else name
    held: dict[str, Any] = json.loads(model.wire(request(user("hi"), settings=Settings(**settings))).body)
    return held


@pytest.mark.parametrize("provider", NAMES)
async def test_every_vendor_gets_its_key_and_nothing_of_anybody_else_s(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One header with the key, where the vendor looks for it, and none that another vendor invented."""
    for name in NAMES:
        monkeypatch.setenv(f"{name.upper()}_API_KEY", "sk-of-somebody-else")
    async with serving(answering(GOOD)) as server:
        assert await ask(here(provider, server.port, monkeypatch)) == SAID
        fields = server.requests[0].fields
    header = VENDORS[provider].key_header.lower() if provider in VENDORS else "authorization"
    assert fields.keys() - OF_THE_PROTOCOL == {header}
    assert fields[header] == (SECRET if header == "api-key" else f"Bearer {SECRET}")
    assert server.requests[0].line == "POST /v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize("provider", NAMES)
async def test_no_vendor_s_key_follows_a_redirect(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other host is never asked, and the error names no key."""
    async with serving(answering(GOOD)) as other:
        moved = status(307, f"Location: http://127.0.0.1:{other.port}/v1/chat/completions")
        async with serving(answering(moved)) as server:
            with pytest.raises(ModelError, match="status 307") as caught:
                await ask(here(provider, server.port, monkeypatch))
    assert other.requests == []
    assert SECRET not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("provider", [name for name in NAMES if name not in VENDORS or VENDORS[name].key])
async def test_a_vendor_that_wants_a_key_says_which(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first call, by the name of its variable; nothing is sent."""
    async with serving(answering(GOOD)) as server:
        model = here(provider, server.port, monkeypatch)
        variable = VENDORS[provider].key if provider in VENDORS else "OPENAI_API_KEY"
        monkeypatch.delenv(variable)
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert server.requests == []
    assert variable in caught.value.hint


@pytest.mark.parametrize("provider", [name for name in VENDORS if VENDORS[name].runs_here])
async def test_a_server_of_one_s_own_needs_no_key(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is sent one where its variable has it."""
    async with serving(answering(GOOD)) as server:
        model = here(provider, server.port, monkeypatch)
        await ask(model)
        monkeypatch.delenv(f"{provider.upper()}_API_KEY")
        assert await ask(model) == SAID
        first, second = (one.fields for one in server.requests)
    assert (first["authorization"], "authorization" in second) == (f"Bearer {SECRET}", False)


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_s1_an_empty_key_or_an_empty_model_is_refused_at_construction(empty: str) -> None:
    """In every function that takes one."""
    at = "http://localhost:1/v1"
    by_key: tuple[Callable[[str], Model], ...] = (
        lambda key: openai("m", api_key=key),
        lambda key: openai_compatible(at, "m", api_key=key),
        lambda key: vendor_model("groq", "m", api_key=key),
        lambda key: openrouter("v/m", api_key=key),
        lambda key: azure("m", endpoint="https://x.test", api_key=key),
    )
    by_name: tuple[Callable[[str], Model], ...] = (
        openai,
        lambda model: openai_compatible(at, model),
        lambda model: vendor_model("groq", model),
        openrouter,
        lambda model: azure(model, endpoint="https://x.test"),
    )
    for make in by_key:
        with pytest.raises(ConfigurationError, match="api_key= is empty"):
            make(empty)
    for make in by_name:
        with pytest.raises(ConfigurationError, match="names no model"):
            make(empty)


def test_openrouter_is_told_whose_application_asks_and_whom_to_ask_first() -> None:
    """Both are optional; others stand in, unless the order is left to it."""
    assert body(openrouter("minimax/m2"))["provider"] == {"order": ["minimax"], "allow_fallbacks": True}
    ordered = body(openrouter("minimax/m2", provider_order=["fireworks", "novita"]))
    assert ordered["provider"] == {"order": ["fireworks", "novita"], "allow_fallbacks": True}
    assert "provider" not in body(openrouter("minimax/m2", provider_order=[]))
    assert "provider" not in body(openrouter("auto"))


async def test_openrouter_s_site_is_in_two_headers() -> None:
    """And headers of one's own beside them."""
    async with serving(answering(GOOD)) as server:
        model = openrouter(
            "v/m", api_key=SECRET, base_url=f"http://127.0.0.1:{server.port}", site_url="https://hotel.test",
            site_name="Hotel", headers={"X-Team": "front"},
        )  # fmt: skip
        await ask(model)
        fields = server.requests[0].fields
    assert (fields["http-referer"], fields["x-title"], fields["x-team"]) == ("https://hotel.test", "Hotel", "front")


async def test_azure_has_an_endpoint_for_each_customer_and_a_header_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deployment is the model. A token of Entra ID stands in for the key."""
    monkeypatch.delenv("AZURE_BASE_URL", raising=False)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        model_named("azure:front-desk")
    assert "AZURE_OPENAI_ENDPOINT" in caught.value.hint
    async with serving(answering(GOOD)) as server:
        for endpoint in (f"http://127.0.0.1:{server.port}/", f"http://127.0.0.1:{server.port}/openai/v1/"):
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", endpoint)
            assert model_named("azure:front-desk").card.base_url == f"http://127.0.0.1:{server.port}/openai/v1"
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
        await ask(model_named("azure:front-desk"))
        monkeypatch.delenv("AZURE_OPENAI_API_KEY")
        await ask(azure("front-desk", headers={"authorization": "Bearer a-token"}))
        first, second = (one.fields for one in server.requests)
        assert json.loads(server.requests[0].body)["model"] == "front-desk"
    assert server.requests[0].line == "POST /openai/v1/chat/completions HTTP/1.1"
    assert (first["api-key"], first.get("authorization")) == (SECRET, None)
    assert (second.get("api-key"), second["authorization"]) == (None, "Bearer a-token")


@pytest.mark.parametrize(
    ("name", "thinking", "sent"),
    [
        ("deepseek:deepseek-flash", None, {}),
        ("deepseek:deepseek-flash", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("deepseek:deepseek-flash", "none", {"thinking": {"type": "disabled"}}),
        ("zai:glm-4.7", None, {"thinking": {"type": "disabled"}}),
        ("zai:glm-4.7", "high", {"thinking": {"type": "enabled"}}),
        ("zai:glm-5.3-flash", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("groq:openai/gpt-oss-20b", "low", {"reasoning_effort": "low"}),
        ("groq:llama-3.3-70b-versatile", "low", {}),
        ("mistral:mistral-small-latest", "high", {"reasoning_effort": "high"}),
        ("mistral:magistral-medium-latest", "high", {}),
        ("xai:grok-4.3", "none", {"reasoning_effort": "none"}),
        ("xai:grok-4-fast-reasoning", "low", {}),
        ("openrouter:anthropic/claude", 2000, {"reasoning": {"max_tokens": 2000}}),
        ("ollama:qwen3", "none", {"reasoning_effort": "none"}),
        ("llamacpp:qwen3", "high", {}),
        ("openai:gpt-5-mini", "low", {"reasoning_effort": "low"}),
    ],
)
def test_thinking_is_asked_for_in_the_vendor_s_own_way(name: str, thinking: Any, sent: dict[str, Any]) -> None:
    """Z.ai's models think unless they are told not to, so they are; others are left alone unless somebody asks."""
    held = body(name, thinking=thinking)
    assert {field: held[field] for field in ("thinking", "reasoning_effort", "reasoning") if field in held} == sent


@pytest.mark.parametrize(
    ("name", "asked", "told"),
    [
        ("openai:gpt-4o", {"thinking": "high"}, "thinking: 'openai:gpt-4o' has none"),
        ("groq:llama-3.3-70b-versatile", {"thinking": 2000}, "has none"),
        ("mistral:codestral-latest", {"thinking": "high"}, "has none"),
        ("llamacpp:qwen3", {"thinking": "high"}, "has none"),
        ("mistral:magistral-medium-latest", {"thinking": "low"}, ""),  # it thinks in any case
        ("xai:grok-4-fast-reasoning", {"thinking": "none"}, "always thinks"),
        (
            "mistral:mistral-small-latest",
            {"search": True},
            "a search of the provider's own: 'mistral:",
        ),
        ("xai:grok-4.3", {"search": True}, "has none over Chat Completions"),
        (
            "zai:glm-4.7",
            {"choice": "required"},
            "a tool choice 'required': 'zai:glm-4.7' cannot be made",
        ),
        ("zai:glm-4.7", {"choice": "price"}, "cannot be made to call a tool"),
        ("groq:compound", {"choice": "required"}, "takes no tools"),
        ("zai:glm-4.7", {"thinking": "high", "search": True}, ""),
        ("openrouter:anthropic/claude", {"search": True, "choice": "price"}, ""),
        ("mistral:magistral-medium-latest", {"thinking": 2000}, ""),
    ],
)
def test_what_a_vendor_s_model_cannot_be_asked_is_refused_by_name(name: str, asked: Any, told: str) -> None:
    """Before anything is sent, and only that."""
    settings = Settings(**{field: value for field, value in asked.items() if field != "choice"})
    said = request(user("hi"), offers=(offer(),), choice=asked.get("choice", "auto"), settings=settings)
    issues = [issue.what for issue in model_named(name).wire(said).issues]
    assert len(issues) == bool(told)
    assert all(told in what for what in issues)


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("openai:gpt-4.1-mini", True),
        ("groq:llama-3.3-70b", True),
        ("mistral:magistral-medium", False),
        ("vllm:qwen3", False),
        ("openai:gpt-5-mini", False),
    ],
)
def test_thinking_is_refused_where_a_model_has_none_and_no_field_for_it(name: str, refused: bool) -> None:
    """Nothing would be sent, and nobody would know. Models that think in any case, and unknown ones, are asked."""
    model = model_named(name)
    told = [f"thinking: {name!r} has none"] if refused else []
    for wanted in ("low", 2048):
        wire = model.wire(request(user("hi"), settings=Settings(thinking=wanted)))
        assert [issue.what for issue in wire.issues] == told
    off = model.wire(request(user("hi"), settings=Settings(thinking="none"))).issues
    assert [issue.what for issue in off] == [f"thinking turned off: {name!r} always thinks"] * ("magistral" in name)


@pytest.mark.parametrize(
    ("name", "cap", "seed", "usage"),
    [
        ("mistral:mistral-large-latest", "max_tokens", "random_seed", False),
        ("groq:m", "max_completion_tokens", "seed", True),
        ("xai:m", "max_completion_tokens", "seed", True),
        ("deepseek:m", "max_tokens", "seed", True),
        ("zai:m", "max_tokens", "seed", True),
        ("ollama:m", "max_tokens", "seed", True),
    ],
)
def test_caps_seeds_and_token_counts_go_by_the_names_that_the_vendor_knows(
    name: str, cap: str, seed: str, usage: bool
) -> None:
    """Mistral refuses a request with fields that it does not know. A seed of 0 is a seed."""
    held = body(name, max_tokens=5, seed=0)
    assert (held[cap], held[seed]) == (5, 0)
    assert ("stream_options" in held) is usage
    assert len({"max_tokens", "max_completion_tokens", "seed", "random_seed"} & held.keys()) == 2


@pytest.mark.parametrize(
    ("name", "can"),
    [
        ("deepseek:deepseek-chat", {"images": False, "structured": "json", "hosted_search": False}),
        ("groq:openai/gpt-oss-120b", {"images": False, "hosted_search": True, "structured": "prompt"}),
        ("groq:compound", {"tools": False, "thinking": "none"}),
        ("groq:meta-llama/llama-4-scout", {"images": True, "tools": True}),
        ("zai:glm-4.6v", {"images": True}),
        ("zai:glm-4.6", {"images": False, "structured": "json"}),
        ("mistral:voxtral-small-latest", {"audio": True, "images": False, "thinking": "none"}),
        ("mistral:codestral-latest", {"images": False, "thinking": "none"}),
        ("xai:grok-4.20-non-reasoning", {"thinking": "none", "hosted_search": False}),
        ("vllm:m", {"audio": True, "thinking": "none"}),
    ],
)
def test_cards_go_by_rules_over_names(name: str, can: dict[str, Any]) -> None:
    """The vendor's own card with what is known about a family of models; a name of the future gets the former."""
    card = model_named(name).card
    assert {field: getattr(card, field) for field in can} == can
    assert card.about == VENDORS[card.provider].about


def test_a_deepseek_schema_stands_in_the_prompt_and_json_is_enforced() -> None:
    """Its own structured output has no schema."""
    from tests.providers.test_chat_body import shape

    held = json.loads(model_named("deepseek:m").wire(request(user("hi"), shape=shape())).body)
    assert held["response_format"] == {"type": "json_object"}
    assert "JSON Schema" in held["messages"][0]["content"]
