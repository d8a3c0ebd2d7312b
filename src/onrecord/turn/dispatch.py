"""Dispatch: the calls of one round. Consecutive safe calls run together, any other alone; order is call order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Ask, Question
from onrecord.conversation.messages import Round, ToolCall
from onrecord.conversation.outgoing import CallDelta
from onrecord.jsonio import Json, is_json, own
from onrecord.record.kinds import RoundSettled, ToolStarted
from onrecord.session.codec import dumps_session
from onrecord.tools.tool import Tool
from onrecord.turn.before_call import Asker, Refused, run_again, run_before, same_args
from onrecord.turn.call import (
    Handled,
    effect_key,
    error_text,
    finish_call,
    place_of,
    return_call,
    run_handler,
)
from onrecord.turn.call_context import CallContext
from onrecord.turn.director import Scope
from onrecord.turn.lent import left_by, without_lent
from onrecord.turn.pause import Asking, can_ask, pause
from onrecord.turn.turn import Turn

__all__ = ("Batch", "dispatch", "settle_rest")

T = TypeVar("T")

HANDLER = "*"
"""In place of an asker's name: the handler itself asked."""


class Batch(Struct, kw_only=True):
    """Whose calls run: the verb, the tools it may call, where its data goes. Mutable: ``data`` grows in call order.

    ``seen`` is the data that handlers of the running round see: the session's with the patches of earlier rounds.
    """

    verb: str
    tools: dict[str, Tool]
    scope: Scope
    data: dict[str, Json]
    seen: Mapping[str, Json] | None = None
    direct: bool = False


class _Ready(Struct, frozen=True, kw_only=True):
    call: ToolCall
    tool: Tool
    context: CallContext
    started: int
    reads: bool


def _parted(items: Sequence[T], safe: Sequence[bool]) -> list[list[T]]:
    """Consecutive safe ones together, any other by itself."""
    out: list[list[T]] = []
    joins = False
    for item, is_safe in zip(items, safe, strict=True):
        if is_safe and joins:
            out[-1].append(item)
        else:
            out.append([item])
        joins = is_safe
    return out


def _is_safe(tool: Tool | None, call: ToolCall) -> bool:
    return tool is not None and _says(tool.is_safe, call)


def _says(flag: Callable[[Mapping[str, Json]], bool], call: ToolCall) -> bool:
    """What a flag of a tool says of this call. One that cannot judge these arguments does not make them harmless."""
    try:
        return flag(call.args)
    except Exception:  # noqa: BLE001 - whatever the reason, it did not say yes
        return False


async def dispatch(turn: Turn, batch: Batch, round_id: str, cause: int) -> Question | None:
    """Runs every call of a round that is still asked. The question that pauses the turn, if one came up."""
    turn.tools = batch.tools
    asked_calls = tuple(c for c in turn.working.round(round_id).calls if c.status == "asked")
    batch.seen = {**turn.working.data, **batch.data}
    try:
        for group in _parted(asked_calls, [_is_safe(batch.tools.get(c.name), c) for c in asked_calls]):
            if turn.stopped is not None:
                break
            asking = await _run_group(turn, batch, round_id, group, cause)
            if asking is not None:
                return pause(turn, asking, batch.verb, batch.data)
    except asyncio.CancelledError:
        if turn.interrupted is not None:  # what ran is kept: a round is, once none of its calls is open
            settle_rest(turn, round_id, "the turn was interrupted before this call", cause)
        raise
    settle_rest(turn, round_id, "the turn was stopped before this call", cause)
    return None


async def _run_group(turn: Turn, batch: Batch, round_id: str, group: list[ToolCall], cause: int) -> Asking | None:
    ready: list[_Ready] = []
    asking: list[tuple[int, Asking]] = []
    changed = False
    for place, call in enumerate(group):
        if turn.stopped is not None:
            break
        got = await _admit(turn, batch, round_id, call, cause)
        if isinstance(got, Asking):
            asking.append((place, got))
        elif got is not None:
            ready.append(got)
            changed = changed or got.call is not call
    # One whose arguments a rule made unsafe runs alone after all.
    for together in _parted(ready, [_is_safe(r.tool, r.call) for r in ready]) if changed else (ready,):
        asking += [
            (next(i for i, c in enumerate(group) if c.id == found.call), found)
            for found in await _run_ready(turn, batch, round_id, together)
        ]
    # The first asker in call order holds the question; others of the group are settled when it is answered.
    return min(asking, key=lambda found: found[0])[1] if asking else None


