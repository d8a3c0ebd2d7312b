"""The start order: one routine for whatever starts a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from onrecord.flows.entries import FLOWS
from onrecord.flows.keys import claim_key, run_id, start_key
from onrecord.flows.outcomes import OutcomeCode
from onrecord.flows.play import Play, arm, forget, skip, snapped
from onrecord.flows.state import Run, TriggerKind, Waiting
from onrecord.jsonio import Json

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookTrigger

__all__ = ("MAX_HOPS", "draft", "start")

MAX_HOPS = 5
"""How deep flows may chain."""


def draft(play: Play, flow: BookFlow, kind: TriggerKind, trigger: BookTrigger | None = None) -> Run:
    """The run that would start, for conditions that are judged before it does."""
    return _run(play, flow, kind, play.key, always=trigger is None or trigger.always)


async def start(
    play: Play, flow: BookFlow, kind: TriggerKind, key: str, *, trigger: BookTrigger | None = None,
    payload: Json = None, input: Json = None, hop: int = 0, clears: bool = True,
) -> Run | None:  # fmt: skip
    """Starts a run, or says why not; a trigger whose condition is false says nothing.

    ``clears`` False keeps the fields that the flow clears at its start: a flow that resets goes on with what it has.
    """
    always = trigger is None or trigger.always
    # A host that counts below nothing gets no deeper chains for it.
    run = replace(_run(play, flow, kind, key, always=always), payload=payload, input=input, hop=max(hop, 0))
    if trigger is not None and not await play.holds(trigger.check, run):
        return None
    nonce = key if always else ""
    live = next((held for held in play.runs.values() if _same(held, run)), None)
    code = play.blocked(flow, trigger, nonce) or _refused(play, flow, run, live)
    if code is not None:
        if code == "silenced":
            play.hushed.add(run.id)
        skip(play, flow.id, run.anchor, key, code)
        return None
    if live is not None:
        play.end(live, "replaced")
    play.begin(run, nonce)
    if clears:
        forget(play, flow.declared.clear_on_start)
    if kind == "event" and trigger is not None:
        run = _park(play, run, trigger)
    return run


def _run(play: Play, flow: BookFlow, kind: TriggerKind, key: str, *, always: bool) -> Run:
    anchor = play.anchor(flow).key
    return Run(
        id=run_id(flow.id, key), of=play.book.name, flow_id=flow.id, anchor=anchor, started_at=play.now,
        trigger_kind=kind, trigger_key=key, dedupe_key=claim_key(flow.id, anchor, key if always else ""),
    )  # fmt: skip


def _same(one: Run, other: Run) -> bool:
    return one.flow_id == other.flow_id and one.anchor == other.anchor


def _refused(play: Play, flow: BookFlow, run: Run, live: Run | None) -> OutcomeCode | None:
    """What else than a claim stops a run: depth, a live run, or a gate before a flow that could only speak."""
    if run.hop >= MAX_HOPS:
        return "hop-limit"
    if live is not None:
        if live.status == "waiting" and live.step_id is None:
            return None  # it has not begun yet: the newer one takes its place
        return "already-running"
    if play.turn.state(FLOWS).run(run.id) is not None:
        return "already-running"  # for another anchor: two runs of one id could not be told apart
    if claim_key(flow.id, run.anchor, "")[:-1] in play.options.claims.active:
        return "already-running"
    if play.silenced is not None and not play.silenced.skip and flow.begins_by_speaking:
        return "silenced"  # begun now, it would end at once and have spent its claim
    return None


def _park(play: Play, run: Run, trigger: BookTrigger) -> Run:
    """An event's run waits out its delay, or until business is open."""
    at = snapped(
        play, play.now if trigger.after is None else play.now + trigger.after, business_hours=trigger.business_hours
    )
    if trigger.after is None and at <= play.now:
        return run
    key = start_key(run.id, at)
    waiting = Waiting(kind="timer", key=key, until=at, set_at=play.now)
    run = play.put(replace(run, status="waiting", waiting=waiting))
    arm(play, key, at)
    play.line(run, "wait", "waiting", "awaiting-trigger", until=at)
    return run
