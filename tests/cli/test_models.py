"""``onrecord models``: what can be used here, what each model can do, and what an endpoint really does."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from onrecord import Agent, ModelError, preset
from onrecord.cli.usable import example
from onrecord.models.names import PROVIDERS
from onrecord.providers.openai_compatible import VENDORS
from tests.cli.agents import run
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, Script, answering, chunk, serving
from tests.providers.chat_server import SECRET, status
from tests.providers.probed_server import answering_as
from tests.providers.wires import CHAT, GOOGLE, MESSAGES, RESPONSES, Wire

pytestmark = pytest.mark.integration


@contextmanager
def served(script: Script) -> Iterator[Loopback]:
    """A loopback server on a loop of its own: the command runs one itself."""
    ready: list[Loopback] = []
    up, loop = threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def main() -> None:
        async with serving(script) as server:
            ready.append(server)
            up.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert up.wait(5)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(5)
        loop.close()


@pytest.fixture(autouse=True)
def _nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, no servers, no extra."""
    for name in PROVIDERS:
        monkeypatch.delenv(f"{name.upper()}_API_KEY", raising=False)
        monkeypatch.delenv(VENDORS[name].key or "NO_SUCH_KEY" if name in VENDORS else "NO_SUCH_KEY", raising=False)
        monkeypatch.delenv("GEMINI_API_KEY", raising=False)
        monkeypatch.setenv(f"{name.upper()}_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("onrecord.cli.usable.find_spec", lambda _: None)


def test_every_provider_is_listed_with_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is usable comes first; a missing one names the variable, the extra or the server."""
    ran = run(capsys, monkeypatch, "models")
    assert ran.code == 0, ran
    lines = ran.out.split("\n\n")[0].splitlines()
    assert lines[0].startswith("ready    offline")
    assert all(line.startswith("missing") for line in lines[1:])
    told = " ".join(ran.out.split())
    assert "openai:gpt-5-mini set OPENAI_API_KEY" in told
    assert "openai-responses:gpt-5-mini set OPENAI_API_KEY" in told
    assert 'pip install "onrecord[local]", then name a GGUF file' in ran.out
    assert "llamacpp:MODEL start its server at http://127.0.0.1:9/v1, or set LLAMACPP_BASE_URL" in told
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
    assert {name for name, row in found.items() if row["usable"]} == {
        "offline", "openai", "openai-responses", "ollama", "local",
    }  # fmt: skip
    assert found["openai"]["model"] == "openai:gpt-5-mini"
    assert found["ollama"]["why"].startswith("a server answers at http://127.0.0.1:")
    assert "made up" not in ran.out
    assert found["deepseek"]["can"]["schema"] == "json"
    assert found["groq"]["can"]["with_tools"] is True  # its prompt says so in words


def test_what_the_models_of_each_provider_can_do_stands_in_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row each, in columns, within a hundred characters."""
    monkeypatch.delenv("AZURE_BASE_URL")
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    ran = run(capsys, monkeypatch, "models")
    heading, *lines = ran.out.split("\n\n")[1].splitlines()
    assert heading.split("  ")[0] == "can"
    assert {line.split()[0] for line in lines} == {example(name) for name in PROVIDERS} - {"local:FILE.gguf"}
    assert all(len(line) <= 100 for line in lines)
    for column in ("images", "audio", "files", "tools", "schema", "with tools", "search", "thinking"):
        at = heading.index(column)
        assert all(line[at - 1 : at] in {" ", ""} for line in lines)
        assert all(line[at : at + 1].strip() for line in lines)
    groq = next(line for line in lines if line.startswith("groq:"))
    assert groq.split()[1:] == ["yes", "-", "-", "yes", "prompt", "yes", "-", "adaptive"]


def test_a_model_s_card_is_told_in_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is missing to use it here; as JSON, field by field."""
    ran = run(capsys, monkeypatch, "models", "openai:gpt-5-mini")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "openai:gpt-5-mini"
    for told in ("reads up to 400,000 tokens", "reads text, images, files", "calls tools", "set OPENAI_API_KEY"):
        assert any(told in line for line in lines), told
    held = json.loads(run(capsys, monkeypatch, "models", "groq:compound", "--json").out)
    assert (held["model"], held["usable"], held["card"]["tools"]) == ("groq:compound", False, False)
    ran = run(capsys, monkeypatch, "models", "groq:compound")
    assert "takes no tools" in ran.out
    assert "schema stands in the prompt" in ran.out


def test_what_a_model_s_wire_refuses_is_told_in_the_words_of_the_refusal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, below the card; as JSON by the thing that was asked. They are those of the error of a request."""
    ran = run(capsys, monkeypatch, "models", "openai-responses:gpt-5-mini")
    head, refused = ran.out.split("  refuses, before anything is sent:\n")
    told = [line.strip() for line in refused.splitlines() if line.startswith("    ")]
    assert "audio" not in head
    assert told.count("audio: Responses takes none") == 1
    assert {"a seed: Responses takes none", "stop sequences: Responses takes none"} < set(told)
    held = json.loads(run(capsys, monkeypatch, "models", "openai-responses:gpt-5-mini", "--json").out)["refuses"]
    assert sorted({one for each in held.values() for one in each}) == sorted(told)
    assert held["audio as bytes"] == held["audio by URL"] == ["audio: Responses takes none"]
    assert "temperature" not in held
    asking = preset("openai-responses:gpt-5-mini", seed=1)
    with pytest.raises(ModelError, match="a seed: Responses takes none") as caught:
        Agent(asking).turn_sync("Hello")
    assert "onrecord models NAME" in caught.value.hint
    assert "refuses" not in run(capsys, monkeypatch, "models", "offline").out


def test_what_a_thinking_model_does_not_take_beside_it_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals of two wishes at once stand in the list, since neither alone is refused."""
    ran = run(capsys, monkeypatch, "models", "anthropic:claude-sonnet-4-5")
    assert "temperature 0.5 with thinking: a model that thinks takes the default" in ran.out
    assert "a tool choice 'required' with thinking: a model that thinks chooses itself" in ran.out


def test_providers_stand_in_the_order_of_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The four wires beside each other, first of those that need a key."""
    lines = run(capsys, monkeypatch, "models").out.split("\n\n")[0].splitlines()
    named = [line.split()[1].partition(":")[0] for line in lines]
    assert named == ["offline", *(name for name in PROVIDERS if name != "offline")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nope:m",), "unknown model provider"),
        (("openai",), "names no model"),
        (("probe",), "probe takes one model"),
        (("probe", "qwen3"), "--at URL asks a server of your own"),
        (("probe", "offline"), "is no endpoint"),
        (("probe", "groq:m", "groq:n"), "probe takes one model"),
        (("porbe", "groq:m"), "did you mean 'probe'?"),
        (("groq:m", "--at", "http://localhost:1/v1"), "go with probe"),
        (("probe", "groq:m", "--key", "SOME_KEY"), "--key goes with --at"),
        (("probe", "m", "--at", "http://localhost:1/v1", "--key", "NO_SUCH_KEY"), "is not set"),
        (("probe", "m", "--at", "localhost"), "has no http address"),
        (("probe", "groq:m", "--samples", "0"), "no number from 1 to 20"),
    ],
)
def test_what_leads_nowhere_is_wrong_usage(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line and a hint, and exit code 2."""
    ran = run(capsys, monkeypatch, "models", *arguments)
    assert ran.code == 2, ran
    assert told in ran.err
    assert "hint:" in ran.err


def test_a_real_endpoint_is_asked_and_its_card_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings line by line, then the card; the key is nowhere."""
    monkeypatch.setenv("VLLM_API_KEY", SECRET)
    with served(answering_as(schema="refused")) as server:
        monkeypatch.setenv("VLLM_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
        ran = run(capsys, monkeypatch, "models", "probe", "vllm:small", "--samples", "1")
        assert ran.code == 0, ran
        assert ran.out.startswith(f"vllm:small at http://127.0.0.1:{server.port}/v1\n  streaming  yes  the answer")
        assert "\n  schema     yes  native: " in ran.out
        assert "typed output: JSON is enforced, its schema stands in the prompt" in ran.out
        assert {one.fields["authorization"] for one in server.requests} == {f"Bearer {SECRET}"}
    assert SECRET not in ran.out + ran.err


def test_a_server_by_its_address_is_asked_and_the_card_is_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One object: what was found, how tools go with a schema, the card."""
    monkeypatch.setenv("MY_SERVER_KEY", SECRET)
    with served(answering_as()) as server:
        at = ("--at", f"http://127.0.0.1:{server.port}/v1", "--key", "MY_SERVER_KEY")
        ran = run(capsys, monkeypatch, "models", "probe", "small", *at, "--samples", "1", "--json")
        keys = {one.fields["authorization"] for one in server.requests}
    assert (ran.code, keys) == (0, {f"Bearer {SECRET}"})
    held = json.loads(ran.out)
    assert [(one["name"], one["works"]) for one in held["found"]] == [
        (name, True) for name in ("streaming", "tools", "schema", "tools with schema")
    ]
    assert held["json_with_tools"] == {
        "use": "response_format", "calls": {"response_format": 1, "prompt": 1}, "samples": 1,
    }  # fmt: skip
    assert (held["card"]["model"], held["card"]["structured"], held["error"]) == ("small", "native", None)
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize(
    ("wire", "name", "path", "asks"),
    [
        (CHAT, "m", "/v1/chat/completions", "/v1"),
        (CHAT, "openai:m", "/v1/chat/completions", "/v1"),
        (CHAT, "groq:m", "/v1/chat/completions", "/v1"),
        (RESPONSES, "openai-responses:m", "/v1/responses", "/v1"),
        (MESSAGES, "anthropic:m", "/v1/messages", ""),
        (GOOGLE, "google:m", "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta"),
    ],
)
def test_a_server_of_any_wire_is_asked_at_its_address(
    wire: Wire, name: str, path: str, asks: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the protocol that the name begins with, each way of asking for a schema; no vendor's key goes there."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(variable, SECRET)
    hello = SSE_HEAD + chunk(b"".join(wire.hello)) + LAST_CHUNK
    with served(answering(hello)) as server:
        at = ("--at", f"http://127.0.0.1:{server.port}{asks}", "--samples", "1")
        ran = run(capsys, monkeypatch, "models", "probe", name, *at)
    assert ran.code == 0, ran
    assert "streaming  yes  the answer came in 2 pieces" in ran.out
    assert "native: the answer does not fit; json: the answer does not fit; prompt: the answer does not fit" in ran.out
    assert {one.line for one in server.requests} == {f"POST {path} HTTP/1.1"}
    assert all(SECRET not in one.head.decode() for one in server.requests)


@pytest.mark.parametrize("as_json", [False, True])
def test_an_endpoint_that_fails_is_a_line_and_a_hint(
    as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, no traceback, no key: one that is not there, and one that refuses the key."""
    monkeypatch.setenv("OLLAMA_API_KEY", SECRET)
    options = ["--json"] if as_json else []
    ran = run(capsys, monkeypatch, "models", "probe", "ollama:m", *options)
    assert (ran.code, "cannot be reached" in ran.err, "Traceback" in ran.err) == (1, True, False)
    with served(answering(status(401))) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
        ran = run(capsys, monkeypatch, "models", "probe", "ollama:m", *options)
    assert (ran.code, "status 401" in ran.err, "OLLAMA_API_KEY" in ran.err) == (1, True, True)
    assert SECRET not in ran.out + ran.err
    if as_json:
        assert json.loads(ran.out)["error"]["kind"] == "auth"
