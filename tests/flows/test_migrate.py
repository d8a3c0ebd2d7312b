"""Sessions of the library that flows come from are read whole, or refused by name (spec 27.3, 27.4; case P2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.conversation.identity import SessionKey
from onrecord.errors import StoreError, UsageError
from onrecord.flows.state import FlowState
from onrecord.session import pack, unpack
from onrecord.session.codec import dumps_session, slot_value
from tests.flows.old_sessions import ISO, NOW, PARKED, RUN, T0, Blob, blob, read, state

pytestmark = pytest.mark.unit


def snake(held: Any) -> Any:
    """The same blob with the keys of its own shape in snake_case; what hosts named stays."""
    names = {
        "flowId": "flow_id", "dedupeKey": "dedupe_key", "stepId": "step_id", "startedAt": "started_at",
        "suspendedAt": "suspended_at", "setAt": "set_at", "lastUserAt": "last_user_at",
        "lastAssistantAt": "last_assistant_at",
    }  # fmt: skip
    if isinstance(held, list):
        return [snake(item) for item in held]
    return {names.get(k, k): snake(v) for k, v in held.items()} if isinstance(held, dict) else held


# ---- version 4 ----------------------------------------------------------------------------------------------------


def test_p2_what_is_absent_stays_absent() -> None:
    """A run has no more keys afterwards than it had (case P2)."""
    held = read(blob(RUN))
    assert msgspec.to_builtins(state(held).runs[0]) == {
        "id": "intake#m1", "flow_id": "intake", "anchor": "s1", "dedupe_key": "intake:s1:", "trigger_kind": "message",
        "trigger_key": "m1", "started_at": "2026-09-20T10:00:00Z", "status": "asking", "step_id": "who",
        "asked": {"name": 1}, "visits": {"who": 1}, "acted": True,
    }  # fmt: skip
    assert (held.last_user_at, held.last_assistant_at, held.inputs) == (None, None, ())
    assert not held.conversation.messages


def test_p2_what_is_there_survives() -> None:
    """Suspensions, stays, waits, payloads with nulls inside, claim keys with dots (case P2)."""
    suspended = {
        **RUN, "id": "b#e1", "flowId": "b", "status": "suspended", "suspendedAt": "2026-09-20T10:05:00.000Z",
        "staying": True, "trigger": {"kind": "event", "key": "e1", "payload": {"a": [None, {"b": None}]}},
        "input": {"c": None}, "hop": 2,
    }  # fmt: skip
    claims = {"intake:s1:": {"at": ISO}, "v1.2:s1:m.1": {"at": ISO}}
    held = state(read(blob(suspended, PARKED, claims=claims)))
    one, two = held.runs
    assert (one.suspended_at, one.staying, one.hop) == (T0 + timedelta(minutes=5), True, 2)
    assert (one.payload, one.input) == ({"a": [None, {"b": None}]}, {"c": None})
    assert two.waiting is not None
    assert (two.waiting.kind, two.waiting.key) == ("timer", "nudge#1789898400000:w1:1790157600000")
    assert (two.waiting.until, two.waiting.set_at) == (datetime(2026, 9, 23, 10, tzinfo=UTC), T0)
    assert held.claims == {"intake:s1:": T0, "v1.2:s1:m.1": T0}
    assert held.claimed("v1.2", "s1", "m.1") == T0


@pytest.mark.parametrize("form", [lambda b: b, snake, json.dumps, lambda b: json.dumps(snake(b)).encode()])
def test_a_blob_is_read_in_either_spelling_as_values_or_as_json(form: Any) -> None:
    """In camelCase or snake_case, a mapping, its text or its bytes: the same session."""
    full = blob(RUN, PARKED, claims={"intake:s1:": {"at": ISO}}, inputs=["m1"], lastUserAt=ISO, lastAssistantAt=ISO)
    assert state(read(form(full))) == state(read(full))
    assert (read(form(full)).last_user_at, read(form(full)).inputs) == (T0, ("said::m1",))


def test_data_come_along_and_the_version_does_not() -> None:
    """It is a new session in whatever store it goes to."""
    held = read(blob(RUN))
    assert (held.data, held.version, held.key) == ({"name": None, "ok": True}, 0, SessionKey("s1"))
    assert held.digest_key


def test_history_becomes_the_conversation() -> None:
    """Records, and events too."""
    records = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]
    events = [
        {"kind": "message", "source": "user", "data": {"message": "hi"}},
        {"kind": "message", "source": "assistant", "data": {"message": "Hello."}},
    ]
    for history in (records, events):
        told = [getattr(m, "text", "") for m in read(blob(history=history)).conversation.messages]
        assert told == ["hi", "Hello."]


def test_a_run_knows_what_its_lines_said() -> None:
    """How often its model failed in a row, and which talk step it took last."""
    failed = {"kind": "collect", "status": "deferred", "stepId": "who"}
    lines = [{"kind": "prompt", "status": "ok", "stepId": "hi"}, failed, {"kind": "do", "status": "ok"}, failed, failed]
    (run,) = state(read(blob({**RUN, "outcomes": lines}))).runs
    assert (run.failures, run.talked) == (2, "who")
    (stays,) = state(read(blob({**RUN, "staying": True}))).runs
    assert (stays.failures, stays.talked) == (0, "who")


@pytest.mark.parametrize(
    ("key", "runs", "flow", "anchor", "nonce"),
    [
        ("promo:s1:", (), "promo", "s1", ""),
        ("promo:lead:456:", (), "promo", "lead:456", ""),
        ("promo:s1:m:1", (), "promo", "s1", "m:1"),
        ("a:b:s1:e1", (), "a:b", "s1", "e1"),
        ("promo:lead:456:e1", ({**RUN, "flowId": "promo", "anchor": "lead:456"},), "promo", "lead:456", "e1"),
        (f"promo:lead:456:{ISO}", (), "promo", "lead:456", ISO),
        ("promo:lead:456:e:1", (), "promo", "lead:456", "e:1"),
        ("promo:lead:456:e:1", (), "promo", "lead", "456:e:1"),
    ],
)
def test_a_claim_is_found_again(key: str, runs: tuple[Blob, ...], flow: str, anchor: str, nonce: str) -> None:
    """Whatever colons its parts hold: where nothing tells them apart, no reading of it lets a flow run twice."""
    held = state(read(blob(*runs, claims={key: {"at": ISO}})))
    assert held.claimed(flow, anchor, nonce) == T0
    assert held.claims == {key: T0}


def test_a_line_that_was_said_once_is_not_said_again() -> None:
    """Its claim has a place of its own here."""
    assert state(read(blob(claims={"hello:s:s1": {"at": ISO}}))).sent == {"hello:s:s1": T0}


@pytest.mark.parametrize("key", ["odd", "odd:one", ""])
def test_a_claim_that_names_no_flow_is_kept(key: str) -> None:
    """Nobody knows what it would let through again."""
    assert state(read(blob(claims={key: {"at": ISO}}))).claims == {key: T0}


def test_the_newest_claims_are_kept() -> None:
    """By their time: the order of keys says nothing."""
    ats = {f"ev:s1:e{n}": {"at": f"2026-09-20T10:{n:02d}:00.000Z"} for n in reversed(range(55))}
    held = state(read(blob(claims=ats)))
    assert sorted(held.claims) == sorted(f"ev:s1:e{n}" for n in range(5, 55))


# ---- what is none -------------------------------------------------------------------------------------------------

WRONG: list[tuple[Any, str]] = [
    ("{", "it is not valid JSON"),
    ("[" * 5000, "it is not valid JSON"),
    ([], "it is no mapping"),
    (None, "it is no mapping"),
    ({"data": object()}, "it holds what JSON cannot"),
    ({}, "it is no session: it has neither a version nor data"),
    (blob(v=3), "its v is not 4"),
    (blob(v=True), "its v is not 4"),
    (blob(id="s2"), "its id is another session's"),
    (blob(version=-1), "version is no whole number from 0 on"),
    (blob(version=1.5), "version is no whole number"),
    (blob(version=True), "version is no whole number"),
    (blob(data=[]), "data is no mapping"),
    (blob(metadata=None), "metadata is no mapping"),
    (blob(claims=[]), "claims is no mapping"),
    (blob(claims={"k": ISO}), r"claims\[0\] is no mapping"),
    (blob(claims={"k": {"at": 7}}), r"claims\[0\].at is no instant"),
    (blob(runs={}), "runs is no list"),
    (blob(inputs="m1"), "inputs is no list"),
    (blob(inputs=[7]), "inputs holds something else than texts"),
    (blob(history="hi"), "history is no list"),
    (blob(history=[{"role": "nobody"}]), "history record 0: unknown role"),
    (blob(history=[{"kind": "nothing", "data": {}}]), "event 0: its kind is none"),
    (blob(lastUserAt=7), "it.last_user_at is no instant"),
    (blob(lastAssistantAt="2026-09-20T10:00:00"), "it.last_assistant_at is no instant"),
    (blob("run"), r"runs\[0\] is no mapping"),  # type: ignore[arg-type]  # that is the point
    (blob(RUN, {**RUN, "id": 7}), r"runs\[1\].id is no text"),
    (blob({**RUN, "flowId": None}), r"runs\[0\].flow_id is no text"),
    (blob({**RUN, "anchor": None}), r"runs\[0\].anchor is no text"),
    (blob({**RUN, "dedupeKey": None}), r"runs\[0\].dedupe_key is no text"),
    (blob({**RUN, "startedAt": "today"}), r"runs\[0\].started_at is no instant"),
    (blob({**RUN, "status": "tired"}), r"runs\[0\].status is none of running, asking, waiting, suspended"),
    (blob({**RUN, "stepId": 7}), r"runs\[0\].step_id is neither a text nor null"),
    (blob({**RUN, "hop": "1"}), r"runs\[0\].hop is no whole number"),
    (blob({**RUN, "outcomes": None}), r"runs\[0\].outcomes is no list"),
    (blob({**RUN, "trigger": "m1"}), r"runs\[0\].trigger is no mapping"),
    (blob({**RUN, "trigger": {"kind": "luck", "key": "k"}}), r"runs\[0\].trigger.kind is none of message, mention"),
    (blob({**RUN, "trigger": {"kind": "message"}}), r"runs\[0\].trigger.key is no text"),
    (blob({**RUN, "asked": []}), r"runs\[0\].asked is no mapping"),
    (blob({**RUN, "visits": {"who": "1"}}), r"runs\[0\].visits is no whole number"),
    (blob({**RUN, "waiting": "soon"}), r"runs\[0\].waiting is no mapping"),
    (blob({**PARKED, "waiting": {**PARKED["waiting"], "kind": "luck"}}), r"waiting.kind is none of timer, event"),
    (blob({**PARKED, "waiting": {**PARKED["waiting"], "until": None}}), r"waiting.until is no instant"),
    (blob({**PARKED, "waiting": {**PARKED["waiting"], "event": 7}}), r"waiting.event is no text"),
]


@pytest.mark.parametrize(("held", "why"), WRONG)
def test_a_blob_that_is_none_is_refused_with_its_name(held: Any, why: str) -> None:
    """The session, why it cannot be read, and what to do; a fresh conversation never takes its place."""
    with pytest.raises(StoreError, match=rf'^stored session "s1" is unreadable: .*{why}') as told:
        read(held)
    assert str(told.value).endswith(". Repair or delete the row; it is never replaced by a fresh conversation.")
    assert told.value.code == "store-corrupt"


def test_an_import_has_a_time() -> None:
    """With an offset: all that is stored has one."""
    with pytest.raises(UsageError, match="the time of an import has no UTC offset"):
        read(blob(), now=datetime(2026, 9, 21))  # noqa: DTZ001 - that is the point


def test_keys_that_nobody_knows_are_left_behind() -> None:
    """Also in runs."""
    assert state(read(blob({**RUN, "mood": 7}, colour="red"))) == state(read(blob(RUN)))


# ---- 3.x ----------------------------------------------------------------------------------------------------------

OLD: Blob = {
    "version": 12,
    "data": {"name": "Ana"},
    "currentFlow": {"id": "intake", "enteredAt": ISO},
    "currentStep": {"id": "who", "enteredAt": ISO},
    "flowHistory": [
        {"flowId": "welcome", "enteredAt": ISO, "exitedAt": "2026-09-20T10:01:00.000Z", "completed": True},
        {"flowId": "left", "completed": False},
        "noise",
    ],
    "signals": {"triggers": {"churn": {"lastFiredAt": ISO}, "odd": 7}},
    "metadata": {"since": T0, "channel": "web"},
}


def test_a_session_in_the_middle_of_a_flow_goes_on_there() -> None:
    """As a run that asks at its step, under the key ``legacy``."""
    (run,) = state(read(OLD)).runs
    assert (run.id, run.trigger_kind, run.trigger_key) == ("intake#legacy", "message", "legacy")
    assert (run.status, run.step_id, run.dedupe_key, run.started_at) == ("asking", "who", "intake:s1:", T0)


@pytest.mark.parametrize("current", ["intake", {"id": "intake"}])
def test_a_session_before_the_first_step_begins_it(current: Any) -> None:
    """With an id alone, or in a mapping; without a date it began now."""
    (run,) = state(read({"data": {}, "currentFlow": current})).runs
    assert (run.status, run.step_id, run.started_at) == ("running", None, NOW)


def test_what_ran_does_not_run_again() -> None:
    """Completed flows, fired triggers, and the flow that it is in."""
    claims = state(read(OLD, flow_id_of={"churn": "winback", "odd": ""}.__getitem__)).claims
    assert claims == {
        "intake:s1:": T0,
        "welcome:s1:": T0 + timedelta(minutes=1),
        "winback:s1:": T0,
    }
    assert set(state(read(OLD)).claims) == {"intake:s1:", "welcome:s1:", "churn:s1:", "odd:s1:"}


def test_everything_else_of_an_old_session_is_left_behind() -> None:
    """But data, history and metadata; its inputs are not known."""
    held = read({**OLD, "inputs": ["m1"]})
    assert (held.data, held.inputs, held.version) == ({"name": "Ana"}, (), 0)
    assert not held.conversation.messages


@pytest.mark.parametrize("odd", [{"currentFlow": 7}, {"flowHistory": {}}, {"signals": []}, {"metadata": "x"}])
def test_an_old_session_is_mended(odd: Mapping[str, Any]) -> None:
    """What its other parts hold that is none of theirs is nothing."""
    assert state(read({"data": {}, **odd})) == FlowState()


# ---- in general ---------------------------------------------------------------------------------------------------

KEYS = (
    "id v version data runs claims inputs metadata history lastUserAt flowId anchor dedupeKey stepId status trigger "
    "kind key hop startedAt asked visits outcomes waiting until setAt at currentFlow currentStep flowHistory "
    "completed signals triggers"
).split()
WORDS = st.sampled_from(["s1", ISO, "message", "asking", "", ":"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=9), st.booleans())
def test_hostile_blobs_are_read_or_refused(held: Blob, is_v4: bool) -> None:
    """Nothing else is raised, and what is read can be stored."""
    whole = {**blob(), **held, "id": "s1", "v": 4} if is_v4 else held
    try:
        session = read(whole)
    except StoreError as told:
        assert told.code == "store-corrupt"  # noqa: PT017 - both ends are fine
        return
    assert dumps_session(unpack(pack(session))) == dumps_session(session)
    assert state(session) == slot_value(session.slots["flows"], FlowState)
