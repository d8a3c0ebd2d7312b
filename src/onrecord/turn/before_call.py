"""One tool call before its handler: rules, gates, and what stands behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import CallStatus, ToolCall
from onrecord.jsonio import Json, copies, is_json, own, read_object, same_json
from onrecord.tools.tool import Tool
from onrecord.turn.askable import is_askable
from onrecord.turn.call import error_text, failed_rule, place_of, settled
from onrecord.turn.call_context import CallContext
from onrecord.turn.contained import ends_take, told
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Deny, Stop
from onrecord.turn.pause import BEFORE, CHECKED
from onrecord.turn.plan import Mounted
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("Asker", "Refused", "run_again", "run_before", "same_args")

_SLOTS = SLOTS["before_tool"]
_PERMISSION, _ARGUMENTS, _CREDENTIALS = _SLOTS["PERMISSION"], _SLOTS["ARGUMENTS"], _SLOTS["CREDENTIALS"]


class Refused(Struct, frozen=True, kw_only=True):
    """A call that does not run, and what the model reads instead."""

    text: str
    status: CallStatus


class Asker(Struct, frozen=True, kw_only=True):
    """A hook that wants a person's answer before this call goes on; ``args`` are the arguments so far.

    ``place`` is where the answer goes on: ``before/{mark}`` behind the hook, or ``checked/{mark}`` behind the second
    look of a hook that decides about permissions.
    """

    ask: Ask
    by: str
    place: str
    args: Mapping[str, Json]


async def run_before(
    turn: Turn, tool: Tool, call: ToolCall, context: CallContext, *, behind: str = "", offered: bool = True
) -> ToolCall | Refused | Asker:
    """The chain before a handler: permissions, rules, then the argument and policy gates, then what stands behind them.

    What permissions let pass is what runs: where a rule put other arguments in place, they are looked at again before
    the gates, and behind the gates nobody puts any. ``behind`` is the place of a question that was answered: the chain
    goes on after it. Since time went by, permissions are looked at again, and whoever hands out credentials goes on
    itself. ``offered`` False skips the schema gate, for calls a director makes itself.
    """
    if not turn.plan.on["before_tool"]:
        return await _gates(tool, call, context, schema=offered) or call
    walk = _Walk(turn, call, behind)
    ended = (
        await walk.permitted_still()
        or await walk.hooks(turn.plan.before_gates)
        or await walk.second_look()
        or await walk.gates(tool, context, schema=offered)
        or await walk.hooks(turn.plan.behind_gates)
    )
    if isinstance(ended, Asker) and walk.rewritten:
        turn.done[walk.mark] = True
    return ended or walk.call


class _Walk:
    """One call on its way through the chain: its arguments so far, and whether it is past the hook that asked.

    ``rewritten``: a rule put arguments in place that permissions have not let pass yet.
    """

    def __init__(self, turn: Turn, call: ToolCall, behind: str) -> None:
        self.turn, self.call, self.where = turn, call, place_of(call)
        self.kind, _, self.asker = behind.partition("/")
        self.passed = not behind
        self.mark = f"{call.id}/rewritten"
        self.rewritten = self.mark in turn.done

    async def permitted_still(self) -> Refused | None:
        """A denial of a hook that let this call pass, or asked about it, before the answer came."""
        for hook in () if self.passed else permissions(self.turn):
            refused = await _permitted_still(self.turn, hook, self.call, self.where)
            if refused is not None or hook.mark == self.asker:
                return refused
        return None

    async def hooks(self, stage: Sequence[Mounted]) -> Refused | Asker | None:
        """The hooks of one stage, from the one behind the asker on."""
        turn, call = self.turn, self.call
        args = copies(call.args)
        # `_lent` and `_verdict_of`, written out: agents have many rules, and most of them let most calls pass.
        for hook in stage if self.passed else self._behind(stage):
            try:
                verdict: object = await hook.call(turn, replace(call, args=args()))
            except BaseException as error:  # noqa: BLE001 - a rule that raises denies; `failed_rule` raises what ends the take
                verdict = failed_rule(hook.name, error)
            turn.resumed = None
            if verdict is ALLOW:
                continue  # by far the most frequent
            got = _ruled(turn, hook, call, self.where, verdict)
            if not isinstance(got, ToolCall):
                return got
            if got is not call:
                self.call, call, args = got, got, copies(got.args)
                self.rewritten = self.rewritten or hook.slot > _PERMISSION
        return None

    def _behind(self, stage: Sequence[Mounted]) -> Iterator[Mounted]:
        """The hooks of a stage that are still to be asked, and the asker where it goes on itself."""
        for hook in () if self.kind == CHECKED and stage is self.turn.plan.before_gates else stage:
            if not self.passed:
                self.passed = hook.mark == self.asker
                if not self.passed or hook.slot < _CREDENTIALS:
                    continue
                self.turn.resumed = self.turn.answer
            yield hook

    async def second_look(self) -> Refused | Asker | None:
        """Permissions over the arguments that rules left, where they are others than those that were let pass."""
        for hook in permissions(self.turn) if self.rewritten else ():
            if self.kind == CHECKED and not self.passed:
                self.passed = hook.mark == self.asker
                continue
            got = _ruled(self.turn, hook, self.call, self.where, await _verdict_of(self.turn, hook, _lent(self.call)))
            if isinstance(got, Asker):
                return replace(got, place=f"{CHECKED}/{hook.mark}")
            if isinstance(got, Refused):
                return got
            if not same_args(got.args, self.call.args):
                why = Deny(f"rule {hook.name!r} failed: it lets these arguments pass only as others")
                return _refused(self.turn, hook, self.call, self.where, why)
        self.rewritten = False
        self.turn.done.pop(self.mark, None)
        return None

    async def gates(self, tool: Tool, context: CallContext, *, schema: bool) -> Refused | None:
        """Arguments and policy, unless the asker stands behind them: its call passed them already."""
        if not self.passed and any(hook.mark == self.asker for hook in self.turn.plan.behind_gates):
            return None
        return await _gates(tool, self.call, context, schema=schema)


def permissions(turn: Turn) -> tuple[Mounted, ...]:
    """The hooks that decide before any rule."""
    return tuple(hook for hook in turn.plan.before_gates if hook.slot <= _PERMISSION)


def same_args(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Whether arguments are the same to the letter: ``1``, ``1.0`` and ``true`` are three."""
    return one is other or same_json(one, other)


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
            refused = _ruled(turn, hook, call, place_of(call), await _verdict_of(turn, hook, _lent(call)))
        if isinstance(refused, Refused):
            return refused
        if isinstance(refused, Asker):
            return Refused(
                text=error_text("Permission denied: what this call was lent is not there any more"), status="denied"
            )
    return None


