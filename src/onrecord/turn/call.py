"""One tool call through its chains: rules and gates, the handler, what the model reads."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast, get_args

from msgspec import UNSET, Struct
from msgspec.structs import replace

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import CallStatus, Note, ToolCall
from onrecord.conversation.outgoing import CallDelta
from onrecord.jsonio import Json, canonical, digest, dumps, is_json, own, read_object
from onrecord.record.kinds import ToolReturned
from onrecord.tools.result_text import as_result, cut, misfit, readable, serialise
from onrecord.tools.tool import Tool, ToolResult
from onrecord.turn.askable import can_be_kept, is_askable
from onrecord.turn.call_context import CallContext
from onrecord.turn.contained import ends_take, raised, told
from onrecord.turn.moments import Allow, Deny, Returned, Stop
from onrecord.turn.plan import Mounted
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("Handled", "effect_key", "error_text", "finish_call", "place_of", "return_call", "run_before", "run_handler")

log = logging.getLogger("onrecord.tools")
PARTS = (Text, Image, Audio, File)
AFTER_RUN = frozenset(get_args(CallStatus)) - {"asked", "not_run"}
"""Statuses of a call that ran; with another one it would seem to wait, or could not be read again."""


def error_text(message: str, **more: Json) -> str:
    """How an error reads for the model: compact JSON."""
    return dumps({"error": message, **more}).decode()


def effect_key(turn: Turn, verb: str, call: ToolCall, own: str = "") -> str:
    """``{turn}/{verb key}/{tool}:{digest of the arguments}``, and ``/{k}`` for the k-th equal call.

    It says what is done, not where: a take that runs again may ask for something else at the same place. ``own`` is
    the key that the director has for its call, if it has one.
    """
    if own:
        return own
    base = f"{turn.id}/{verb}/{call.name}:{digest(canonical(call.args), turn.id)}"
    equal = turn.effect_keys.setdefault(base, {})
    place = equal.setdefault(call.id, len(equal))
    return f"{base}/{place}" if place else base


def place_of(call: ToolCall) -> str:
    """Where a call's entries stand: ``main/r0/c1``."""
    _, round_, place = call.id.rsplit("/", 2)
    return f"main/{round_}/{place}"


class Handled(Struct, frozen=True, kw_only=True):
    """How a handler ended, before any rule saw it."""

    result: ToolResult
    status: CallStatus
    text: str = ""
    ask: Ask | None = None
    unwound: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None


# ---- before the handler ----------------------------------------------------------------------------------------------


class Refused(Struct, frozen=True, kw_only=True):
    """A call that does not run, and what the model reads instead."""

    text: str
    status: CallStatus


class Asker(Struct, frozen=True, kw_only=True):
    """A hook that wants a person's answer before this call goes on; ``args`` are the arguments so far."""

    ask: Ask
    by: str
    mark: str
    args: Mapping[str, Json]


async def run_before(
    turn: Turn, tool: Tool, call: ToolCall, context: CallContext, *, behind: str = "", offered: bool = True
) -> ToolCall | Refused | Asker:
    """The chain before a handler: rules, then the argument and policy gates, then what stands behind them.

    ``behind`` names the hook that asked and was answered: the chain goes on after it. ``offered`` False skips the
    schema gate, for calls a director makes itself.
    """
    if not turn.plan.on["before_tool"]:
        return await _gates(tool, call, context, schema=offered) or call
    passed, where = behind == "", place_of(call)
    for stage in (turn.plan.before_gates, None, turn.plan.behind_gates):
        if stage is None:
            gated = (
                await _gates(tool, call, context, schema=offered) if passed or not _is_behind(turn, behind) else None
            )
            if gated is not None:
                return gated
            continue
        for hook in stage:
            if not passed:
                passed = hook.mark == behind
                continue
            got = await _one_before(turn, hook, call, where)
            if not isinstance(got, ToolCall):
                return got
            call = got
    return call


def _is_behind(turn: Turn, name: str) -> bool:
    """Whether the asker stands behind the gates, which its call then passed already."""
    return any(hook.mark == name for hook in turn.plan.behind_gates)


async def _one_before(turn: Turn, hook: Mounted, call: ToolCall, where: str) -> ToolCall | Refused | Asker:
    try:
        verdict = await hook.call(turn, call)
    except BaseException as error:  # noqa: BLE001 - `_failed` lets through what ends the take
        verdict = _failed(hook.name, error)
    if isinstance(verdict, Allow):
        if verdict.value is UNSET:
            if verdict.why:
                file_verdict(turn, "before_tool", hook.name, "allow", verdict.why, call=call.id, where=where)
            return call
        args = verdict.value
        if isinstance(args, Mapping) and is_json(args):
            file_verdict(
                turn, "before_tool", hook.name, "allow", verdict.why, call=call.id, before=call.args, after=args,
                where=where,
            )  # fmt: skip
            return replace(call, args=args)
        verdict = Deny(f"rule {hook.name!r} failed: it allowed a {type(args).__name__} in place of the arguments")
    if isinstance(verdict, Ask) and is_askable(verdict):
        file_verdict(turn, "before_tool", hook.name, "ask", "", call=call.id, where=where)
        return Asker(ask=verdict, by=hook.name, mark=hook.mark, args=call.args)
    if not isinstance(verdict, Deny):
        verdict = Deny(f"rule {hook.name!r} failed: it returned {type(verdict).__name__}, not Allow, Deny or Ask")
    file_verdict(
        turn, "before_tool", hook.name, "deny", verdict.reason, call=call.id, before=call.args, data=verdict.data,
        where=where,
    )  # fmt: skip
    if verdict.halt:
        turn.stop(Stop(verdict.reason))
    return Refused(text=verdict.reason, status="denied")


