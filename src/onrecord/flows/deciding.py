"""Deciding: what is put to the model about a message, and what follows from its judgement."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from onrecord.flows.advance import follow
from onrecord.flows.fields import is_known
from onrecord.flows.heard import heard_values
from onrecord.flows.play import Play, visit_key
from onrecord.flows.route import Route, is_lone, route
from onrecord.flows.starting import draft, start
from onrecord.flows.state import Run
from onrecord.flows.stepping import pending_of
from onrecord.flows.steps import Collect, Goto, Talk, next_label
from onrecord.flows.triggers import OnMessage
from onrecord.flows.understand import Judged, ToJudge, understand_shape
from onrecord.jsonio import Json
from onrecord.models.request import Piece
from onrecord.record.kinds import DataPatched
from onrecord.turn.director import Query

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookStep, BookTrigger
    from onrecord.flows.fields import FieldSpec

__all__ = ("Choices", "choices", "decide", "understand")

NOTHING = Judged()
log = logging.getLogger("onrecord.flows")


class Choices(Struct, frozen=True, kw_only=True):
    """Who could take this message: scored flows with the trigger that would start each, a catch-all, mentions."""

    eligible: dict[str, BookTrigger | None] = {}
    catch_all: tuple[BookFlow, BookTrigger] | None = None
    mentioned: tuple[tuple[BookFlow, BookTrigger], ...] = ()
    lone: bool = False
    floor: str = ""


async def choices(play: Play) -> Choices:
    """Who could take this message, judged by code alone."""
    book, asker = play.book, play.asker
    floor = asker.id if asker is not None else play.floor if play.floor_taken else ""
    eligible: dict[str, BookTrigger | None] = {}
    catch_all = None
    suspended = {run.flow_id for run in play.runs.values() if run.status == "suspended"}
    never_begun = play.never_begun()
    for flow in book.routed:  # also where nothing is routed: what they collect is heard all the same
        if flow.is_free and never_begun(flow.id):  # most flows of most sessions, so this is all that they cost
            eligible[flow.id] = flow.phrased[0]
            continue
        trigger = await _passing(play, flow, flow.phrased, again=flow.id in suspended)
        if trigger is not None:
            eligible[flow.id] = trigger
    for flow in book.open if asker is None and not play.floor_taken else ():
        trigger = await _passing(play, flow, flow.catching, again=False)
        if trigger is not None:
            catch_all = (flow, trigger)
            break
    mentioned = []
    for flow in book.mentioned:
        trigger = flow.of("mention")[0]
        if trigger.is_open or play.blocked(flow, trigger, play.key if trigger.always else "") is None:
            mentioned.append((flow, trigger))
    lone = not play.floor_taken and is_lone(
        tuple(eligible), asking=asker is not None, catch_all=None if catch_all is None else catch_all[0].id,
        idle=book.idle is not None, score=book.scores_lone,
    )  # fmt: skip
    return Choices(eligible=eligible, catch_all=catch_all, mentioned=tuple(mentioned), lone=lone, floor=floor)


async def _passing(play: Play, flow: BookFlow, triggers: tuple[BookTrigger, ...], *, again: bool) -> BookTrigger | None:
    """The first of a flow's message triggers that lets it begin now."""
    for trigger in triggers:
        nonce = play.key if trigger.always else ""
        if not again and play.blocked(flow, trigger, nonce) is not None:
            continue
        if trigger.check is None or await play.holds(trigger.check, draft(play, flow, "message", trigger)):
            return trigger
    return None


# ---- understanding ---------------------------------------------------------------------------------------------------


async def understand(play: Play, found: Choices) -> tuple[Judged, tuple[FieldSpec, ...]]:
    """Puts to the model what code cannot judge: its judgement, and the fields it was asked about. ModelError.

    Without anything to judge nothing is asked.
    """
    if play.silenced is not None and not play.silenced.understand:
        return NOTHING, ()
    to_judge = _to_judge(play, found)
    if not to_judge.needs_a_call:
        return NOTHING, ()
    turn = play.turn
    sections = play.book.prompts.understand(
        to_judge, name=turn.spec.name, text=play.text, data=turn.data, context=turn.context
    )
    query = Query(key="understand", pieces=pieces(sections), shape=understand_shape(to_judge), carries_input=True)
    judged = await play.stage.judge(query)
    if not judged.usable:
        log.warning("[Understand] the reply has no usable structure: nothing is judged")
    return judged, to_judge.fields


