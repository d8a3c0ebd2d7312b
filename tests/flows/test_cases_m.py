"""Cases M of the specification that concern tools while a step speaks: rounds, gates, values, order and caps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from onrecord.conversation.transcript import history_of
from onrecord.flows import Flow, OnMessage, Talk
from onrecord.jsonio import Json
from onrecord.models.request import Request
from onrecord.testing import call, reply, shown
from onrecord.testing.scripted import Reply
from onrecord.tools.tool import Permission, Tool, ToolResult
from tests.flows.playing import Play, Result, says, told

pytestmark = pytest.mark.unit

DONE = says("Done.")


def talks(*tools: str) -> Flow:
    """A flow that takes any message and answers it; with tools of its own where they are named."""
    return Flow("f", on=[OnMessage()], steps=[Talk("Answer.", id="t", tools=list(tools) or None)])


def with_calls(message: str, *calls: Any) -> Reply:
    """An envelope with tool calls beside it."""
    return reply(*says(message).chunks, *calls)


def results(request: Request) -> list[str]:
    """What the model reads of its calls."""
    seen: Any = shown(request)["messages"]
    return [m["content"] for m in seen if m["role"] == "tool"]


async def used(tool: Tool, *, name: str = "", **args: Json) -> tuple[Play, Result]:
    """One round that calls a tool, and one that answers."""
    play = Play(talks(), tools=[tool])
    return play, await play.said(speak=[with_calls("", call(name or tool.id, **args)), DONE])


PRICE = Tool("price", lambda *_: {"total": 1500})
NATIVE = with_calls("Let me see", call("price", n=30))
ENVELOPED = says("Let me see", toolCalls=[{"toolName": "price", "arguments": {"n": 30}}])
SNAKE = says("Let me see", tool_calls=[{"tool_name": "price", "arguments": '{"n": 30}'}])


@pytest.mark.parametrize("first", [NATIVE, ENVELOPED, SNAKE], ids=["native", "enveloped", "snake"])
async def test_m5_tool_round(first: Reply) -> None:
    """The second call sees the words and the call of the first, and the tool's value; only its own words go out."""
    play = Play(talks(), tools=[PRICE])
    result = await play.said("How much?", speak=[first, says("1500")])
    assert shown(play.requests[1])["messages"] == [
        {"role": "user", "content": "How much?"},
        {"role": "assistant", "content": "Let me see", "calls": [{"name": "price", "args": {"n": 30}}]},
        {"role": "tool", "name": "price", "content": '{"total":1500}'},
    ]
    assert [m.text for m in result.messages] == ["1500"]
    history: list[Any] = history_of(play.kept.conversation.messages)
    assert history[1]["content"] == "Let me see"
    assert [c["id"] for c in history[1]["tool_calls"]] == ["call-0-0"]


async def test_m6_unknown_tool() -> None:
    """A tool that was not offered in this step is not there, even where the agent has it."""
    play = Play(talks("price"), tools=[PRICE, Tool("gone", lambda *_: 1)])
    await play.said(speak=[with_calls("", call("gone")), DONE])
    assert results(play.requests[1]) == ['{"error":"Tool \\"gone\\" is not available."}']


async def test_m8_permission() -> None:
    """A denial without a reason says so much; one with a reason gives it."""
    ran: list[object] = []
    for reason, read in (("", "not allowed"), ("sign in first", "sign in first")):
        denied = Permission(allowed=False, reason=reason)
        tool = Tool("book", lambda *_: ran.append(1), check_permissions=lambda *_, d=denied: d)
        play, _ = await used(tool)
        assert results(play.requests[1]) == [f'{{"error":"Permission denied: {read}"}}']
    assert ran == []


async def test_m9_raises() -> None:
    """What a handler raises is told to the model, and the turn still ends with a message."""

    def fails(args: object, ctx: object) -> object:
        raise RuntimeError("sheet offline")

    play, result = await used(Tool("sheet", fails))
    assert results(play.requests[1]) == ['{"error":"sheet offline"}']
    assert [m.text for m in result.messages] == ["Done."]


