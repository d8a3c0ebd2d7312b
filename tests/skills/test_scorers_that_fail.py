"""Scorers that fail, wait for ever or are cancelled: the turn goes on (specification §15.5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.skills import ByModel, Candidate, turn_start
from onrecord.testing import ScriptedModel
from tests.skills.knowing import answering
from tests.skills.scoring import Down, Scores, cursor, graph, routed
from tests.turn.acting import turn

pytestmark = pytest.mark.unit


async def test_a_failing_scorer_leaves_a_menu(caplog: Any) -> None:
    """Of everything, at the beginning of a conversation; the log names it and not what it said."""
    with caplog.at_level(logging.WARNING, "onrecord.skills"):
        _, result = await answering("done", features=[graph(Down())])
    told = routed(result)
    assert (told.by, told.offered, told.failed, told.scores) == ("menu", ("a", "b"), "ModelError", ())
    assert "'scores' failed: ModelError" in caplog.text


@pytest.mark.parametrize("error", [TimeoutError("10 s"), ValueError("secret"), asyncio.CancelledError()])
async def test_a_scorer_may_run_out_of_time(error: BaseException) -> None:
    """The turn goes on without a judgement, and the record says why."""

    class Late(Scores):
        async def score(self, turn: Any, message: str, candidates: Sequence[Candidate], /) -> dict[str, float]:
            raise error

    _, result = await answering("done", features=[graph(Late())])
    told = routed(result)
    assert (result.text, told.by, told.failed) == ("done", "menu", type(error).__name__)


async def test_a_failing_scorer_stays_where_it_stands() -> None:
    """Better than a guess."""
    agent = Agent(ScriptedModel("one", "two"), features=[graph(Down(), continuity="conversation")])
    first = await turn(agent, "the third")
    second = await turn(agent, "two", session=first.session)
    assert (routed(second).by, cursor(second)) == ("continuity", "c")


class Waiting:
    """Waits until it is cancelled."""

    name, floor, categorical = "waiting", None, False

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def score(self, turn: Any, message: str, candidates: Any, /) -> Any:
        self.asked.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("says", [True, False])
async def test_a_scorer_that_never_answers_is_none(says: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has half a minute, or as long as it says itself; then the turn goes on, and the record says why."""
    scorer: Any = Waiting()
    if says:
        scorer.within_s = 0.0
    else:
        monkeypatch.setattr(turn_start, "SCORING_S", 0.0)
    _, result = await answering("done", features=[graph(scorer)])
    assert (result.text, routed(result).by, routed(result).failed) == ("done", "menu", "TimeoutError")


async def test_a_model_that_scores_has_only_limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was asked is on the record, however long it takes."""
    monkeypatch.setattr(turn_start, "SCORING_S", 0.0)

    class Thoughtful(ScriptedModel):
        async def stream(self, request: Any, /) -> Any:
            for _ in range(5):
                await asyncio.sleep(0)  # others get their turn, a limit among them
            async for chunk in super().stream(request):
                yield chunk

    model = Thoughtful("done", consult=['{"choice": "b"}'])
    _, result = await answering(features=[graph(ByModel())], model=model)
    assert (routed(result).by, routed(result).to, routed(result).failed) == ("intent", "b", "")


async def test_a_cancelled_turn_is_not_a_failed_scorer() -> None:
    """It goes through."""
    scorer = Waiting()
    running = asyncio.create_task(answering("done", features=[graph(scorer)]))
    await scorer.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
