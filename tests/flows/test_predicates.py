"""Predicates: gates as JSON, by name and as functions, compiled once and judged often."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from onrecord.errors import FlowInvalid
from onrecord.flows.fields import fields_of
from onrecord.flows.predicates import Check, PredContext, check_conditions, compile_pred, holds, same
from onrecord.jsonio import Json, dumps, loads
from tests.strategies import json_values

pytestmark = pytest.mark.unit

FIELDS = fields_of(
    {
        "name": {"type": "string"},
        "model": {"type": "string"},
        "ok": {"type": "boolean"},
        "budget": {"type": "number"},
        "size": {"enum": ["1-10", "11-50"]},
    }
)
NOW = datetime(2026, 9, 20, 10, tzinfo=UTC)
DATA = {"name": "Bo", "ok": True}


async def later(ctx: PredContext, wanted: str) -> bool:
    """A condition that takes its time."""
    return bool(ctx.context == wanted)


def staged(ctx: PredContext, stage: object) -> bool:
    """Whether the lead is at a stage."""
    return bool(ctx.context == stage)


def alone(ctx: PredContext) -> str:
    """A condition without an argument, which answers with something truthy."""
    return str(ctx.context)


CONDITIONS = {"stage": staged, "later": later, "vip": alone}


def compiled(pred: Any, conditions: Mapping[str, Any] = CONDITIONS) -> Check | None:
    """A gate, compiled as that of a step."""
    return compile_pred(pred, conditions=conditions, fields=FIELDS, where='flow "f", step "s"')


def context(**told: Any) -> PredContext:
    """What a gate looks at."""
    return PredContext(**{"data": DATA, "now": NOW, **told})


@pytest.mark.parametrize(
    ("pred", "silenced", "expected"),
    [
        ({"equals": {"ok": True}, "known": ["name"]}, None, True),
        ({"equals": {"ok": True}, "known": ["name", "model"]}, None, False),
        ({"equals": {"ok": False}}, None, False),
        ({"equals": {"name": "Bo"}}, None, True),
        ({"equals": {"model": "x"}}, None, False),
        ({"equals": {}}, None, True),
        ({"known": ["model"]}, None, False),
        ({"known": []}, None, True),
        ({"silenced": True}, None, False),
        ({"silenced": True}, "human", True),
        ({"silenced": True}, "", True),
        ({"silenced": False}, None, True),
        ({"silenced": False}, "human", False),
        ("silenced", "human", True),
        ({}, None, True),
        ({"known": None, "equals": None}, None, True),
    ],
)
async def test_built_in_entries_must_all_hold(pred: Json, silenced: str | None, expected: bool) -> None:
    """A14: equals as written, known, silenced; an entry that is null says nothing."""
    assert await holds(compiled(pred), context(silenced=silenced)) is expected


async def test_one_is_not_true() -> None:
    """A14: data that holds 1 does not equal true, nor the other way round; 1.0 equals 1."""
    assert not await holds(compiled({"equals": {"ok": True}}), context(data={"ok": 1}))
    assert not await holds(compiled({"equals": {"budget": 1}}), context(data={"budget": True}))
    assert await holds(compiled({"equals": {"budget": 1}}), context(data={"budget": 1.0}))


def test_equals_with_a_value_no_such_field_can_have_is_refused() -> None:
    """A14: a 1 for a boolean could never be equal, so it is a mistake and not a gate that never opens."""
    with pytest.raises(FlowInvalid, match=r"equals\.ok must be a boolean, got integer"):
        compiled({"equals": {"ok": 1}})


def test_an_unknown_condition_is_refused_by_name() -> None:
    """A14: with the place, and the nearest right name or all there are; also where its entry is null."""
    with pytest.raises(FlowInvalid) as caught:
        compiled({"nope": 1})
    assert str(caught.value) == 'flow "f", step "s": unknown condition "nope" in only_if'
    for pred in ("vpi", {"vpi": None}):
        with pytest.raises(FlowInvalid, match='unknown condition "vpi"') as caught:
            compiled(pred)
        assert caught.value.hint == 'did you mean "vip"?'


@pytest.mark.parametrize(
    ("pred", "message"),
    [
        ({"equals": ["ok"]}, "equals must be an object of fields and values, got array"),
        ({"equals": {"naame": "Bo"}}, 'unknown field "naame" in equals'),
        ({"equals": {"budget": "3"}}, "equals.budget must be a number, got string"),
        ({"equals": {"size": "12"}}, 'equals.size must be one of "1-10", "11-50"'),
        ({"equals": {"name": None}}, "equals.name must be a string, got null"),
        ({"known": "name"}, "known must be a list of fields, got string"),
        ({"known": ["naame"]}, 'unknown field "naame" in known'),
        ({"known": [3]}, "unknown field 3 in known"),
        ({"silenced": "yes"}, "silenced must be a boolean, got string"),
        (5, "only_if must be a function, a condition's name or an object, got integer"),
        (["vip"], "only_if must be a function, a condition's name or an object, got array"),
        ("known", "known must be a list of fields, got boolean"),
    ],
)
def test_a_gate_that_cannot_work_is_refused(pred: Any, message: str) -> None:
    """Before any run gets there, with its place."""
    with pytest.raises(FlowInvalid) as caught:
        compiled(pred)
    assert str(caught.value) == f'flow "f", step "s": {message}'


@pytest.mark.parametrize(
    ("pred", "expected"),
    [
        ({"stage": "new"}, True), ({"stage": "old"}, False), ({"later": "new"}, True), ({"later": "old"}, False),
        ("vip", True), ({"vip": "ignored"}, True), ({"known": ["name"], "later": "new", "stage": "new"}, True),
        ({"later": "new", "stage": "old"}, False), ({"later": "old", "stage": "new"}, False),
        ({"later": "new", "vip": 1, "known": ["model"]}, False), ({"vip": True, "stage": "new"}, True),
        (lambda ctx: ctx.data["ok"], True), (lambda ctx: ctx.input, False), (alone, True),
    ],
)  # fmt: skip
async def test_conditions_are_functions_sync_or_async(pred: Any, expected: bool) -> None:
    """With their argument or without; the truth of what they answer counts, and every entry must hold."""
    assert await holds(compiled(pred), context(context="new")) is expected


async def test_what_one_entry_decides_asks_no_further() -> None:
    """Entries are judged as they are written, and the first that does not hold ends it."""
    asked = list[object]()

    def noted(ctx: PredContext, argument: object) -> bool:
        asked.append(argument)
        return argument != "no"

    pred = {"first": "no", "second": "yes"}
    assert not await holds(compiled(pred, {"first": noted, "second": noted}), context())
    assert asked == ["no"]


async def test_an_async_function_is_a_gate() -> None:
    """It is awaited; no gate at all is open."""

    async def gate(ctx: PredContext) -> bool:
        return ctx.run is None

    assert await holds(compiled(gate), context())
    assert await holds(compiled(None), context())
    assert compiled(None) is None


def divided(ctx: PredContext, by: float) -> float:
    """A condition that may fail."""
    return 1 / by


async def test_a_gate_that_raises_is_not_a_closed_one() -> None:
    """The error is the host's, and reaches the host."""
    with pytest.raises(ZeroDivisionError):
        await holds(compiled({"broken": 0}, {"broken": divided}), context())


