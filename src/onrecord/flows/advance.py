"""Moving a run: into a step, through it, to where it goes next, and out of the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from onrecord.flows.keys import run_id, step_key
from onrecord.flows.play import Play, arm, forget, skip, visit_key
from onrecord.flows.starting import start
from onrecord.flows.state import Run, Waiting
from onrecord.flows.steps import Chain, Goto, Next
from onrecord.flows.template import compile_template
from onrecord.jsonio import Json

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    from onrecord.flows.book import BookFlow, BookStep

__all__ = ("enter", "finish", "follow", "park", "resume_suspended", "suspend", "suspend_others")


def enter(play: Play, run: Run, step: str) -> Run:
    """The run enters a step: one more visit."""
    return play.put(_visiting(run, step))


def _visiting(run: Run, step: str) -> Run:
    visits = {**run.visits, step: run.visits.get(step, 0) + 1}
    return replace(
        run, step_id=step, status="running", waiting=None, staying=False, visits=visits, failures=0, sent=0,
        suspended_at=None,
    )  # fmt: skip


async def follow(play: Play, run: Run, flow: BookFlow, step: BookStep, target: Next | None) -> None:
    """The run goes where ``target`` says; None is the next step in the list, and behind the last one the end."""
    run = play.runs.get(run.id, run)
    if isinstance(target, Chain):
        await _chain(play, run, step, target)
    elif isinstance(target, Goto):
        forget(play, target.clear)
        asked = {slug: times for slug, times in run.asked.items() if slug not in target.clear}
        enter(play, replace(run, asked=asked), target.step)
    elif target == "end" or (target is None and step.index + 1 >= len(flow.steps)):
        await finish(play, run, flow)
    else:
        enter(play, run, flow.steps[step.index + 1].id if target is None else target)


async def _chain(play: Play, run: Run, step: BookStep, target: Chain) -> None:
    """This run ends and another flow starts, one hop deeper."""
    key = visit_key(run)
    name = compile_template(target.flow).render(play.turn.data, play.turn.context, run.input)
    play.end(run, "flow")
    flow = play.book.flows.get(name)
    if flow is None:
        skip(play, name, play.turn.session.key.id, key, "flow-gone")
        play.settle_claim(run)
        return
    await _hand_on(play, run, flow, key, run.input if target.input is None else target.input)


async def _hand_on(play: Play, run: Run, flow: BookFlow, key: str, given: Json, *, clears: bool = True) -> None:
    """A flow starts in the place of a run that has just ended."""
    child = await start(play, flow, "flow", key, payload=given, input=given, hop=run.hop + 1, clears=clears)
    if child is not None:
        play.before[child.id] = run
        _inherit(play, run, child)
        return
    if run_id(flow.id, key) in play.hushed:
        play.hushed.add(run.id)
    play.settle_claim(run)


def _inherit(play: Play, parent: Run, child: Run) -> None:
    """A child has its parent's floor, or one that nobody had; it moves after everybody who is queued."""
    play.queue.append(child.id)
    if play.floor in ("", parent.id):
        play.floor = child.id
        play.floor_taken = play.floor_taken or play.ingesting


async def finish(play: Play, run: Run, flow: BookFlow) -> None:
    """The run is at the end of its flow: it ends, begins again, or stays with its last talk step."""
    if flow.declared.on_end == "stay" and (step := _stays_at(run, flow)) is not None:
        _stay(play, run, step)
        return
    if flow.declared.on_end != "reset":
        play.end(run, "end")
        return
    last = flow.steps[-1].id if flow.steps else ""
    key = step_key(run.id, last, run.visits.get(last, 0))
    play.end(run, "reset")
    await _hand_on(play, run, flow, key, run.input, clears=False)


def _stays_at(run: Run, flow: BookFlow) -> BookStep | None:
    step = flow.by_id.get(run.talked)
    return step if step is not None and step.talks else flow.last_talk


def _stay(play: Play, run: Run, step: BookStep) -> None:
    """The run answers every message from here on. It answers this one too, if nobody has."""
    run = replace(_visiting(run, step.id), staying=True)
    asker = play.asker
    if asker is not None and run.id not in {asker.id, play.floor}:
        play.put(replace(run, status="suspended", suspended_at=play.now))
        return
    suspend_others(play, run)
    is_unanswered = not (play.over or play.said or play.speakers or play.ingesting)
    answers = play.is_message and not play.resumes and play.silenced is None and is_unanswered
    play.put(replace(run, status="running" if answers else "asking"))


def suspend_others(play: Play, run: Run) -> None:
    """Nobody else asks: the others wait behind this run, and lose the talk they had queued."""
    for other in list(play.runs.values()):
        if other.status == "asking" and other.id != run.id:
            suspend(play, other)


def suspend(play: Play, run: Run) -> None:
    """The run waits behind another one."""
    play.put(replace(run, status="suspended", suspended_at=play.now))
    if play.speaker == run.id:
        play.speaker = ""


def resume_suspended(play: Play) -> Run | None:
    """The run that was suspended last asks again."""
    waiting = [run for run in play.runs.values() if run.status == "suspended"]
    if not waiting:
        return None
    last = waiting[0]
    for run in waiting[1:]:
        if (run.suspended_at or run.started_at) >= (last.suspended_at or last.started_at):
            last = run
    return play.put(replace(last, status="asking", suspended_at=None))


def park(
    play: Play, run: Run, step: BookStep, key: str, at: datetime, *, kind: Literal["timer", "event"] = "timer",
    event: str = "",
) -> Run:  # fmt: skip
    """The run waits until a wake, which is armed, or for an event until it gives up."""
    waiting = Waiting(kind=kind, key=key, until=at, set_at=play.now, event=event)
    run = play.put(replace(run, status="waiting", waiting=waiting, acted=True))
    arm(play, key, at)
    if play.speaker == run.id:
        play.speaker = ""
    return run
