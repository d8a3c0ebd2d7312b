"""Resuming a verb: the recorded rounds stand again, and whoever asked is called again with the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Answered, Question
from onrecord.conversation.messages import ToolCall
from onrecord.errors import UsageError
from onrecord.record.kinds import Pending
from onrecord.tools.tool import ToolResult
from onrecord.turn.above import AskerGone
from onrecord.turn.call import Handled, effect_key, error_text, finish_call, place_of, return_call
from onrecord.turn.call_context import answer_name, answers_to
from onrecord.turn.dispatch import HANDLER, Batch, dispatch, resume_call, settle_rest
from onrecord.turn.moments import Moment
from onrecord.turn.pause import Asking, has_not_run, pause, schema_mark
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("pass_by", "remember_effects", "resume_verb", "settle_paused")

ReplyHooks = Callable[..., Awaitable[Question | None]]


def remember_effects(turn: Turn, pending: Pending) -> None:
    """Keys of calls that ran before the pause, so that an equal call later gets the next number."""
    for held in pending.rounds:
        for call in held.calls:
            if call.status not in ("asked", "absent", "denied", "invalid", "not_run"):
                effect_key(turn, pending.key, call)


async def resume_verb(
    turn: Turn, batch: Batch, pending: Pending, *, reply_hooks: ReplyHooks | None = None
) -> Question | None:
    """Goes on where the verb paused. The next question, when there is another.

    A refusal, and a time that is over, need nobody who is still there: nothing more runs for them in any build.
    """
    answer = turn.answer
    if answer is None or not pending.rounds:
        raise UsageError("a resumed turn needs its answer and the rounds it paused in")
    is_refusal = answer.approved is False
    if pending.output != schema_mark(turn.plan.shape) and not is_refusal:
        raise _refused("the agent's output type is another than when it paused")
    turn.resuming = None
    remember_effects(turn, pending)
    round_id = pending.rounds[-1].id
    kind, _, by = pending.place.partition("/")
    if kind == "reply":
        if reply_hooks is None or not any(h.mark == by for h in turn.plan.on["reply"]):
            if is_refusal:
                _deny_all(turn, round_id, by, answer)
                return None
            raise _refused(_gone("reply hook", by))
        turn.resumed = answer
        asked = await reply_hooks(turn, pending.key, batch.data, round_id, by)
        return asked or await dispatch(turn, batch, round_id, turn.cause or 0)
    call = next((c for c in turn.working.round(round_id).calls if c.id == pending.question.call), None)
    if call is None:
        raise UsageError("the call that asked is not in the conversation any more", code="asker-gone")
    why = _missing(turn, batch, pending, call.name)
    if why and not is_refusal:
        raise _refused(why)
    paused_on = f"the turn paused on {call.name!r} before this call was reached"
    settle_rest(turn, round_id, paused_on, turn.cause, besides={call.id, *turn.paused_children})
    try:
        if why:
            _refuse(turn, round_id, call, pending.place, answer)
            asking = None
        else:
            asking = await _go_on(turn, batch, round_id, call, kind, by, answer)
        asking = asking or await _ask_next(turn, batch, round_id)
    except AskerGone as gone:
        raise gone.error from None
    return None if asking is None else pause(turn, asking, batch.verb, batch.data)


def _missing(turn: Turn, batch: Batch, pending: Pending, tool: str) -> str:
    """Which of what an approval goes on with is not in this build any more; empty when all of it is."""
    kind, _, by = pending.place.partition("/")
    if tool not in batch.tools:
        return _gone("tool", tool)
    if schema_mark(batch.tools[tool]) != pending.tool:
        return f"the tool {tool!r} has another schema than when it was called"
    if has_not_run(kind) and not any(h.mark == by for h in turn.plan.on["before_tool"]):
        return _gone("rule", by)
    return ""


def _refuse(turn: Turn, round_id: str, call: ToolCall, place: str, answer: Answered) -> None:
    """Settles a call that a person refused, or nobody answered about, without whoever asked."""
    kind, _, by = place.partition("/")
    if kind == "handler":
        _leave_waiting(turn, round_id, call, "what asked is gone")
        return
    if has_not_run(kind):
        _file_refusal(turn, by, call, answer)
    return_call(turn, call, round_id, "denied", (Text(declined_text(answer)),), turn.cause)


def _deny_all(turn: Turn, round_id: str, by: str, answer: Answered) -> None:
    """A batch that a person refused, where the hook that asked about it is gone."""
    for call in turn.working.round(round_id).calls:
        if call.status == "asked":
            _file_refusal(turn, by, call, answer, moment="reply")
            return_call(turn, call, round_id, "denied", (Text(declined_text(answer)),), turn.cause)


def _file_refusal(turn: Turn, by: str, call: ToolCall, answer: Answered, moment: Moment = "before_tool") -> None:
    why = "expired" if answer.expired else "declined"
    file_verdict(turn, moment, by, "deny", why, call=call.id, where=place_of(call))


async def _ask_next(turn: Turn, batch: Batch, round_id: str) -> Asking | None:
    """The question of a sub-agent that waited beside the one that was answered: a session has one open question."""
    for call in turn.working.round(round_id).calls:
        if call.status != "asked" or call.id not in turn.paused_children:
            continue
        if turn.stopped is not None:
            _leave_waiting(turn, round_id, call, "the turn was stopped")
        elif (
            asking := await resume_call(turn, batch, round_id, call, behind=HANDLER, cause=turn.cause or 0)
        ) is not None:
            return asking
    return None


def _leave_waiting(turn: Turn, round_id: str, call: ToolCall, why: str) -> None:
    """A call that ran, asked, and will never hear the answer."""
    text = error_text(f"Cancelled: {why} while this waited for an answer, so its outcome is unknown.")
    return_call(turn, call, round_id, "cancelled", (Text(text),), turn.cause)


async def _go_on(
    turn: Turn, batch: Batch, round_id: str, call: ToolCall, kind: str, by: str, answer: Answered
) -> Asking | None:
    cause = turn.cause or 0
    if has_not_run(kind):
        if answer.approved is not True:
            _refuse(turn, round_id, call, f"{kind}/{by}", answer)
            return None
        return await resume_call(turn, batch, round_id, call, behind=f"{kind}/{by}", cause=cause)
    if kind == "result" and answer.approved is False and answer.value is None:
        return_call(turn, call, round_id, "denied", (Text(declined_text(answer)),), cause)
    elif kind == "result":
        value = {"approved": True} if answer.value is None and answer.approved else answer.value
        handled = Handled(result=ToolResult(value), status="returned")
        await finish_call(turn, batch.tools[call.name], call, handled, round_id, cause)
        turn.values[call.id] = (handled.result, "")
    else:
        key = effect_key(turn, batch.verb, call, batch.scope.key)
        turn.done[answer_name(key, answers_to(turn, key))] = answer
        return await resume_call(turn, batch, round_id, call, behind=HANDLER, cause=cause)
    return None


def pass_by(turn: Turn) -> None:
    """The director does not go on with the verb that waited: its calls are settled as they stand."""
    settle_paused(turn)
    turn.resuming = None


def settle_paused(turn: Turn) -> None:
    """A resumed turn that ends before its paused round went on: what ran stays known, the rest is told as it is."""
    pending = turn.session.pending
    if pending is None or pending.turn != turn.id or not pending.rounds:
        return
    held = pending.rounds[-1].id
    if not any(at is not None and at.id == held for at in (turn.working.open, turn.working.acting)):
        return
    for call in turn.working.round(held).calls:
        asked = call.id == pending.question.call and pending.place == "handler"
        if call.status == "asked" and (asked or call.id in turn.paused_children):
            _leave_waiting(turn, held, call, "the turn ended")
    settle_rest(turn, held, "the turn ended before this call", turn.cause)


def declined_text(answer: Answered) -> str:
    """What the model reads of a call that a person declined, or nobody answered about in time."""
    if answer.expired:
        return "Expired: nobody answered in time."
    who = f" by {answer.by}" if answer.by else " by a person"
    return f"Declined{who}{f': {answer.note}' if answer.note else '.'}"


def _gone(what: str, name: str) -> str:
    return f"the {what} {name!r} that it waits for is not part of this agent any more"


def _refused(why: str) -> UsageError:
    return UsageError(
        f"this turn cannot go on: {why}",
        code="asker-gone",
        hint="answer with an agent that still has it, or decline, which lets the question go",
    )
