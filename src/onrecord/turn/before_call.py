"""One tool call before its handler: rules, gates, and what stands behind them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct
from msgspec.structs import replace

from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import CallStatus, ToolCall
from onrecord.jsonio import Json, is_json, read_object
from onrecord.tools.tool import Tool
from onrecord.turn.askable import is_askable
from onrecord.turn.call import error_text, failed_rule, place_of, settled
from onrecord.turn.call_context import CallContext
from onrecord.turn.contained import ends_take, told
from onrecord.turn.moments import SLOTS, Allow, Deny, Stop
from onrecord.turn.plan import Mounted
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("Asker", "Refused", "run_again", "run_before")

_PERMISSION, _CREDENTIALS = SLOTS["before_tool"]["PERMISSION"], SLOTS["before_tool"]["CREDENTIALS"]


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

    ``behind`` names the hook that asked and was answered: the chain goes on after it. Since time went by, permissions
    are looked at again, and whoever hands out credentials goes on itself. ``offered`` False skips the schema gate, for
    calls a director makes itself.
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
                if hook.slot <= _PERMISSION and not passed:
                    refused = await _permitted_still(turn, hook, call, where)
                    if refused is not None:
                        return refused
                if not passed or hook.slot < _CREDENTIALS:
                    continue
                turn.resumed = turn.answer
            got = await _one_before(turn, hook, call, where)
            if not isinstance(got, ToolCall):
                return got
            call = got
    return call


def _is_behind(turn: Turn, name: str) -> bool:
    """Whether the asker stands behind the gates, which its call then passed already."""
    return any(hook.mark == name for hook in turn.plan.behind_gates)


async def run_again(turn: Turn, call: ToolCall) -> Refused | None:
    """What stands before a handler that runs again since its own question was answered: permissions, and credentials.

    Every other rule was asked before the handler first ran.
    """
    for hook in turn.plan.on["before_tool"]:
        refused: object = None
        if hook.slot <= _PERMISSION:
            refused = await _permitted_still(turn, hook, call, place_of(call))
        elif hook.slot >= _CREDENTIALS:
            turn.resumed = turn.answer
            refused = await _one_before(turn, hook, call, place_of(call))
        if isinstance(refused, Refused):
            return refused
        if isinstance(refused, Asker):
            return Refused(
                text=error_text("Permission denied: what this call was lent is not there any more"), status="denied"
            )
    return None


async def _permitted_still(turn: Turn, hook: Mounted, call: ToolCall, where: str) -> Refused | None:
    """A denial of a hook that let this call pass before a person was asked. A person need not be asked twice."""
    verdict = await _verdict_of(turn, hook, call)
    return None if isinstance(verdict, (Allow, Ask)) else _refused(turn, hook, call, where, verdict)


async def _verdict_of(turn: Turn, hook: Mounted, call: ToolCall) -> object:
    try:
        return await hook.call(turn, call)
    except BaseException as error:  # noqa: BLE001 - `failed_rule` lets through what ends the take
        return failed_rule(hook.name, error)
    finally:
        turn.resumed = None


async def _one_before(turn: Turn, hook: Mounted, call: ToolCall, where: str) -> ToolCall | Refused | Asker:
    verdict = await _verdict_of(turn, hook, call)
    if isinstance(verdict, Allow):
        if verdict.value is UNSET:
            if verdict.why:
                file_verdict(turn, "before_tool", hook.name, "allow", verdict.why, call=call.id, where=where)
            return call
        args = verdict.value
        if isinstance(args, Mapping) and is_json(args):
            file_verdict(
                turn, "before_tool", hook.name, "allow", verdict.why, call=call.id, before=call.args, after=args,
                where=where, keeps=hook.hooks.keeps_text,
            )  # fmt: skip
            return replace(call, args=args)
        verdict = Deny(f"rule {hook.name!r} failed: it allowed a {type(args).__name__} in place of the arguments")
    if isinstance(verdict, Ask) and is_askable(verdict):
        file_verdict(turn, "before_tool", hook.name, "ask", "", call=call.id, where=where)
        return Asker(ask=verdict, by=hook.name, mark=hook.mark, args=call.args)
    return _refused(turn, hook, call, where, verdict)


def _refused(turn: Turn, hook: Mounted, call: ToolCall, where: str, verdict: object) -> Refused:
    """A denial, filed. Whatever breaks the contract is one that says how."""
    if not isinstance(verdict, Deny):
        verdict = Deny(f"rule {hook.name!r} failed: it returned {type(verdict).__name__}, not Allow, Deny or Ask")
    file_verdict(
        turn, "before_tool", hook.name, "deny", verdict.reason, call=call.id, before=call.args, data=verdict.data,
        where=where, keeps=hook.hooks.keeps_text,
    )  # fmt: skip
    if verdict.halt:
        turn.stop(Stop(verdict.reason))
    return Refused(text=verdict.reason, status="denied")


async def _gates(tool: Tool, call: ToolCall, context: CallContext, *, schema: bool) -> Refused | None:
    """Arguments, then policy, in the words that the model is used to."""
    if schema and _malformed(call):
        return Refused(text=error_text("Validation failed: the arguments are not a JSON object"), status="invalid")
    try:
        if schema and tool.check_arguments and tool.problems and (problems := tool.problems(call.args)):
            return Refused(text=error_text(f"Validation failed: {problems}"), status="invalid")
        if tool.validate_input is not None:
            valid = await settled(tool.validate_input(call.args, context))
            if not valid.valid:
                more = {} if valid.corrected_input is None else {"correctedInput": valid.corrected_input}
                return Refused(
                    text=error_text(f"Validation failed: {valid.error or 'invalid input'}", **more), status="invalid"
                )
        if tool.check_permissions is not None:
            permission = await settled(tool.check_permissions(call.args, context))
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
