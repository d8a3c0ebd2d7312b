"""Agents in plain Python: branches side by side, those that may fail, and one agent in many turns at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ModelError
from onrecord.models.chunks import TextChunk
from onrecord.testing import ScriptedModel, raises, shown
from onrecord.turn.result import TurnResult
from tests.turn.acting import turn

pytestmark = pytest.mark.unit


async def test_m147_a_branch_that_may_fail_is_an_outcome() -> None:
    """Whoever merges sees which failed, and why (case 147, for `gather` in place of a class)."""
    fine, broken = Agent(ScriptedModel("Fine.")), Agent(ScriptedModel(raises("quota")))
    got = await asyncio.gather(turn(fine), turn(broken), return_exceptions=True)
    outcomes = [one.text if isinstance(one, TurnResult) else getattr(one, "code", "") for one in got]
    assert outcomes == ["Fine.", "model-quota"]


async def test_m147_one_that_must_not_fail_ends_them_all() -> None:
    """The failure is raised, and a branch that still runs is ended: its model is asked no more (case 147)."""
    ended: list[str] = []

    class Endless(ScriptedModel):
        async def stream(self, request: Any, /) -> Any:
            try:
                await asyncio.Event().wait()
                yield TextChunk("never")
            finally:
                ended.append("ended")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn(Agent(Endless())))
            group.create_task(turn(Agent(ScriptedModel(raises("quota")))))

    with pytest.raises(ExceptionGroup) as failed:
        await both()
    assert ([type(one) for one in failed.value.exceptions], ended) == ([ModelError], ["ended"])


async def test_one_agent_takes_many_turns_at_once() -> None:
    """It is a declaration: a hundred turns side by side each see their own words."""
    echo = Agent(ScriptedModel(*[lambda request: shown(request)["messages"][-1]["content"]] * 100))
    results = await asyncio.gather(*(turn(echo, f"word {n}", session=f"s{n}") for n in range(100)))
    assert [r.text for r in results] == [f"word {n}" for n in range(100)]
