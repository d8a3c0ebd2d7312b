"""Self-explanation under a host: its store is the record, also in another process, and for agents below others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import plain_text
from onrecord.honesty import SelfExplain
from onrecord.record.kinds import ToolReturned
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel, call
from onrecord.turn.result import TurnResult
from tests.host.hosting import hosted
from tests.turn.acting import tool

pytestmark = pytest.mark.integration


def told(result: TurnResult[Any], name: str) -> list[dict[str, Any]]:
    """What a tool returned in this turn."""
    bodies = [e.body for e in result.entries if isinstance(e.body, ToolReturned) and e.body.name == name]
    return [json.loads(plain_text(body.result)) for body in bodies]


async def test_a_host_is_the_record_and_another_one_goes_on() -> None:
    """Nothing has to be said about the store; what one host stored the next one cites."""
    store = MemoryStore()
    first = Agent(ScriptedModel([call("price")], "47."), tools=[tool("price")], features=[SelfExplain()])
    async with hosted(first, store=store) as host:
        await host.turn("s", "price?")
    script = [call("run_overview")], "Because [entry 7]."
    later = Agent(ScriptedModel(*script), tools=[tool("price")], features=[SelfExplain()])
    async with hosted(later, store=store) as host:
        (overview,) = told(await host.turn("s", "why?"), "run_overview")
    assert overview["tools"] == {"price": {"returned": 1}}
    assert overview["answered"][0]["text"] == "47."


async def test_another_session_of_the_same_store_is_out_of_reach() -> None:
    """Its first turn has nothing to explain."""
    agent = Agent(ScriptedModel("secret", [call("find_in_trace", text="secret")], "x"), features=[SelfExplain()])
    async with hosted(agent) as host:
        await host.turn("ana", "hi")
        (found,) = told(await host.turn("bob", "what did ana say?"), "find_in_trace")
    assert found == {"not_recorded": "no turn of this conversation has ended before this one"}


async def test_an_erased_session_explains_nothing() -> None:
    """Neither words nor what happened are left to cite."""
    agent = Agent(ScriptedModel("secret", [call("read_narrative")], "x"), features=[SelfExplain()])
    async with hosted(agent) as host:
        await host.turn("s", "hi")
        await host.erase("s", why="asked to")
        (found,) = told(await host.turn("s", "why?"), "read_narrative")
    assert list(found) == ["not_recorded"]


async def test_an_agent_below_another_reads_the_record_of_its_own_session() -> None:
    """It asks the same store, and for its own session only."""
    below = Agent(ScriptedModel([call("run_overview")], "nothing"), name="helper", features=[SelfExplain()])
    above = Agent(ScriptedModel([call("helper", message="why?")], "ok"), tools=[below.as_tool(id="helper")])
    async with hosted(above) as host:
        result = await host.turn("s", "hi")
        child = next(key for key in await host.store.sessions() if key.id != "s")
        entries = [e.body async for e in host.store.entries(child)]
    (found,) = [b for b in entries if isinstance(b, ToolReturned)]
    assert result.text == "ok"
    assert "no turn of this conversation has ended" in plain_text(found.result)
