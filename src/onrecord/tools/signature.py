"""What a function's signature says: which arguments a model may give, and where the context goes."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from onrecord.errors import ToolInvalid
from onrecord.tools.annotations import Forms
from onrecord.tools.docstrings import documented
from onrecord.tools.forms import Member, Read, Unsupported, of_members, whole_reader
from onrecord.tools.members import described
from onrecord.tools.tool import ToolContext

__all__ = ("Signature", "signature_of")

_CONTEXT = re.compile(r"(?:\w+\.)*ToolContext\b").match


class Signature(Struct, frozen=True, kw_only=True):
    """``read`` makes keywords of a call's arguments (when ``fallible``, it may raise `Unfit`).

    ``contexts`` names the parameters that get the context.
    """

    name: str
    summary: str
    schema: Mapping[str, Any]
    read: Read
    fallible: bool
    contexts: tuple[str, ...]


def signature_of(function: Callable[..., Any], scope: Mapping[str, Any], called: str | None = None) -> Signature:
    """Reads a function, bound method, partial or callable object; ``called`` is its name in refusals.

    ``scope`` holds the names around it. Raises ToolInvalid naming the function, the parameter and what to do.
    """
    import inspect

    whole = _made_of(function)
    inner = _innermost(whole)
    name = called or str(getattr(whole, "__name__", type(whole).__name__))
    if isinstance(function, (type, staticmethod, classmethod)):
        raise _refused(name, "it is no function", "decorate a function, or pass a bound method: tool(thing.method)")
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise _refused(name, "it yields, but a call has one result", "return one value")
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError, NameError) as error:
        raise _refused(name, f"its signature cannot be read ({error})", "wrap it in a function of your own") from error
    doc = documented(_docstring(whole))
    forms, members, contexts = Forms(_scope(inner, scope)), [], []
    bound = {} if whole is function else getattr(function, "keywords", {})
    for parameter in parameters.values():
        if parameter.name in bound:
            continue
        hint = _hint(name, parameter, inner, forms)
        if _is_context(hint):
            contexts.append(parameter.name)
            continue
        members.append(_member(name, parameter, hint, forms, doc.arguments.get(parameter.name)))
    form = of_members(members, dict)
    return Signature(
        name=name,
        summary=doc.summary,
        schema=forms.closed(form.schema),
        read=whole_reader(form),
        fallible=form.fallible,
        contexts=tuple(contexts),
    )


def _member(name: str, parameter: Any, hint: Any, forms: Forms, text: str | None) -> Member:
    required = parameter.default is parameter.empty
    try:
        form = described(forms, hint, text) if required else described(forms, hint, text, parameter.default)
    except Unsupported as wrong:
        raise _refused(name, f"parameter {parameter.name!r}: {wrong.what}", wrong.hint) from wrong
    return Member(name=parameter.name, attribute=parameter.name, form=form, required=required)


def _hint(name: str, parameter: Any, inner: Any, forms: Forms) -> Any:
    shown = f"parameter {parameter.name!r}"
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise _refused(name, f"{shown} takes any number of values", f"write {parameter.name}: list[...]")
    if parameter.kind is parameter.VAR_KEYWORD:
        raise _refused(name, f"{shown} takes any name", f"name them, or write {parameter.name}: dict[str, ...]")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise _refused(name, f"{shown} is positional-only, but arguments are given by name", "remove the '/'")
    hint = parameter.annotation
    if hint is parameter.empty:
        if parameter.name in {"self", "cls"}:
            raise _refused(name, f"{shown} belongs to a method", "pass the bound method: tool(thing.method)")
        if parameter.name == "ctx":
            raise _refused(name, f"{shown} is not annotated", "write ctx: ToolContext[...] to get the context")
        return Any
    try:
        return _evaluated(hint, inner, forms.scope)
    except Exception as error:
        if isinstance(hint, str) and _CONTEXT(hint):
            return ToolContext  # its argument is often imported for type checkers only, and not needed here
        told = f"{shown}: the annotation {hint!r} cannot be resolved ({error})"
        raise _refused(name, told, "define its types before the function, outside `if TYPE_CHECKING:`") from error


def _evaluated(hint: Any, inner: Any, scope: Mapping[str, Any]) -> Any:
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    found = typing.get_type_hints(holder, getattr(inner, "__globals__", {}), dict(scope), include_extras=True)
    return found["hint"]


def _is_context(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is typing.Union or origin is types.UnionType or origin is typing.Annotated:
        return any(_is_context(one) for one in typing.get_args(hint))
    return (origin or hint) is ToolContext


def _made_of(function: Any) -> Any:
    """The function behind partials, whose own name and docstring are those of functools.partial."""
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    return function


def _innermost(function: Any) -> Any:
    """The plain function behind bound methods, callable objects and wrappers."""
    import inspect

    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    return inspect.unwrap(getattr(function, "__func__", function))


def _docstring(function: Any) -> str | None:
    import inspect

    if inspect.isroutine(function):
        return inspect.getdoc(function)
    return type(function).__call__.__doc__ or type(function).__doc__


def _scope(inner: Any, scope: Mapping[str, Any]) -> dict[str, Any]:
    names = dict(scope)
    free = getattr(getattr(inner, "__code__", None), "co_freevars", ())
    for name, cell in zip(free, getattr(inner, "__closure__", None) or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # a name that is bound later
            continue
    return names


def _refused(name: str, what: str, hint: str) -> ToolInvalid:
    return ToolInvalid(f"tool {name!r}: {what}", hint=hint)
