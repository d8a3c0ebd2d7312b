"""The example that asks four vendors in one conversation, over a server of each wire, and without keys."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from examples.four_vendors import FOUR, QUESTIONS, main
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, Peer, chunk, serving
from tests.providers.wires import CHAT, GOOGLE, KEY, MESSAGES, RESPONSES, Wire

pytestmark = pytest.mark.integration

PATHS: Mapping[str, Wire] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse": GOOGLE,
}
HEADERS = ("authorization", "authorization", "x-api-key", "x-goog-api-key")


async def all_four(peer: Peer) -> None:
    """A server that speaks each wire at its path, and says hello."""
    while True:
        asked = await peer.request()
        wire = PATHS[asked.line.split()[1]]
        await peer.send(SSE_HEAD + chunk(b"".join(wire.hello)) + LAST_CHUNK)


def set_up(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """The four vendors are behind the server."""
    for name, key, path in (
        ("OPENAI", "OPENAI", "/v1"),
        ("ANTHROPIC", "ANTHROPIC", ""),
        ("GOOGLE", "GEMINI", "/v1beta"),
    ):
        monkeypatch.setenv(f"{key}_API_KEY", KEY)
        monkeypatch.setenv(f"{name}_BASE_URL", f"http://127.0.0.1:{server.port}{path}")


@pytest.mark.parametrize("names", [FOUR, FOUR[::-1]], ids=["there", "back"])
async def test_one_conversation_goes_over_four_wires(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In either direction: the last vendor is shown all that was said at the others; each has its key in its place."""
    async with serving(all_four) as server:
        set_up(server, monkeypatch)
        await main(names)
    told = capsys.readouterr().out
    assert [line for line in told.splitlines() if line.endswith("> Hello")] == [f"{name}> Hello" for name in names]
    assert [one.line.split()[1] for one in server.requests] == [list(PATHS)[FOUR.index(name)] for name in names]
    for name, asked in zip(names, server.requests, strict=True):
        assert asked.fields[HEADERS[FOUR.index(name)]].removeprefix("Bearer ") == KEY
    last = server.requests[-1].body.decode()
    assert all(json.dumps(question) in last for question in QUESTIONS)
    assert last.count('"Hello"') == 3


async def test_a_vendor_without_a_key_says_which_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked in vain is not in the conversation."""
    async with serving(all_four) as server:
        set_up(server, monkeypatch)
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        await main()
    told = capsys.readouterr().out
    assert "anthropic:claude-sonnet-4-5> anthropic needs an API key and there is none: set the environment" in told
    assert told.count("> Hello") == len(server.requests) == 3
    assert QUESTIONS[2] not in server.requests[-1].body.decode()
