"""A budget beside a feature that asks a model itself: what that costs is limited, and told, like any call."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.usage import Usage
from onrecord.governance.budget import Budget, Limit
from onrecord.governance.ledger import Ticked
from onrecord.prompt.window.window import Window
from onrecord.record.kinds import ModelReplied
from onrecord.testing import ScriptedModel
from tests.prompt.window_units import scribe, session_of
from tests.turn.acting import turn

pytestmark = pytest.mark.unit

USED = Usage(input_tokens=100, output_tokens=50)


async def test_a_crossed_limit_ends_the_turn_before_a_window_asks_for_a_summary() -> None:
    """A summary is paid, too: nothing of a turn that may spend no more is. Where it may, there is one."""
    for most, summaries in ((100, 0), (10_000, 1)):
        small = scribe("In short.")
        window = Window.summarize(1, model=small, keep=1)
        model = ScriptedModel("a", "b", usage=USED)
        agent: Agent[Any, Any] = Agent(model, features=[window, Budget(session=Limit(tokens=most))])
        first = await turn(agent, "Tell me all of it. " * 20)
        second = await turn(agent, session=session_of(first))
        assert (second.text, len(small.requests)) == ("b" * summaries, summaries)


async def test_each_tick_says_which_entry_it_adds_up() -> None:
    """The reply that was paid is its cause, a consultation's too, so that `why` leads from a limit to what crossed it.

    Here a window has a summary written, and then the turn is answered.
    """
    window = Window.summarize(1, model=scribe("In short."), keep=1)
    agent: Agent[Any, Any] = Agent(ScriptedModel("a", "b", usage=USED), features=[window, Budget()])
    first = await turn(agent, "Tell me all of it. " * 20)
    entries = (await turn(agent, session=session_of(first))).entries
    replies = [entry.n for entry in entries if isinstance(entry.body, ModelReplied)]
    assert [entry.cause for entry in entries if isinstance(entry.body, Ticked)] == replies
    assert len(replies) == 2
