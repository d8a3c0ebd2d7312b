"""Speaking: who talks in this turn, with which words as a guide, and what follows from what was said."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.errors import AnswerRefused, ModelError
from onrecord.flows.advance import finish, follow
from onrecord.flows.deciding import pieces, write_heard
from onrecord.flows.defer import EMPTY, Failure, failure_of, retry_at
from onrecord.flows.envelope import merge_fields, speak_shape, wire_names
from onrecord.flows.keys import idle_key, retry_key
from onrecord.flows.play import Play, arm, next_message_key, spoke, verb_key, visit_key
from onrecord.flows.prompts import Told
from onrecord.flows.state import Run, Waiting
from onrecord.flows.stepping import ask_fixed, drain, is_question_due, pending_of, told_max_asks, wait_for_answer
from onrecord.record.kinds import DataPatched
from onrecord.turn.contained import failed_call
from onrecord.turn.director import Brief, Scope, Spoken

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookStep, Guide
    from onrecord.flows.fields import FieldSpec
    from onrecord.flows.instructions import FlowInstruction

__all__ = ("speak",)

log = logging.getLogger("onrecord.flows")

ASK_ON = "Collect what is still missing below, in the flow of the conversation, one or two things per message."
ANSWER_ON = "Answer the customer's message, in the flow of the conversation."


class Said(Struct, frozen=True, kw_only=True):
    """What a speak call came to: what was spoken, why nothing was, or that a rule refused it; and what it cost."""

    spoken: Spoken | None = None
    failure: Failure | None = None
    calls: int = 0


async def speak(play: Play) -> None:
    """One voice at most: the run that is about to talk, or the idle speaker; then what its answer leads to."""
    if play.question is not None or play.silenced is not None:
        return
    run = play.runs.get(play.speaker)
    if play.idle:
        play.idle = False  # it was speaking when it paused
        await _idle_speaks(play)
    elif run is not None and run.status == "asking":
        await _run_speaks(play, run)
    elif play.is_message and play.asker is None and not (play.speakers or play.resumes) and play.book.idle is not None:
        await _idle_speaks(play)


async def _run_speaks(play: Play, run: Run) -> None:
    flow = play.flow_of(run)
    step = None if flow is None else flow.by_id.get(run.step_id or "")
    if flow is None or step is None:
        return
    if play.is_message and play.speakers - {run.id}:
        play.put(replace(run, failures=0))  # whatever was owed, the customer has had a reply
        play.line(run, step.kind, "skipped", "another-reply", key=visit_key(run))
        return
    due = is_question_due(play, run, step)
    if due and not play.answers and _goes_out_at_once(play, run):
        play.over = True
        await ask_fixed(play, run, step)
        return
    play.answers = due or play.answers
    await _answer(play, run, flow, step)


def _goes_out_at_once(play: Play, run: Run) -> bool:
    """Whether a fixed question needs no answer before it: nothing was asked, and no answer is owed."""
    return not run.failures and (play.asks is False or not play.is_message)


# ---- a talk step -----------------------------------------------------------------------------------------------------


async def _answer(play: Play, run: Run, flow: BookFlow, step: BookStep) -> None:
    pending = () if play.answers else pending_of(play, run, step)
    brief = await _brief(play, run, flow, step, pending)
    said = await _spoken(play, brief)
    play.over = True
    run = play.runs[run.id]
    if said.failure is not None:
        _later(play, run, step, said.failure)
        return
    if said.spoken is None:
        play.put(replace(run, failures=0))
        play.line(run, step.kind, "failed", "refused", key=visit_key(run))
        return
    if said.spoken.asked is not None:
        wait_for_answer(play, run, step, said.spoken)
        return
    run = spoke(play, run, said.spoken.text)
    heard = cast("dict[str, Any]", said.spoken.value or {})
    patch = {**write_heard(play, heard, pending), **said.spoken.data}
    if patch:
        play.turn.note(DataPatched(patch=patch))
    play.line(run, step.kind, "ok", key=visit_key(run), llm_calls=said.calls)
    await _after_answer(play, play.runs[run.id], flow, step, pending)


async def _brief(play: Play, run: Run, flow: BookFlow, step: BookStep, pending: tuple[FieldSpec, ...]) -> Brief:
    turn, data = play.turn, play.turn.data
    roots = (data, turn.context, run.input)
    tools = flow.declared.tools if step.declared.tools is None else step.declared.tools  # type: ignore[union-attr]  # talk steps have tools
    question = step.question.told(*roots) if play.answers and step.question is not None else ""
    guideline = step.text.told(*roots) if step.text is not None else ASK_ON if pending else ANSWER_ON
    told = Told(
        name=turn.spec.name, flow=flow.declared, step=step.declared, guideline=guideline,  # type: ignore[arg-type]  # a talk step
        pending=pending, asks={slug: text.told(*roots) for slug, text in step.asks.items()},
        wire=wire_names(pending), fixed_after=question,
        instructions=await _standing(play, run, (*play.book.guides, *flow.guides, *step.guides)),
        text=play.text if play.is_message else None, situation=_situation(play, run), said=tuple(play.said),
        data=data, context=turn.context, input=run.input, offers_tools=_offers(play, tools),
    )  # fmt: skip
    key = next_message_key(run)
    scope = Scope(run=run, input=run.input, dedupe_key=run.dedupe_key)
    return Brief(
        key=verb_key(play, key), message_key=key, pieces=pieces(play.book.prompts.speak(told)), tools=_tools(tools),
        shape=speak_shape(pending), merge=merge_fields, carries_input=play.is_message, hold_data=True,
        after_ms=play.delays.pop(run.id, 0), about={"run_id": run.id, "step_id": step.id}, scope=scope,
    )  # fmt: skip


def _tools(allowed: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if allowed is None else tuple(allowed)


def _offers(play: Play, allowed: Iterable[str] | None) -> bool:
    """Whether the model will be offered a tool at all."""
    plan = play.turn.plan
    return play.turn.spec.rounds > 0 and allowed != () and bool(plan.tools or plan.toolsets)


def _situation(play: Play, run: Run) -> Any:
    """What to say of a turn without a new message: somebody waits for an answer, or the assistant speaks first."""
    if play.is_message:
        return ""
    if run.failures:
        for message in reversed(play.turn.conversation.messages):
            if isinstance(message, UserMessage):
                return "answer_pending"
            if isinstance(message, AssistantMessage) and message.shown:
                break
    return "speak_first"


async def _standing(play: Play, run: Run | None, guides: Iterable[Guide]) -> tuple[FlowInstruction, ...]:
    """The instructions whose condition holds now."""
    return tuple([guide.told for guide in guides if await play.holds(guide.check, run)])


async def _spoken(play: Play, brief: Brief) -> Said:
    """One speak call. A model that fails, and a reply without words, is a failure to be told; nothing is raised."""
    before = play.turn.llm_calls
    try:
        spoken = await play.stage.speak(brief)
    except ModelError as error:
        log.warning("[Speak] call %d failed: %s", play.turn.llm_calls, failed_call(error))
        return Said(failure=failure_of(error), calls=play.turn.llm_calls - before)
    except AnswerRefused:
        return Said(calls=play.turn.llm_calls - before)
    calls = play.turn.llm_calls - before
    if spoken.asked is None and not spoken.text.strip():
        log.warning("[Speak] call %d came back without a message", play.turn.llm_calls)
        if brief.hold_data and spoken.data:  # what tools did stands, whether or not it was spoken of
            play.turn.note(DataPatched(patch=dict(spoken.data)))
        return Said(failure=EMPTY, calls=calls)
    return Said(spoken=spoken, calls=calls)


def _later(play: Play, run: Run, step: BookStep, failure: Failure) -> None:
    """The step is spoken again later, at the same visit, or its run ends."""
    key, at = visit_key(run), retry_at(failure, run.failures, play.now)
    if at is None:
        play.line(run, step.kind, "failed", failure.code, key=key)
        play.end(run, "failed")
        return
    wake = retry_key(key, at)
    waiting = Waiting(kind="timer", key=wake, until=at, set_at=play.now)
    run = play.put(replace(run, status="waiting", waiting=waiting, failures=run.failures + 1))
    arm(play, wake, at)
    play.line(run, step.kind, "deferred", failure.code, key=key, until=at)


async def _after_answer(play: Play, run: Run, flow: BookFlow, step: BookStep, asked: tuple[FieldSpec, ...]) -> None:
    """Counts what was asked for, and moves on when nothing is missing any more."""
    run = play.put(replace(run, failures=0))
    if play.answers:
        play.answers = False
        if is_question_due(play, run, step):
            await ask_fixed(play, run, step)
            return
    pending = pending_of(play, run, step)
    if pending and asked:
        counted = {**run.asked, **{spec.slug: run.asked.get(spec.slug, 0) + 1 for spec in pending}}
        run = play.put(replace(run, asked=counted))
    if run.staying:
        _tell_used_up(play, run, step, pending)
        await finish(play, run, flow)
    elif not pending:
        told_max_asks(play, run, step)
        await follow(play, run, flow, step, step.then)
    else:
        return
    await drain(play, [run.id])


def _tell_used_up(play: Play, run: Run, step: BookStep, asked: Iterable[FieldSpec]) -> None:
    """A run that stays tells once of a field that was asked for the last time."""
    for spec in asked:
        if run.asked.get(spec.slug, 0) == step.max_asks:
            play.line(run, step.kind, "skipped", "max-asks", detail=spec.slug, key=visit_key(run))


# ---- the idle speaker ------------------------------------------------------------------------------------------------


async def _idle_speaks(play: Play) -> None:
    """Nobody has the floor: the plain agent answers."""
    idle, turn, key = play.book.idle, play.turn, idle_key(play.key)
    if idle is None:
        return
    prompt = play.book.idle_prompt.told(turn.data, turn.context)
    told = Told(
        name=turn.spec.name, guideline=prompt,
        instructions=await _standing(play, None, (*play.book.guides, *play.book.idle_guides)), text=play.text,
        said=tuple(play.said), data=turn.data, context=turn.context,
        offers_tools=_offers(play, idle.tools),
    )  # fmt: skip
    brief = Brief(
        key=verb_key(play, key), message_key=key, pieces=pieces(play.book.prompts.speak(told)),
        tools=_tools(idle.tools), shape=speak_shape(()), merge=merge_fields, carries_input=True,
    )  # fmt: skip
    said = await _spoken(play, brief)
    play.over = True
    if said.failure is not None:
        play.line(None, "idle", "deferred", said.failure.code, llm_calls=said.calls)
    elif said.spoken is None:
        play.line(None, "idle", "failed", "refused", key=key, llm_calls=said.calls)
    elif said.spoken.asked is not None:
        play.idle, play.question = True, said.spoken.asked
    else:
        play.line(None, "idle", "ok", key=key, llm_calls=said.calls)
