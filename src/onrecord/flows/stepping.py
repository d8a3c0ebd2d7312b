"""Taking steps: what each kind of step does when a run is at it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from onrecord.conversation.inputs import Woke
from onrecord.errors import AnswerRefused, FlowInvalid
from onrecord.flows.actions import Defer, Failed, Ok, Skipped, as_action_result
from onrecord.flows.advance import enter, finish, follow, park, suspend_others
from onrecord.flows.entries import FLOWS, LineSentOnce
from onrecord.flows.fields import is_known
from onrecord.flows.invalid import quoted
from onrecord.flows.keys import said_once_key, wake_key
from onrecord.flows.play import Play, line_kind, next_message_key, snapped, spoke, verb_key, visit_key
from onrecord.flows.state import Run, Waiting
from onrecord.flows.steps import Do, Goto, Say, Wait, WaitEvent, next_label
from onrecord.flows.with_args import filled_args
from onrecord.jsonio import read_object
from onrecord.record.kinds import TextSaid
from onrecord.timing import duration
from onrecord.turn.director import Acted, Scope

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookStep
    from onrecord.flows.fields import FieldSpec

__all__ = ("INLINE", "MAX_STEPS", "ask_fixed", "drain", "is_question_due", "move", "pending_of", "told_max_asks")

MAX_STEPS = 50
"""How many steps a run may take at once."""

INLINE = timedelta(seconds=10)
"""The longest wait that rides on the next message instead of parking the run."""


# ---- moving ----------------------------------------------------------------------------------------------------------


async def drain(play: Play, ids: list[str]) -> None:
    """Moves runs in order, and those that they start behind them."""
    play.queue.extend(ids)
    while play.queue and play.question is None:
        await move(play, play.queue.pop(0))


async def move(play: Play, id: str) -> None:
    """Moves one run as far as it goes."""
    run = play.runs.get(id)
    if run is None or run.status in ("waiting", "suspended"):
        return
    if run.status == "asking" and (not play.is_message or play.resumes or play.over):
        return  # only a message makes it speak, and only once
    flow = play.flow_of(run)
    if flow is None:
        play.end(run, "skipped", "flow-gone")
        return
    if not await _may_move(play, run, flow):
        return
    resuming = run.status == "asking" or id in play.resumed
    run = play.put(replace(run, status="running"))
    if run.staying and flow.declared.on_end != "stay":
        await finish(play, run, flow)
    elif run.step_id is None:
        if flow.steps:
            enter(play, run, flow.steps[0].id)
        else:
            await finish(play, run, flow)
    await _take_steps(play, id, flow, resuming=resuming)


async def _take_steps(play: Play, id: str, flow: BookFlow, *, resuming: bool) -> None:
    taken = 0
    while (run := play.runs.get(id)) is not None and run.status == "running" and play.question is None:
        step = flow.by_id.get(run.step_id or "")
        if step is None:
            play.end(run, "skipped", "step-gone")
            return
        if taken == MAX_STEPS:
            play.end(run, "failed", "step-loop", status="failed")
            return
        taken += 1
        if step.talks:
            await _talk(play, run, flow, step, resuming=resuming)
        else:
            await _STEPS[step.kind](play, run, flow, step)
        resuming = False


async def _may_move(play: Play, run: Run, flow: BookFlow) -> bool:
    """The premise: what must keep holding for a run to move. A run that loses it ends.

    At a wake a silence is over when the customer wrote; a reply and an event take the way that is made for them.
    """
    if run.trigger_kind == "silence" and isinstance(play.turn.input, Woke) and has_written_since(play, run, flow):
        play.end(run, "skipped", "customer-replied")
        return False
    if flow.premise is not None:
        holds = await play.holds(flow.premise, run)
    else:
        triggers = flow.of(run.trigger_kind)
        holds = not triggers
        for trigger in triggers:
            if await play.holds(trigger.check, run):
                holds = True
                break
    if not holds:
        play.end(run, "skipped", "premise-changed")
    return holds


def has_written_since(play: Play, run: Run, flow: BookFlow, *, since: Any = None) -> bool:
    """Whether the customer wrote after an instant (default: the start of the run), here or under the same anchor."""
    at = run.started_at if since is None else since
    wrote = play.turn.working.last_user_at
    if wrote is not None and wrote > at:
        return True
    elsewhere = play.anchor(flow).last_inbound_at if flow.declared.anchor != "session" else None
    return elsewhere is not None and elsewhere > at


# ---- talking ---------------------------------------------------------------------------------------------------------


def pending_of(play: Play, run: Run, step: BookStep) -> tuple[FieldSpec, ...]:
    """The fields that a step still has to get."""
    data = play.turn.data
    return tuple(
        spec
        for spec in step.collect
        if not is_known(data.get(spec.slug)) and run.asked.get(spec.slug, 0) < step.max_asks
    )


def told_max_asks(play: Play, run: Run, step: BookStep) -> None:
    """One line per field that nobody gave however often it was asked for."""
    for spec in step.collect:
        if not is_known(play.turn.data.get(spec.slug)) and run.asked.get(spec.slug, 0) >= step.max_asks:
            play.line(run, step.kind, "skipped", "max-asks", detail=spec.slug, key=visit_key(run))


def is_question_due(play: Play, run: Run, step: BookStep) -> bool:
    """Whether a step's fixed question is to go out: nothing it asks for is known, and nothing was asked for yet."""
    if step.question is None or run.staying:
        return False
    data = play.turn.data
    if any(is_known(data.get(spec.slug)) or run.asked.get(spec.slug, 0) for spec in step.collect):
        return False
    return bool(step.question.render(data, play.turn.context, run.input).strip())


