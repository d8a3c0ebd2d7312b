"""A take: one attempt at one turn, from open to close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import (
    Answered,
    Ask,
    Input,
    Interruption,
    Said,
    Woke,
    check_input,
    ends_question,
    expiry_key,
    input_key,
    row_key,
    turn_id,
)
from onrecord.conversation.outgoing import Delta, Outcome
from onrecord.errors import (
    MessageDenied,
    ModelError,
    OnrecordError,
    TurnError,
    UsageError,
)
from onrecord.record.kinds import (
    Noted,
    Pending,
    TurnInput,
    TurnOpened,
    TurnResumed,
    WakeDisarmed,
)
from onrecord.record.record import Entries
from onrecord.session.session import Session, resumed
from onrecord.turn import watching
from onrecord.turn.above import check_reachable
from onrecord.turn.answering import answer_of, still_fits
from onrecord.turn.configuring import configure
from onrecord.turn.contained import ends_take, fail
from onrecord.turn.effects import Effects
from onrecord.turn.ending import end, nothing
from onrecord.turn.moments import Allow, Deny, Stop
from onrecord.turn.options import checked_options
from onrecord.turn.plan import Plan
from onrecord.turn.result import TurnResult
from onrecord.turn.resume import pass_by, settle_paused
from onrecord.turn.stage import LiveStage
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("Order", "stale", "take")

SomeInput = TypeVar("SomeInput", bound=Input)


class Order(Struct, frozen=True, kw_only=True):
    """What one take is asked to do.

    ``session`` is the state to start from, or only its key. ``history`` replaces the session's conversation for this
    take and stays the caller's. ``row`` and ``number`` name the turn (None: from the input and `Session.seq`),
    ``attempt`` is the take's number. ``emit`` gets the live deltas, ``began`` the running `Turn`. ``above`` is the
    turn whose call takes this one, ``deed`` the key of that call: a new session below belongs to the same person.
    ``interrupted`` ends the take once the input is admitted. ``was_read`` says whether anybody read what was emitted
    (None: yes, if there is an ``emit``); only that counts as shown. Without ``may_retry`` a model that failed ends the
    take for good. ``record`` reads what is stored of sessions, where somebody stores them.
    """

    input: Input
    session: Session | SessionKey
    context: object = None
    options: tuple[object, ...] = ()
    history: Conversation | None = None
    row: str | None = None
    number: int | None = None
    attempt: int = 1
    emit: Callable[[Delta], None] | None = None
    began: Callable[[Turn], None] | None = None
    above: Turn | None = None
    deed: str = ""
    may_ask: bool = True
    interrupted: Interruption | None = None
    was_read: Callable[[], bool] | None = None
    may_retry: bool = True
    record: Entries | None = None


async def take(plan: Plan, order: Order, effects: Effects) -> TurnResult[Any]:
    """Takes one input to its end.

    Raises TurnError (with ``result``) when a rule denied the message or the answer or a feature failed; ModelError
    when a model call failed (with ``result`` only if text was already shown); UsageError before anything is filed.
    """
    is_new = isinstance(order.session, SessionKey)
    base = order.session
    if isinstance(base, SessionKey):
        base = _new_session(base, order.above, effects)
    options = checked_options(order.options, plan.options) if order.options else {}
    ignored = _ignored(order.input, base)
    if ignored is not None:
        return nothing(order.session, "ignored", ignored)
    check_reachable(base, order.above)
    turn = _open(plan, order, base, effects, options, is_new=is_new)
    turn.interrupted = order.interrupted
    if order.began is not None:
        order.began(turn)
    try:
        result = await _taken(turn, order)
    except BaseException as error:
        if plan.watch:
            watching.leave(turn, error)
        raise
    finally:
        turn.task = None  # an interruption that comes now is late
        if turn.limit is not None:
            turn.limit.cancel()
    if plan.watch:
        watching.leave(turn, None)
    return result


async def _taken(turn: Turn, order: Order) -> TurnResult[Any]:
    error: TurnError | ModelError | None = None
    try:
        await _run(turn, order)
        if _is_ignored(turn):
            return nothing(order.session, "ignored", turn.ignored)
    except asyncio.CancelledError:
        if turn.interrupted is None:
            raise
    except TurnError as failed:
        error = failed
    except ModelError as failed:
        _unshow(turn, order)
        if not _was_shown(turn) and turn.interrupted is None and order.may_retry:
            raise  # nothing was shown, so nothing is stored: the same input can be taken again
        error = failed
    if turn.interrupted is not None:
        await _uncancel(turn)
    _unshow(turn, order)
    if (turn.interrupted is not None or error is not None) and turn.pending is None:
        settle_paused(turn)
    return await end(turn, order.session, error)


def _unshow(turn: Turn, order: Order) -> None:
    """What was released and reached nobody was not shown."""
    if order.was_read is not None and not order.was_read():
        turn.streaming.clear()
        turn.streamed = 0


def _new_session(key: SessionKey, above: Turn | None, effects: Effects) -> Session:
    if above is None:
        return Session(key=key, digest_key=effects.nonce())
    return Session(key=key, digest_key=effects.nonce(), owner=above.session.owner, parent=above.session.key.id)


def _ignored(input: Input, session: Session) -> Outcome | None:
    """The line of an input that was taken before, or answers a question that is not open."""
    key = input_key(input)
    if key and key in session.inputs:
        return Outcome(
            kind="input", status="ignored", code="duplicate-input", key=input.key,
            message="this input was already applied",
        )  # fmt: skip
    if (isinstance(input, Answered) or ends_question(input)) and resumed(session, input) is None:
        return stale(input.key)
    return None


def stale(key: str | None) -> Outcome:
    """The line of an answer to a question that is not open."""
    return Outcome(kind="input", status="ignored", code="stale-answer", key=key, message="no such question is open")


def _open(
    plan: Plan, order: Order, base: Session, effects: Effects, options: Mapping[type, object], *, is_new: bool
) -> Turn:
    """The turn with its name: a new one, or the paused one that this input answers."""
    input, resumes = order.input, resumed(base, order.input)
    row = row_key(input, effects.nonce() if not input.key else "") if order.row is None else order.row
    number = base.seq if order.number is None else order.number
    turn = Turn(
        plan, base, effects, key=row if resumes is None else resumes.row, take=order.attempt, is_new=is_new,
        id=turn_id(base.key, row, number) if resumes is None else resumes.turn,
        input=input if resumes is None else resumes.input, context=order.context, options=options, emit=order.emit,
    )  # fmt: skip
    turn.may_ask, turn.record, turn.above = order.may_ask, order.record, order.above
    turn.deed = order.deed or turn.id
    if isinstance(turn.input, Said):
        turn.speaks = turn.input.speaks
    if order.history is not None:
        _check_history(resumes)
        turn.working.use_history(order.history)
    if resumes is not None:
        turn.answer, turn.resuming, turn.done = answer_of(resumes, input, turn.now), resumes, dict(resumes.done)
        turn.paused_children, turn.first_now = dict(resumes.children), resumes.now
        turn.n, turn.take = resumes.n, resumes.take + order.attempt
        turn.number, turn.asks, turn.ids = resumes.number, resumes.asks, resumes.ids
        turn.used = dict(resumes.used)
        if resumes.stopped:
            turn.stopped = Stop(resumes.stopped, wrap_up=resumes.stopped_wraps_up)
    return turn


def _check_history(resumes: Pending | None) -> None:
    if resumes is not None and not resumes.outside:
        raise UsageError(
            "this turn began over the session's own conversation, so it goes on over that",
            code="history-changed",
            hint="answer without history=",
        )


async def _run(turn: Turn, order: Order) -> None:
    plan, pending = turn.plan, turn.session.pending
    if turn.answer is not None:
        await _reopen(turn, turn.answer, order)
    else:
        drops = ""
        if pending is not None and isinstance(order.input, Said) and pending.question.on_message == "drop":
            drops = pending.turn
        opened = TurnOpened(
            input_kind=str(order.input.__struct_config__.tag), row=turn.key, now=turn.now, agent=plan.spec.name,
            input_key=input_key(order.input), manifest=plan.spec.manifest, outside=turn.working.outside is not None,
            drops=drops,
        )  # fmt: skip
        turn.cause = turn.note(opened).n
        if plan.on["input"]:
            turn.input = await _input_hooks(turn, order.input)
        turn.cause = turn.note(TurnInput(input=turn.input, now=turn.now)).n
        if isinstance(turn.input, Said):
            turn.admitted = len(turn.working.conversation.units) - 1
            turn.speaks = turn.input.speaks
    turn.check_interrupted()
    await configure(turn)
    stage = LiveStage(turn)
    await _direct(turn, stage)
    if turn.resuming is not None and turn.pending is None:
        pass_by(turn)
    if turn.pending is None:
        turn.check_interrupted()
    if turn.pending is None and not _is_ignored(turn):
        for hook in plan.on["settle"]:
            try:
                await hook.call(turn)
            except BaseException as error:
                if ends_take(error):
                    raise
                turn.note(Noted(by=hook.name, text=f"settle failed: {type(error).__name__}"))
    await watching.wait(turn)


async def _direct(turn: Turn, stage: LiveStage) -> None:
    """The director speaks its verbs; an exception of its own is that of a feature."""
    director = turn.plan.director
    try:
        await director.direct(turn, stage)
    except OnrecordError:
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and turn.interrupted is not None:
            raise  # the take was left at a safe place, where nobody need have cancelled its task
        fail(type(director).__name__, "direct", error)
    finally:
        stage.leave()


async def _reopen(turn: Turn, answer: Answered, order: Order) -> None:
    """Files the answer as the input hooks leave it; of one that does not pass them only that it came."""
    resumed = TurnResumed(
        answer=Answered(answer.key), now=turn.now, manifest=turn.spec.manifest, input_key=input_key(order.input),
        row=order.row or "",
    )  # fmt: skip
    try:
        turn.answer = still_fits(turn.resuming, order.input, answer, await _input_hooks(turn, answer))
    except (MessageDenied, asyncio.CancelledError):
        turn.note(resumed)
        raise
    turn.cause = turn.note(replace(resumed, answer=turn.answer)).n
    question = None if turn.resuming is None else turn.resuming.question
    if question is not None and question.expires is not None and not isinstance(order.input, Woke):
        turn.note(WakeDisarmed(key=expiry_key(question)))
        turn.disarmed.append(expiry_key(question))
    turn.admitted = _admitted(turn)


def _admitted(turn: Turn) -> int | None:
    """Where the message stands that the turn began with."""
    if not isinstance(turn.input, Said) or turn.working.outside is not None:
        return None
    units, id = turn.working.conversation.units, f"{turn.id}/u"
    return next((at for at in range(len(units) - 1, -1, -1) if units[at].id == id), None)


async def _input_hooks(turn: Turn, input: SomeInput) -> SomeInput:
    for hook in turn.plan.on["input"]:
        keeps = hook.hooks.keeps_text
        try:
            verdict = await hook.call(turn, input)
        except BaseException as error:
            if ends_take(error):
                raise
            verdict = Deny(f"rule {hook.name!r} failed: {type(error).__name__}")
        verdict = _as_verdict(hook.name, verdict, type(input))
        if isinstance(verdict, Deny):
            file_verdict(turn, "input", hook.name, "deny", verdict.reason, before=input, data=verdict.data, keeps=keeps)
            raise MessageDenied("input", hook.name, verdict.reason)
        if verdict.value is not UNSET:
            file_verdict(turn, "input", hook.name, "allow", verdict.why, before=input, after=verdict.value, keeps=keeps)
            input = cast(SomeInput, verdict.value)
        elif verdict.why:
            file_verdict(turn, "input", hook.name, "allow", verdict.why, before=input)
    return input


def _as_verdict(rule: str, verdict: object, kind: type) -> Allow[Any] | Deny:
    """What an input rule decided; whatever breaks its contract is a denial that says how."""
    if isinstance(verdict, Allow):
        fits = isinstance(verdict.value, kind)
        if verdict.value is UNSET or (fits and _is_recordable(verdict.value)):
            return verdict
        wrong = "that cannot be recorded" if fits else "in place of the input"
        problem = f"it allowed a {type(verdict.value).__name__} {wrong}"
    elif isinstance(verdict, Deny):
        return verdict
    elif isinstance(verdict, Ask):
        problem = "it asked a person, but there is no pause at the message boundary"
    else:
        problem = f"it returned {type(verdict).__name__}, not Allow or Deny"
    return Deny(f"rule {rule!r} failed: {problem}")


def _is_recordable(input: Input) -> bool:
    try:
        check_input(input)
    except UsageError:
        return False
    return True


async def _uncancel(turn: Turn) -> None:
    """Takes back what the interruption did to the task, whether or not it has arrived there yet."""
    if turn.task is None or not turn.cut:
        return
    turn.task.uncancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


def _is_ignored(turn: Turn) -> bool:
    """Whether the director ignored the input: not one that it answered, or asks a person about."""
    return turn.ignored is not None and not turn.messages and turn.pending is None


def _was_shown(turn: Turn) -> bool:
    return bool(turn.streamed or turn.streaming)