def _failed(rule: str, error: BaseException) -> Deny:
    """A rule that fails is told to the model."""
    if ends_take(error):
        raise error
    name, words = type(error).__name__, told(error)
    return Deny(f"rule {rule!r} failed: {name}{'' if words == name else f': {words}'}")


async def _gates(tool: Tool, call: ToolCall, context: CallContext, *, schema: bool) -> Refused | None:
    """Arguments, then policy, in the words that the model is used to."""
    if schema and _malformed(call):
        return Refused(text=error_text("Validation failed: the arguments are not a JSON object"), status="invalid")
    try:
        if schema and tool.check_arguments and tool.problems and (problems := tool.problems(call.args)):
            return Refused(text=error_text(f"Validation failed: {problems}"), status="invalid")
        if tool.validate_input is not None:
            valid = await _maybe(tool.validate_input(call.args, context))
            if not valid.valid:
                more = {} if valid.corrected_input is None else {"correctedInput": valid.corrected_input}
                return Refused(
                    text=error_text(f"Validation failed: {valid.error or 'invalid input'}", **more), status="invalid"
                )
        if tool.check_permissions is not None:
            permission = await _maybe(tool.check_permissions(call.args, context))
            if not permission.allowed:
                return Refused(
                    text=error_text(f"Permission denied: {permission.reason or 'not allowed'}"), status="denied"
                )
    except BaseException as error:
        if ends_take(error):
            raise
        return Refused(text=error_text(told(error)), status="failed")
    return None


def _malformed(call: ToolCall) -> bool:
    """The model wrote something that is no JSON object, and no rule put arguments in its place."""
    if call.args or call.raw_args.strip() in ("", "{}"):
        return False
    return read_object(call.raw_args) is None


