"""An agent as a tool of another: a child turn in a session of its own, committed with its parent's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Ask, Input, Interruption, Question, Said, below_key
from onrecord.conversation.outgoing import CallDelta, ChildDelta, Delta, SearchDelta
from onrecord.errors import ModelError, OutputInvalid, TurnError, UsageError
from onrecord.jsonio import Json
from onrecord.models.model import ModelCard
from onrecord.session.codec import loads_session
from onrecord.session.let_go import is_waiting
from onrecord.session.session import Session
from onrecord.tools.tool import Tool, ToolResult
from onrecord.turn.above import AskerGone
from onrecord.turn.below import Below, cards_below
from onrecord.turn.call import error_text
from onrecord.turn.call_context import CallContext, last_answer
from onrecord.turn.contained import told
from onrecord.turn.pause import can_ask
from onrecord.turn.plan import Plan
from onrecord.turn.result import TurnResult
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn

__all__ = ("agent_tool",)

DEEPEST = 8
"""How many agents may be at work below one turn, one inside the other."""

ROW = "said::call"
"""The only input that a child's session takes."""

ASK_AGAIN = "another question was open; ask again"
"""What a sub-agent is told of a question that could not be put to anybody."""

PARAMETERS = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What to ask, with everything needed to answer."}},
    "required": ["message"],
    "additionalProperties": False,
}


def agent_tool(plan: Plan, id: str, description: str, *, concurrency_safe: bool | None = None) -> Tool:
    """The tool of the agent with this plan. Its handler takes ``{"message": ...}`` and returns the agent's text, or its
    typed output.
    """

    async def handler(args: Mapping[str, Json], ctx: CallContext) -> ToolResult:
        return await _run(plan, str(args["message"]), ctx)

    return Tool(
        id, handler, description or f"Ask {plan.spec.name}.", parameters=PARAMETERS, check_arguments=True,
        concurrency_safe=concurrency_safe,
        traits=(
            Below(
                forget=plan.forget, expire=plan.expire, cards=_cards(plan), holders=plan.holders
            ),
        ),
    )  # fmt: skip


def _cards(plan: Plan) -> tuple[tuple[str, ModelCard], ...]:
    """The models of an agent and of those below it, where they are no functions of a turn."""
    model = plan.fixed_model()
    own = () if model is None else ((plan.spec.name, model.card),)
    return (*own, *cards_below(plan.tools.values()))


async def _run(plan: Plan, message: str, ctx: CallContext) -> ToolResult:
    """Takes the child turn, or goes on with a paused one; its question is the parent's."""
    turn, call = ctx.turn, ctx.call.id
    if not message.strip():
        return ToolResult(error_text("Validation failed: the message has no words"), status="invalid")
    if (depth := _depth(turn)) >= DEEPEST:
        return _failed(
            f"{plan.spec.name} was not asked: {depth} agents are at work one below the other, which is the most"
        )
    waiting = turn.paused_children.get(call)
    paused = None if waiting is None else loads_session(waiting)
    if paused is not None and not await is_waiting(paused, turn.record):
        turn.paused_children.pop(call)
        return _failed(
            f"{plan.spec.name} cannot go on: what it did was changed or erased while it waited for an answer"
        )
    answer = None
    if paused is not None and paused.pending is not None and not _is_answered(turn, call):
        if f"{call}/private" not in turn.done:
            await _pass_up(plan, ctx, paused.pending.question, {})
        # What only the person was to see is kept nowhere, so it cannot be shown now. It may be asked for anew.
        answer = Answered("", approved=False, by="the turn above", note=ASK_AGAIN)
    elif paused is not None:
        answer = last_answer(ctx)
    order = _order(plan, message, ctx, paused, answer)
    try:
        result = await take(plan, order, turn.effects)
    except UsageError as refused:
        if paused is not None and refused.code == "asker-gone":
            raise AskerGone(refused) from None
        raise
    except (TurnError, ModelError) as failed:
        _keep(ctx, failed.result)
        return _failed(f"{plan.spec.name} could not answer: {_why(failed)}")
    finally:
        child = turn.below.pop(call, None)
    _keep(ctx, result)
    if result.status == "paused" and result.question is not None and result.session is not None:
        # As it stands once this change is stored: the store counts the child's version up with the parent's.
        ctx.kept_child = replace(result.session, version=result.session.version + 1)
        turn.done.pop(f"{call}/private", None)
        if result.private:
            turn.done[f"{call}/private"] = True
        await _pass_up(plan, ctx, result.question, result.private)
    turn.paused_children.pop(call, None)
    return _returned(plan, result, child)


