"""Silence: the wakes that fire when a customer has not answered, and which wakes a saved session waits for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from onrecord.conversation.outgoing import Wake
from onrecord.flows.keys import claim_key, run_id, silence_key
from onrecord.flows.play import Play, anchor_of, claimed_at, snapped
from onrecord.flows.predicates import PredContext
from onrecord.flows.repeat import blocked
from onrecord.flows.starting import draft
from onrecord.flows.state import Run
from onrecord.session.session import Session
from onrecord.timing import to_ms

if TYPE_CHECKING:
    from onrecord.flows.book import Book, BookFlow, BookTrigger
    from onrecord.flows.flow_options import FlowOptions
    from onrecord.flows.state import FlowState

__all__ = ("arm_silence", "pending_wakes")


async def arm_silence(play: Play) -> None:
    """Arms a wake per silence flow when the assistant spoke in this turn and the customer has not written since."""
    working, before = play.turn.working, play.turn.session.last_assistant_at
    spoke, wrote = working.last_assistant_at, working.last_user_at
    if spoke is None or spoke == before or (wrote is not None and wrote > spoke):
        return
    session = play.turn.session.key.id
    for flow in play.book.silent:
        trigger = flow.of("silence")[0]
        if play.blocked(flow, trigger, _nonce(trigger, spoke)) is not None:
            continue
        if trigger.check is not None and not await play.holds(trigger.check, draft(play, flow, "silence", trigger)):
            continue
        at = snapped(play, spoke + (trigger.after or timedelta()), business_hours=trigger.business_hours)
        replaces = None if before is None else silence_key(flow.id, session, before)
        play.stage.arm(Wake(key=silence_key(flow.id, session, spoke), at=at, replaces=replaces))


def pending_wakes(
    book: Book, state: FlowState, session: Session, *, now: datetime, context: Any, options: FlowOptions
) -> tuple[Wake, ...]:
    """Every parked run's wake, then the silence wakes counted from when the assistant last spoke."""
    parked = [
        Wake(key=run.waiting.key, at=run.waiting.until)
        for run in state.runs
        if run.of == book.name and run.waiting is not None and run.waiting.until is not None
    ]
    return (*parked, *_silences(book, state, session, now, context, options))


def _silences(
    book: Book, state: FlowState, session: Session, now: datetime, context: Any, options: FlowOptions
) -> Iterator[Wake]:
    spoke, wrote = session.last_assistant_at, session.last_user_at
    if spoke is None or (wrote is not None and wrote > spoke):
        return
    for flow in book.silent:
        trigger, anchored = flow.of("silence")[0], anchor_of(flow, options, session.key.id)
        anchor, elsewhere = anchored.key, None if flow.in_session else anchored.last_inbound_at
        nonce = _nonce(trigger, spoke)
        claimed = claimed_at(state, options, flow, anchor, nonce)
        if elsewhere is not None and elsewhere > spoke:
            continue  # the customer is not silent: they wrote in another session
        if blocked(claimed, now, cooldown=trigger.cooldown) is not None:
            continue
        run = _draft(flow, anchor, spoke, nonce)
        seen = PredContext(context=context, data=session.data, run=run, now=now)
        if not _may_hold(trigger, seen):
            continue
        at = spoke + (trigger.after or timedelta())
        yield Wake(
            key=silence_key(flow.id, session.key.id, spoke),
            at=book.moved(at, context) if trigger.business_hours else at,
        )


def _may_hold(trigger: BookTrigger, seen: PredContext) -> bool:
    if trigger.check is None:
        return True
    got: Any = trigger.check(seen)
    if inspect.iscoroutine(got):
        got.close()  # nobody waits for it here: it is judged when the wake fires
    return True if inspect.isawaitable(got) else bool(got)


def _draft(flow: BookFlow, anchor: str, spoke: datetime, nonce: str) -> Run:
    key = str(to_ms(spoke))
    return Run(
        id=run_id(flow.id, key), flow_id=flow.id, anchor=anchor, started_at=spoke, trigger_kind="silence",
        trigger_key=key, dedupe_key=claim_key(flow.id, anchor, nonce),
    )  # fmt: skip


def _nonce(trigger: BookTrigger, since: datetime) -> str:
    """The nonce of the claim that a silence would spend."""
    return str(to_ms(since)) if trigger.always else ""