async def _maybe(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


# ---- the handler -----------------------------------------------------------------------------------------------------


async def run_handler(tool: Tool, call: ToolCall, context: CallContext) -> Handled:
    """Runs the handler; nothing it does reaches the caller as an exception.

    A sync handler runs in a thread, so that one that blocks does not hold up every other session.
    """
    now = context.turn.effects.now
    started = now()
    try:
        if _is_async(tool.handler):
            value = await tool.handler(own(call.args), context)
        else:
            value = await _maybe(await asyncio.to_thread(_in_thread, tool.handler, own(call.args), context))
    except BaseException as error:
        # What leaves a handler that asks is no Exception either, alone or in a group.
        if ends_take(error) and (context.asked is None or isinstance(error, _PASSES)):
            raise
        if context.asked is not None:
            return _asked(context, started)
        log.debug("tool %r raised %s", tool.id, raised(error))
        text = error_text(told(error))
        return Handled(result=ToolResult(), status="failed", text=text, started_at=started, ended_at=now())
    finally:
        context.over = True
    if context.asked is not None:
        return _asked(context, started)
    if isinstance(value, Ask) and is_askable(value):
        return Handled(result=ToolResult(), status="asked", ask=value, started_at=started)
    result = as_result(value)
    problem = "a question that cannot be kept" if isinstance(value, Ask) else misfit(result, context.patch)
    if problem:
        context.patch.clear()
        text = error_text(f"The tool gave {problem}.")
        return Handled(result=ToolResult(), status="failed", text=text, started_at=started, ended_at=now())
    return Handled(result=result, status=result.status or "returned", started_at=started, ended_at=now())


def _is_async(handler: Callable[..., Any]) -> bool:
    code = getattr(handler, "__code__", None)  # `inspect` looks through every wrapper first, at each call
    return bool(code is not None and code.co_flags & inspect.CO_COROUTINE) or inspect.iscoroutinefunction(handler)


_PASSES = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


class _Escaped(Exception):
    """What a handler in a thread raised and a future cannot hand over: it would hang, or stop the event loop.

    Nobody above the turn can be meant by it, since nothing of a thread gets there.
    """


def _in_thread(handler: Callable[..., Any], args: Mapping[str, Json], context: CallContext) -> Any:
    try:
        return handler(args, context)
    except BaseException as error:
        if isinstance(error, (Exception, asyncio.CancelledError)) and not isinstance(error, StopIteration):
            raise
        raise _Escaped(told(error)) from None


def _asked(context: CallContext, started: datetime) -> Handled:
    return Handled(result=ToolResult(), status="asked", ask=context.asked, unwound=True, started_at=started)


# ---- after the handler -----------------------------------------------------------------------------------------------


async def finish_call(turn: Turn, tool: Tool, call: ToolCall, handled: Handled, round_id: str, cause: int) -> int:
    """The chain after a handler, then the result as it stands for the model. Returns the entry's place."""
    for fact in handled.result.facts:
        turn.note(fact, cause=cause)
    value = handled.result.value
    content = (Text(handled.text),) if handled.text else content_of(value)
    limit, hooked = tool.max_result_size_chars, turn.plan.on["after_tool"]
    if not hooked:
        content = content if limit is None else _capped(content, limit)
        return return_call(
            turn, call, round_id, handled.status, content, cause, started_at=handled.started_at,
            ended_at=handled.ended_at,
        )  # fmt: skip
    returned = Returned(call=call, value=None if value is UNSET else value, content=content, status=handled.status)
    returned = await _after_chain(turn, turn.plan.before_cap, returned)
    if limit is not None:
        returned = replace(returned, content=_capped(returned.content, limit))
    returned = await _after_chain(turn, turn.plan.behind_cap, returned)
    return return_call(
        turn, call, round_id, returned.status, returned.content, cause, notes=returned.notes,
        started_at=handled.started_at, ended_at=handled.ended_at,
    )  # fmt: skip


def content_of(value: object) -> tuple[Part, ...]:
    """A handler's value as parts: parts as they are, anything else as one text."""
    if type(value) is str:
        return (Text(serialise(value)),)
    if isinstance(value, PARTS):
        return (value,)
    if isinstance(value, (tuple, list)) and value and all(isinstance(v, PARTS) for v in value):
        return tuple(value)
    return (Text(serialise(value)),)


def _capped(content: tuple[Part, ...], limit: int) -> tuple[Part, ...]:
    return tuple(Text(cut(p.text, limit)) if isinstance(p, Text) else p for p in content)


async def _after_chain(turn: Turn, hooks: Sequence[Mounted], returned: Returned) -> Returned:
    for hook in hooks:
        try:
            verdict = await hook.call(turn, returned)
        except BaseException as error:  # noqa: BLE001 - `_failed` lets through what ends the take
            verdict = _failed(hook.name, error)
        if isinstance(verdict, Allow) and not _is_readable(verdict.value):
            verdict = Deny(f"rule {hook.name!r} failed: it allowed something else than a Returned with parts")
        if isinstance(verdict, Allow):
            if verdict.value is not UNSET:
                file_verdict(
                    turn, "after_tool", hook.name, "allow", verdict.why, call=returned.call.id,
                    before=returned.content, after=verdict.value.content, where=place_of(returned.call),
                )  # fmt: skip
                returned = replace(verdict.value, call=returned.call)  # what is read may change, never what ran
            elif verdict.why:
                file_verdict(
                    turn, "after_tool", hook.name, "allow", verdict.why, call=returned.call.id,
                    where=place_of(returned.call),
                )  # fmt: skip
            continue
        if not isinstance(verdict, Deny):
            verdict = Deny(f"rule {hook.name!r} failed: it returned {type(verdict).__name__}, not Allow or Deny")
        file_verdict(
            turn, "after_tool", hook.name, "deny", verdict.reason, call=returned.call.id, before=returned.content,
            data=verdict.data, where=place_of(returned.call),
        )  # fmt: skip
        returned = replace(returned, content=(Text(verdict.reason),), status="denied")
        if verdict.halt:
            turn.stop(Stop(verdict.reason))
    return returned


def _is_readable(value: object) -> bool:
    """Whether an after-rule left a result that can be shown to the model and read again, or left it alone."""
    if value is UNSET:
        return True
    if not isinstance(value, Returned) or value.status not in AFTER_RUN:
        return False
    content, notes = cast(object, value.content), cast(object, value.notes)
    return (
        isinstance(content, tuple)
        and all(isinstance(part, PARTS) and isinstance(getattr(part, "text", ""), str) for part in content)
        and (notes == () or can_be_kept(notes, tuple[Note, ...]))
    )


def return_call(
    turn: Turn, call: ToolCall, round_id: str, status: str, content: tuple[Part, ...], cause: int | None,
    *, notes: tuple[Note, ...] = (), started_at: datetime | None = None, ended_at: datetime | None = None,
) -> int:  # fmt: skip
    """Files what the model reads of a call, and shows a live reader how it ended, also where it never ran."""
    body = ToolReturned(
        call=call.id, round=round_id, name=call.name, status=cast(CallStatus, status), result=readable(content),
        notes=notes, started_at=started_at, ended_at=ended_at, spent=turn.spent.pop(call.id, None),
    )  # fmt: skip
    entry = turn.note(body, cause=cause, where=place_of(call))
    if turn.emit is not None:
        turn.emit(CallDelta(id=call.id, name=call.name, status=status, args=call.args))
    return entry.n
