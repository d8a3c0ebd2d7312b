"""Permissions: who may use which tool, as data, and a function that may say no; decided before any rule."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import ToolCall
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.governance.sequence import Ran, ran_in
from onrecord.jsonio import Json
from onrecord.models.request import Request
from onrecord.tools.tool import Tool
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.contained import ends_take, told
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Deny, Hooks
from onrecord.turn.turn import Turn

__all__ = ("Asked", "Permissions", "Policy")

log = logging.getLogger("onrecord.governance")

MARKER = "[permission denied: "
"""How every denial begins, unless its policy or checker has words of its own."""

Then = Literal["allow", "deny", "ask", "halt"]
Verdict = Allow[Any] | Deny | Ask


class Policy(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """One line of a policy: which calls it is about, and what becomes of them.

    ``tools`` are ids or patterns (``files_*``, also with ``?`` and ``[ab]``), ``roles`` the roles it is about (empty:
    all), ``args`` values that the call's arguments must have, a tuple standing for any of several. ``then`` is
    ``allow``, ``deny``, ``ask`` a person, or ``halt``: deny, and end the turn. ``reason`` is for the record, and the
    model reads it of a denial unless ``tell`` has other words for it; ``tell`` is also what the person of a question
    reads. ``name`` stands on the record. ConfigurationError for a line that says nothing.
    """

    name: str
    tools: tuple[str, ...]
    then: Then = "deny"
    roles: tuple[str, ...] = ()
    args: Mapping[str, Json | tuple[Json, ...]] = {}
    reason: str = ""
    tell: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.tools or isinstance(cast(object, self.tools), str):
            raise ConfigurationError("a Policy has a name and a tuple of tools", hint='tools=("delete_*",)')
        if isinstance(cast(object, self.roles), str):
            raise ConfigurationError(
                f"the roles of policy {self.name!r} are a tuple", hint=f"write roles=({self.roles!r},)"
            )
        if self.then not in ("allow", "deny", "ask", "halt"):
            raise ConfigurationError(
                f"then= of policy {self.name!r} cannot be {self.then!r}", hint="it is 'allow', 'deny', 'ask' or 'halt'"
            )

    def is_about(self, tool: str, role: str) -> bool:
        """Whether it speaks of this tool to this role, whatever the arguments."""
        return _is_among(tool, self.tools) and (not self.roles or role in self.roles)

    def covers(self, args: Mapping[str, Json]) -> bool:
        """Whether a call has the arguments that it is about."""
        return all(name in args and _equals(args[name], wanted) for name, wanted in self.args.items())


class Asked(Struct, frozen=True, kw_only=True):
    """A call that a checker decides about: the turn, the role that acts, and the call with its arguments."""

    turn: Turn
    role: str
    call: ToolCall

    @property
    def tool(self) -> str:
        """The tool's id."""
        return self.call.name

    @property
    def args(self) -> Mapping[str, Json]:
        """The arguments."""
        return self.call.args

    @property
    def sequence(self) -> tuple[Ran, ...]:
        """The calls of this turn that ran, in order, and this one last."""
        return (*ran_in(self.turn), Ran(name=self.call.name, args=self.call.args))


Checker = Callable[[Asked], Verdict | Awaitable[Verdict]]
Role = str | Callable[[Turn], str]