def pieces(sections: list[str]) -> tuple[Piece, ...]:
    """Sections of a prompt as pieces of the turn's text, in their order."""
    return tuple(Piece(source="flows", text=text, rank=at, place="turn") for at, text in enumerate(sections))


def _to_judge(play: Play, found: Choices) -> ToJudge:
    run = play.runs.get(found.floor)
    flow = None if run is None else play.flow_of(run)
    step = None if flow is None or run is None else flow.by_id.get(run.step_id or "")
    asking = run is not None and run.status == "asking" and step is not None and step.talks
    scored = [] if found.lone or play.floor_taken else [play.book.flows[id] for id in found.eligible]
    candidates = [flow, *(one for one in scored if one is not flow)] if flow is not None and scored else scored
    mentions = tuple(one.declared for one, trigger in found.mentioned if not trigger.is_open)
    branches = _branches(play, run, step) if asking and run is not None and step is not None else ()
    fields = _fields(play, found, flow, others=bool(scored or mentions or branches))
    pending = pending_of(play, run, step) if run is not None and step is not None and step.talks else ()
    last = _asked_last(play, run, step) if asking and run is not None and step is not None else ()
    fields = (*fields, *last)
    return ToJudge(
        floor=None if flow is None else flow.declared, input=None if run is None else run.input,
        floor_step=step.declared if step is not None and isinstance(step.declared, (Talk, Collect)) else None,
        pending=(*pending, *last),
        candidates=tuple(one.declared for one in candidates), starts=_later_triggers(scored, found), mentions=mentions,
        branches=branches, fields=fields, asks=play.book.has_questions,
    )  # fmt: skip


def _later_triggers(flows: Iterable[BookFlow], found: Choices) -> dict[str, OnMessage]:
    """Of flows that would start by another trigger than the first with phrases: that one, whose phrases are told."""
    later: dict[str, OnMessage] = {}
    for flow in flows:
        trigger = found.eligible[flow.id]
        if trigger is not None and trigger is not flow.phrased[0] and isinstance(trigger.declared, OnMessage):
            later[flow.id] = trigger.declared
    return later


def _asked_last(play: Play, run: Run, step: BookStep) -> tuple[FieldSpec, ...]:
    """Fields that only the step that asks may read, asked for the last time: no reply of it reads the answer."""
    data = play.turn.data
    if run.staying:
        return ()  # it answers every message, whatever became of its fields
    return tuple(
        spec
        for spec in step.collect
        if spec.extract == "asked"
        and not is_known(data.get(spec.slug))
        and run.asked.get(spec.slug, 0) >= step.max_asks
    )


def _branches(play: Play, run: Run, step: BookStep) -> tuple[tuple[str, str], ...]:
    data, context = play.turn.data, play.turn.context
    return tuple(
        (f"{run.id}/{step.id}/{at}", branch.when.told(data, context, run.input))
        for at, branch in enumerate(step.branches)
        if branch.when is not None
    )


def _fields(play: Play, found: Choices, floor: BookFlow | None, *, others: bool) -> tuple[FieldSpec, ...]:
    """Unknown fields that may be taken from this message, of whoever has or could get the floor."""
    data = play.turn.data
    flows = [floor] if floor is not None else []
    flows += [flow for id in found.eligible if (flow := play.book.flows[id]) is not floor]
    wanted = {spec.slug: spec for flow in flows for spec in flow.anywhere if not is_known(data.get(spec.slug))}
    if floor is None and found.catch_all is not None and not found.lone:
        flow = found.catch_all[0]
        more = {spec.slug: spec for spec in flow.anywhere if not is_known(data.get(spec.slug))}
        if others or wanted or any(slug not in flow.free for slug in more):
            wanted = {**wanted, **{slug: spec for slug, spec in more.items() if slug not in wanted}}
    return tuple(wanted.values())


