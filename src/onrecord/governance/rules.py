"""Rules: one governing function as a feature. Decorators return a value; they register nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from msgspec import Struct

from onrecord.errors import ConfigurationError
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import AfterTool, BeforeTool, Hooks, OnInput, OnOutput

__all__ = ("Rule", "after_tool", "before_tool", "on_input", "on_output")


class Rule(Struct, frozen=True, kw_only=True):
    """A feature with one governing hook. Put it in ``features=``; it can be called like the function it was made of."""

    name: str
    call: Callable[..., Any]
    made: Hooks

    def hooks(self, spec: AgentSpec) -> Hooks:
        return self.made

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


def on_input(function: OnInput, /) -> Rule:
    """A rule over what comes in: ``async def rule(turn, input) -> Allow | Deny``."""
    return Rule(name=_name(function), call=_checked(function), made=Hooks(on_input=function))


def before_tool(function: BeforeTool, /) -> Rule:
    """A rule over a call before it runs: ``async def rule(turn, call) -> Allow | Deny | Ask``."""
    return Rule(name=_name(function), call=_checked(function), made=Hooks(before_tool=function))


def after_tool(function: AfterTool, /) -> Rule:
    """A rule over what a call returned: ``async def rule(turn, returned) -> Allow | Deny``."""
    return Rule(name=_name(function), call=_checked(function), made=Hooks(after_tool=function))


@overload
def on_output(function: OnOutput, /) -> Rule: ...
@overload
def on_output(*, revisions: int = 1, holds_drafts: bool = True) -> Callable[[OnOutput], Rule]: ...
def on_output(
    function: OnOutput | None = None, /, *, revisions: int = 1, holds_drafts: bool = True
) -> Rule | Callable[[OnOutput], Rule]:
    """A rule over an answer: ``async def rule(turn, answer) -> Allow | Deny | Revise``.

    Since it may deny or change the text, nothing streams before it accepts; a rule that only looks says
    ``@on_output(holds_drafts=False)``. ``revisions`` is how often per turn it may ask for another answer.
    """

    def made(held: OnOutput) -> Rule:
        hooks = Hooks(on_output=held, revisions=revisions, holds_drafts=holds_drafts)
        return Rule(name=_name(held), call=_checked(held), made=hooks)

    return made if function is None else made(function)


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """ConfigurationError for a function that could not be awaited, or not be called: it would deny everything."""
    if not callable(function):
        raise ConfigurationError(
            f"a rule is an async function, not a {type(function).__name__}", hint="async def rule(turn, ...)"
        )
    if inspect.isfunction(function) or inspect.ismethod(function):
        if not inspect.iscoroutinefunction(function):
            raise ConfigurationError(f"rule {_name(function)!r} is not async", hint="write async def")
        try:
            inspect.signature(function).bind(None, None)
        except TypeError:
            raise ConfigurationError(
                f"rule {_name(function)!r} does not take two arguments",
                hint="the turn, and what is judged: async def rule(turn, call)",
            ) from None
    return function


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