@pytest.mark.parametrize(
    ("handler", "limit", "read"),
    [
        (lambda *_: "plain text", None, "plain text"),
        (lambda *_: ToolResult(), None, '{"ok":true}'),
        (lambda *_: "x" * 30, 10, "xxxxxxxxxx\n[truncated: 30 chars total, showing the first 10]"),
    ],
    ids=["text", "nothing", "long"],
)
async def test_m10_values(handler: Callable[..., Any], limit: int | None, read: str) -> None:
    """Text as it is, no value as ok, and what is too long cut with a note."""
    play, _ = await used(Tool("lookup", handler, max_result_size_chars=limit))
    assert results(play.requests[1]) == [read]


def logged(name: str, log: list[str], **flags: Any) -> Tool:
    """A tool that logs when it starts and ends, gives way in between, and writes its name into a field."""

    async def handler(args: object, ctx: object) -> ToolResult:
        log.append(f"{name}:start")
        for _ in range(3):
            await asyncio.sleep(0)
        log.append(f"{name}:end")
        return ToolResult(name, data={"name": name, name: True})

    return Tool(name, handler, **flags)


async def test_m11_concurrency() -> None:
    """Safe calls beside each other run together, any other alone and in order."""
    log: list[str] = []
    safe: dict[str, Any] = {"concurrency_safe": True}
    play = Play(talks(), tools=[logged("a", log, **safe), logged("b", log, **safe), logged("c", log)])
    await play.said(speak=[with_calls("", call("a"), call("b"), call("c")), DONE])
    assert log == ["a:start", "b:start", "a:end", "b:end", "c:start", "c:end"]


async def test_m11_a_destructive_call_runs_alone() -> None:
    """Also one that says that it is safe."""
    log: list[str] = []
    safe: dict[str, Any] = {"concurrency_safe": True}
    play = Play(talks(), tools=[logged("a", log, destructive=True, **safe), logged("b", log, **safe)])
    await play.said(speak=[with_calls("", call("a"), call("b")), DONE])
    assert log == ["a:start", "a:end", "b:start", "b:end"]


async def test_m11_data_in_call_order() -> None:
    """Whoever finishes first, what the calls write is merged in the order in which they were asked for."""
    finished = asyncio.Event()

    async def first(args: Mapping[str, Json], ctx: object) -> ToolResult:
        await finished.wait()
        return ToolResult("a", data={"name": "a", "company": "a"})

    async def second(args: Mapping[str, Json], ctx: object) -> ToolResult:
        finished.set()
        return ToolResult("b", data={"name": "b"})

    tools = [Tool("a", first, concurrency_safe=True), Tool("b", second, concurrency_safe=True)]
    play = Play(talks(), tools=tools)
    await play.said(speak=[with_calls("", call("a"), call("b")), DONE])
    assert play.data == {"name": "b", "company": "a"}


async def test_m12_cap() -> None:
    """After the last round with tools one more is asked for without them, and it is told so."""
    play = Play(talks(), tools=[PRICE], rounds=2)
    asks = with_calls("Let me see", call("price"))
    result = await play.said(speak=[asks, asks, with_calls("It is 1500.", call("price"))])
    assert [shown(r)["tools"] for r in play.requests] == [["price"], ["price"], []]
    assert ["Do not call any tools." in told(r) for r in play.requests] == [False, False, True]
    assert [m.text for m in result.messages] == ["It is 1500."]


async def test_m13_zero() -> None:
    """With no rounds no tool is ever offered, whatever the step lists."""
    play = Play(talks("price"), tools=[PRICE], rounds=0)
    await play.said(speak=[DONE])
    assert [shown(r)["tools"] for r in play.requests] == [[]]
    assert "Do not call any tools." not in told(play.requests[0])