@pytest.mark.parametrize("name", ["equals", "known", "silenced"])
def test_a_condition_cannot_have_the_name_of_a_built_in_entry(name: str) -> None:
    """Q15: it would never be asked."""
    with pytest.raises(FlowInvalid, match=f'condition "{name}" has the name of a built-in predicate'):
        check_conditions({name: staged})
    with pytest.raises(FlowInvalid, match="built-in predicate"):
        compiled({"known": []}, {name: staged})


def none() -> bool:
    """Takes nothing."""
    return True


def many(ctx: PredContext, argument: object, more: object) -> bool:
    """Takes too much."""
    return more is argument


def keyword(ctx: PredContext, *, needed: bool) -> bool:
    """Takes what nobody gives it."""
    return needed


@pytest.mark.parametrize("condition", ["text", none, many, keyword])
def test_a_condition_takes_the_context_and_at_most_one_argument(condition: Any) -> None:
    """Anything else could not be called."""
    with pytest.raises(FlowInvalid, match='condition "odd" must be a function'):
        check_conditions({"odd": condition})


async def test_a_condition_may_be_a_callable_of_any_make() -> None:
    """One with defaults, with any arguments, or one that says nothing about its arguments."""

    class Odd:
        __signature__ = "none"

        def __call__(self, ctx: PredContext, argument: object) -> bool:
            return argument == 2

    def usual(ctx: PredContext, argument: int = 1) -> bool:
        return argument == 2

    for condition in (usual, lambda *both: both[1] == 2, Odd()):
        check_conditions({"odd": condition})
        assert await holds(compiled({"odd": 2}, {"odd": condition}), context())


@given(json_values, json_values)
def test_sameness_is_that_of_json(one: Json, other: Json) -> None:
    """Equal to itself read again, symmetric, and never between true and 1."""
    assert same(one, loads(dumps(one)))
    assert same(one, other) is same(other, one)
    assert not same([one, True], [one, 1])
    assert not same({"a": one, "b": 0}, {"a": one, "b": False})


def test_sameness_looks_into_lists_and_objects() -> None:
    """Lengths and names count."""
    assert same({"a": [1, {"b": None}]}, {"a": (1.0, {"b": None})})
    assert not same([1], [1, 2])
    assert not same({"a": 1}, {"b": 1})
    assert not same("1", 1)
    assert not same(None, 0)
