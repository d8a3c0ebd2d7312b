"""``local:`` from name to reply, over a real process and a real socket, with a pretended wheel."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import UserMessage
from onrecord.errors import ModelError
from onrecord.jsonio import loads
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.names import model_named
from onrecord.models.request import Offer, Piece, Request, Settings, Span, ToolSpec, View
from onrecord.providers.local import process as module
from onrecord.providers.local.client import LocalModel, local
from onrecord.tools.tool import Tool
from tests.providers.gguf_files import WHEEL, asked, scripted

pytestmark = pytest.mark.integration

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Offer(
    tool=Tool("weather", print, parameters=CITY),
    spec=ToolSpec(name="weather", description="The weather.", schema=CITY),
)


@pytest.fixture(autouse=True)
def _wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(WHEEL))
    yield
    module.stop_all()
    module._processes.clear()


def model(file: Path) -> LocalModel:
    """The model of a file."""
    found = local(file)
    assert isinstance(found, LocalModel)
    return found


def request(model: LocalModel, **more: Any) -> Request:
    """A request after one message."""
    return Request(
        purpose="speak",
        where="main/r1",
        pieces=(Piece(source="instructions", text="Be brief."),),
        conversation=Conversation.of([UserMessage(id="u1", content=(Text("Hello"),))]),
        own=1,
        view=View(spans=(Span(0, 1),)),
        model=model,
        settings=Settings(temperature=0.5, max_tokens=9),
        **more,
    )


def stream(model: LocalModel, **more: Any) -> AsyncGenerator[Chunk, None]:
    """The reply to it."""
    return model.stream(request(model, **more))


def running(model: LocalModel) -> bool:
    """Whether its process runs."""
    return model.process.pid is not None


async def said(model: LocalModel, **more: Any) -> list[Chunk]:
    """The whole reply."""
    return [chunk async for chunk in stream(model, **more)]


async def test_a_reply_streams_and_the_process_is_shared(tmp_path: Path) -> None:
    """Two models of one file have one process."""
    file = scripted(tmp_path / "m.gguf", ["Hel", "lo"], ["Again"])
    held = model(file)
    assert held.process.pid is None
    assert [c.text for c in await said(held) if isinstance(c, TextChunk)] == ["Hel", "lo"]
    again = model_named(f"local:{file}")
    assert isinstance(again, LocalModel)
    assert again.process is held.process
    assert await said(again) == [TextChunk("Again"), Finished(finish="stop", model="pretended")]


async def test_what_is_sent_is_what_the_wire_says(tmp_path: Path) -> None:
    """Known before anything runs, and equal with and without the wire in the request."""
    file = scripted(tmp_path / "m.gguf", ["Hello"])
    held = model(file)
    wire = held.wire(request(held, offers=(WEATHER,)))  # before anything runs
    assert held.process.pid is None
    await said(held, offers=(WEATHER,))
    await said(held, offers=(WEATHER,), wire=wire)
    assert asked(file) == [loads(wire.body)] * 2
    body = loads(wire.body)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert (body["model"], body["max_tokens"], body["return_progress"]) == ("m.gguf", 9, True)
    assert body["tools"][0]["function"]["name"] == "weather"
    assert held.extend(request(held)) == 0


async def test_a_call_written_into_a_fence_is_a_call(tmp_path: Path) -> None:
    """As Qwen2.5-Coder writes them."""
    pieces = ["```json\n", '{"name": "weather",', ' "arguments": {"city": "Oslo"}}', "\n```"]
    found = await said(model(scripted(tmp_path / "m.gguf", pieces)), offers=(WEATHER,))
    assert found == [
        CallChunk(wire_id="text-0", name="weather", raw_args='{"city": "Oslo"}'),
        Finished(finish="calls", model="pretended"),
    ]


async def test_a_call_the_server_recognised_is_a_call(tmp_path: Path) -> None:
    """llama.cpp knows the marks of many templates; its calls pass."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    file = scripted(tmp_path / "m.gguf", [{"tool_calls": [call]}], finish="tool_calls")
    found = await said(model(file), offers=(WEATHER,))
    assert found[0] == CallChunk(wire_id="c1", name="weather", raw_args='{"city":"Oslo"}')
    assert isinstance(found[1], Finished)
    assert found[1].finish == "calls"


async def test_leaving_a_reply_hangs_up_on_the_server(tmp_path: Path) -> None:
    """That is how llama.cpp is told to stop."""
    file = scripted(tmp_path / "m.gguf", ["word "] * 500, pause_s=0.01)
    async with aclosing(stream(model(file))) as chunks:
        async for _ in chunks:
            break
    until = time.monotonic() + 5
    while not file.with_suffix(".left").exists() and time.monotonic() < until:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.01)
    assert file.with_suffix(".left").exists()


async def test_a_process_that_dies_says_so_and_comes_back(tmp_path: Path) -> None:
    """The next call starts another process."""
    file = scripted(tmp_path / "m.gguf", ["Hel", "<die>"])
    held = model(file)
    for _ in range(2):
        with pytest.raises(ModelError, match="ended during the reply") as caught:
            await said(held)
        assert (caught.value.kind, caught.value.started) == ("network", True)
        assert "context_tokens" in caught.value.hint


async def test_a_cut_connection_to_a_living_process_is_only_that(tmp_path: Path) -> None:
    """The error is the transport's, and the process is not blamed."""
    held = model(scripted(tmp_path / "m.gguf", ["Hel", "<cut>"]))
    with pytest.raises(ModelError, match="cut its answer off"):
        await said(held)
    assert running(held)


async def test_a_refusal_of_the_server_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation too long for its room is of kind ``context``, whatever becomes of the process after it."""
    error = {"code": 400, "type": "exceed_context_size_error", "message": "exceeds the available context size"}
    held = model(scripted(tmp_path / "m.gguf", error=error))
    with pytest.raises(ModelError) as caught:
        await said(held)
    assert (caught.value.kind, caught.value.status) == ("context", 400)
    assert held.process.pid is not None

    async def ended(_: object) -> bool:
        return True

    monkeypatch.setattr(module.ModelProcess, "ended", ended)
    with pytest.raises(ModelError) as caught:
        await said(held)
    assert caught.value.kind == "context"


async def test_prewarm_loads_and_close_unloads(tmp_path: Path) -> None:
    """At a time of the caller's choosing."""
    held = model(scripted(tmp_path / "m.gguf", ["Hello"]))
    await held.prewarm()
    pid = held.process.pid
    assert pid is not None
    await said(held)
    assert held.process.pid == pid
    held.close()
    assert not running(held)
    assert repr(held) == "LocalModel('local:m.gguf')"


def test_one_process_serves_one_loop_after_the_other(tmp_path: Path) -> None:
    """As in a notebook, or with `turn_sync`."""
    held = model(scripted(tmp_path / "m.gguf", ["Hello"]))
    pids = set()
    for _ in range(2):
        assert asyncio.run(said(held))[0] == TextChunk("Hello")
        pids.add(held.process.pid)
    assert len(pids) == 1
