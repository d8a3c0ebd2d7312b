"""Models by the names of their vendors: where they are, what an address is, and what can be used here."""

from __future__ import annotations

import json
import socket

import pytest

from onrecord.errors import ConfigurationError
from onrecord.models.names import model_named
from onrecord.models.retry import Reliable
from onrecord.providers.openai_compatible import VENDORS, available, openai_compatible
from onrecord.providers.openai_compatible.client import named as vendor_named
from tests.models.requests import request, user
from tests.net.loopback import answering, serving
from tests.providers.chat_server import GOOD, SECRET

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("provider", ["openai", *VENDORS])
def test_a_named_model_waits_and_knows_where_it_lives(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries are on; the address may be moved by a variable."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://hotel.test")
    model = model_named(f"{provider}:vendor/model-1")
    assert isinstance(model, Reliable)
    assert model.card.name == f"{provider}:vendor/model-1"
    assert (model.card.base_url or "").startswith("http")
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", "http://elsewhere/v1")
    assert model_named(f"{provider}:m").card.base_url == "http://elsewhere/v1"
    with pytest.raises(ConfigurationError):
        model_named(f"{provider}:")


def test_names_that_mean_nothing_are_refused_with_the_nearest_that_does() -> None:
    """When the agent is made."""
    for name, hint in (("opnai:m", "'openai'"), (" OpnAI:m", "'openai'"), ("nobody-at-all:m", "known providers")):
        with pytest.raises(ConfigurationError) as caught:
            model_named(name)
        assert hint in caught.value.hint
    with pytest.raises(ConfigurationError):
        vendor_named("nobody", "m")


def test_openrouter_asks_the_model_s_own_vendor_first() -> None:
    """Others stand in."""
    body = json.loads(model_named("openrouter:minimax/m2").wire(request(user("hi"))).body)
    assert body["provider"] == {"order": ["minimax"], "allow_fallbacks": True}


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8080",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "http://[::1/v1",
        "http://h:x/v1",
        "http://h:99999/",
    ],
)
def test_an_address_that_is_none_is_refused_when_the_model_is_made(address: str) -> None:
    """Not at its first call, and in our own words."""
    with pytest.raises(ConfigurationError, match="has no http address"):
        openai_compatible(address, "m")


def test_a_server_is_looked_for_at_the_port_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is the scheme's own where the address names none."""
    tried: list[tuple[str, int]] = []

    def connect(place: tuple[str, int], timeout: float) -> None:
        tried.append(place)
        raise OSError

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setenv("OLLAMA_BASE_URL", "https://e.test/v1")
    monkeypatch.setenv("LLAMACPP_BASE_URL", "http://e.test/v1")
    monkeypatch.delenv("VLLM_BASE_URL", raising=False)
    assert not [one for one in available() if one.name in {"ollama", "llamacpp", "vllm"} and one.usable]
    assert tried == [("e.test", 443), ("e.test", 80), ("localhost", 8000)]


async def test_what_is_available_is_told_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys by their variables, servers run here by their ports."""
    for variable in ("OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", *(vendor.key for vendor in VENDORS.values())):
        monkeypatch.delenv(variable or "NO_SUCH_KEY", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.setenv("ZAI_API_KEY", " ")
    async with serving(answering(GOOD)) as server:
        for name in ("OLLAMA", "LLAMACPP", "VLLM"):
            monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setenv("LLAMACPP_BASE_URL", "http://127.0.0.1:port/v1")
        monkeypatch.setenv("VLLM_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
        found = {one.name: (one.usable, one.why) for one in available()}
    assert found["openai"] == (False, "set OPENAI_API_KEY")
    assert found["groq"] == (True, "GROQ_API_KEY is set")
    assert found["zai"] == (False, "set ZAI_API_KEY")
    assert found["azure"] == (False, "set AZURE_OPENAI_ENDPOINT")
    assert found["mistral"] == (False, "set MISTRAL_API_KEY")
    assert found["vllm"][0] is True
    assert found["llamacpp"][0] is False
    assert found["ollama"][0] is False
    assert set(found) == {"openai", *VENDORS}
    assert SECRET not in str(found)
