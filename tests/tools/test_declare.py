"""@tool: what a signature becomes, what is refused, and how the function is called."""

import asyncio
import dataclasses
import enum
import functools
import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
import pytest

from onrecord.errors import ToolInvalid
from onrecord.jsonio import Json
from onrecord.tools.declare import tool
from onrecord.tools.tool import Tool, ToolContext

if TYPE_CHECKING:
    from onrecord.nowhere import Crm  # type: ignore[import-not-found]  # that is the point

pytestmark = pytest.mark.unit

CTX = cast("ToolContext[Any]", SimpleNamespace(context="the host's"))


def run(made: Tool, args: Mapping[str, Json]) -> Any:
    """The checked call, as the loop makes it."""
    assert made.problems is not None
    assert made.problems(args) == ""
    result = made.handler(args, CTX)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


class Level(enum.IntEnum):
    LOW = 1


@tool
async def price(city: str, nights: int = 1, extras: list[str] | None = None) -> dict[str, int]:
    """Price of a stay
    in a city.

    Not shown.

    Args:
        city: Where to stay.
        nights: How many.
        extras: Breakfast, and so on.
    """
    return {"total": len(city) * nights + len(extras or [])}


def test_a_typed_function_becomes_a_tool() -> None:
    """Name, docstring and signature are the id, the description and a closed schema in the order written."""
    assert price.id == "price"
    assert price.description == "Price of a stay in a city."
    assert price.check_arguments
    assert msgspec.json.encode(price.parameters).decode() == (
        '{"type":"object","properties":{'
        '"city":{"type":"string","description":"Where to stay."},'
        '"nights":{"type":"integer","description":"How many.","default":1},'
        '"extras":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],'
        '"description":"Breakfast, and so on."}},'
        '"required":["city"],"additionalProperties":false}'
    )


def test_what_stands_beside_the_type_wins_over_the_docstring() -> None:
    """It is nearer to what it describes; a docstring still wins over what a type says of itself."""

    @tool
    def book(city: Annotated[str, "near"], level: Level = Level.LOW) -> None:
        """Books.

        Args:
            city: far
            level: how high
        """

    properties = book.parameters["properties"]
    assert (properties["city"]["description"], properties["level"]["description"]) == ("near", "how high")


def test_the_function_is_called_with_the_arguments_given() -> None:
    """Defaults are Python's own, and the handler has the shape of any other."""
    assert run(price, {"city": "Rio"}) == {"total": 3}
    assert run(price, {"city": "Rio", "nights": 2.0, "extras": ["spa"]}) == {"total": 7}
    assert inspect.iscoroutinefunction(price.handler)


def test_wrong_arguments_are_named_before_the_call() -> None:
    """All of them, in the words that follow `Validation failed: `."""
    assert price.problems is not None
    assert price.problems({"nights": "2", "town": "Rio"}) == (
        "city: expected string, got nothing; "
        "nights: expected integer, got string; "
        "town: expected no such property, got string"
    )


def test_settings_reach_the_tool() -> None:
    """Everything a Tool can say beside the function, @tool can say."""

    class Marked:
        def check(self, tool: Tool, /) -> None: ...
        def arms(self) -> object | None: ...

    def never(args: Mapping[str, Json], ctx: object) -> bool:
        return False

    def big(args: Mapping[str, Json]) -> bool:
        return bool(args.get("big"))

    mark = Marked()

    @tool(
        id="pay.now",
        description="Pays.",
        read_only=False,
        concurrency_safe=None,
        destructive=big,
        max_result_size_chars=10,
        validate_input=never,
        check_permissions=never,
        traits=[mark],
    )
    def pay(*, big: bool = False) -> None:
        """Not this."""

    assert (pay.id, pay.description, pay.max_result_size_chars) == ("pay.now", "Pays.", 10)
    assert (pay.validate_input, pay.check_permissions, pay.traits) == (never, never, (mark,))
    assert pay.destructive is big


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    """And nothing else."""

    @tool
    def ping() -> str:
        return "pong"

    assert ping.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert ping.description == ""
    assert run(ping, {}) == "pong"
    assert ping.problems is not None
    assert ping.problems({"x": 1}) == "x: expected no such property, got integer"


