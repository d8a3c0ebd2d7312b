"""Which inputs a session knows again, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Happened, Input, Said, Started, Woke
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel
from onrecord.turn.result import TurnResult
from tests.turn.acting import turn

pytestmark = pytest.mark.unit


async def _twice(first: Input, again: Input) -> TurnResult[Any]:
    agent: Agent[Any, Any] = Agent(ScriptedModel("one", "two"))
    taken = await turn(agent, first)
    return await turn(agent, again, session=taken.session)


@pytest.mark.parametrize("input", [Said("hi", key="k"), Happened("paid", key="k")])
async def test_a_message_or_event_with_its_key_is_taken_once(input: Input) -> None:
    """Whatever else it says the second time, it is the same one."""
    again = await _twice(input, input)
    assert (again.status, again.changed, again.entries) == ("ignored", False, ())
    assert [line.code for line in again.lines] == ["duplicate-input"]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (Said("hi", key="k"), Happened("paid", key="k")),
        (Happened("paid", key="k"), Happened("sent", key="k")),
        (Said("hi"), Said("hi")),
        (Woke("k"), Woke("k")),
        (Started("flow", key="k"), Started("flow", key="k")),
    ],
)
async def test_what_may_come_again_is_another_turn(first: Input, again: Input) -> None:
    """Another kind or name under the same key, no key at all, a timer armed again, something started again."""
    assert (await _twice(first, again)).status == "answered"


async def test_the_last_fifty_keys_are_known() -> None:
    """The fifty-first pushes the first out."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(*["ok"] * 52))
    session: Session | None = None
    for n in range(51):
        session = (await turn(agent, Said("hi", key=f"k{n}"), session=session)).session
    assert session is not None
    assert session.inputs == tuple(f"said::k{n}" for n in range(1, 51))
    assert (await turn(agent, Said("hi", key="k1"), session=session)).status == "ignored"
    assert (await turn(agent, Said("hi", key="k0"), session=session)).status == "answered"
