"""Gates and business hours that raise: the error says whose they are, where they raised, and what may be missing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from onrecord.errors import FeatureFailed
from onrecord.flows import Branch, Collect, Flow, If, OnMessage, OnSilence, PredContext, Say, Talk
from onrecord.testing.scripted import ScriptEnded
from tests.flows.playing import NOTHING, Play, says

pytestmark = pytest.mark.unit


def ours(ctx: PredContext) -> bool:
    """A gate that needs a context."""
    return bool(ctx.context["owner"] == "us")


def closed(at: datetime, context: Any) -> datetime:
    """Business hours that need a context."""
    return max(at, datetime.fromisoformat(context["opens"]))


async def failing(play: Play, **how: Any) -> FeatureFailed:
    """The error that a message ends with."""
    with pytest.raises(FeatureFailed) as failed:
        await play.said("hello", **how)
    return failed.value


@pytest.mark.parametrize(
    ("flow", "place"),
    [
        (Flow("f", on=[OnMessage(only_if=ours)], steps=[Say("Hi")]), 'flow "f"'),
        (Flow("f", on=[OnMessage()], while_=ours, steps=[Say("Hi")]), 'flow "f"'),
        (Flow("f", on=[OnMessage()], steps=[If(ours, id="mine"), Say("Hi")]), 'flow "f", step "mine"'),
        (Flow("f", on=[OnMessage()], steps=[Say("Hi"), If("ours", id="mine")]), 'flow "f", step "mine"'),
        (Flow("f", on=[OnMessage()], steps=[Say("Hi"), If({"ours": "x"}, id="mine")]), 'flow "f", step "mine"'),
    ],
)
async def test_a_gate_that_raises_is_named(flow: Flow, place: str) -> None:
    """Flow and step, the exception and its line, and that there was no context."""
    error = await failing(Play(flow, conditions={"ours": ours}))
    assert str(error).startswith(f"feature 'Flows' failed at direct: a gate of {place} raised TypeError (test_raising_")
    assert str(error).endswith(", line 20)")
    assert error.hint.startswith("the turn has no context: give it one with context=")


async def test_a_gate_of_a_branch_is_named() -> None:
    """It is judged when the customer answers; a key that is missing is no missing context."""
    branches = [Branch(only_if=ours, then="end")]
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("name", id="who", branches=branches)]))
    await play.said("hello", key="m0", speak=[says("Name?", name=None)])
    error = await failing(play, key="m1", judge=NOTHING, context={"other": "content"})
    assert 'a gate of flow "f", step "who" raised KeyError' in str(error)
    assert "content" not in str(error)
    assert error.hint == "--debug shows where, on the command line"


async def test_business_hours_that_raise_are_named() -> None:
    """They are asked for when the silence is armed."""
    nudge = Flow("nudge", on=[OnSilence("1h", business_hours=True)], steps=[Talk("Hi.")])
    error = await failing(Play(Flow("f", on=[OnMessage()], steps=[Say("Hi")]), nudge, business_hours=closed))
    assert "failed at direct: business_hours raised TypeError (test_raising_gates.py, line 25)" in str(error)


async def test_an_error_of_the_turn_goes_through() -> None:
    """A gate that ends the turn on purpose does so in its own words."""

    def stops(ctx: PredContext) -> bool:
        raise FeatureFailed("mine", "gate", "on purpose")

    error = await failing(Play(Flow("f", on=[OnMessage(only_if=stops)], steps=[Say("Hi")])))
    assert error.feature == "mine"


async def test_a_script_that_ends_in_a_reply_fails_the_turn() -> None:
    """A model that fails is tried again later; a test double that was asked too often is a test that is wrong."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Talk("Greet.", id="hi")]))
    with pytest.raises(ScriptEnded, match="no answer left for 'speak': it had 0"):
        await play.said("hello")
    with pytest.raises(AssertionError, match="no answer left for 'speak'"):
        await Play().said("hello")  # the idle speaker is asked