@pytest.mark.parametrize("first", [True, False])
def test_the_context_goes_to_whoever_is_annotated_with_it(*, first: bool) -> None:
    """By annotation, whatever its name and place; the model never sees it."""

    def leading(hotel: ToolContext[str], city: str) -> tuple[str, str]:
        return hotel.context, city

    def trailing(city: str, *, ctx: Annotated[ToolContext[str], "the call"] | None = None) -> tuple[str, str]:
        assert ctx is not None
        return ctx.context, city

    made = tool(leading if first else trailing)
    assert list(made.parameters["properties"]) == ["city"]
    assert run(made, {"city": "Rio"}) == ("the host's", "Rio")


def test_a_context_of_a_type_that_only_checkers_know_is_a_context() -> None:
    """``ToolContext[Crm]`` works where Crm is imported under TYPE_CHECKING, as linters ask for."""

    def book(city: str, ctx: "ToolContext[Crm]") -> str:
        return cast("str", ctx.context)

    assert run(tool(book), {"city": "Rio"}) == "the host's"


def test_annotations_may_be_text_about_names_around_the_function() -> None:
    """Local types, closures and forward references resolve where the function is declared."""

    @dataclasses.dataclass
    class Stay:
        city: str
        after: "Stay | None" = None

    level_ = Literal["low", "high"]

    @tool
    def plan(stay: "Stay", level: "level_" = "low") -> Stay:
        assert level_
        return stay

    assert run(plan, {"stay": {"city": "Rio", "after": {"city": "Lima"}}}) == Stay("Rio", Stay("Lima"))

    def outer() -> Any:
        inner_ = Literal["a"]

        def inner(x: "inner_") -> str:
            assert inner_
            return x

        return inner

    assert tool(outer()).parameters["properties"] == {"x": {"type": "string", "enum": ["a"]}}


def test_a_name_bound_later_is_not_resolved_too_early() -> None:
    """A closure variable without a value yet does not get in the way."""

    def outer() -> Any:
        def inner(x: int) -> Any:
            return later

        made = tool(inner)
        later = 1
        return made, later

    assert outer()[0].id == "inner"


def test_an_unannotated_parameter_takes_any_json() -> None:
    """Nothing is known about it, so nothing is checked."""

    def keep(thing):  # type: ignore[no-untyped-def]  # that is the point
        return thing

    made = tool(keep)
    assert made.parameters["properties"] == {"thing": {}}
    for value in (None, 1, "a", [1], {"a": None}):
        assert run(made, {"thing": value}) == value


class Desk:
    """A front desk."""

    def __init__(self, name: str) -> None:
        self.name = name

    def greet(self, guest: str) -> str:
        """Greets a guest."""
        return f"{self.name}: {guest}"

    async def __call__(self, guest: "str") -> str:
        return f"{self.name} calls {guest}"


def test_bound_methods_partials_and_callable_objects_are_functions_too() -> None:
    """What is already bound is not the model's to give."""
    desk = Desk("Ana")
    greet = tool(desk.greet)
    assert (greet.id, greet.description) == ("greet", "Greets a guest.")
    assert run(greet, {"guest": "Bo"}) == "Ana: Bo"

    called = tool(desk)
    assert (called.id, called.description) == ("Desk", "A front desk.")
    assert run(called, {"guest": "Bo"}) == "Ana calls Bo"

    def add(a: int, b: int, c: int = 0) -> int:
        """Adds."""
        return a + b + c

    partial = tool(functools.partial(functools.partial(add, b=2), c=3))
    assert (partial.id, partial.description) == ("add", "Adds.")
    assert list(partial.parameters["properties"]) == ["a"]
    assert run(partial, {"a": 1}) == 6


