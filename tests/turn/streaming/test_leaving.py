"""A reader that leaves early: the provider call stops, what was shown is kept, and nothing is left running."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.outgoing import Delta, TextDelta
from onrecord.turn.stream import TurnStream
from tests.turn.interrupting.live import WAIT, Halting, stream, until
from tests.turn.pausing.asking import checked

pytestmark = pytest.mark.unit

Leaver = Callable[[TurnStream[Any], Halting], Awaitable[None]]


def told(delta: Delta) -> str:
    """Its words."""
    return delta.text if isinstance(delta, TextDelta) else ""


async def by_break(stream: TurnStream[Any], model: Halting) -> None:
    """Stops in the middle of the deltas."""
    async for delta in stream:
        if told(delta) == "llo":
            break


async def by_break_in_text(stream: TurnStream[Any], model: Halting) -> None:
    """Stops in the middle of the words."""
    async for text in stream.text:
        if text == "llo":
            break


async def by_exit(stream: TurnStream[Any], model: Halting) -> None:
    """Comes to the end of its block."""
    async with stream:
        await until(model.waiting)


async def by_error(stream: TurnStream[Any], model: Halting) -> None:
    """Fails in its block."""
    with suppress(KeyError):
        async with stream:
            await until(model.waiting)
            raise KeyError


async def by_leaving(stream: TurnStream[Any], model: Halting) -> None:
    """Says so."""
    async for delta in stream:
        if told(delta) == "llo":
            await stream.leave()


async def by_aclose(stream: TurnStream[Any], model: Halting) -> None:
    """Closes what it reads from."""
    async with aclosing(stream.batches()) as batches:
        await anext(batches)
        await until(model.waiting)


async def by_dropping(stream: TurnStream[Any], model: Halting) -> None:
    """Forgets what it reads from."""
    reading = aiter(stream)
    await anext(reading)
    await until(model.waiting)
    del reading
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)


async def by_cancelling_the_reader(stream: TurnStream[Any], model: Halting) -> None:
    """Is cancelled while it reads."""

    async def read() -> None:
        async for _ in stream:
            pass

    await cancelled(asyncio.ensure_future(read()), model)


async def by_cancelling_the_result(stream: TurnStream[Any], model: Halting) -> None:
    """Is cancelled while it waits for the result."""
    await cancelled(asyncio.ensure_future(stream.result()), model)


async def by_a_timeout(stream: TurnStream[Any], model: Halting) -> None:
    """Runs out of time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(None) as limit:
            async for delta in stream:
                if told(delta) == "llo":
                    limit.reschedule(0)


async def cancelled(task: asyncio.Future[Any], model: Halting) -> None:
    """Cancels the consumer once the model has nothing more to say."""
    await until(model.waiting)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


LEAVERS: list[Leaver] = [
    by_break, by_break_in_text, by_exit, by_error, by_leaving, by_aclose, by_dropping, by_cancelling_the_reader,
    by_cancelling_the_result, by_a_timeout,
]  # fmt: skip


@pytest.mark.parametrize("leaver", LEAVERS, ids=lambda f: f.__name__)
async def test_leaving_stops_the_provider_call_and_keeps_what_was_shown(leaver: Leaver) -> None:
    """However the reader leaves, the result is there, interrupted, and the model's stream was closed."""
    model = Halting(("he", "llo", WAIT, " world"))
    agent = Agent(model)
    reading = stream(agent, session="s")
    await leaver(reading, model)
    result = await reading.result()
    assert (result.status, model.closed) == ("interrupted", ["CancelledError"])
    assert result.session is not None
    last = result.session.conversation.messages[-1]
    assert (getattr(last, "text", ""), getattr(last, "interrupted", "")) == ("hello", "left")
    assert await reading.result() is result
    checked(agent, result)


async def test_a_stream_that_nobody_keeps_is_stopped_too() -> None:
    """Iterator and stream dropped together: the provider call ends all the same."""
    model = Halting(("he", WAIT))
    reading = stream(Agent(model))
    iterator = aiter(reading)
    await anext(iterator)
    await until(model.waiting)
    del iterator, reading
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert model.closed == ["CancelledError"]


async def test_a_stream_that_was_never_read_leaves_nothing() -> None:
    """It starts no task and asks no model."""
    model = Halting()
    reading = stream(Agent(model))
    await reading.leave()
    del reading
    gc.collect()
    assert (model.requests, len(asyncio.all_tasks())) == ([], 1)


async def test_a_stream_left_before_its_turn_began_keeps_the_message() -> None:
    """Entered and left at once: no model is asked, and what the person wrote stays, unanswered."""
    model = Halting()
    agent = Agent(model)
    async with stream(agent, "hello?", session="s") as reading:
        pass
    result = await reading.result()
    assert (result.status, model.requests) == ("interrupted", [])
    assert result.session is not None
    assert [getattr(m, "text", "") for m in result.session.conversation.messages] == ["hello?"]
    checked(agent, result)


async def test_leaving_a_turn_that_is_over_changes_nothing() -> None:
    """A break at the last delta finds the turn answered."""
    model = Halting(("he", "llo"))
    reading = stream(Agent(model))
    async for delta in reading:
        for _ in range(10):
            await asyncio.sleep(0)
        assert told(delta)
        break
    result = await reading.result()
    assert (result.status, result.text, model.closed) == ("answered", "hello", ["done"])


async def test_a_cancelled_turn_is_simply_gone() -> None:
    """`asyncio.timeout` around a plain turn: the provider call stops and nothing is kept, since nobody saw anything."""
    model = Halting(("he", WAIT), ("hello",))
    agent = Agent(model)

    async def briefly() -> None:
        async with asyncio.timeout(None) as limit:
            asyncio.get_running_loop().call_soon(limit.reschedule, 0)
            await agent.turn("hi", session="s")

    with pytest.raises(TimeoutError):
        await briefly()
    assert model.closed == ["CancelledError"]
    assert (await agent.turn("hi", session="s")).text == "hello"


async def test_who_only_waits_for_the_result_leaves_alone() -> None:
    """Somebody else reads on: the turn is theirs still."""
    model = Halting(("he", "llo", WAIT, " world"))
    reading = stream(Agent(model), session="s")

    async def read() -> str:
        return "".join([text async for text in reading.text])

    reader, waiter = asyncio.ensure_future(read()), asyncio.ensure_future(reading.result())
    await cancelled(waiter, model)
    model.gate.set()
    assert await reader == "hello world"
    assert ((await reading.result()).status, model.closed) == ("answered", ["done"])