class Permissions(Struct, frozen=True, metaclass=Declared):
    """What may be used at all. It decides before any rule, and again when a call goes on after a question.

    ``roles`` says per role which tools it may use, as ids or patterns; ``role`` which one acts, a name or a function of
    the turn (of its ``context``, say). ``policies`` are looked at in order, after the role's list: the first that is
    about a call decides. ``check`` has the last word: a function, sync or async, from `Asked` to a verdict. Whatever
    raises, denies. A tool that a role cannot use whatever its arguments is not in the request either, unless
    ``hides=False``; one that the model names all the same is not run. Without ``roles`` every tool may be used that no
    policy and no check denies. What a director does itself, an action of a flow, is decided about like any call;
    ``actions`` are their names, which are no tools of the agent. A warning is logged for a tool of a feature, such as
    ``read_skill``, that no role may use: the feature would be there and do nothing. ConfigurationError for what would
    decide nothing, and for names of roles and tools that are none.
    """

    roles: Mapping[str, Collection[str]] = {}
    role: Role = ""
    policies: Sequence[Policy] = ()
    check: Checker | None = None
    hides: bool = True
    actions: Collection[str] = ()

    def __post_init__(self) -> None:
        if not self.roles and not self.policies and self.check is None:
            raise ConfigurationError("these Permissions allow everything", hint="give roles=, policies= or check=")
        if not all(isinstance(cast(object, policy), Policy) for policy in self.policies):
            raise ConfigurationError("policies= takes a list of Policy", hint='Policy(name="...", tools=("...",))')
        for role, tools in self.roles.items():
            if isinstance(cast(object, tools), str):
                raise ConfigurationError(f"the tools of role {role!r} are a list", hint=f"write [{tools!r}]")
        if self.roles and not self.role:
            raise ConfigurationError(
                "Permissions have roles, and nobody says which one acts", hint="role= is a name, or def role(turn)"
            )
        if isinstance(self.role, str) and self.roles:
            self._known(self.role)
        for policy in self.policies:
            if policy.roles and not self.role:
                raise ConfigurationError(
                    f"policy {policy.name!r} is about roles, and nobody says which one acts",
                    hint="role= is a name, or def role(turn)",
                )
            for role in policy.roles if self.roles else ():
                self._known(role)

    @property
    def name(self) -> str:
        """The feature's name."""
        return "permissions"

    def _known(self, role: str) -> None:
        if role not in self.roles:
            raise ConfigurationError(
                f"Permissions have no role {role!r}", hint=f"their roles are {', '.join(self.roles)}"
            )

    def with_role(self, role: Role) -> Permissions:
        """The same for another role."""
        return replace(self, role=role)

    def allowed(self, tool: str, role: str) -> bool:
        """Whether a role may use a tool for some arguments at least; the check is not asked. Unknown roles may not."""
        if self.roles and not _is_among(tool, self.roles.get(role, ())):
            return False
        for policy in self.policies:
            lets = policy.then in ("allow", "ask")
            if policy.is_about(tool, role) and (lets or not policy.args):
                return lets
        return True

    def hooks(self, spec: AgentSpec) -> Hooks:
        own = frozenset(tool.id for tool in spec.tools)
        about: dict[str, Json] = {"roles": [*self.roles], "policies": [policy.name for policy in self.policies]}
        return Hooks(
            before_tool=self._decide, on_request=self._hide if self.hides else None,
            built=partial(self._check_names, own),
            order={"before_tool": SLOTS["before_tool"]["PERMISSION"], "request": SLOTS["request"]["NARROW"]},
            manifest={"permissions": about}, alone=True,
        )  # fmt: skip

    def _check_names(self, own: frozenset[str], tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
        for tool in tools:
            if tool not in own and not any(self.allowed(tool, role) for role in self.roles or [""]):
                # A feature whose tools nobody may use does nothing, and looks as if it did.
                log.warning("permissions: nobody may use the tool %r, which a feature brings", tool)
        if may_be_more:
            return
        named = [(f"role {role!r}", one) for role, ones in self.roles.items() for one in ones]
        named += [(f"policy {policy.name!r}", one) for policy in self.policies for one in policy.tools]
        for owner, pattern in named:
            if not any(_is_among(known, (pattern,)) for known in (*tools, *self.actions)):
                there = (
                    f"its tools are {', '.join(tools) or 'none'}; those of a feature are there when it is mounted; "
                    "actions of flows go into actions="
                )
                near = get_close_matches(pattern, tools, 1)
                raise ConfigurationError(
                    f"{owner} names {pattern!r}, which is no tool of this agent",
                    hint=f"did you mean {near[0]!r}?" if near else there,
                )

    async def _hide(self, turn: Turn, request: Request) -> Request:
        role = self._role(turn)
        kept = tuple(
            offer for offer in request.offers if not isinstance(role, Deny) and self.allowed(offer.tool.id, role)
        )
        return request if len(kept) == len(request.offers) else replace(request, offers=kept)

    def _role(self, turn: Turn) -> str | Deny:
        """The role that acts. A function that raises, or names none, is a denial."""
        if isinstance(self.role, str):
            return self.role
        try:
            role: object = self.role(turn)
        except BaseException as error:  # noqa: BLE001 - `_failed` lets through what ends the take; all else denies
            return _failed("role", error)
        if not isinstance(role, str) or (self.roles and role not in self.roles):
            given = f"{role[:40]!r}" if isinstance(role, str) else f"a {type(role).__name__}"
            there = f"; the roles are {', '.join(self.roles)}" if self.roles else ""
            return _denied("nobody is known to act in this turn", "role", about=f"role= gave {given}{there}")
        return role

    async def _decide(self, turn: Turn, call: ToolCall) -> Verdict:
        role = self._role(turn)
        if isinstance(role, Deny):
            return role
        if self.roles and not _is_among(call.name, self.roles[role]):
            return _denied(f"the role {role!r} may not use {call.name!r}", f"{role}.allowlist.miss")
        held = next((p for p in self.policies if p.is_about(call.name, role) and p.covers(call.args)), None)
        verdict: Verdict = ALLOW if held is None else _verdict_of(held, turn, call)
        if self.check is None or isinstance(verdict, Deny):
            return verdict
        checked = await _checked(self.check, Asked(turn=turn, role=role, call=call))
        if isinstance(checked, Allow) and (isinstance(verdict, Ask) or not checked.why):
            return verdict
        return _halting(turn, call, checked)


def _verdict_of(policy: Policy, turn: Turn, call: ToolCall) -> Verdict:
    if policy.then == "allow":
        return Allow(why=policy.reason) if policy.reason else ALLOW
    if policy.then == "ask":
        return Ask(policy.tell or f"May {call.name!r} be used?", detail={"policy": policy.name})
    words = policy.tell or f"{MARKER}{policy.reason or f'the policy {policy.name!r} is against it'}]"
    data: dict[str, Json] = {"rule": policy.name, "rationale": policy.reason}
    return _halting(turn, call, Deny(words, data=data, halt=policy.then == "halt"))


def _halting(turn: Turn, call: ToolCall, verdict: Verdict) -> Verdict:
    """A denial that ends the turn says what ran before it, and what was about to."""
    if not isinstance(verdict, Deny) or not verdict.halt:
        return verdict
    sequence = [*(ran.name for ran in ran_in(turn)), call.name]
    return replace(verdict, data={**verdict.data, "halt": True, "sequence": sequence})


async def _checked(check: Checker, asked: Asked) -> Verdict:
    try:
        given = check(asked)
        verdict: object = await given if inspect.isawaitable(given) else given
    except BaseException as error:  # noqa: BLE001 - `_failed` lets through what ends the take; all else denies
        return _failed("check", error)
    if isinstance(verdict, (Deny, Ask)) or (isinstance(verdict, Allow) and verdict.value is UNSET):
        return verdict
    about = f"{type(verdict).__name__} is no verdict, or one with other arguments"
    return _denied("the permission check failed", "check", about=about)


def _denied(why: str, rule: str, about: str = "") -> Deny:
    return Deny(f"{MARKER}{why}]", data={"rule": rule, **({"rationale": about} if about else {})})


def _failed(what: str, error: BaseException) -> Deny:
    """A denial for an exception: the model is told that it stays so, and only the record what it was."""
    if ends_take(error):
        raise error
    about = f"{type(error).__name__}: {told(error)}"
    return _denied("the permission check failed, and will not change during this turn", what, about=about)


def _is_among(tool: str, patterns: Collection[str]) -> bool:
    """Whether one of them is this tool's id, or a pattern that it fits."""
    return tool in patterns or any(_is_pattern(one) and fnmatchcase(tool, one) for one in patterns)


_is_pattern = re.compile(r"[*?\[]").search


def _equals(value: Json, wanted: Json | tuple[Json, ...]) -> bool:
    if isinstance(wanted, tuple):
        return any(_equals(value, one) for one in wanted)
    return isinstance(value, bool) is isinstance(wanted, bool) and value == wanted  # 9.0 is the number 9, true is not 1
