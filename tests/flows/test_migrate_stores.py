"""An imported session tells on its record where it comes from, and goes on in a store."""

from __future__ import annotations

from datetime import timedelta

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Said, Woke
from onrecord.flows.entries import BODIES, FLOWS
from onrecord.flows.migrate import import_change
from onrecord.record.kinds import Noted
from onrecord.session import refold
from onrecord.session.codec import dumps_session
from onrecord.session.folding import Folds
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel
from tests.flows.old_sessions import FULL, NOW, T0, blob, flows, read

pytestmark = pytest.mark.unit


def test_the_record_of_an_import_folds_to_its_session() -> None:
    """Everything it knows is told by its entries, which name it an import."""
    change = import_change(FULL, "s1", now=NOW)
    session = change.session
    told = refold(session.key, change.entries, Folds((FLOWS,)), digest_key=session.digest_key)
    assert dumps_session(told) == dumps_session(session)
    assert [e.seq for e in change.entries] == list(range(session.seq))
    assert {e.turn.split(":")[1] for e in change.entries} == {"import"}
    assert [e.body.about for e in change.entries if isinstance(e.body, Noted)] == [{"channel": "web"}]


def test_times_and_messages_come_along() -> None:
    """When each side spoke last, and which messages were handled."""
    held = read(FULL)
    assert (held.last_user_at, held.last_assistant_at) == (T0, T0 + timedelta(seconds=1))
    assert held.inputs == ("said::m0", "said::m1")
    assert read(blob(inputs=["m1"])).inputs == ("said::m1",)


async def test_an_imported_session_goes_on_in_a_store() -> None:
    """What was handled is not handled again; whoever asked gets the answer."""
    store = MemoryStore(bodies=BODIES)
    await store.commit(import_change(FULL, "s1", now=NOW))
    session = await store.load("s1")
    assert session is not None
    model = ScriptedModel('{"message":"Thanks, Ana."}', judge=['{"fields":{"name":"Ana"}}'])
    agent = Agent(model, director=flows())
    again = await agent.turn(Said("hi", key="m1"), session=session, effects=FakeEffects(NOW))
    assert (again.status, model.calls) == ("ignored", [])
    result = await agent.turn(Said("I am Ana", key="m2"), session=session, effects=FakeEffects(NOW))
    assert result.session is not None
    assert result.session.data["name"] == "Ana"
    assert [(line.about["run_id"], line.code) for line in result.ended] == [("intake#m1", "end")]
    assert (await store.commit(result.change())).version == 2


async def test_its_wakes_are_armed_with_its_flows() -> None:
    """Those of parked runs and of silence: rows of the inbox, and entries; they fire there."""
    director = flows()
    change = import_change(FULL, "s1", now=NOW, flows=director)
    keys = ["nudge#1789898400000:w1:1790157600000", "silence:poke:s1:1789898401000"]
    assert [row.body.key for row in change.put if isinstance(row.body, Woke)] == keys
    dues = [T0 + timedelta(days=3), T0 + timedelta(hours=1, seconds=1)]
    assert [row.due for row in change.put] == dues
    store = MemoryStore(bodies=BODIES)
    session = await store.commit(change)
    assert len(await store.rows("in", session.key)) == 2
    model = ScriptedModel('{"message":"Still there?"}')
    woke = Woke(keys[0], at=dues[0])
    result = await Agent(model, director=director).turn(woke, session=session, effects=FakeEffects(dues[0]))
    assert [message.about["step_id"] for message in result.messages] == ["p2"]


def test_without_flows_nothing_is_armed() -> None:
    """A host that has its own queue keeps it."""
    assert import_change(FULL, "s1", now=NOW).put == ()
