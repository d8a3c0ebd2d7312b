"""What of a session does not fit the flows of an agent is told in plain sentences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.flows.direct import Flows
from onrecord.flows.flow import Event, Flow
from onrecord.flows.migrate import check_session
from onrecord.flows.state import Bucket, FlowState, Held, Run, Spent, Waiting
from onrecord.flows.steps import Collect, Do, Say, Talk, Wait, WaitEvent
from onrecord.flows.triggers import OnEvent, OnMessage
from onrecord.session import Session, SlotState, pack, unpack
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.tools.tool import Tool
from tests.flows.old_sessions import FULL, NOW, T0, flows, read

pytestmark = pytest.mark.unit

STAY = Flow(
    "stay", on=[OnMessage()], on_end="stay",
    steps=[
        Collect("size", id="ask"), Say("Hi.", id="say"), Do("call", id="do"), Wait("1d", id="wait"),
        WaitEvent("paid", id="event"), Talk("Talk.", id="talk"),
    ],
)  # fmt: skip
TOUR = Flow("tour:2", on=[OnEvent("paid")], steps=[Talk("Talk.", id="talk")])
FLOWS = Flows(
    STAY, TOUR, fields={"size": {"type": "string"}}, events={"paid": Event(), "left": Event()},
    actions=[Tool("call", lambda *_: None)],
)  # fmt: skip
KEPT = {"stay:s1": Bucket(once=T0)}


def run(**changes: Any) -> Run:
    """A run that fits, but for these changes."""
    whole = Run(
        id="stay#m1", flow_id="stay", anchor="s1", dedupe_key="stay:s1:", trigger_kind="message", trigger_key="m1",
        started_at=T0, status="asking", step_id="ask", asked={"size": 1}, visits={"ask": 1},
    )  # fmt: skip
    return replace(whole, **changes)


def parked(step: str, **waits: Any) -> Run:
    """A run that waits at a step until the day after."""
    waiting = {"kind": "timer", "key": "k", "set_at": T0, "until": T0 + timedelta(days=1), **waits}
    return run(status="waiting", step_id=step, waiting=Waiting(**waiting))


def told(*runs: Run, now: Any = None, **state: Any) -> list[str]:
    """The sentences about a session with these runs."""
    held = FlowState(runs=runs, **{"buckets": KEPT, **state})
    session = Session(key=SessionKey("s1"), last_user_at=T0, slots={"flows": SlotState(1, held)})
    assert check_session(session, FLOWS, now=now) == check_session(unpack(pack(session)), FLOWS, now=now)
    return list(check_session(session, FLOWS, now=now))


# ---- what fits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "held",
    [
        run(),
        run(status="suspended", step_id="talk", suspended_at=T0),
        run(status="running", step_id=None),
        parked("wait"),
        parked("do"),
        parked("ask"),
        parked("event", kind="event", event="paid"),
        run(status="waiting", step_id=None, waiting=Waiting(kind="timer", key="k", set_at=T0, until=NOW)),
        run(dedupe_key="stay:s1:m1"),
        run(step_id="talk", staying=True),
    ],
)
def test_a_run_that_fits_is_not_mentioned(held: Run) -> None:
    """Asking, suspended, about to begin, parked wherever runs are parked."""
    assert told(held) == []


async def test_a_session_that_its_flows_made_fits_them() -> None:
    """And one that never met flows does, too."""
    agent = Agent(ScriptedModel('{"message":"What size?","size":null}'), director=FLOWS)
    result = await agent.turn("hi", session="s1", effects=FakeEffects(T0))
    assert result.session is not None
    assert check_session(result.session, FLOWS, now=NOW) == ()
    assert check_session(Session(key=SessionKey("s1")), FLOWS) == ()


def test_a_session_that_was_imported_is_checked_as_any_other() -> None:
    """Nothing speaks against this one, until its wake is overdue."""
    assert check_session(read(FULL), flows(), now=NOW) == ()
    assert len(check_session(read(FULL), flows(), now=NOW + timedelta(days=3))) == 1


def test_claims_of_every_kind_are_recognised() -> None:
    """Of flows with colons in their ids, of lines said once, and those with a nonce."""
    buckets = {**KEPT, "tour:2:lead:4": Bucket(always=(Spent("e:1", T0),))}
    assert told(run(), buckets=buckets, sent={"stay:say:s1": T0}) == []


# ---- what does not ------------------------------------------------------------------------------------------------

OVERDUE = (
    'Run "stay#m1" waits for the wake "k", which was due at 2026-09-20T09:59:59.000Z: unless a row of the inbox has '
    "it, nothing will fire it."
)
SENTENCES: list[tuple[Run, str]] = [
    (
        run(id="old#m1", flow_id="old", dedupe_key="old:s1:m1"),
        'Run "old#m1" is of flow "old", which is gone: it ends as soon as it moves.',
    ),
    (
        run(step_id="who"),
        'Run "stay#m1" is at step "who", which flow "stay" does not have: it ends as soon as it moves.',
    ),
    (run(step_id="say"), 'Run "stay#m1" is asking at step "say", which takes no floor.'),
    (run(status="suspended", step_id=None), 'Run "stay#m1" is suspended before its first step.'),
    (
        run(id="tour:2#m1", flow_id="tour:2", dedupe_key="tour:2:s1:m1", step_id="talk", staying=True),
        'Run "tour:2#m1" stays, and flow "tour:2" does not any more: it ends as soon as it moves.',
    ),
    (
        run(asked={"size": 1, "name": 2, "age": 1}),
        'Run "stay#m1" has asked for "age", "name", which nobody declares.',
    ),
    (
        parked("event", kind="event", event="left"),
        'Run "stay#m1" waits for event "left", and its step for "paid".',
    ),
    (parked("ask", kind="event", event="paid"), 'Run "stay#m1" waits for event "paid", and its step does not.'),
    (parked("say"), 'Run "stay#m1" waits at step "say", which never waits for a time.'),
    (run(id="stay#m2"), 'Run "stay#m2" is not named after its flow and its trigger.'),
    (
        run(dedupe_key="tour:s1:"),
        'Run "stay#m1" has the claim key "tour:s1:", which is not of its flow and anchor.',
    ),
    (
        replace(parked("wait"), status="running"),
        'Run "stay#m1" is running and has a wake all the same.',
    ),
    (
        parked("do", kind="answer", key="q", until=None),
        'Run "stay#m1" waits for the answer to a question that is not open.',
    ),
    (parked("wait", until=None), 'Run "stay#m1" waits without end: nothing says until when.'),
    (
        parked("wait", until=T0 - timedelta(seconds=1)),
        OVERDUE,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("held", "sentence"), SENTENCES, ids=[s.rsplit(" ", 3)[-1] for _, s in SENTENCES])
def test_a_run_that_does_not_fit_is_told(held: Run, sentence: str) -> None:
    """One sentence each, with the run's name."""
    assert told(held) == [sentence]