# ---- deciding --------------------------------------------------------------------------------------------------------


async def decide(play: Play, found: Choices, judged: Judged, offered: tuple[FieldSpec, ...]) -> None:
    """Routes the message, starts what it mentions, writes what it said, and judges the asker's branches."""
    play.asks = judged.asks
    asker = play.asker
    flow = None if asker is None else asker.flow_id
    chosen = None
    if not play.floor_taken:
        chosen = route(
            tuple(found.eligible), judged.scores, asker=flow, lone=found.lone,
            catch_all=None if found.catch_all is None else found.catch_all[0].id,
        )  # fmt: skip
    await _mentions(play, judged)
    if chosen is not None:
        await _take_floor(play, found, chosen)
    elif asker is not None:
        play.floor = asker.id
    if patch := write_heard(play, judged.fields, offered):
        play.turn.note(DataPatched(patch=patch))
    if asker is not None and (held := play.runs.get(asker.id)) is not None and held.status == "asking":
        await judge_branches(play, held, judged)
    for id in play.resumed & play.runs.keys():
        await judge_branches(play, play.runs[id], None)


async def _mentions(play: Play, judged: Judged) -> None:
    for flow in play.book.mentioned:
        trigger = flow.of("mention")[0]
        if trigger.is_open:
            await start(play, flow, "mention", play.key, trigger=trigger)
        elif judged.mentions.get(flow.id):
            extract = dict(judged.extracts.get(flow.id, {})) or None
            await start(play, flow, "mention", play.key, trigger=trigger, payload=extract, input=extract)


async def _take_floor(play: Play, found: Choices, chosen: Route) -> None:
    """The chosen flow's suspended run goes on, or a new run starts, by the trigger that matched."""
    flow = play.book.flows[chosen.flow]
    waiting = [r for r in play.runs.values() if r.flow_id == flow.id and r.status == "suspended"]
    if waiting and not chosen.catch_all:
        run = max(waiting, key=lambda held: held.suspended_at or held.started_at)
        play.put(replace(run, status="running", suspended_at=None))
        play.resumed.add(run.id)
        play.floor = run.id
        return
    trigger = found.catch_all[1] if chosen.catch_all and found.catch_all is not None else found.eligible[flow.id]
    begun = await start(play, flow, "message", play.key, trigger=trigger)
    if begun is not None:
        play.floor = begun.id


def write_heard(play: Play, raw: Mapping[str, Json], offered: Iterable[FieldSpec]) -> dict[str, Json]:
    """The values that a model heard, for the session's data; what does not fit is dropped, with a line."""
    if not raw:
        return {}
    patch, dropped = heard_values(raw, play.book.fields, offered, play.turn.data)
    for code, slug in dropped:
        play.line(None, "collect", "skipped", code, detail=slug)
    return patch


async def judge_branches(play: Play, run: Run, judged: Judged | None) -> None:
    """The first exit of the asker's step that holds is taken; without a judgement only those that code judges."""
    flow = play.flow_of(run)
    step = None if flow is None else flow.by_id.get(run.step_id or "")
    if flow is None or step is None or not step.talks:
        return
    for at, branch in enumerate(step.branches):
        if branch.check is not None:
            if run.staying and _repeats(run, branch.then):
                continue
            hit = await play.holds(branch.check, run)
        else:
            hit = judged is not None and judged.branches.get(f"{run.id}/{step.id}/{at}", False)
        if hit:
            key = visit_key(run)
            play.line(run, step.kind, "ok", "branch", key=key, leads=next_label(branch.then))
            await follow(play, play.put(replace(play.runs[run.id], status="running")), flow, step, branch.then)
            return


def _repeats(run: Run, target: object) -> bool:
    """Whether a branch of a run that stays would lead back to where it was, or end it: it would fire for ever."""
    step = target.step if isinstance(target, Goto) else target
    return step == "end" or (isinstance(step, str) and bool(run.visits.get(step)))