async def _permitted_still(turn: Turn, hook: Mounted, call: ToolCall, where: str) -> Refused | None:
    """A denial of a hook that let this call pass before a person was asked. A person need not be asked twice."""
    verdict = await _verdict_of(turn, hook, _lent(call))
    return None if isinstance(verdict, (Allow, Ask)) else _refused(turn, hook, call, where, verdict)


def _lent(call: ToolCall) -> ToolCall:
    """The call for one hook: what it does to the arguments in place is its own."""
    return replace(call, args=own(call.args))


async def _verdict_of(turn: Turn, hook: Mounted, lent: ToolCall) -> object:
    """What a hook says of a call that it has for itself."""
    try:
        return await hook.call(turn, lent)
    except BaseException as error:  # noqa: BLE001 - `failed_rule` lets through what ends the take
        return failed_rule(hook.name, error)
    finally:
        turn.resumed = None


def _ruled(turn: Turn, hook: Mounted, call: ToolCall, where: str, verdict: object) -> ToolCall | Refused | Asker:
    """The call as a verdict leaves it: the same one, one with other arguments, or none."""
    if isinstance(verdict, Allow):
        if verdict.value is UNSET:
            if verdict.why:
                file_verdict(turn, "before_tool", hook.name, "allow", verdict.why, call=call.id, where=where)
            return call
        args = verdict.value
        if hook.slot >= _ARGUMENTS and isinstance(args, Mapping) and not same_args(args, call.args):
            verdict = Deny(f"rule {hook.name!r} failed: it changed arguments that were checked already")
            return _refused(turn, hook, call, where, verdict)
        if isinstance(args, Mapping) and is_json(args):
            file_verdict(
                turn, "before_tool", hook.name, "allow", verdict.why, call=call.id, before=call.args, after=args,
                where=where, keeps=hook.hooks.keeps_text,
            )  # fmt: skip
            return replace(call, args=own(dict(args)))
        verdict = Deny(f"rule {hook.name!r} failed: it allowed a {type(args).__name__} in place of the arguments")
    if isinstance(verdict, Ask) and is_askable(verdict):
        file_verdict(turn, "before_tool", hook.name, "ask", "", call=call.id, where=where)
        return Asker(ask=verdict, by=hook.name, place=f"{BEFORE}/{hook.mark}", args=call.args)
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
            valid = await settled(tool.validate_input(own(call.args), context))
            if not valid.valid:
                more = {} if valid.corrected_input is None else {"correctedInput": valid.corrected_input}
                return Refused(
                    text=error_text(f"Validation failed: {valid.error or 'invalid input'}", **more), status="invalid"
                )
        if tool.check_permissions is not None:
            permission = await settled(tool.check_permissions(own(call.args), context))
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
