"""Cases P1 and P2 of the specification, with sessions of flows that their caller saves in a store.

The store's own promises are the conformance suites' (``onrecord.testing.conformance``). An insert is here a change
that was made from nothing; what the original calls ``save(session, n)`` is a change made from version n.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.errors import SessionConflict
from onrecord.flows import Collect, Flow, OnEvent, OnMessage, Talk, Wait
from onrecord.session.codec import dumps_session, loads_session
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Change
from tests.flows.playing import T0, Play, keys, says

pytestmark = pytest.mark.unit

INTAKE = Flow("intake", on=[OnMessage()], steps=[Collect("name", id="who")], on_end="stay")
PROP = Flow("prop", on=[OnEvent("entered", after="1h")], steps=[Talk("Ask.", id="p"), Wait("1d", id="w")])
OTHER = Flow("other", steps=[Collect("ok", id="q")])


async def change(key: str, session: Session | None = None) -> Change:
    """What a message makes of a session, as its caller would save it."""
    play = Play(INTAKE, PROP, OTHER, session=session, events=["entered"])
    judge: Any = None if session is None else {"fields": {}}
    return (await play.said(key=key, judge=judge, speak=[says("Name?")])).change()


async def test_p1_contract() -> None:
    """Versions count up, the argument stays as it is, and whoever began from another version is refused."""
    store = MemoryStore(clock=lambda: T0)
    assert await store.load("s1") is None
    first = await change("m1")
    stored = await store.commit(first)
    assert (first.session.version, stored.version) == (0, 1)
    second, stale = await change("m2", stored), await change("m3", stored)
    assert (await store.commit(second)).version == 2
    with pytest.raises(SessionConflict) as lost:
        await store.commit(stale)
    assert (lost.value.expected, lost.value.found) == (1, 2)
    with pytest.raises(SessionConflict) as inserted:
        await store.commit(await change("m4"))
    assert (inserted.value.expected, inserted.value.found) == (0, 2)
    gone = await change("m5", replace(stored, version=3))
    with pytest.raises(SessionConflict) as missing:
        await MemoryStore(clock=lambda: T0).commit(gone)
    assert (missing.value.expected, missing.value.found) == (3, 0)


async def test_p1_one_of_five_wins() -> None:
    """Of five changes made from one version one is stored."""
    store = MemoryStore(clock=lambda: T0)
    stored = await store.commit(await change("m1"))
    changes = [await change(f"m{number}", stored) for number in range(2, 7)]
    done = await asyncio.gather(*(store.commit(each) for each in changes), return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["Session"] + ["SessionConflict"] * 4


async def test_p1_one_of_two_inserts_wins() -> None:
    """So it is with two first turns."""
    store = MemoryStore(clock=lambda: T0)
    done = await asyncio.gather(
        *[store.commit(await change(key)) for key in ("m1", "m2")], return_exceptions=True
    )  # fmt: skip
    assert sorted(type(each).__name__ for each in done) == ["Session", "SessionConflict"]


async def crowded() -> Play:
    """A session with a run that stays and is suspended, one that is parked with a payload, and one that asks."""
    play = Play(INTAKE, PROP, OTHER, events=["entered"])
    await play.said(speak=[says("Nice", name="Ana")])
    await play.happened("entered", key="k.1", payload={"stage": None, "more": [None, {"a.b": 1}]})
    await play.started("other", speak=[says("Right?")])
    assert play.statuses == {"intake": "suspended", "prop": "waiting", "other": "asking"}
    return play


async def test_p2_round_trip() -> None:
    """Nothing of the state of flows is lost on the way through a store, and the session goes on as it was."""
    play = await crowded()
    before = play.state
    loaded = loads_session(dumps_session(play.kept))
    assert play.flows.state(loaded) == before
    run = next(run for run in play.flows.state(loaded).runs if run.flow_id == "intake")
    assert (run.staying, run.suspended_at) == (True, T0)
    assert "prop:s1:k.1" in play.flows.state(loaded).claims
    play.session = loaded
    await play.said("yes", key="m2", speak=[says("Good.", ok=True)])
    assert play.statuses == {"intake": "asking", "prop": "waiting"}
    assert keys(await play.said("and?", key="m3", speak=[says("Yes.")])) == ["intake#m1:who:2"]


async def test_p2_what_is_absent_stays_absent() -> None:
    """The stored form names what is set, in snake case, and nothing else."""
    play = await crowded()
    stored = json.loads(dumps_session(play.kept))
    runs = stored["state"]["slots"]["flows"]["value"]["runs"]
    parked = next(run for run in runs if run["flow_id"] == "prop")
    assert parked["payload"] == {"stage": None, "more": [None, {"a.b": 1}]}
    assert not {"step_id", "suspended_at", "staying", "asked"} & parked.keys()
    assert all(name == name.lower() for run in runs for name in run)