def test_a_wake_is_overdue_once_now_has_passed_it() -> None:
    """Without a time to compare with, once somebody spoke after it."""
    assert told(parked("wait")) == []
    assert len(told(parked("wait"), now=NOW + timedelta(seconds=1))) == 1


def test_a_run_without_its_claim_is_told() -> None:
    """Its flow could start beside it."""
    assert told(run(), buckets={}) == ['Run "stay#m1" has no claim, so its flow may start again beside it.']


def test_what_runs_are_to_each_other_is_told() -> None:
    """Two that ask, two of one name, two of one flow and anchor."""
    twin, other = run(), run(id="stay#m2", trigger_key="m2", status="suspended")
    assert told(twin, twin) == [
        '2 runs are asking, and only one may: "stay#m1", "stay#m1".',
        'Two runs have the id "stay#m1".',
    ]
    assert told(twin, other) == ['Two runs of flow "stay" are live for the anchor "s1".']


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("gone:s1", 'Claims "gone:s1:" are of no flow of these.'),
        ("odd", 'The claim key "odd" does not parse: it names no flow.'),
        (":s1", 'The claim key ":s1" does not parse: it names no flow.'),
    ],
)
def test_a_claim_of_no_flow_is_told(place: str, sentence: str) -> None:
    """Of one that is gone, or that never was one."""
    assert told(run(), buckets={**KEPT, place: Bucket(once=T0)}) == [sentence]


@pytest.mark.parametrize("key", ["stay:say:s2", "stay:nothing:s1", "gone:say:s1", "odd"])
def test_a_line_said_once_by_no_step_is_told(key: str) -> None:
    """Its claim holds back nothing any more."""
    assert told(run(), sent={key: T0}) == [
        f'The claim "{key}" of a line that is said once is of no step of these flows.'
    ]


def test_a_turn_held_for_nothing_is_told() -> None:
    """Its question was answered or dropped elsewhere."""
    assert told(run(), held=Held(question="q")) == ["A turn is held for a question that is not open any more."]


@pytest.mark.parametrize(
    ("slot", "sentence"),
    [
        (SlotState(9, FlowState()), "The state of flows is of version 9, these flows keep version 1."),
        (SlotState(1, {"runs": ()}), "The state of flows is a dict."),
        (SlotState(1, Raw(b'{"runs":7}')), "The state of flows cannot be read: "),
    ],
)
def test_a_state_that_cannot_be_read_is_told(slot: SlotState, sentence: str) -> None:
    """Instead of raising."""
    (found,) = check_session(Session(key=SessionKey("s1"), slots={"flows": slot}), FLOWS)
    assert found.startswith(sentence)


@pytest.mark.parametrize("odd", [None, {"id": "s1"}, "s1"])
def test_what_is_no_session_is_told(odd: Any) -> None:
    """Somebody looks through whatever a store holds."""
    (found,) = check_session(odd, FLOWS)
    assert found.startswith("This is no session but a ")
