"""Several hosts on one store: zombies, clocks that jump, loops that end early, forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, Said, ToolContext, tool
from onrecord.host import Host
from onrecord.record.kinds import TurnOpened
from onrecord.session.memory_store import MemoryStore
from onrecord.stores import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from tests.host.hosting import hosted, said, settled
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


async def turns(store: Any, session: str = "s") -> list[str]:
    """The ids of the turns that the record knows."""
    return [e.turn async for e in store.entries(session) if isinstance(e.body, TurnOpened)]


async def talk_is(host: Any, texts: list[str]) -> bool:
    """Whether the session holds these texts."""
    return await said(host) == texts


async def test_a_zombie_stores_nothing_and_tells_what_the_other_said() -> None:
    """Its lease ended while it waited for its model; another host took the row, and its reply is the one."""
    clock = FakeEffects()
    store = MemoryStore(clock=clock.now)
    slow, quick = Halting((WAIT, "From the grave.")), ScriptedModel("Alive.")
    async with hosted(Agent(slow), effects=clock, store=store, poll_s=60.0) as zombie:
        ticket = await zombie.send("s", "Hi")
        await slow.waiting.wait()
        clock.advance(seconds=16)
        async with hosted(Agent(quick), effects=clock, store=store) as other:
            other._desk.start()
            await settled(lambda: talk_is(other, ["Hi", "Alive."]))
            slow.gate.set()
            await settled(lambda: slow.closed)
            zombie._desk.start().tell(gone=True)
            assert (await ticket.result()).text == "Alive."
            assert await said(zombie) == ["Hi", "Alive."]
            assert len(await turns(store)) == 1


async def test_a_tool_that_blocks_its_process_over_the_lease_makes_no_second_turn(tmp_path: Path) -> None:
    """Another process takes the row meanwhile. Whichever commits first, the other one stores nothing."""
    began = threading.Event()

    @tool
    async def block(ctx: ToolContext[Any]) -> str:
        """Blocks the event loop, which no tool should."""
        began.set()
        time.sleep(0.6)  # noqa: ASYNC251 - that is the fault
        return "awake"

    async def elsewhere() -> None:
        async with (
            SqliteStore(tmp_path / "x.db") as store,
            Host(Agent(ScriptedModel("Other.")), store=store, lease_s=0.2, poll_s=0.02) as host,
        ):
            await settled(lambda: talk_is(host, ["Hi", "Other."]))

    def run() -> None:
        began.wait()
        asyncio.run(elsewhere())

    async with SqliteStore(tmp_path / "x.db") as store:
        agent = Agent(ScriptedModel(call("block"), "Zombie.", "Zombie."), tools=[block])
        async with Host(agent, store=store, lease_s=0.2, poll_s=0.02) as host:
            other = threading.Thread(target=run)
            other.start()
            result = await host.turn("s", "Hi")
            await asyncio.to_thread(other.join)
            assert result.text == "Other."
            assert await said(host) == ["Hi", "Other."]
            assert len(await turns(store)) == 1


@pytest.mark.parametrize("jump", [-7200, 7200])
async def test_a_clock_that_jumps_while_a_turn_runs_loses_and_doubles_nothing(jump: float) -> None:
    """Back or forth by two hours: each message has its turn, in order."""
    effects, model = FakeEffects(), Halting((WAIT, "One."), ("One again.",), ("Two.",), ("Three.",))
    if jump < 0:
        model.replies.pop(1)
    async with hosted(Agent(model), effects=effects) as host:
        first = await host.send("s", "1")
        await model.waiting.wait()
        await host.send("s", "2")
        effects.advance(seconds=jump)
        await asyncio.sleep(0.05)
        model.gate.set()
        await host.send("s", "3")
        assert (await first.result()).text in {"One.", "One again."}
        await settled(lambda: has_messages(host, 6))
        told = await said(host)
        assert (told[0], told[2:]) == ("1", ["2", "Two.", "3", "Three."])
        assert len(await turns(host.store)) == 3


async def has_messages(host: Any, count: int) -> bool:
    """Whether the session has so many messages."""
    return len(await said(host)) == count


def test_a_loop_that_ends_without_closing_its_host_loses_nothing(tmp_path: Path) -> None:
    """No warning and no hang; the next host on the file takes the input once the lease has ended."""
    effects = FakeEffects()
    store = SqliteStore(tmp_path / "x.db", clock=effects.now)

    async def leave() -> None:
        host = Host(Agent(Halting((WAIT,))), store=store, effects=effects)
        await host.send("s", "Hi")
        await asyncio.sleep(0.01)

    async def go_on() -> list[str]:
        effects.advance(seconds=16)
        async with hosted(Agent(ScriptedModel("Hello.")), effects=effects, store=store) as host:
            host._desk.start()
            await settled(lambda: talk_is(host, ["Hi", "Hello."]))
            found = await turns(store)
        await store.close()
        return found

    asyncio.run(leave())
    assert len(asyncio.run(go_on())) == 1


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_two_hosts_in_one_process_share_a_store(kind: str, tmp_path: Path) -> None:
    """Whoever accepts, each message has one turn, and who asked is told wherever it was taken."""
    store: Any = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "x.db")
    left = Host(Agent(ScriptedModel(*["left"] * 60)), store=store, poll_s=0.02)
    right = Host(Agent(ScriptedModel(*["right"] * 60)), store=store, poll_s=0.02)
    async with left, right:
        tickets = []
        for n in range(40):
            host = (left, right)[n % 2]
            tickets.append(await host.send(f"s{n % 5}", Said(f"m{n}", key=f"m{n}")))
        async with asyncio.timeout(10):
            results = [await ticket.result() for ticket in tickets]
        assert {result.status for result in results} == {"answered"}
        for n in range(5):
            assert [text for text in await said(left, f"s{n}") if text[0] == "m"] == [f"m{m}" for m in range(n, 40, 5)]
            assert len(await turns(store, f"s{n}")) == 8
    await store.close()


FORKED = """
import asyncio, os, sys, warnings
from onrecord import Agent
from onrecord.errors import StoreError, UsageError
from onrecord.host import Host
from onrecord.stores import SqliteStore
from onrecord.testing import ScriptedModel

warnings.simplefilter("ignore", DeprecationWarning)
store = SqliteStore(sys.argv[1])
host = Host(Agent(ScriptedModel("Hello.", "Again.")), store=store)

async def tried(host):
    try:
        await host.turn("s", "Hi")
    except (StoreError, UsageError) as error:
        print(error.code, bool(error.hint), flush=True)

async def end():
    print((await host.turn("s", "And?")).text, flush=True)
    await host.close()
    await store.close()

loop = asyncio.new_event_loop()
loop.run_until_complete(host.turn("s", "Hi"))
if not os.fork():  # between two runs of the loop: a loop that runs is shared with the child, whatever it does
    asyncio.run(tried(host))
    asyncio.run(tried(Host(Agent(ScriptedModel("No.")), store=store)))
    os._exit(0)
os.wait()
loop.run_until_complete(end())
loop.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_to_make_a_host_of_its_own(tmp_path: Path) -> None:
    """Neither the host nor its store go on in a child, and the parent does not notice."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "x.db")], capture_output=True, text=True, check=False, timeout=15
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
    assert ended.stdout.split("\n")[:3] == ["host-loop True", "store-forked True", "Again."]
