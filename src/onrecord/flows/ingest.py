"""Ingest: what an input does before anybody judges it. It ends waits, wakes runs, reports events, starts flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from onrecord.conversation.inputs import Happened, Said, Started, Woke
from onrecord.conversation.outgoing import Outcome
from onrecord.flows.advance import follow, suspend_others
from onrecord.flows.entries import FLOWS, TurnHeld
from onrecord.flows.keys import SILENCE, silence_parts
from onrecord.flows.outcomes import OUTCOME_MESSAGES, OutcomeCode
from onrecord.flows.play import Play, skip, visit_key
from onrecord.flows.starting import start
from onrecord.flows.state import Run
from onrecord.flows.stepping import has_written_since
from onrecord.flows.steps import next_label
from onrecord.record.kinds import TextSaid
from onrecord.timing import to_ms

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookStep
    from onrecord.flows.steps import Next

__all__ = ("ingest",)


async def ingest(play: Play) -> None:
    """Takes the input in. One that nobody waits for is ignored: `Turn.ignored` says so then."""
    input = play.turn.input
    play.ingesting = True
    await _lost_questions(play)
    if isinstance(input, Said):
        await _message(play)
    elif isinstance(input, Woke):
        await _wake(play, input)
    elif isinstance(input, Happened):
        await _event(play, input)
    elif isinstance(input, Started):
        flow = play.book.flows.get(input.name)
        if flow is None:
            skip(play, input.name, play.turn.session.key.id, input.key, "flow-gone")
        else:
            await start(play, flow, "start", input.key, payload=input.input, input=input.input, hop=input.hop)
    play.ingesting = False


def _ignore(play: Play, code: OutcomeCode) -> None:
    told, key = OUTCOME_MESSAGES[code], play.turn.input.key
    play.turn.ignore(Outcome(kind="wait", status="skipped", code=code, message=told, key=key, at=play.now))


# ---- messages --------------------------------------------------------------------------------------------------------


async def _message(play: Play) -> None:
    await _replied(play)
    _revive(play)


async def _replied(play: Play) -> None:
    """Runs that wait for a time, with somewhere to go when the customer replies first, go there."""
    for parked in list(play.runs.values()):
        found = _waits_for_reply(play, parked)
        if found is None:
            continue
        flow, step = found
        if parked.waiting is not None:
            play.stage.disarm(parked.waiting.key)
        run = play.put(replace(parked, status="running", waiting=None))
        target = await _exit_of(play, run, step)
        play.line(run, "wait", "ok", "replied", leads=next_label(target))
        provisional = not play.floor_taken
        if provisional:
            play.floor = run.id
        await follow(play, run, flow, step, target)
        if provisional and run.id in play.runs:
            play.floor_taken = True


def _waits_for_reply(play: Play, run: Run) -> tuple[BookFlow, BookStep] | None:
    if run.status != "waiting" or run.waiting is None or run.waiting.kind != "timer":
        return None
    flow = play.flow_of(run)
    step = None if flow is None else flow.by_id.get(run.step_id or "")
    if flow is None or step is None or step.kind != "wait" or step.otherwise is None:
        return None
    return flow, step


async def _exit_of(play: Play, run: Run, step: BookStep) -> Next:
    """The first branch that code lets through, else the way for a reply."""
    for branch in step.branches:
        if branch.check is not None and await play.holds(branch.check, run):
            return branch.then
    return step.otherwise or "end"


def _revive(play: Play) -> None:
    """An answer that a model could not give is given now, in one with this message; its later try is dropped."""
    if play.silenced is not None:
        return
    parked = [run for run in play.runs.values() if _is_retried(play, run)]
    latest = max((run.waiting.set_at for run in parked if run.waiting is not None), default=None)
    for run in reversed(parked):
        if run.waiting is None or run.waiting.set_at != latest:
            continue
        play.stage.disarm(run.waiting.key)
        if run.trigger_kind == "silence":
            play.end(replace(run, waiting=None), "skipped", "customer-replied")
            continue
        if play.floor_taken:
            play.put(replace(run, status="suspended", waiting=None, suspended_at=play.now))
            return
        suspend_others(play, run)
        play.put(replace(run, status="asking", waiting=None))
        return


def _is_retried(play: Play, run: Run) -> bool:
    """Whether a run waits to speak again after its model failed."""
    if run.status != "waiting" or run.waiting is None or run.waiting.kind != "timer" or not run.failures:
        return False
    flow = play.flow_of(run)
    step = None if flow is None else flow.by_id.get(run.step_id or "")
    return step is not None and step.talks


# ---- questions to a person -------------------------------------------------------------------------------------------


async def _lost_questions(play: Play) -> None:
    """A run whose question is open no more is not left waiting: it asks again, or its action counts as failed."""
    pending = play.turn.working.pending
    open_key = None if pending is None else pending.question.key
    held = play.turn.state(FLOWS).held
    if held is not None and held.question != open_key:
        play.turn.note(TurnHeld())
    for parked in list(play.runs.values()):
        waiting = parked.waiting
        if waiting is None or waiting.kind != "answer" or waiting.key == open_key:
            continue
        run = play.put(replace(parked, status="running", waiting=None))
        flow = play.flow_of(run)
        step = None if flow is None else flow.by_id.get(run.step_id or "")
        if flow is not None and step is not None and step.kind == "do":
            target = step.then if step.otherwise is None else step.otherwise
            play.line(run, "do", "failed", "question-gone", key=visit_key(run), leads=next_label(target))
            await follow(play, run, flow, step, target)


# ---- wakes -----------------------------------------------------------------------------------------------------------


async def _wake(play: Play, woke: Woke) -> None:
    if play.turn.is_new:
        _ignore(play, "no-session")
    elif (run := _parked_for(play, woke.key)) is not None:  # first, for a flow's id may begin like a silence
        await _run_wake(play, run)
    elif woke.key.startswith(SILENCE):
        await _silence(play, woke)
    else:
        _ignore(play, "stale-wake")


def _parked_for(play: Play, key: str) -> Run | None:
    """The run that waits for this wake; none that waits for a person's answer."""
    for run in play.runs.values():
        if run.waiting is not None and run.waiting.key == key:
            return run if run.status == "waiting" and run.waiting.kind != "answer" else None
    return None