async def _talk(play: Play, run: Run, flow: BookFlow, step: BookStep, *, resuming: bool) -> None:
    """The run is at a talk step: it passes it, or asks."""
    if step.collect and not run.staying and not pending_of(play, run, step):
        told_max_asks(play, run, step)
        status, code = ("ok", None) if resuming else ("skipped", "already-known")
        play.line(run, step.kind, status, cast(Any, code), key=visit_key(run), leads=next_label(step.then))
        await follow(play, run, flow, step, step.then)
        return
    if play.silenced is not None:
        await _stay_silent(play, run, flow, step, resuming=resuming or run.sent > 0)
        return
    suspend_others(play, run)
    run = play.put(replace(run, status="asking", talked=step.id))
    if not play.over:
        play.speaker = run.id
    elif is_question_due(play, run, step):
        await ask_fixed(play, run, step)


async def _stay_silent(play: Play, run: Run, flow: BookFlow, step: BookStep, *, resuming: bool) -> None:
    """Nobody may speak: who asks goes on asking, who comes here fresh ends, or passes where that is wanted.

    Whoever has spoken at this step asks, also when it comes back because an answer had failed.
    """
    if resuming or run.staying:
        suspend_others(play, run)
        play.put(replace(run, status="asking"))
    elif play.silenced is not None and play.silenced.skip:
        play.hushed.add(run.id)
        play.line(
            run, step.kind, "skipped", "silenced", detail=play.reason, key=visit_key(run), leads=next_label(step.then)
        )  # fmt: skip
        await follow(play, run, flow, step, step.then)
    else:
        play.end(run, "skipped", "silenced", detail=play.reason, kind=step.kind)


async def ask_fixed(play: Play, run: Run, step: BookStep) -> None:
    """Sends a step's question word for word. It counts as one ask of every field the step wants."""
    question = "" if step.question is None else step.question.render(play.turn.data, play.turn.context, run.input)
    if not await _say(play, run, question):
        play.line(run, step.kind, "failed", "refused", key=visit_key(run))
        return
    run = play.runs[run.id]
    asked = {**run.asked, **{spec.slug: run.asked.get(spec.slug, 0) + 1 for spec in pending_of(play, run, step)}}
    run = play.put(replace(run, asked=asked, status="asking"))
    play.line(run, step.kind, "ok", "asked-fixed", key=visit_key(run))


# ---- saying ----------------------------------------------------------------------------------------------------------


async def _say(play: Play, run: Run, text: str, *, after_ms: int = 0, media: str | None = None) -> bool:
    """Says a line under the run's next key, after the waits that ride on it. False when a rule refused it."""
    key = next_message_key(run)
    try:
        await play.stage.say(
            text, key=verb_key(play, key), message_key=key, after_ms=after_ms + play.delays.pop(run.id, 0), media=media,
            about={"run_id": run.id, "step_id": run.step_id or ""},
        )  # fmt: skip
    except AnswerRefused:
        return False
    spoke(play, run, text, media)
    return True


async def _say_step(play: Play, run: Run, flow: BookFlow, step: BookStep) -> None:
    say = cast(Say, step.declared)
    if play.silenced is not None:
        await _stay_silent(play, run, flow, step, resuming=False)
        return
    key, label = visit_key(run), next_label(step.then)
    claim = said_once_key(run.flow_id, step.id, play.turn.session.key.id) if say.once else ""
    text = "" if step.text is None else step.text.render(play.turn.data, play.turn.context, run.input)
    if claim and (claim in play.turn.state(FLOWS).sent or claim in play.options.claims.held):
        play.line(run, "say", "skipped", "already-sent", key=key, leads=label)
    elif not text.strip() and say.media is None:
        play.line(run, "say", "skipped", "blank", key=key, leads=label)
    elif await _say(play, run, text, after_ms=say.after_ms, media=say.media):
        if claim:
            play.turn.note(LineSentOnce(key=claim, at=play.now))
        play.line(run, "say", "ok", key=key, leads=label)
    else:
        play.line(run, "say", "failed", "refused", key=key, leads=label)
    await follow(play, run, flow, step, step.then)


# ---- doing -----------------------------------------------------------------------------------------------------------


