"""A watcher is told of takes that are left without an entry that ends them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Happened
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import MessageDenied, ModelError
from onrecord.record.entry import Entry
from onrecord.testing import FakeEffects, ScriptedModel, raises
from onrecord.turn.moments import Deny, Hooks, Left, Watch
from tests.turn.acting import Named, turn
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.unit


def nothing(_: Entry) -> None:
    """Sees entries and keeps none."""


async def test_a_failure_that_leaves_nothing_is_told_by_class_and_code() -> None:
    """With the turn's id, which take it was, and when; never with the error itself."""
    seen: list[Left] = []
    effects = FakeEffects()
    agent = Agent(ScriptedModel(raises("rate")), features=[Watch(nothing, left=seen.append)])
    with pytest.raises(ModelError):
        await turn(agent, session="ana", effects=effects)
    assert seen == [Left(turn="ana:said::name2~0", take=1, at=effects.at, error="ModelError", code="model-rate")]


async def test_a_cancelled_take_and_an_ignored_input_are_told_too() -> None:
    """The first by what cancelled it, the second without an error."""
    seen: list[Left] = []
    model = Halting((WAIT,))
    task = asyncio.create_task(turn(Agent(model, features=[Watch(nothing, left=seen.append)])))
    await model.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    class Ignores:
        async def direct(self, turn: Any, stage: Any) -> None:
            turn.ignore(Outcome(kind="input", status="ignored", code="none"))

    watching = Watch(nothing, left=seen.append)
    await turn(Agent(ScriptedModel(), director=Ignores(), features=[watching]), Happened("arrived", key="1"))
    assert [(left.error, left.code) for left in seen] == [("CancelledError", ""), ("", "")]


async def test_of_a_take_that_ends_by_an_entry_nothing_else_is_told() -> None:
    """Whether it was answered or failed: the watcher saw the entry."""
    seen: list[Left] = []

    async def deny(*_: Any) -> Deny:
        return Deny("no")

    watching = Watch(nothing, left=seen.append)
    await turn(Agent(ScriptedModel("x"), features=[watching]))
    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=[watching, Named("deny", Hooks(on_input=deny))]))
    assert seen == []


async def test_what_a_watcher_raises_then_hides_nothing() -> None:
    """The other watchers are told, and the caller gets the provider's error."""
    seen: list[Left] = []

    def broken(left: Left) -> None:
        raise ValueError(left.turn)

    features = [Watch(nothing, left=broken, name="one"), Watch(nothing, left=seen.append, name="two")]
    with pytest.raises(ModelError):
        await turn(Agent(ScriptedModel(raises("rate")), features=features))
    assert len(seen) == 1
