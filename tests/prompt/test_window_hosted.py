"""Windows under a host, over a real wire and a file: counted by the vendor's own numbers, and over restarts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, Host
from onrecord import tool as declared
from onrecord.errors import ModelError, Unmeasurable
from onrecord.prompt import Artifacts, Window
from onrecord.stores import SqliteArtifacts, SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from tests.host.hosting import hosted, kinds
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Peer, chunk, serving
from tests.prompt.placing import scope
from tests.prompt.test_artifact_stores import traces
from tests.prompt.window_units import LONG, scribe
from tests.providers.chat_server import delta, model_at, sse, status
from tests.providers.vendor_rules import chat
from tests.turn.acting import read, tool

pytestmark = pytest.mark.integration

CANARY = "canary-7Q"


def answer(tokens: int, *calls: str) -> bytes:
    """A reply of the server that counted so many tokens: words, or a call of each of these tools."""
    asked = [{"index": n, "id": f"w{n}", "function": {"name": name, "arguments": "{}"}} for n, name in enumerate(calls)]
    said = delta(None, tool_calls=asked) if calls else delta(f"Well. {LONG}")
    usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 9}} if tokens else {"choices": []}
    return SSE_HEAD + chunk(sse(said, delta(finish="tool_calls" if calls else "stop"), usage)) + LAST_CHUNK


class Vendor:
    """A server that gives these answers and keeps what it was sent."""

    def __init__(self, *answers: bytes) -> None:
        self.answers, self.bodies = list(answers), list[dict[str, Any]]()

    async def __call__(self, peer: Peer) -> None:
        while True:
            self.bodies.append(json.loads((await peer.request()).body))
            chat(self.bodies[-1])
            await peer.send(self.answers.pop(0))


@asynccontextmanager
async def desk(vendor: Vendor, folder: Path, *features: Any) -> AsyncIterator[Host[Any, Any]]:
    """A host over a file, whose model is behind that server."""
    tools = [tool("look", lambda *_: f"{CANARY} {LONG}"), tool("find", lambda *_: LONG)]
    clock = FakeEffects()
    async with serving(vendor) as server, SqliteStore(folder / "talk.db", clock=clock.now) as store:
        agent: Agent[Any, Any] = Agent(model_at(server), tools=tools, features=features)
        async with hosted(agent, effects=clock, store=store) as host:
            yield host


async def removals(host: Host[Any, Any]) -> int:
    """How many are on the record."""
    return (await kinds(host)).count("context.evicted")


async def test_a_summary_outlives_the_process(tmp_path: Path) -> None:
    """The next one shows it at once, asks nobody again, and files nothing again; erased, it is in no file."""
    small = scribe(f"They met {CANARY}.", "never")
    window = Window.summarize(500, model=small, keep=2)
    vendor = Vendor(answer(90, "look", "find"), answer(900), answer(90), answer(90))
    async with desk(vendor, tmp_path, window) as host:
        await host.turn("s", f"My name is {CANARY}. {LONG}")
        await host.turn("s", "And now?")
        assert vendor.bodies[-1]["messages"][0]["content"].startswith("[compacted history")
        assert await removals(host) == 1
    async with desk(vendor, tmp_path, window) as host:
        await host.turn("s", "And then?")
        before, now = vendor.bodies[-2:]
        assert now["messages"][: len(before["messages"])] == before["messages"]
        assert (await removals(host), small.calls) == (1, ["consult"])
        assert traces(tmp_path, CANARY.encode())
        held = await host.store.load("s")
        assert held is not None
        await host.erase("s", messages=[held.conversation.messages[0].id], why="asked")
        assert traces(tmp_path, CANARY.encode()) == []


async def test_a_vendor_that_refuses_a_long_request_gets_a_shorter_one(tmp_path: Path) -> None:
    """By its own words, in the same turn; nobody had counted anything."""
    body = '{"error":{"code":"context_length_exceeded","message":"This model\'s maximum context length is 8 tokens."}}'
    too_long = status(400, body=body)
    vendor = Vendor(answer(9), answer(9), too_long, answer(9), *[too_long] * 2)
    async with desk(vendor, tmp_path, Window.budget(100_000, keep=2)) as host:
        for _ in range(3):
            assert (await host.turn("s", LONG)).status == "answered"
        lengths = [len(body["messages"]) for body in vendor.bodies]
        assert lengths == [1, 3, 5, 3]  # a notice, an answer, the question
        with pytest.raises(ModelError, match="context"):
            await host.turn("s", LONG)
        assert len(vendor.bodies) == 6


async def test_a_vendor_that_counts_nothing_is_told_apart(tmp_path: Path) -> None:
    """From one that counted little."""
    vendor = Vendor(answer(0), answer(9))
    async with desk(vendor, tmp_path, Window.budget(100_000)) as host:
        await host.turn("s", "hi")
        with pytest.raises(Unmeasurable, match="reported no usage"):
            await host.turn("s", "hi")


async def test_a_window_and_artifacts_each_do_their_part(tmp_path: Path) -> None:
    """Rows become tickets, old rounds leave with their tickets, and a ticket that left can still be spent."""
    kept = SqliteArtifacts(tmp_path / "artifacts.db")
    artifacts = Artifacts(100, store=kept)

    @artifacts.wants(rows="tool-result/look")
    @declared
    def count(rows: str) -> str:
        """Counts."""
        return f"{len(rows)} characters"

    model = ScriptedModel([call("look")], "done", "well", "well")
    agent = Agent(model, tools=[tool("look", lambda *_: LONG), count], features=[artifacts, Window.last(2)])
    async with SqliteStore(tmp_path / "talk.db") as store, hosted(agent, store=store) as host:
        await host.turn("s", LONG)
        (held,) = await kept.list(scope())
        for _ in range(2):
            await host.turn("s", LONG)
        assert held.ref not in str(read(model.requests[-1])["messages"])
        model.add([call("count", rows=held.ref)], "spent")
        result = await host.turn("s", "count them")
        assert result.text == "spent"
        assert f"{len(LONG)} characters" in str(read(model.requests[-1])["messages"])
    await kept.close()
