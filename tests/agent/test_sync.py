"""Turns without an event loop: from scripts, notebooks and threads, stopped by Ctrl-C, closed early."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ModelError, UsageError
from onrecord.session.session import Session
from onrecord.sync import background_loop
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.result import TurnResult
from tests.turn.acting import texts, tool
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


def test_a_turn_without_a_loop() -> None:
    """The same result as awaiting the turn."""
    agent = Agent(ScriptedModel("Hello.", "Hello."))
    result = agent.turn_sync("hi", session="s", effects=FakeEffects())
    assert result == asyncio.run(agent.turn("hi", session="s", effects=FakeEffects()))


async def test_a_turn_inside_a_running_loop() -> None:
    """A notebook's cell runs inside one; the turn runs on the library's own."""
    result = Agent(ScriptedModel("Hello.")).turn_sync("hi")
    assert (result.text, background_loop() is asyncio.get_running_loop()) == ("Hello.", False)


def test_turns_from_several_threads() -> None:
    """They share one loop, and a session goes on from thread to thread."""
    agent = Agent(ScriptedModel(*["Hello."] * 80))
    loops: set[int] = set()

    def talk(n: int) -> Session | None:
        session: Session | None = None
        for _ in range(10):
            session = agent.turn_sync("hi", session=session or f"s{n}").session
            loops.add(id(background_loop()))
        return session

    with ThreadPoolExecutor(8) as threads:
        sessions = list(threads.map(talk, range(8)))
    assert [s and len(s.conversation.messages) for s in sessions] == [20] * 8
    assert len(loops) == 1


def test_a_stream_without_a_loop() -> None:
    """Words as they come, and last the result."""
    *words, result = Agent(ScriptedModel(["He", "llo", "."])).turn_stream_sync("hi")
    assert isinstance(result, TurnResult)
    assert ("".join(map(str, words)), result.text) == ("Hello.", "Hello.")


def test_a_stream_closed_early_stops_the_provider_call() -> None:
    """Leaving the loop closes the model's stream before it returns."""
    model = Halting(("He", WAIT, "llo"))
    stream = Agent(model).turn_stream_sync("hi")
    for word in stream:
        assert word == "He"
        break
    stream.close()  # type: ignore[attr-defined]  # a generator, and a for loop that ends drops it just so
    assert model.closed == ["CancelledError"]


def test_a_stream_that_is_never_read_asks_nobody() -> None:
    """It starts with its first word."""
    model = Halting()
    Agent(model).turn_stream_sync("hi").close()  # type: ignore[attr-defined]  # a generator
    assert model.requests == []


def test_errors_reach_the_caller() -> None:
    """As they are raised by the turn itself, in both forms."""
    agent = Agent(ScriptedModel(raises("overload"), ["He", raises("network")]))
    with pytest.raises(ModelError, match="overload"):
        agent.turn_sync("hi")
    with pytest.raises(ModelError, match="network") as told:
        list(agent.turn_stream_sync("hi"))
    assert told.value.result is not None


def test_a_blocking_call_inside_its_own_loop_is_refused() -> None:
    """An async tool that calls `turn_sync` would wait for itself; it is told what to do instead."""
    inner = Agent(ScriptedModel("inner"))

    async def asks(args: object, ctx: object) -> str:
        return inner.turn_sync("hi").text

    model = ScriptedModel([call("asks")], "Done.")
    assert Agent(model, tools=[tool("asks", asks)]).turn_sync("hi").text == "Done."
    assert "would wait for itself" in texts(model.requests[1])[0]
    assert inner.turn_sync("hi").text == "inner"
    with pytest.raises(UsageError) as told:
        asyncio.run_coroutine_threadsafe(asks({}, None), background_loop()).result(5)
    assert (told.value.code, bool(told.value.hint)) == ("sync-in-loop", True)


def test_a_plain_tool_may_take_a_turn_of_its_own() -> None:
    """It runs in a thread, where blocking holds nobody up."""
    inner = Agent(ScriptedModel("inner"))
    model = ScriptedModel([call("asks")], "Done.")
    agent = Agent(model, tools=[tool("asks", lambda *_: inner.turn_sync("hi").text)])
    assert agent.turn_sync("hi").text == "Done."
    assert texts(model.requests[1]) == ["inner"]


def interrupting(model: Halting) -> threading.Thread:
    """Presses Ctrl-C once the provider says nothing more."""

    def press() -> None:
        waiting = asyncio.run_coroutine_threadsafe(model.waiting.wait(), background_loop())
        waiting.result(10)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no Ctrl-C there")
@pytest.mark.parametrize("streams", [False, True])
def test_ctrl_c_stops_the_turn(streams: bool) -> None:
    """It reaches the caller as KeyboardInterrupt, the provider call ends, and the loop serves the next turn."""
    model = Halting(("He", WAIT), ("Hello.",))
    agent = Agent(model)
    thread = interrupting(model)
    try:
        with pytest.raises(KeyboardInterrupt):
            _ = list(agent.turn_stream_sync("hi")) if streams else agent.turn_sync("hi")
    finally:
        thread.join()
    assert agent.turn_sync("hi").text == "Hello."
    assert model.closed == ["CancelledError", "done"]


SCRIPT = """
import asyncio, gc
from onrecord.agent import Agent
from onrecord.testing import ScriptedModel, raises

def agent(): return Agent(ScriptedModel(["a", "b", raises("network")]))

async def unread():
    stream = agent().turn_stream("x")          # fails while nobody reads
    await stream.__aenter__()
    await asyncio.sleep(0.01)
    await stream.__aexit__(None, None, None)

async def half_read():
    async for _ in agent().turn_stream("x"):   # fails behind the break
        await asyncio.sleep(0.01)
        break
    await asyncio.sleep(0.01)

async def dropped():
    iterator = aiter(agent().turn_stream("x"))
    await anext(iterator)
    await asyncio.sleep(0.01)
    del iterator
    gc.collect()
    await asyncio.sleep(0.01)

async def cancelled():
    task = asyncio.ensure_future(agent().turn_stream("x").result())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

async def left_running():
    iterator = aiter(agent().turn_stream("x")) # the program ends in the middle of a turn
    await anext(iterator)

for case in (unread, half_read, dropped, cancelled, left_running):
    asyncio.run(case())
    gc.collect()

stream = agent().turn_stream_sync("x")         # closed by the end of the program
next(stream)
print("end")
"""


def test_no_failure_is_reported_as_never_retrieved() -> None:
    """Streams that fail unread, are dropped or are cut by the end of the program: nothing on standard error."""
    done: Any = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
