"""Sessions as the library that flows come from stored them, and short ways to read what became of one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from onrecord.flows.direct import Flows
from onrecord.flows.flow import Flow
from onrecord.flows.migrate import import_session
from onrecord.flows.state import FlowState
from onrecord.flows.steps import Collect, Talk, Wait
from onrecord.flows.triggers import OnMessage, OnSilence
from onrecord.session import Session, pack, unpack
from onrecord.session.codec import slot_value

__all__ = ("FULL", "ISO", "NOW", "PARKED", "RUN", "T0", "Blob", "blob", "flows", "read", "state")

Blob = dict[str, Any]
T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
NOW = datetime(2026, 9, 21, 10, tzinfo=UTC)
ISO = "2026-09-20T10:00:00.000Z"

RUN: Blob = {
    "id": "intake#m1", "flowId": "intake", "anchor": "s1", "dedupeKey": "intake:s1:", "stepId": "who",
    "status": "asking", "trigger": {"kind": "message", "key": "m1"}, "hop": 0, "startedAt": ISO,
    "asked": {"name": 1}, "visits": {"who": 1}, "outcomes": [],
}  # fmt: skip
PARKED: Blob = {
    **RUN, "id": "nudge#1789898400000", "flowId": "nudge", "dedupeKey": "nudge:s1:", "stepId": "w1",
    "status": "waiting", "trigger": {"kind": "silence", "key": "1789898400000"}, "asked": {}, "visits": {"w1": 1},
    "waiting": {
        "kind": "timer", "key": "nudge#1789898400000:w1:1790157600000", "until": "2026-09-23T10:00:00.000Z",
        "setAt": ISO,
    },
}  # fmt: skip


def blob(*runs: Blob, **more: Any) -> Blob:
    """A stored session of version 4, as the original writes it."""
    return {
        "id": "s1", "v": 4, "version": 7, "data": {"name": None, "ok": True}, "runs": list(runs), "claims": {},
        "inputs": [], "metadata": {}, **more,
    }  # fmt: skip


def read(held: Any, **given: Any) -> Session:
    """The blob as a session of ours."""
    return import_session(held, "s1", **{"now": NOW, **given})


def state(session: Session) -> FlowState:
    """What flows know of a session, as it comes back from bytes."""
    return slot_value(unpack(pack(session)).slots["flows"], FlowState)


FULL = blob(
    RUN, PARKED, claims={"intake:s1:": {"at": ISO}, "nudge:s1:": {"at": ISO}}, inputs=["m0", "m1"],
    lastUserAt=ISO, lastAssistantAt="2026-09-20T10:00:01.000Z", history=[{"role": "user", "content": "hi"}],
    metadata={"channel": "web"},
)  # fmt: skip


def flows() -> Flows:
    """The flows of the stored session, and one that waits for silence."""
    return Flows(
        Flow("intake", on=[OnMessage()], steps=[Collect("name", id="who")]),
        Flow("nudge", on=[OnSilence("24h")], steps=[Talk("Ask.", id="p1"), Wait("2d", id="w1"), Talk("Ask.", id="p2")]),
        Flow("poke", on=[OnSilence("1h")], steps=[Talk("Poke.", id="p")]),
        fields={"name": {"type": "string", "ask": "Ask the name."}},
    )