async def _do(play: Play, run: Run, flow: BookFlow, step: BookStep) -> None:
    do, key = cast(Do, step.declared), visit_key(run)
    tool = play.book.actions.get(do.action)
    if tool is None:
        await _done(play, run, flow, step, Failed(f'unknown action "{do.action}"'))
        return
    params = filled_args(tool, do.args, play.turn.data, play.turn.context, run.input)
    scope = Scope(run=run, input=run.input, dedupe_key=run.dedupe_key, silenced=play.reason, key=key)
    acted = await play.stage.act(tool, params, key=verb_key(play, key), scope=scope)
    if acted.asked is not None:
        wait_for_answer(play, run, step, acted)
        return
    run = play.put(replace(play.runs[run.id], acted=True))
    result = Failed(_why(acted)) if acted.error is not None else as_action_result(acted.value)
    await _done(play, run, flow, step, result)


def wait_for_answer(play: Play, run: Run, step: BookStep, asking: Any) -> None:
    """A person is asked: the run waits, and comes back to the same visit of the same step."""
    play.question = asking.asked
    waiting = Waiting(kind="answer", key=asking.asked.key, set_at=play.now)
    run = play.put(replace(play.runs[run.id], status="waiting", waiting=waiting))
    play.line(run, line_kind(step), "waiting", "awaiting-answer", key=visit_key(run), detail=asking.asked.key)


def _why(acted: Acted) -> str:
    """What an action failed with, in the words of who raised or denied it."""
    told = acted.error or ""
    held = read_object(told) or {}
    return str(held.get("error", told))


async def _done(play: Play, run: Run, flow: BookFlow, step: BookStep, result: Ok | Skipped | Failed | Defer) -> None:
    """What became of an action, and where the run goes from there."""
    key, do = visit_key(run), cast(Do, step.declared)
    if isinstance(result, Defer):
        try:
            at = play.now + duration(result.duration)
        except FlowInvalid:
            result = Failed(f'action "{do.action}" deferred by {quoted(result.duration)}, which is no duration')
        else:
            run = park(play, run, step, wake_key(run.id, step.id, at), at)
            play.line(run, "do", "deferred", "action-deferred", detail=result.detail or None, key=key, until=at)
            return
    target = step.then
    if isinstance(result, Failed):
        target = step.then if step.otherwise is None else step.otherwise
        play.line(run, "do", "failed", "action-failed", detail=result.reason, key=key, leads=next_label(target))
    elif isinstance(result, Skipped):
        play.line(run, "do", "skipped", "action-skipped", detail=result.reason, key=key, leads=next_label(target))
    else:
        play.line(run, "do", "ok", detail=result.detail or None, key=key, leads=next_label(target))
        if result.spoke:
            play.turn.note(TextSaid(key=key, text="", side="assistant"))
            play.speakers.add(run.id)
    await follow(play, run, flow, step, target)


# ---- waiting ---------------------------------------------------------------------------------------------------------


async def _wait(play: Play, run: Run, flow: BookFlow, step: BookStep) -> None:
    lasts, key = step.duration or timedelta(), visit_key(run)
    if lasts <= INLINE and _rides(flow, step):
        ms = lasts // timedelta(milliseconds=1)
        play.delays[run.id] = play.delays.get(run.id, 0) + ms
        play.line(run, "wait", "ok", "inline-delay", detail=f"{ms}ms", key=key, leads=next_label(step.then))
        await follow(play, run, flow, step, step.then)
        return
    at = snapped(play, play.now + lasts, business_hours=cast(Wait, step.declared).business_hours)
    run = park(play, run, step, wake_key(run.id, step.id, at), at)
    play.line(run, "wait", "waiting", key=key, until=at)


def _rides(flow: BookFlow, step: BookStep) -> bool:
    """Whether a short wait leads straight to a message that it can ride on."""
    then = step.then
    if then is None:
        follows = flow.steps[step.index + 1] if step.index + 1 < len(flow.steps) else None
    else:
        name = then.step if isinstance(then, Goto) else then if isinstance(then, str) else ""
        follows = flow.by_id.get(name)
    return follows is not None and (follows.talks or follows.kind == "say")


async def _wait_event(play: Play, run: Run, flow: BookFlow, step: BookStep) -> None:
    at = play.now + (step.duration or timedelta())
    event = cast(WaitEvent, step.declared).event
    run = park(play, run, step, wake_key(run.id, step.id, at), at, kind="event", event=event)
    play.line(run, "wait", "waiting", "awaiting-event", detail=event, key=visit_key(run), until=at)


async def _if(play: Play, run: Run, flow: BookFlow, step: BookStep) -> None:
    target = step.then if await play.holds(step.check, run) else step.otherwise or "end"
    play.line(run, "if", "ok", key=visit_key(run), leads=next_label(target))
    await follow(play, run, flow, step, target)


_STEPS: dict[str, Callable[[Play, Run, BookFlow, BookStep], Awaitable[None]]] = {
    "say": _say_step,
    "do": _do,
    "wait": _wait,
    "wait_event": _wait_event,
    "if": _if,
}
