"""One tool call from its handler on: what ran, the rules over what it returned, what the model reads."""

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
from onrecord.conversation.usage import total
from onrecord.jsonio import Json, canonical, digest, dumps, own
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

__all__ = (
    "Handled",
    "effect_key",
    "error_text",
    "failed_rule",
    "finish_call",
    "place_of",
    "return_call",
    "run_handler",
    "settled",
)

log = logging.getLogger("onrecord.tools")
PARTS = (Text, Image, Audio, File)
AFTER_RUN = frozenset(get_args(CallStatus)) - {"asked", "not_run"}
"""Statuses of a call that ran; with another one it would seem to wait, or could not be read again."""


def error_text(message: str, **more: Json) -> str:
    """How an error reads for the model: compact JSON."""
    return dumps({"error": message, **more}).decode()


def effect_key(turn: Turn, verb: str, call: ToolCall, own: str = "") -> str:
    """``{turn}/{verb key}/{tool}:{digest of the arguments}``, and ``/{k}`` for the k-th equal call.

    In the turn of a sub-agent the key of the call that takes it stands in place of the turn.

    It says what is done, not where: a take that runs again may ask for something else at the same place. ``own`` is
    the key that the director has for its call, if it has one.
    """
    if own:
        return own
    base = f"{turn.deed}/{verb}/{call.name}:{digest(canonical(call.args), turn.deed)}"
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


def failed_rule(rule: str, error: BaseException) -> Deny:
    """A rule that fails is told to the model."""
    if ends_take(error):
        raise error
    name, words = type(error).__name__, told(error)
    return Deny(f"rule {rule!r} failed: {name}{'' if words == name else f': {words}'}")


async def settled(value: Any) -> Any:
    """What a function that may be sync or async came to."""
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
            value = await settled(await tool.handler(own(call.args), context))
        else:
            value = await settled(await asyncio.to_thread(_in_thread, tool.handler, own(call.args), context))
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
        except BaseException as error:  # noqa: BLE001 - `failed_rule` lets through what ends the take
            verdict = failed_rule(hook.name, error)
        if isinstance(verdict, Allow) and not _is_readable(verdict.value):
            verdict = Deny(f"rule {hook.name!r} failed: it allowed something else than a Returned with parts")
        if isinstance(verdict, Allow):
            if verdict.value is not UNSET:
                file_verdict(
                    turn, "after_tool", hook.name, "allow", verdict.why, call=returned.call.id,
                    before=returned.content, after=verdict.value.content, where=place_of(returned.call),
                    keeps=hook.hooks.keeps_text,
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
            data=verdict.data, where=place_of(returned.call), keeps=hook.hooks.keeps_text,
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
    turn.paused_children.pop(call.id, None)
    used = turn.used.pop(call.id, {})
    body = ToolReturned(
        call=call.id, round=round_id, name=call.name, status=cast(CallStatus, status), result=readable(content),
        notes=notes, started_at=started_at, ended_at=ended_at, spent=total(used.values()) if used else None, uses=used,
    )  # fmt: skip
    entry = turn.note(body, cause=cause, where=place_of(call))
    if turn.emit is not None:
        turn.emit(CallDelta(id=call.id, name=call.name, status=status, args=call.args))
    return entry.n