def test_a_wrapped_function_is_shown_as_itself_and_called_through_its_wrapper() -> None:
    """functools.wraps is how decorators are stacked."""

    def doubling(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(**kwargs: Any) -> Any:
            return function(**kwargs) * 2

        return wrapper

    @tool
    @doubling
    def echo(text: str) -> str:
        """Says it."""
        return text

    assert (echo.id, echo.description, list(echo.parameters["properties"])) == ("echo", "Says it.", ["text"])
    assert run(echo, {"text": "ab"}) == "abab"


def test_lists_given_to_a_function_are_its_own() -> None:
    """The arguments on record do not change when a handler changes what it got."""

    @tool
    def spoil(names: list[str], by: dict[str, int]) -> None:
        names.append("x")
        by["x"] = 1

    args: dict[str, Any] = {"names": ["a"], "by": {}}
    run(spoil, args)
    assert args == {"names": ["a"], "by": {}}


@dataclasses.dataclass
class Chain:
    link: "Chain | None" = None

    def __post_init__(self) -> None:
        if self.link is not None and self.link.link is None:
            raise ValueError("a chain of two is none")


def test_rules_that_no_schema_shows_are_checked_before_the_call_too() -> None:
    """A type's own refusal reads like any other problem."""

    @tool
    def hang(chain: Chain) -> Chain:
        return chain

    assert hang.problems is not None
    assert hang.problems({"chain": {"link": {}}}) == "chain: a chain of two is none"
    assert hang.problems({"chain": {"link": 3}}) == "chain.link: expected object or null, got integer"
    assert run(hang, {"chain": {}}) == Chain()


# ---- refusals -------------------------------------------------------------------------------------------------------
def starred(*cities: str) -> None:
    """Takes any number."""


def named(**cities: str) -> None:
    """Takes any name."""


def placed(city: str, /) -> None:
    """Takes it by place."""


def unresolved(crm: "Crm") -> None:
    """Names a type that only checkers know."""


def opaque(handle: bytes) -> None:
    """Takes what JSON has not."""


def unmarked(ctx, city: str) -> None:  # type: ignore[no-untyped-def]  # that is the point
    """Forgets an annotation."""


def yielding(city: str) -> Any:
    """Yields."""
    yield city


async def streaming(city: str) -> Any:
    """Yields, later."""
    yield city


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (starred, "tool 'starred': parameter 'cities' takes any number of values", "write cities: list[...]"),
        (named, "tool 'named': parameter 'cities' takes any name", "write cities: dict[str, ...]"),
        (placed, "tool 'placed': parameter 'city' is positional-only", "remove the '/'"),
        (unresolved, "tool 'unresolved': parameter 'crm': the annotation 'Crm' cannot be resolved", "TYPE_CHECKING"),
        (opaque, "tool 'opaque': parameter 'handle': bytes has no JSON Schema", "base64"),
        (unmarked, "tool 'unmarked': parameter 'ctx' is not annotated", "ctx: ToolContext"),
        (Desk.greet, "tool 'greet': parameter 'self' belongs to a method", "bound method"),
        (yielding, "tool 'yielding': it yields", "return one value"),
        (streaming, "tool 'streaming': it yields", "return one value"),
        (Desk, "tool 'Desk': it is no function", "bound method"),
        (staticmethod(opaque), "tool 'opaque': it is no function", "bound method"),
        (print, "tool 'print': parameter 'args' takes any number", "list"),
        (getattr, "tool 'getattr': its signature cannot be read", "function of your own"),
        (lambda city: city, "tool '<lambda>': the function's name cannot be the name", "@tool(id=...)"),
        ("price", "'price' is no function", "@tool above a function"),
    ],
)
def test_what_no_model_could_call_is_refused_where_it_is_declared(function: Any, message: str, hint: str) -> None:
    """The refusal names the tool, the parameter, and what to do instead."""
    with pytest.raises(ToolInvalid) as refused:
        tool(function)
    assert str(refused.value).startswith(message)
    assert hint in refused.value.hint


def test_a_refusal_names_the_id_when_there_is_one() -> None:
    """It is what the author looks for."""
    with pytest.raises(ToolInvalid, match=r"^tool 'keep': parameter 'handle'"):
        tool(opaque, id="keep")
    assert tool(lambda city: city, id="echo").id == "echo"
