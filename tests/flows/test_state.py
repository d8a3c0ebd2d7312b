"""What flows keep in a session, folded from their entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from onrecord.flows.entries import BODIES, FLOWS, ClaimReleased, LineSentOnce, RunEnded, RunMoved, RunStarted, TurnHeld
from onrecord.flows.state import KEPT_CLAIMS, FlowState, Held, Run, Waiting
from onrecord.record.entry import Body, Entry

pytestmark = pytest.mark.unit

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)


def folded(*bodies: Body, state: FlowState | None = None) -> FlowState:
    """The state after entries with these bodies."""
    state = FLOWS.start() if state is None else state
    for n, body in enumerate(bodies):
        state = FLOWS.apply(state, Entry(seq=n, n=n, turn="t", take=1, where="main", at=T0, cause=None, body=body))
    return state


def run(flow: str = "promo", key: str = "m1") -> Run:
    """A run that has just started."""
    return Run(
        id=f"{flow}#{key}", flow_id=flow, anchor="s1", dedupe_key=f"{flow}:s1:", trigger_kind="message",
        trigger_key=key, started_at=T0,
    )  # fmt: skip


def test_runs_are_kept_in_the_order_in_which_they_started() -> None:
    """A change of one leaves it in its place."""
    first, second = run(), run("other", "m2")
    state = folded(
        RunStarted(run=first, nonce="", at=T0), RunStarted(run=second, nonce="", at=T0),
        RunMoved(run=replace(first, status="asking")),
    )  # fmt: skip
    assert [(held.id, held.status) for held in state.runs] == [("promo#m1", "asking"), ("other#m2", "running")]
    assert state.asker == replace(first, status="asking")
    assert state.run("other#m2") == second


def test_claims_are_found_by_flow_anchor_and_nonce() -> None:
    """A claim without a nonce is one for all; with one it is that input's."""
    state = folded(RunStarted(run=run(), nonce="", at=T0), RunStarted(run=run("ev", "e1"), nonce="e1", at=T0))
    assert state.claimed("promo", "s1", "") == state.claimed("ev", "s1", "e1") == T0
    assert (state.claimed("promo", "s2", ""), state.claimed("ev", "s1", "e2")) == (None, None)
    assert list(state.claims) == ["promo:s1:", "ev:s1:e1"]


def test_the_latest_claims_stay_whatever_order_their_keys_sort_in() -> None:
    """They are a list: a database that reorders the keys of an object forgets none of the wrong ones."""
    late = [RunStarted(run=run("ev", f"e{n}"), nonce=f"e{n}", at=T0 + timedelta(seconds=n)) for n in range(55)]
    state = folded(*late)
    stored = msgspec.json.decode(msgspec.json.encode(state), type=FlowState)
    again = folded(RunStarted(run=run("ev", "e99"), nonce="e99", at=T0), state=stored)
    assert list(state.claims) == [f"ev:s1:e{n}" for n in range(5, 55)]
    assert list(again.claims) == [f"ev:s1:e{n}" for n in (*range(6, 55), 99)]
    assert len(again.claims) == KEPT_CLAIMS


@pytest.mark.parametrize("nonce", ["", "m1"])
def test_a_run_that_came_to_nothing_gives_its_claim_back(nonce: str) -> None:
    """With its run and nothing else."""
    other = RunStarted(run=run("other"), nonce=nonce, at=T0)
    start = RunStarted(run=run(), nonce=nonce, at=T0)
    ended = RunEnded(run="promo#m1", flow="promo", anchor="s1", reason="skipped")
    assert folded(other, start, ended, ClaimReleased(flow="promo", anchor="s1", nonce=nonce)) == folded(other)
    assert {*folded(start, ended).claims} == {f"promo:s1:{nonce}"}


def test_lines_said_once_have_claims_of_their_own() -> None:
    """One of them can look like a flow's claim and is not taken for it."""
    state = folded(LineSentOnce(key="promo:s1:", at=T0))
    assert state.claimed("promo", "s1", "") is None
    assert dict(state.claims) == {"promo:s1:": T0}


def test_the_state_survives_json() -> None:
    """Absent things stay absent; waits, suspension, staying and payloads with null come back."""
    whole = replace(
        run(), waiting=Waiting(kind="event", key="k", set_at=T0, until=T0, event="paid"), suspended_at=T0, staying=True,
        payload={"a": None}, input=[None, {"b": 1}], status="waiting", asked={"name": 2}, visits={"a.b": 1},
    )  # fmt: skip
    state = folded(RunStarted(run=whole, nonce="a.b:c", at=T0), TurnHeld(held=Held(question="q", delays={"r": 3})))
    text = msgspec.json.encode(state)
    assert msgspec.json.decode(text, type=FlowState) == state
    assert b"null" in text
    assert msgspec.json.encode(FlowState()) == b"{}"


def test_what_a_pause_held_is_gone_once_it_is_answered() -> None:
    """It holds what people said."""
    assert folded(TurnHeld(held=Held(question="q", said=(("hi", None),))), TurnHeld()).held is None


def test_the_fold_reads_its_own_entries_only() -> None:
    """Every one of them, and no other."""
    assert FLOWS.kinds == {str(body.__struct_config__.tag) for body in BODIES}
    assert all(kind.startswith("run.") for kind in FLOWS.kinds)
