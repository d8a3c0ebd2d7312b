"""Wakes: rows that a turn's commit arms, and that come when they are due."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from onrecord import Agent, Woke
from onrecord.conversation.outgoing import Wake
from onrecord.record.kinds import TurnOpened
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, settled, talk_is
from tests.turn.directing import Directed

pytestmark = pytest.mark.integration


async def test_a_wake_comes_when_it_is_due() -> None:
    """A turn arms it, its commit stores it, and the session takes it later under the key it was given."""
    effects = FakeEffects()

    async def direct(turn: Turn, stage: Stage) -> None:
        if isinstance(turn.input, Woke):
            await stage.say(f"Time for {turn.input.payload}.", key="nudge")
        else:
            stage.arm(Wake(key="tea", at=turn.now + timedelta(minutes=5), payload="tea"))

    async with hosted(Agent(ScriptedModel(), director=Directed(direct)), effects=effects) as host:
        result = await host.turn("s", "Remind me")
        assert [wake.key for wake in result.wakes] == ["tea"]
        assert [row.due for row in await host.pending("s")] == [effects.at + timedelta(minutes=5)]
        effects.advance(minutes=5)
        await settled(lambda: talk_is(host, ["Remind me", "Time for tea."]))
        assert await host.pending("s") == []


async def test_the_last_word_on_a_wake_counts() -> None:
    """Armed and then withdrawn in one turn it does not come; withdrawn and then armed it does."""

    async def direct(turn: Turn, stage: Stage) -> None:
        at = turn.now + timedelta(minutes=5)
        stage.arm(Wake(key="tea", at=at))
        stage.disarm("tea")
        stage.disarm("eggs")
        stage.arm(Wake(key="eggs", at=at))

    async with hosted(Agent(ScriptedModel(), director=Directed(direct))) as host:
        result = await host.turn("s", "Remind me")
        assert [wake.key for wake in result.wakes] == ["eggs"]
        assert [row.key for row in await host.pending("s")] == ["woke::eggs"]


async def test_a_wake_that_arms_itself_again_is_another_turn() -> None:
    """Each has a turn id and message keys of its own."""
    effects = FakeEffects()

    async def direct(turn: Turn, stage: Stage) -> None:
        at = turn.input.payload if isinstance(turn.input, Woke) else 0
        if isinstance(turn.input, Woke):
            await stage.say(f"tick {at}", key="tick")
        if at < 3:
            stage.arm(Wake(key="tick", at=turn.now + timedelta(seconds=1), payload=at + 1))

    async with hosted(Agent(ScriptedModel(), director=Directed(direct)), effects=effects) as host:
        await host.turn("s", "go")
        for at in (1, 2, 3):
            effects.advance(seconds=1)
            await settled(partial(talk_is, host, ["go", *(f"tick {n}" for n in range(1, at + 1))]))
        turns = {e.turn async for e in host.store.entries("s") if isinstance(e.body, TurnOpened)}
        assert len(turns) == 4
