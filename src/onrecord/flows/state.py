"""The state of flows in a session: live runs, and what was claimed. A fold over the record, like all state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.flows.keys import claim_key
from onrecord.jsonio import Json

__all__ = ("KEPT_CLAIMS", "Bucket", "FlowState", "Held", "Run", "RunStatus", "Spent", "TriggerKind", "Waiting")

KEPT_CLAIMS = 50
"""How many claims a flow that always repeats keeps, per flow and anchor."""

RunStatus = Literal["running", "asking", "waiting", "suspended"]
TriggerKind = Literal["message", "mention", "silence", "event", "start", "flow"]


class Waiting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a parked run waits for: a timer, an event (``until`` is when it gives up), or a person's answer.

    ``key`` is that of the wake, or of the question; ``set_at`` is when it was parked.
    """

    kind: Literal["timer", "event", "answer"]
    key: str
    set_at: datetime
    until: datetime | None = None
    event: str = ""


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One live execution of a flow.

    ``of`` names the director it belongs to, ``step_id`` is None before the first step. ``asked`` counts how often each
    field was asked for in this run, and ``visits`` how often each step was entered. ``failures`` counts the model calls
    of the present visit that failed in a row, ``sent`` the messages of that visit, ``talked`` is the talk step that it
    took last, ``acted`` whether it
    has done anything at all.
    """

    id: str
    flow_id: str
    anchor: str
    dedupe_key: str
    trigger_kind: TriggerKind
    trigger_key: str
    started_at: datetime
    status: RunStatus = "running"
    step_id: str | None = None
    payload: Json = None
    input: Json = None
    hop: int = 0
    suspended_at: datetime | None = None
    staying: bool = False
    waiting: Waiting | None = None
    asked: Mapping[str, int] = {}
    visits: Mapping[str, int] = {}
    of: str = "flows"
    failures: int = 0
    sent: int = 0
    talked: str = ""
    acted: bool = False


class Spent(Struct, frozen=True, array_like=True):
    """One claim of a flow that always repeats."""

    nonce: str
    at: datetime


class Bucket(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one flow has claimed for one anchor: the claim without a nonce, and the latest ones with, in order."""

    once: datetime | None = None
    always: tuple[Spent, ...] = ()

    def claimed(self, nonce: str) -> datetime | None:
        """When this nonce was claimed, if it was."""
        if not nonce:
            return self.once
        return next((spent.at for spent in self.always if spent.nonce == nonce), None)

    def with_claim(self, nonce: str, at: datetime) -> Bucket:
        """With one more claim; the oldest ones beyond `KEPT_CLAIMS` are forgotten."""
        if not nonce:
            return replace(self, once=at)
        return replace(self, always=(*self.always, Spent(nonce, at))[-KEPT_CLAIMS:])

    def without(self, nonce: str) -> Bucket:
        """Without a claim that came to nothing."""
        if not nonce:
            return replace(self, once=None)
        return replace(self, always=tuple(spent for spent in self.always if spent.nonce != nonce))


class Held(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn knew when it paused and must know again when the person has answered ``question``.

    ``floor`` is the run that had the floor, ``speaker`` the one that was about to speak; ``said`` are texts and media
    that went out, ``speakers`` the runs that said them; ``delays`` are short waits that ride on a run's next message;
    ``asks`` whether the message asked something; ``idle`` that the idle speaker was speaking; ``answers`` that the
    speaker only answers, since its question follows word for word.
    """

    question: str = ""
    floor: str = ""
    speaker: str = ""
    said: tuple[tuple[str, str | None], ...] = ()
    speakers: tuple[str, ...] = ()
    delays: Mapping[str, int] = {}
    asks: bool | None = None
    idle: bool = False
    answers: bool = False


class FlowState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Live runs in the order in which they started, and claims, bucketed by flow and anchor.

    ``sent`` are the claims of lines said once. At most one run is asking.
    """

    runs: tuple[Run, ...] = ()
    buckets: Mapping[str, Bucket] = {}
    sent: Mapping[str, datetime] = {}
    held: Held | None = None

    @property
    def claims(self) -> Mapping[str, datetime]:
        """Every claim by its whole key."""
        return dict(self._claims())

    def _claims(self) -> Iterator[tuple[str, datetime]]:
        for place, bucket in self.buckets.items():
            if bucket.once is not None:
                yield f"{place}:", bucket.once
            for spent in bucket.always:
                yield f"{place}:{spent.nonce}", spent.at
        yield from self.sent.items()

    def claimed(self, flow: str, anchor: str, nonce: str) -> datetime | None:
        """When a flow claimed this nonce for an anchor."""
        bucket = self.buckets.get(bucket_key(flow, anchor))
        return None if bucket is None else bucket.claimed(nonce)

    def run(self, id: str) -> Run | None:
        """The live run with this id."""
        return next((run for run in self.runs if run.id == id), None)

    @property
    def asker(self) -> Run | None:
        """The run that holds the floor."""
        return next((run for run in self.runs if run.status == "asking"), None)


def bucket_key(flow: str, anchor: str) -> str:
    """Under which a flow's claims for an anchor are kept: the claim key without its last part."""
    return claim_key(flow, anchor, "")[:-1]
