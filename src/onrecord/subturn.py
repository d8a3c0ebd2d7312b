"""An agent as a tool of another: a child turn in a session of its own, committed with its parent's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Ask, Input, Question, Said
from onrecord.errors import ModelError, TurnError
from onrecord.jsonio import Json
from onrecord.session.codec import loads_session
from onrecord.session.session import Session
from onrecord.tools.tool import Tool, ToolResult
from onrecord.turn.below import Below
from onrecord.turn.call_context import CallContext, last_answer
from onrecord.turn.pause import can_ask
from onrecord.turn.result import TurnResult
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn

__all__ = ("agent_tool",)

PARAMETERS = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What to ask, with everything needed to answer."}},
    "required": ["message"],
    "additionalProperties": False,
}


def agent_tool(agent: Agent[Any, Any], id: str, description: str) -> Tool:
    """The tool. Its handler takes ``{"message": ...}`` and returns the agent's text, or its typed output."""
    plan = agent.plan

    async def handler(args: Mapping[str, Json], ctx: CallContext) -> ToolResult:
        return await _run(agent, str(args["message"]), ctx)

    return Tool(
        id, handler, description or f"Ask {agent.name}.", parameters=PARAMETERS, check_arguments=True,
        traits=(Below(plan.forget, plan.holders),) if plan.forget or plan.holders else (),
    )  # fmt: skip


async def _run(agent: Agent[Any, Any], message: str, ctx: CallContext) -> ToolResult:
    """Takes the child turn, or goes on with a paused one; its question is the parent's."""
    turn = ctx.turn
    waiting = turn.paused_children.get(ctx.call.id)
    paused = None if waiting is None else loads_session(waiting)
    session: Session | SessionKey = SessionKey(f"{turn.session.key.id}/{ctx.call.id}", tenant=turn.session.key.tenant)
    said: Input = Said(message)
    if paused is not None and paused.pending is not None:
        answer = last_answer(ctx)
        said, session = Answered(
            paused.pending.question.key, value=answer.value, approved=answer.approved, by=answer.by, note=answer.note,
            expired=answer.expired,
        ), paused  # fmt: skip
    order = Order(
        input=said, session=session, context=turn.context, above=turn.session, may_ask=can_ask(turn),
        record=turn.record,
    )  # fmt: skip
    try:
        result = await take(agent.plan, order, turn.effects)
    except (TurnError, ModelError) as failed:
        if failed.result is not None:
            _keep(ctx, failed.result)
        raise
    _keep(ctx, result)
    if result.status == "paused" and result.question is not None and result.session is not None:
        # As it stands once this change is stored: the store counts the child's version up with the parent's.
        ctx.kept_child = replace(result.session, version=result.session.version + 1)
        question = result.question
        ctx.skip_answers()
        ctx.asked_by = f"agent:{agent.name}"
        await ctx.ask(
            Ask(
                question.text, fields=question.fields, detail=question.detail,
                audience=question.audience, on_message=question.on_message, private=result.private,
                decision=question.decision, partial=question.partial, expires_s=_left(question, turn),
            )
        )  # fmt: skip
    turn.paused_children.pop(ctx.call.id, None)
    return ToolResult(result.text if agent.spec.output is str else result.output)


def _left(question: Question, turn: Turn) -> float | None:
    """How long the child's question still waits."""
    return None if question.expires is None else max((question.expires - turn.now).total_seconds(), 0.001)


def _keep(ctx: CallContext, result: TurnResult[Any]) -> None:
    """What the child spent is the parent's to report; its change is committed with the parent's."""
    ctx.turn.children.append(result)
    ctx.turn.count(result.usage)
    ctx.turn.llm_calls += result.llm_calls
    if result.usage is not None:
        before = ctx.turn.spent.get(ctx.call.id)
        ctx.turn.spent[ctx.call.id] = result.usage if before is None else before + result.usage
