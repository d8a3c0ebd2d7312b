"""Connections to servers: when they end, what ends with them, and what is given to them."""

from __future__ import annotations

import asyncio
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.mcp_bridge import Stdio
from onrecord.testing import ScriptedModel, call
from onrecord.tools.toolset import OfferContext
from tests.host.hosting import settled
from tests.mcp_bridge.serving import RAW, Raw, asked, gone, is_running
from tests.turn.acting import results, texts

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("mcp") is None, reason='run: pip install "onrecord[mcp]"'),
]


async def test_a_turn_that_is_interrupted_tells_the_server(raw: Raw) -> None:
    """Cancelling the task of a turn takes the call back, and the connection stays."""
    async with raw.tools() as tools:
        running = asyncio.create_task(asked(tools, call("hang"), "done"))
        await settled(lambda: "tools/call hang" in raw.seen)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        result, _ = await asked(tools, call("echo", text="x"), "done")
        assert results(result) == [("echo", "returned")]
        assert (raw.starts, sum("cancelled" in line for line in raw.seen)) == (1, 1)


async def test_a_person_who_interrupts_does_not_wait_for_a_tool_that_only_reads(raw: Raw) -> None:
    """Where the server's hints are trusted; a call that may have changed something is waited for."""
    raw.lists({"name": "hang", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}})
    async with raw.tools(trusts_hints=True) as tools:
        agent = Agent(ScriptedModel(call("hang"), "done"), tools=[tools])
        async with agent.turn_stream("hi", session="s") as stream:
            running = asyncio.create_task(stream.result())
            await settled(lambda: "tools/call hang" in raw.seen)
            began = time.monotonic()
            await stream.leave()
            await running
        assert time.monotonic() - began < 2
        await settled(lambda: any("cancelled" in line for line in raw.seen))


async def test_idle_connections_are_closed_and_the_longest_unused_make_room(raw: Raw) -> None:
    """Each is opened again when it is needed."""
    tools = raw.tools(idle_s=0.15)
    await asked(tools, "a")
    pid = raw.pid
    assert is_running(pid)
    assert await gone(pid)
    result, _ = await asked(tools, call("echo", text="x"), "done")
    assert results(result) == [("echo", "returned")]
    await tools.aclose()
    tools = raw.tools(live=1)
    await asked(tools, "a", session="one")
    pid = raw.pid
    await asked(tools, "a", session="two")
    assert await gone(pid)
    assert is_running(raw.pid)
    await tools.aclose()


async def test_a_turn_whose_connection_made_room_calls_on_and_leaves_none(raw: Raw) -> None:
    """While its model thinks it uses none, and may be the longest unused; nothing is left open behind the call."""
    tools = raw.tools(live=1)
    offered = await tools.tools(OfferContext(turn="t", round=0, session=SessionKey("one")))
    await asked(tools, "a", session="two")
    second = raw.pid
    echo = next(each for each in offered if each.id == "echo")
    assert (await echo.handler({"text": "still"}, Called())).value == "still"
    assert await gone(raw.pid)
    assert is_running(second)
    await tools.aclose()
    assert not is_running(second)


class Called:
    """What the handler reads of its context."""

    key = "k"


def test_a_loop_that_ends_ends_its_servers(raw: Raw) -> None:
    """`asyncio.run` without closing anything: no process, no warning."""
    tools = raw.tools()
    asyncio.run(asked(tools, "a"))
    pid = raw.pid
    assert not is_running(pid)
    asyncio.run(asked(tools, call("echo", text="x"), "done"))
    assert not is_running(raw.pid)


async def test_a_server_that_does_not_want_to_end_is_killed_with_what_it_started(raw: Raw, tmp_path: Path) -> None:
    """It ignores its closed input and SIGTERM, and left a child behind."""
    script = (
        "trap '' TERM; sleep 300 & echo $! > " + str(tmp_path / "child") + f"; {raw.stdio.command[0]} -S {RAW} "
        f"{tmp_path}; sleep 300"
    )
    tools = raw.tools(source=Stdio(("sh", "-c", script), quiet=True))
    await asked(tools, "a")
    await tools.aclose()
    assert await gone(int((tmp_path / "child").read_text()), 2)
    assert await gone(raw.pid, 2)


async def test_a_secret_given_to_the_server_is_shown_nowhere(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    """Not even where the server repeats it."""
    asked_for: list[Any] = []

    async def env(ctx: Any) -> dict[str, str]:
        asked_for.append(ctx.session)
        return {"API_TOKEN": "tok-1234567890"}

    source = Stdio(raw.stdio.command, env=env, quiet=True)
    async with raw.tools(source=source) as tools:
        result, model = await asked(tools, call("env"), "done")
        assert texts(model.requests[1]) == ["[hidden]"]
        assert "tok-1234567890" not in repr((result, tools, source, caplog.text))
    assert [key.id for key in asked_for] == ["s"]
