"""``onrecord models``: what can be used here and what is missing."""

from __future__ import annotations

import json
import socket

import pytest

from onrecord.models.names import PROVIDERS
from tests.cli.agents import run

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, no servers, no extra."""
    for name in PROVIDERS:
        monkeypatch.delenv(f"{name.upper()}_API_KEY", raising=False)
        monkeypatch.delenv("GEMINI_API_KEY", raising=False)
        monkeypatch.setenv(f"{name.upper()}_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("onrecord.cli.usable.find_spec", lambda _: None)


def test_every_provider_is_listed_with_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is usable comes first; a missing one names the variable, the extra or the server."""
    ran = run(capsys, monkeypatch, "models")
    assert ran.code == 0, ran
    lines = ran.out.splitlines()
    assert lines[0].startswith("ready    offline")
    assert all(line.startswith("missing") for line in lines[1:])
    assert "openai:gpt-5-mini        set OPENAI_API_KEY" in ran.out
    assert 'pip install "onrecord[local]", then name a GGUF file' in ran.out
    assert "llamacpp:MODEL           start its server at http://127.0.0.1:9/v1, or set LLAMACPP_BASE_URL" in ran.out
    assert {line.split()[1].partition(":")[0] for line in lines} == set(PROVIDERS)


def test_keys_servers_and_the_extra_make_models_usable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON lines: the provider, whether it is usable, how a model is named, and why."""
    monkeypatch.setenv("OPENAI_API_KEY", "made up")
    monkeypatch.setattr("onrecord.cli.usable.find_spec", lambda _: object())
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        ran = run(capsys, monkeypatch, "models", "--json")
    found = {row["provider"]: row for row in map(json.loads, ran.out.splitlines())}
    assert {name for name, row in found.items() if row["usable"]} == {"offline", "openai", "ollama", "local"}
    assert found["openai"]["model"] == "openai:gpt-5-mini"
    assert found["ollama"]["why"].startswith("a server answers at http://127.0.0.1:")
    assert "made up" not in ran.out
