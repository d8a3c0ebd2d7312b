"""@tool makes a Tool of a typed function; Toolbox collects them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack, overload

from onrecord.declared import declared
from onrecord.errors import ToolInvalid
from onrecord.jsonio import Json
from onrecord.tools.forms import Unfit
from onrecord.tools.issues import listed
from onrecord.tools.problems import argument_problems
from onrecord.tools.signature import Signature, signature_of
from onrecord.tools.tool import Flag, Tool
from onrecord.tools.toolset import unique_tools
from onrecord.tools.traits import Trait

__all__ = ("ToolSettings", "Toolbox", "tool")

_id = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII).fullmatch

Function = Callable[..., Any]


class ToolSettings(TypedDict, total=False):
    """What a declaration may say beside the function; the fields of `Tool`, with the docstring as description."""

    id: str
    description: str
    read_only: Flag
    concurrency_safe: Flag | None
    destructive: Flag
    max_result_size_chars: int | None
    validate_input: Function | None
    check_permissions: Function | None
    traits: Sequence[Trait]


@overload
def tool(function: Function, /, **settings: Unpack[ToolSettings]) -> Tool: ...
@overload
def tool(function: None = None, /, **settings: Unpack[ToolSettings]) -> Callable[[Function], Tool]: ...
def tool(function: Function | None = None, /, **settings: Unpack[ToolSettings]) -> Tool | Callable[[Function], Tool]:
    """A `Tool` from a typed function, as ``@tool``, ``@tool(...)`` or ``tool(function, ...)``.

    Its name is the id, the first paragraph of its docstring the description, and its signature the JSON Schema:
    annotations, defaults, and what the docstring or ``Annotated[type, "..."]`` says about each argument. A parameter
    annotated with `ToolContext` gets the context and is not shown. Arguments are checked before the function is
    called, and arrive as the declared types; ``validate_input`` and ``check_permissions`` see them as JSON.
    Raises ToolInvalid for a signature that cannot be shown to a model.

        @tool(read_only=True)
        async def price(city: str, nights: int = 1) -> dict[str, int]:
            "Price of a stay in a city."
            return {"total": 420 * nights}
    """
    scope = sys._getframe(1).f_locals  # noqa: SLF001 - annotations written as text may use names around the function
    if function is not None:
        return _declared(function, scope, settings)
    return lambda later: _declared(later, scope, settings)


@declared
class Toolbox(Sequence[Tool]):
    """Tools, collected as they are written: ``@box.tool``, then ``Agent(..., tools=box)``.

    A sequence of tools in the order they were added. Raises ToolInvalid for an id that comes twice.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = list(unique_tools(tuple(tools)))

    @overload
    def tool(self, function: Function | Tool, /, **settings: Unpack[ToolSettings]) -> Tool: ...
    @overload
    def tool(self, function: None = None, /, **settings: Unpack[ToolSettings]) -> Callable[[Function], Tool]: ...
    def tool(
        self, function: Function | Tool | None = None, /, **settings: Unpack[ToolSettings]
    ) -> Tool | Callable[[Function], Tool]:
        """Like the module's `tool`, and adds it; a `Tool` is added as it is."""
        scope = sys._getframe(1).f_locals  # noqa: SLF001 - see `tool`
        if function is None:
            return lambda later: self._add(_declared(later, scope, settings))
        return self._add(function if isinstance(function, Tool) else _declared(function, scope, settings))

    def _add(self, added: Tool) -> Tool:
        self._tools = list(unique_tools((*self._tools, added)))
        return added

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | Sequence[Tool]:
        return self._tools[index]

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(repr(one.id) for one in self._tools)})"


def _declared(function: Function, scope: Mapping[str, Any], settings: ToolSettings) -> Tool:
    if not callable(function):
        raise ToolInvalid(f"{function!r} is no function", hint="write @tool above a function, or @tool(id=...)")
    said: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    signature = signature_of(function, scope, said.get("id"))
    if "id" not in said and not _id(signature.name):
        raise ToolInvalid(
            f"tool {signature.name!r}: the function's name cannot be the name that a model calls",
            hint="give it one of ASCII letters, digits, - and _, at most 64: @tool(id=...)",
        )
    return Tool(
        said.pop("id", signature.name),
        _handler(function, signature),
        said.pop("description", signature.summary),
        parameters=signature.schema,
        check_arguments=True,
        problems=_problems(signature),
        traits=tuple(said.pop("traits", ())),
        **said,
    )


def _handler(function: Function, signature: Signature) -> Function:
    import inspect

    read, contexts = signature.read, signature.contexts

    def keywords(args: Mapping[str, Json], ctx: Any) -> dict[str, Any]:
        given: dict[str, Any] = read(args)
        for name in contexts:
            given[name] = ctx
        return given

    async def awaited(args: Mapping[str, Json], ctx: Any) -> Any:
        return await function(**keywords(args, ctx))

    def called(args: Mapping[str, Json], ctx: Any) -> Any:
        return function(**keywords(args, ctx))

    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    handler = awaited if is_async else called
    handler.__name__ = handler.__qualname__ = signature.name
    return handler


def _problems(signature: Signature) -> Callable[[Mapping[str, Json]], str]:
    by_schema, read = argument_problems(signature.schema), signature.read
    if not signature.fallible:
        return by_schema

    def problems(args: Mapping[str, Json]) -> str:
        if found := by_schema(args):
            return found
        try:
            read(args)
        except Unfit as unfit:
            return listed(unfit.issues, "arguments")
        return ""

    return problems
