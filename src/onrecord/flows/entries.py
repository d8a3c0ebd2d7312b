"""The entries that flows file, and the fold that makes `FlowState` of them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from onrecord.flows.outcomes import EndReason
from onrecord.flows.state import Bucket, FlowState, Held, Run, bucket_key
from onrecord.record.entry import Body, Entry

__all__ = (
    "BODIES",
    "FLOWS",
    "ClaimReleased",
    "FlowsFold",
    "FlowsImported",
    "LineSentOnce",
    "RunEnded",
    "RunMoved",
    "RunStarted",
    "TurnHeld",
)


class RunStarted(Body, frozen=True, gc=False, kw_only=True, tag="run.started"):
    """A run began and its claim is spent; ``nonce`` is the tail of the claim's key."""

    run: Run
    nonce: str
    at: datetime


class RunMoved(Body, frozen=True, gc=False, kw_only=True, tag="run.moved"):
    """A run as it stands after it moved."""

    run: Run


class RunEnded(Body, frozen=True, gc=False, kw_only=True, tag="run.ended"):
    """A run is over."""

    run: str
    flow: str
    anchor: str
    reason: EndReason


class ClaimReleased(Body, frozen=True, gc=False, kw_only=True, tag="run.released"):
    """A run came to nothing, so the claim that its start had spent is free again."""

    flow: str
    anchor: str
    nonce: str


class LineSentOnce(Body, frozen=True, gc=False, kw_only=True, tag="run.sent_once"):
    """A line that is said once was said."""

    key: str
    at: datetime


class TurnHeld(Body, frozen=True, gc=False, kw_only=True, tag="run.held"):
    """What the turn must know again when the question that pauses it is answered; None once it is."""

    held: Held | None = None


class FlowsImported(Body, frozen=True, gc=False, kw_only=True, tag="run.imported"):
    """Runs and claims of a session that came from elsewhere, as they stood there."""

    state: FlowState


BODIES: tuple[type[Body], ...] = (
    RunStarted, RunMoved, RunEnded, ClaimReleased, LineSentOnce, TurnHeld, FlowsImported
)  # fmt: skip


class FlowsFold:
    """Live runs and claims, from the entries of flows alone."""

    name = "flows"
    version = 1
    state = FlowState
    kinds = frozenset(str(body.__struct_config__.tag) for body in BODIES)
    scope: Literal["session", "turn"] = "session"
    unfinished = False

    def start(self) -> FlowState:
        return FlowState()

    def apply(self, state: FlowState, entry: Entry, /) -> FlowState:
        body = entry.body
        if isinstance(body, RunMoved):
            return _with(state, runs=tuple(body.run if run.id == body.run.id else run for run in state.runs))
        if isinstance(body, RunStarted):
            place = bucket_key(body.run.flow_id, body.run.anchor)
            bucket = state.buckets.get(place, Bucket()).with_claim(body.nonce, body.at)
            return _with(state, runs=(*state.runs, body.run), buckets={**state.buckets, place: bucket})
        if isinstance(body, RunEnded):
            return _with(state, runs=tuple(run for run in state.runs if run.id != body.run))
        if isinstance(body, ClaimReleased):
            return _with(state, buckets=_released(state, body))
        if isinstance(body, LineSentOnce):
            return _with(state, sent={**state.sent, body.key: body.at})
        if isinstance(body, TurnHeld):
            return _with(state, held=body.held)
        return body.state if isinstance(body, FlowsImported) else state


def _with(state: FlowState, **changes: object) -> FlowState:
    held = {"runs": state.runs, "buckets": state.buckets, "sent": state.sent, "held": state.held} | changes
    return FlowState(**held)  # type: ignore[arg-type]  # names and types are those of the fields just above


def _released(state: FlowState, body: ClaimReleased) -> dict[str, Bucket]:
    place = bucket_key(body.flow, body.anchor)
    bucket = state.buckets.get(place, Bucket()).without(body.nonce)
    buckets = {name: held for name, held in state.buckets.items() if name != place}
    if bucket.once is not None or bucket.always:
        buckets[place] = bucket
    return buckets


FLOWS = FlowsFold()
