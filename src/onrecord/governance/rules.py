"""Rules: one governing function as a feature. Decorators return a value; they register nothing."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast, overload

from msgspec import Struct

from onrecord.conversation.inputs import Ask, Input
from onrecord.conversation.messages import ToolCall
from onrecord.declared import declared
from onrecord.errors import ConfigurationError, check_count
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Allow, Answer, Deny, Hooks, Returned, Revise
from onrecord.turn.turn import Turn

__all__ = ("Rule", "after_tool", "before_tool", "on_input", "on_output")

Judged = TypeVar("Judged")
Verdict = TypeVar("Verdict")
Either = Callable[[Turn, Judged], Awaitable[Verdict] | Verdict]
"""A rule's function, sync or async."""

InputRule = Either[Input, Allow[Any] | Deny]
ToolRule = Either[ToolCall, Allow[Any] | Deny | Ask]
ResultRule = Either[Returned, Allow[Any] | Deny]
OutputRule = Either[Answer, Allow[Any] | Deny | Revise]


class Rule(Struct, frozen=True, kw_only=True):
    """A feature with one governing hook. Put it in ``features=``; it can be called like the function it was made of."""

    name: str
    call: Callable[..., Any]
    made: Hooks

    def hooks(self, spec: AgentSpec) -> Hooks:
        return self.made

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


@overload
def on_input(function: InputRule, /) -> Rule: ...
@overload
def on_input(*, keeps_text: bool) -> Callable[[InputRule], Rule]: ...
@declared
def on_input(function: InputRule | None = None, /, *, keeps_text: bool = True) -> Rule | Callable[[InputRule], Rule]:
    """A rule over what comes in: ``def rule(turn, input) -> Allow | Deny``, sync or async.

    ``keeps_text=False``: the record holds digests of what it changed or denied, and not the texts. ConfigurationError
    for what is no function of two arguments.
    """
    return _rule(function, lambda held: Hooks(on_input=held, keeps_text=keeps_text))


@overload
def before_tool(function: ToolRule, /) -> Rule: ...
@overload
def before_tool(*, keeps_text: bool) -> Callable[[ToolRule], Rule]: ...
@declared
def before_tool(function: ToolRule | None = None, /, *, keeps_text: bool = True) -> Rule | Callable[[ToolRule], Rule]:
    """A rule over a call before it runs: ``def rule(turn, call) -> Allow | Deny | Ask``, sync or async.

    ``keeps_text=False``: the record holds digests of what it changed or denied, and not the texts. ConfigurationError
    for what is no function of two arguments.
    """
    return _rule(function, lambda held: Hooks(before_tool=held, keeps_text=keeps_text))


@overload
def after_tool(function: ResultRule, /) -> Rule: ...
@overload
def after_tool(*, keeps_text: bool) -> Callable[[ResultRule], Rule]: ...
@declared
def after_tool(
    function: ResultRule | None = None, /, *, keeps_text: bool = True
) -> Rule | Callable[[ResultRule], Rule]:
    """A rule over what a call returned: ``def rule(turn, returned) -> Allow | Deny``, sync or async.

    ``keeps_text=False``: the record holds digests of what it changed or denied, and not the texts. ConfigurationError
    for what is no function of two arguments.
    """
    return _rule(function, lambda held: Hooks(after_tool=held, keeps_text=keeps_text))


@overload
def on_output(function: OutputRule, /) -> Rule: ...
@overload
def on_output(
    *, revisions: int = 1, holds_drafts: bool = True, keeps_text: bool = True
) -> Callable[[OutputRule], Rule]: ...
@declared
def on_output(
    function: OutputRule | None = None, /, *, revisions: int = 1, holds_drafts: bool = True, keeps_text: bool = True
) -> Rule | Callable[[OutputRule], Rule]:
    """A rule over an answer: ``def rule(turn, answer) -> Allow | Deny | Revise``, sync or async.

    Since it may deny or change the text, nothing streams before it accepts; a rule that only looks, or appends
    ``blocks`` to the answer, says ``@on_output(holds_drafts=False)``. ``revisions`` is how often per turn it may ask
    for another answer. ``keeps_text=False``: the record holds digests of what it changed or denied. ConfigurationError
    for what is no function of two arguments, and for ``revisions`` below 0.
    """
    check_count("on_output", "revisions", revisions, 0)
    more: dict[str, Any] = {"revisions": revisions, "holds_drafts": holds_drafts, "keeps_text": keeps_text}
    return _rule(function, lambda held: Hooks(on_output=held, **more))


def _rule(
    function: Callable[..., Any] | None, hooks: Callable[[Callable[..., Any]], Hooks]
) -> Rule | Callable[[Callable[..., Any]], Rule]:
    """The rule of a function, or the decorator that makes one."""

    def made(held: Callable[..., Any]) -> Rule:
        return Rule(name=_name(held), call=_checked(held), made=hooks(_awaited(held)))

    return made if function is None else made(function)


def _awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the loop awaits it. An async one is mounted as it is."""
    if inspect.iscoroutinefunction(function):
        return function

    async def rule(turn: Turn, judged: object) -> object:
        verdict = function(turn, judged)
        return await cast(Awaitable[object], verdict) if inspect.isawaitable(verdict) else verdict

    return rule


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """ConfigurationError for what could not be called with a turn and what is judged: it would deny everything."""
    if not callable(function):
        raise ConfigurationError(
            f"a rule is a function, not a {type(function).__name__}", hint="def rule(turn, ...), sync or async"
        )
    if inspect.isfunction(function) or inspect.ismethod(function):
        try:
            inspect.signature(function).bind(None, None)
        except TypeError:
            raise ConfigurationError(
                f"rule {_name(function)!r} does not take two arguments",
                hint="the turn, and what is judged: def rule(turn, call)",
            ) from None
    return function


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