async def _silence(play: Play, woke: Woke) -> None:
    """A silence that still holds starts its flow."""
    session = play.turn.session
    id, since = silence_parts(woke.key, session.key.id)
    flow = play.book.flows.get(id)
    key = str(since)
    if flow is None or not flow.of("silence"):
        skip(play, id, session.key.id, key, "flow-gone")
        return
    spoke, wrote = session.last_assistant_at, session.last_user_at
    elsewhere = play.anchor(flow).last_inbound_at if flow.declared.anchor != "session" else None
    silent = spoke is not None and to_ms(spoke) == since
    if not silent or any(at is not None and spoke is not None and at > spoke for at in (wrote, elsewhere)):
        _ignore(play, "silence-broken")
        return
    run = await start(play, flow, "silence", key, trigger=flow.of("silence")[0])
    if run is not None:
        play.floor, play.floor_taken = run.id, True


async def _run_wake(play: Play, parked: Run) -> None:
    """The run whose wake fired goes on."""
    since = None if parked.waiting is None else parked.waiting.set_at
    run = play.put(replace(parked, status="running", waiting=None))
    play.floor, play.floor_taken = run.id, True
    flow = play.flow_of(run)
    step = None if flow is None else flow.by_id.get(run.step_id or "")
    if flow is None or step is None:
        return  # nothing entered yet, or gone: the run is moved, or told off, where all runs are
    if step.kind == "wait":
        replied = step.otherwise is not None and has_written_since(play, run, flow, since=since)
        target: Any = step.otherwise if replied else step.then
        play.line(run, "wait", "ok", "replied" if replied else "no-reply", leads=next_label(target))
        await follow(play, run, flow, step, target)
    elif step.kind == "wait_event":
        target = step.otherwise or "end"
        play.line(run, "wait", "ok", "no-event", leads=next_label(target))
        await follow(play, run, flow, step, target)


# ---- events ----------------------------------------------------------------------------------------------------------


async def _event(play: Play, event: Happened) -> None:
    """Direction first, then runs that wait for the event, then flows that it starts."""
    declared = play.book.events.get(event.name)
    if declared is None:
        _ignore(play, "unknown-event")
        return
    if declared.direction == "inbound":
        play.turn.note(TextSaid(key=f"event:{event.key}", text="", side="user"))
        await _replied(play)
    elif declared.direction == "outbound":
        play.turn.note(TextSaid(key=f"event:{event.key}", text="", side="assistant"))
    for run in list(play.runs.values()):
        await _arrived(play, run, event.name)
    for flow in play.book.by_event.get(event.name, ()):
        for trigger in flow.of("event"):
            if trigger.event != event.name:
                continue
            begun = await start(
                play, flow, "event", event.key, trigger=trigger, payload=event.payload, input=event.payload,
                hop=event.hop,
            )  # fmt: skip
            if begun is not None:
                break


async def _arrived(play: Play, run: Run, event: str) -> None:
    waiting = run.waiting
    if run.status != "waiting" or waiting is None or waiting.kind != "event" or waiting.event != event:
        return
    flow = play.flow_of(run)
    step = None if flow is None else flow.by_id.get(run.step_id or "")
    play.stage.disarm(waiting.key)
    run = play.put(replace(run, status="running", waiting=None))
    provisional = not play.floor_taken
    if provisional:
        play.floor = run.id
    if flow is not None and step is not None:
        play.line(run, "wait", "ok", "event-arrived", leads=next_label(step.then))
        await follow(play, run, flow, step, step.then)
    if provisional and run.id in play.runs:
        play.floor_taken = True