def _depth(turn: Turn) -> int:
    above, depth = turn.above, 0
    while above is not None:
        above, depth = above.above, depth + 1
    return depth


def _is_answered(turn: Turn, call: str) -> bool:
    """Whether the answer that this take goes on with is to the question of this call."""
    pending = turn.session.pending
    return turn.answer is not None and pending is not None and pending.question.call == call


def _order(plan: Plan, message: str, ctx: CallContext, paused: Session | None, answer: Answered | None) -> Order:
    """What the child turn is asked. A take that runs again names it, and the effects in it, as the one before did."""
    turn, call = ctx.turn, ctx.call.id
    session: Session | SessionKey = below_key(turn.session.key, call)
    said: Input = Said(message)
    if paused is not None and paused.pending is not None and answer is not None:
        session, said = paused, replace(answer, key=paused.pending.question.key)
    by = turn.interrupted
    return Order(
        input=said, session=session, context=turn.context, above=turn, may_ask=can_ask(turn), record=turn.record,
        row=ROW if paused is None else None, deed=ctx.key, may_retry=False, emit=_emit(plan, ctx),
        was_read=lambda: False, began=lambda child: turn.below.update({call: child}),
        interrupted=None if by is None else Interruption(id=by.id, cause=by.cause),
    )  # fmt: skip


def _emit(plan: Plan, ctx: CallContext) -> Callable[[Delta], None] | None:
    """What whoever reads along sees of the child: that it works, and at what. Its words are for the model."""
    above = ctx.turn.emit
    if above is None:
        return None

    def emit(delta: Delta) -> None:
        if isinstance(delta, (CallDelta, SearchDelta, ChildDelta)):
            above(ChildDelta(call=ctx.call.id, agent=plan.spec.name, delta=delta))

    return emit


async def _pass_up(plan: Plan, ctx: CallContext, question: Question, private: Mapping[str, str]) -> None:
    """Asks the child's question in the parent's name. It leaves the handler."""
    ctx.skip_answers()
    ctx.asked_by = f"agent:{plan.spec.name}"
    await ctx.ask(
        Ask(
            question.text, fields=question.fields, detail=question.detail, audience=question.audience,
            on_message=question.on_message, private=private, decision=question.decision, partial=question.partial,
            expires_s=_left(question, ctx.turn),
        )
    )  # fmt: skip


def _left(question: Question, turn: Turn) -> float | None:
    """How long the child's question still waits."""
    return None if question.expires is None else max((question.expires - turn.now).total_seconds(), 0.001)


def _keep(ctx: CallContext, result: TurnResult[Any] | None) -> None:
    """What the child spent is the parent's to report; its change is committed with the parent's."""
    if result is None:
        return
    turn, call = ctx.turn, ctx.call.id
    turn.children.append(result)
    turn.llm_calls += result.llm_calls
    used = dict(turn.used.get(call, {}))
    for model, usage in result.uses.items():
        turn.count(usage, model)
        used[model] = used[model] + usage if model in used else usage
    turn.used[call] = used


def _returned(plan: Plan, result: TurnResult[Any], child: Turn | None) -> ToolResult:
    """What the parent's model reads of a child turn that came to its end."""
    if result.status == "interrupted":
        return _failed(f"{plan.spec.name} was interrupted; what it did until then stands")
    stopped = None if child is None else child.stopped
    cut = stopped is not None and not stopped.wrap_up
    if stopped is not None and cut and not result.text:
        return _failed(f"{plan.spec.name} was stopped before it answered: {stopped.reason}")
    try:
        value: object = result.text if plan.spec.output is str else result.output
    except OutputInvalid as misfit:
        return _failed(f"{plan.spec.name} could not answer: {told(misfit)}")
    if value == "":
        return ToolResult(f"{plan.spec.name} gave no answer.", status="absent")
    return ToolResult(value, status="partial" if cut else None)


def _failed(words: str) -> ToolResult:
    return ToolResult(error_text(words), status="failed")


def _why(failed: TurnError | ModelError) -> str:
    """Why a child turn failed, for the parent's model; what a provider wrote about it is on the child's record."""
    if isinstance(failed, ModelError):
        return f"its model failed ({failed.kind})"
    return told(failed)
