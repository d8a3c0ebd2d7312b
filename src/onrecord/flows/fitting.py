"""Whether what a session knows of flows fits the flows of an agent, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from onrecord.errors import OnrecordError
from onrecord.flows.direct import Flows
from onrecord.flows.entries import FLOWS
from onrecord.flows.flow import Flow
from onrecord.flows.keys import claim_key, run_id
from onrecord.flows.state import FlowState, Run, Waiting, bucket_key
from onrecord.flows.steps import Collect, Do, Talk, Wait, WaitEvent
from onrecord.session.session import Session
from onrecord.timing import iso_ms

__all__ = ("check_session",)


def check_session(session: Session, flows: Flows, *, now: datetime | None = None) -> tuple[str, ...]:
    """What of a session's runs, waits and claims does not fit these flows: one sentence each, none where all fits.

    A wake counts as overdue once ``now`` has passed it (default: once somebody spoke after it was due). Never raises:
    it is for looking at sessions that came from elsewhere, or at all of them before flows are edited.
    """
    given: object = session
    if not isinstance(given, Session):
        return (f"This is no session but a {type(given).__name__}.",)
    held = session.slots.get(FLOWS.name)
    if held is None:
        return ()
    if held.version != FLOWS.version:
        return (f"The state of flows is of version {held.version}, these flows keep version {FLOWS.version}.",)
    try:
        state: Any = flows.state(session)
    except OnrecordError as error:
        return (f"The state of flows cannot be read: {error}.",)
    if not isinstance(state, FlowState):
        return (f"The state of flows is a {type(state).__name__}.",)
    declared = {flow.id: flow for flow in flows.declared}
    return tuple(_sentences(session, flows, state, declared, now))


def _sentences(
    session: Session, flows: Flows, state: FlowState, declared: dict[str, Flow], now: datetime | None
) -> Iterator[str]:
    yield from _together(state)
    for run in state.runs:
        if run.of != flows.name:
            continue  # another agent of this session has it
        flow = declared.get(run.flow_id)
        if flow is None:
            yield f'Run "{run.id}" is of flow "{run.flow_id}", which is gone: it ends as soon as it moves.'
        else:
            yield from _run(run, flow, flows)
        yield from _names(run, state)
        if run.waiting is not None:
            yield from _wait(run, run.waiting, session, now)
    yield from _claims(session, state, declared)
    if state.held is not None and state.held.question != _open_question(session):
        yield "A turn is held for a question that is not open any more."


def _together(state: FlowState) -> Iterator[str]:
    """What runs are to each other."""
    asking = [f'"{run.id}"' for run in state.runs if run.status == "asking"]
    if len(asking) > 1:
        yield f"{len(asking)} runs are asking, and only one may: {', '.join(asking)}."
    ids: set[str] = set()
    places: set[tuple[str, str]] = set()
    for run in state.runs:
        if run.id in ids:
            yield f'Two runs have the id "{run.id}".'
        elif (run.flow_id, run.anchor) in places:
            yield f'Two runs of flow "{run.flow_id}" are live for the anchor "{run.anchor}".'
        ids.add(run.id)
        places.add((run.flow_id, run.anchor))


def _run(run: Run, flow: Flow, flows: Flows) -> Iterator[str]:
    """Whether a run stands where its flow has something for it."""
    step = None if run.step_id is None else flow.step(run.step_id)
    if run.step_id is not None and step is None:
        yield (
            f'Run "{run.id}" is at step "{run.step_id}", which flow "{flow.id}" does not have: '
            "it ends as soon as it moves."
        )
        return
    talks = isinstance(step, (Talk, Collect))
    if run.status in ("asking", "suspended") and not talks:
        where = "before its first step" if step is None else f'at step "{step.id}", which takes no floor'
        yield f'Run "{run.id}" is {run.status} {where}.'
    if run.staying and flow.on_end != "stay":
        yield f'Run "{run.id}" stays, and flow "{flow.id}" does not any more: it ends as soon as it moves.'
    unknown = sorted(slug for slug in run.asked if slug not in flows.fields)
    if unknown:
        yield f'Run "{run.id}" has asked for {_listed(unknown)}, which nobody declares.'
    waiting = run.waiting
    if waiting is None or waiting.kind == "answer":
        return
    if waiting.kind == "event":
        if not isinstance(step, WaitEvent):
            yield f'Run "{run.id}" waits for event "{waiting.event}", and its step does not.'
        elif step.event != waiting.event:
            yield f'Run "{run.id}" waits for event "{waiting.event}", and its step for "{step.event}".'
    elif step is not None and not talks and not isinstance(step, (Wait, Do)):
        yield f'Run "{run.id}" waits at step "{step.id}", which never waits for a time.'


def _names(run: Run, state: FlowState) -> Iterator[str]:
    """Whether the keys of a run are made of what it is."""
    if run.id != run_id(run.flow_id, run.trigger_key):
        yield f'Run "{run.id}" is not named after its flow and its trigger.'
    place = bucket_key(run.flow_id, run.anchor)
    if not run.dedupe_key.startswith(f"{place}:"):
        yield f'Run "{run.id}" has the claim key "{run.dedupe_key}", which is not of its flow and anchor.'
    elif run.dedupe_key == claim_key(run.flow_id, run.anchor, "") and not _is_claimed(state, place):
        yield f'Run "{run.id}" has no claim, so its flow may start again beside it.'


def _is_claimed(state: FlowState, place: str) -> bool:
    bucket = state.buckets.get(place)
    return bucket is not None and bucket.once is not None


def _wait(run: Run, waiting: Waiting, session: Session, now: datetime | None) -> Iterator[str]:
    """Whether anything will end a wait."""
    if run.status != "waiting":
        yield f'Run "{run.id}" is {run.status} and has a wake all the same.'
    if waiting.kind == "answer":
        if waiting.key != _open_question(session):
            yield f'Run "{run.id}" waits for the answer to a question that is not open.'
        return
    if waiting.until is None:
        yield f'Run "{run.id}" waits without end: nothing says until when.'
        return
    spoken = [at for at in (session.last_user_at, session.last_assistant_at) if at is not None]
    latest = now or max(spoken, default=None)
    if latest is not None and waiting.until < latest:
        yield (
            f'Run "{run.id}" waits for the wake "{waiting.key}", which was due at {iso_ms(waiting.until)}: '
            "unless a row of the inbox has it, nothing will fire it."
        )


def _claims(session: Session, state: FlowState, declared: dict[str, Flow]) -> Iterator[str]:
    """Whether every claim is somebody's."""
    here = f":{session.key.id}"
    for place in state.buckets:
        if not any(place.startswith(f"{id}:") for id in declared):
            flow, colon, _ = place.partition(":")
            yield (
                f'The claim key "{place}" does not parse: it names no flow.'
                if not colon or not flow
                else f'Claims "{place}:" are of no flow of these.'
            )
    for key in state.sent:
        known = key.endswith(here) and any(
            flow.step(key[len(id) + 1 : -len(here)]) is not None
            for id, flow in declared.items()
            if key.startswith(f"{id}:")
        )
        if not known:
            yield f'The claim "{key}" of a line that is said once is of no step of these flows.'


def _open_question(session: Session) -> str:
    return "" if session.question is None else session.question.key


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