async def _admit(
    turn: Turn, batch: Batch, round_id: str, call: ToolCall, cause: int, *, behind: str = ""
) -> _Ready | Asking | None:
    """One call through the chain before its handler; refused calls are settled here."""
    tool = batch.tools.get(call.name)
    if tool is None:
        text = error_text(f'Tool "{call.name}" is not available.')
        return_call(turn, call, round_id, "absent", (Text(text),), cause)
        return None
    if tool.traits and (feature := turn.plan.unread(tool)):
        text = error_text(f"Permission denied: this tool needs {feature!r}, which is not part of this agent")
        return_call(turn, call, round_id, "denied", (Text(text),), cause)
        return None
    call = replace(call, args=own(call.args))  # what rules and gates do to it is not done to what the model said
    seen = batch.seen if batch.seen is not None else {**turn.working.data, **batch.data}
    context = CallContext(turn, call, "", seen, batch.scope)
    got: ToolCall | Refused | Asker
    if behind == HANDLER:  # it is run again from its top
        got = (await run_again(turn, call) if turn.plan.on["before_tool"] else None) or call
    else:
        got = await run_before(turn, tool, call, context, behind=behind, offered=not batch.direct)
    if isinstance(got, Refused):
        return_call(turn, call, round_id, got.status, (Text(got.text),), cause)
        return None
    if isinstance(got, Asker):
        if not same_args(got.args, call.args):
            _set_args(turn, round_id, call.id, got.args)
        asking = Asking(ask=got.ask, by=got.by, place=got.place, call=call.id, tool=tool, audience="approver")
        return _or_denied(turn, round_id, call, asking, cause)
    turn.check_interrupted()
    if not is_json(got.args):
        text = error_text("Permission denied: a rule left arguments that JSON cannot keep")
        return_call(turn, call, round_id, "denied", (Text(text),), cause)
        return None
    context.call, context.key = got, effect_key(turn, batch.verb, got, batch.scope.key)
    entry = turn.note(
        ToolStarted(call=call.id, round=round_id, name=call.name, args=got.args, key=context.key),
        cause=cause,
        where=place_of(call),
    )
    if turn.emit is not None:
        turn.emit(CallDelta(id=call.id, name=call.name, status="asked", args=got.args))
    return _Ready(call=got, tool=tool, context=context, started=entry.n, reads=_says(tool.is_read_only, got))


def _or_denied(turn: Turn, round_id: str, call: ToolCall, asking: Asking, cause: int) -> Asking | None:
    """A session has one open question: where another turn's is open, asking is a denial."""
    if can_ask(turn):
        return asking
    text = error_text("Permission denied: a person must answer another question first")
    return_call(turn, call, round_id, "denied", (Text(text),), cause)
    return None


def _set_args(turn: Turn, round_id: str, call_id: str, args: Mapping[str, Json]) -> None:
    held: Round = turn.working.round(round_id)
    calls = tuple(replace(c, args=args) if c.id == call_id else c for c in held.calls)
    turn.note(RoundSettled(round=replace(held, calls=calls)))


async def _run_ready(turn: Turn, batch: Batch, round_id: str, ready: list[_Ready]) -> list[Asking]:
    """Handlers together, then their after-chains in call order."""
    if not ready:
        return []
    effectful = any(not each.reads for each in ready)
    turn.shielded += effectful
    done: list[Handled | None] = [None] * len(ready)
    try:
        if len(ready) == 1:
            done = [await run_handler(ready[0].tool, ready[0].call, ready[0].context)]
        else:
            done = await _together(turn, ready)
    except asyncio.CancelledError:
        if turn.interrupted is None:
            raise
    finally:
        turn.shielded -= effectful
    asking: list[Asking] = []
    for each, handled in zip(ready, done, strict=True):
        if handled is None:
            text = error_text("Cancelled: the turn was interrupted while this ran, so its outcome is unknown.")
            return_call(turn, each.call, round_id, "cancelled", (Text(text),), each.started)
            continue
        found = await _finish(turn, batch, round_id, each, handled)
        if found is not None:
            asking.append(found)
    turn.check_interrupted()
    return asking


async def _together(turn: Turn, ready: list[_Ready]) -> list[Handled | None]:
    """Handlers side by side. In a turn that is interrupted those that only read are cut: None."""
    tasks: list[asyncio.Task[Handled]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for each in ready:
                tasks.append(group.create_task(run_handler(each.tool, each.call, each.context)))
                if each.reads:
                    turn.harmless.append(tasks[-1])
    except asyncio.CancelledError:
        if turn.interrupted is None:
            raise
    finally:
        turn.harmless.clear()
    return [None if task.cancelled() else task.result() for task in tasks]


async def _finish(turn: Turn, batch: Batch, round_id: str, each: _Ready, handled: Handled) -> Asking | None:
    context = each.context
    handled, patch = left_by(turn, each.call, handled, context.patch)
    if handled.ask is not None:
        return _asked(turn, round_id, each, handled.ask, unwound=handled.unwound)
    batch.data.update(patch)
    batch.data.update(handled.result.data or {})
    cause = await finish_call(turn, each.tool, each.call, handled, round_id, each.started)
    turn.values[each.call.id] = without_lent(turn, (handled.result, handled.text))
    turn.cause = cause
    return None


def _asked(turn: Turn, round_id: str, each: _Ready, ask: Ask, *, unwound: bool) -> Asking | None:
    if each.context.kept_child is not None:
        turn.paused_children[each.call.id] = Raw(dumps_session(each.context.kept_child))
    place = "handler" if unwound else "result"
    by = each.context.asked_by or each.call.name
    asking = Asking(ask=ask, by=by, place=place, call=each.call.id, tool=each.tool, audience="speaker")
    return _or_denied(turn, round_id, each.call, asking, each.started)


def settle_rest(turn: Turn, round_id: str, why: str, cause: int | None, *, besides: Collection[str] = ()) -> None:
    """Every call of the round that is still asked is settled as not run, so that none stays unanswered."""
    for call in turn.working.round(round_id).calls:
        if call.status == "asked" and call.id not in besides:
            return_call(turn, call, round_id, "not_run", (Text(error_text(f"Not executed: {why}.")),), cause)


async def resume_call(
    turn: Turn, batch: Batch, round_id: str, call: ToolCall, *, behind: str, cause: int
) -> Asking | None:
    """The call whose question was answered goes on: behind the asker, or its handler from the top."""
    turn.tools = batch.tools
    got = await _admit(turn, batch, round_id, call, cause, behind=behind)
    if isinstance(got, Asking):
        return got
    found = await _run_ready(turn, batch, round_id, [got]) if got is not None else []
    return found[0] if found else None
