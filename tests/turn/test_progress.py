"""What a tool tells of its progress reaches those who read along, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.conversation.outgoing import CallDelta, Delta, ProgressDelta
from onrecord.honesty import Commentary
from onrecord.record.jsonl import EntryCodec
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.call_context import LONGEST_PROGRESS
from onrecord.turn.take import Order, take
from tests.turn.acting import turn

pytestmark = pytest.mark.unit


async def read_along(handler: Any) -> tuple[list[Delta], Any]:
    """A turn that calls a tool: its deltas and its result."""
    agent = Agent(ScriptedModel([call("work")], "Done."), tools=[Tool("work", handler, "Works.")])
    stream = agent.turn_stream("go")
    deltas = [delta async for delta in stream]
    return deltas, await stream.result()


def told(deltas: list[Delta]) -> list[str]:
    """What is told of calls, in order."""
    return [
        d.status if isinstance(d, CallDelta) else d.message for d in deltas if isinstance(d, CallDelta | ProgressDelta)
    ]


async def by_itself(args: Any, ctx: ToolContext[Any]) -> str:
    """A handler of the turn's own loop."""
    ctx.progress("page 1")
    await asyncio.sleep(0)
    ctx.progress("page 2")
    return "ok"


def in_a_thread(args: Any, ctx: ToolContext[Any]) -> str:
    """A handler that runs in a thread."""
    ctx.progress("page 1")
    ctx.progress("page 2")
    return "ok"


@pytest.mark.parametrize("handler", [by_itself, in_a_thread])
async def test_progress_is_told_while_a_call_runs(handler: Any) -> None:
    """In its order, between the beginning and the end; none of it is on the record."""
    deltas, result = await read_along(handler)
    assert told(deltas) == ["asked", "page 1", "page 2", "returned"]
    assert b"page 1" not in b"".join(EntryCodec().lines(result.entries))


@pytest.mark.parametrize("handler", [by_itself, in_a_thread])
async def test_whoever_reads_along_is_told_on_the_loop(handler: Any) -> None:
    """Also by a handler that runs in a thread: readers need no locks."""
    agent = Agent(ScriptedModel([call("work")], "Done."), tools=[Tool("work", handler, "Works.")])
    threads = set[int]()
    order = Order(input=Said("go"), session=SessionKey("s"), emit=lambda _: threads.add(threading.get_ident()))
    await take(agent.plan, order, FakeEffects())
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("odd", [object(), None, b"x", {"deep": object()}, 7, "\ud800", "x" * 10_000])
async def test_d62_progress_never_fails_a_call(odd: Any) -> None:
    """Whatever is told, and after the call is over; what is no text only says that it goes on. Texts are cut."""
    kept: list[ToolContext[Any]] = []

    async def handler(args: Any, ctx: ToolContext[Any]) -> str:
        kept.append(ctx)
        ctx.progress(odd)
        return "ok"

    deltas, result = await read_along(handler)
    kept[0].progress("too late")
    (one,) = [delta.message for delta in deltas if isinstance(delta, ProgressDelta)]
    assert bool(one) == isinstance(odd, str)
    assert len(one.encode()) <= LONGEST_PROGRESS + 3
    assert result.text == "Done."


async def test_nobody_needs_to_read_along() -> None:
    """Then it comes to nothing."""
    agent = Agent(ScriptedModel([call("work")], "Done."), tools=[Tool("work", by_itself, "Works.")])
    assert (await turn(agent)).text == "Done."


async def test_a_status_tells_the_progress_of_the_call_that_told_last() -> None:
    """With words as they are, without them as a count; and instead of the line of that tool."""
    line = Commentary(status={"tool.work": "Working…"}).follow()
    deltas, _ = await read_along(by_itself)
    assert [line.see(delta) for delta in deltas] == ["Working…", "page 1", "page 2", "I am thinking…", "Done."]
    for id in ("a", "b"):
        line.see(CallDelta(id=id, name=id, status="asked"))
    assert line.text == "I am using b…"
    assert line.see(ProgressDelta(id="a", name="a")) == "I am still using a… (1)"
    assert line.see(ProgressDelta(id="a", name="a", message=" ")) == "I am still using a… (2)"
    assert line.see(ProgressDelta(id="b", name="b", message="x" * 300)) == "x" * 119 + "…"
    assert line.see(CallDelta(id="b", name="b", status="returned")) == "I am still using a… (2)"
    assert line.see(CallDelta(id="a", name="a", status="returned")) == "I am thinking…"
    assert line.see(CallDelta(id="a", name="a", status="asked")) == "I am using a…"
