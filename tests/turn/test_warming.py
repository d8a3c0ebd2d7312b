"""A long history is prepared in slices, so that no other turn waits for long (architecture §10)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import UserMessage
from onrecord.models.request import Request
from onrecord.session.chain import chain_of
from onrecord.testing import ScriptedModel
from onrecord.turn.warm import SLICE
from tests.turn.acting import turn

pytestmark = pytest.mark.unit


class Sliced(ScriptedModel):
    """A model that caches bytes, and says how much is left."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.asked: list[int] = []

    def extend(self, request: Request, /, limit: int = 500) -> int:
        self.asked.append(limit)
        return max(0, 3 - len(self.asked))


def long(units: int) -> Conversation:
    """A conversation of this many messages."""
    return Conversation.of(UserMessage(id=f"u{n}", content=(Text(str(n)),)) for n in range(units))


async def test_a_long_history_is_prepared_in_slices_with_others_in_between() -> None:
    """The model is asked until nothing is left; another task runs meanwhile."""
    model, ticks = Sliced("x"), list[int]()

    async def other() -> None:
        while True:
            ticks.append(len(model.asked))
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    await turn(Agent(model), history=long(3 * SLICE))
    beside.cancel()
    assert model.asked == [SLICE] * 3
    assert {1, 2} <= set(ticks)


async def test_a_short_history_is_not() -> None:
    """It costs nothing to speak of."""
    model = Sliced("x")
    await turn(Agent(model), history=long(10))
    assert model.asked == []


async def test_digests_are_prepared_in_slices_too() -> None:
    """The receipt then has little left to do."""
    model = ScriptedModel("x")
    result = await turn(Agent(model), history=long(2 * SLICE + 10), session="s")
    assert result.session is not None
    units = model.requests[0].conversation.units
    assert chain_of(units, result.session.digest_key).behind(len(units)) == 0
