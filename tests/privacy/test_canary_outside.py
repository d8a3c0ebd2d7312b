"""A turn over HTTP with everything switched on that logs: files, logs and servers see what they must and no more."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.net import transport
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel, call
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, chunk, serving
from tests.providers.chat_server import delta, each, model_at, sse
from tests.turn.acting import tool

if TYPE_CHECKING:
    from tests.privacy.conftest import Canary

pytestmark = pytest.mark.integration


def slow_loop() -> asyncio.AbstractEventLoop:
    """The running loop, which from here on logs every callback that it runs, as debug mode does with slow ones."""
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 0
    return loop


def seen(folder: Path, canary: Canary) -> int:
    """How many files there are; none of them holds the canary."""
    files = list(folder.iterdir())
    for file in files:
        canary.absent_from(file.name, file.read_bytes())
    return len(files)


async def test_no_log_of_a_turn_over_http_holds_content(canary: Canary, tmp_path: Path) -> None:
    """All loggers at DEBUG, asyncio's debug mode, tools in threads and side by side, a stream, a store."""
    loop = slow_loop()
    asks = call("lookup", word=canary.text)
    tools = [tool(handler=lambda *_: f"a longer result with {canary.text}", read_only=True)]
    script = ScriptedModel([canary.text, asks, asks, asks], canary.text)
    said = sse(delta(f"words and {canary.text}"), delta(finish="stop"))
    try:
        async with serving(each(SSE_HEAD + chunk(said) + LAST_CHUNK)) as server:
            over_http = Agent(model_at(server, api_key=canary.text, headers={"x-key": canary.text}))
            for agent in (Agent(script, tools=tools, instructions=canary.text), over_http, over_http):
                result = await agent.turn(canary.text)
                async with SqliteStore(tmp_path / f"{len(server.requests)}.db") as store:
                    stored = await store.commit(result.change())
                    assert await store.load(stored.key) is not None
                    assert [entry async for entry in store.entries(stored.key)]
            assert [text async for text in over_http.turn_stream(canary.text).text]
            assert server.requests[0].fields["authorization"] == f"Bearer {canary.text}"
    finally:
        await transport.close()
        loop.set_debug(False)


async def test_a_store_file_holds_no_key_no_header_and_nothing_private(canary: Canary, tmp_path: Path) -> None:
    """Neither the file nor what SQLite keeps beside it."""

    async def asks(args: Any, ctx: Any) -> None:
        await ctx.ask(Ask("May I?", private={"url": canary.text}))

    calls = sse(
        delta(tool_calls=[{"index": 0, "id": "i", "function": {"name": "lookup", "arguments": "{}"}}]),
        delta(finish="tool_calls"),
    )
    async with serving(each(SSE_HEAD + chunk(calls) + LAST_CHUNK)) as server:
        model = model_at(server, api_key=canary.text, headers={"x-key": canary.text})
        result = await Agent(model, tools=[tool(handler=asks)]).turn("hi")
        assert (result.status, result.private) == ("paused", {"url": canary.text})
        store = SqliteStore(tmp_path / "talk.db")
        await store.commit(result.change())
        assert seen(tmp_path, canary) >= 1
        await store.close()
    assert seen(tmp_path, canary) >= 1


async def test_a_turn_leaves_nothing_in_the_folder_for_temporary_files(
    canary: Canary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large parts and results stay in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    large = f"{canary.text} " * 100_000
    agent = Agent(ScriptedModel([call("lookup", word=large)], large), tools=[tool(handler=lambda *_: large)])
    await agent.turn(large)
    assert seen(tmp_path, canary) == 0
