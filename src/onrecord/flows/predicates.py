"""Predicates: gates in code, written as a callable, as the name of a condition, or as JSON; compiled to checks."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from onrecord.flows.field_specs import FieldSpec, is_known, value_problem
from onrecord.flows.invalid import invalid, quoted, unknown
from onrecord.jsonio import Json
from onrecord.tools.issues import type_name

__all__ = ("BUILT_IN", "Check", "Condition", "Pred", "PredContext", "check_conditions", "compile_pred", "holds", "same")


class PredContext(Struct, frozen=True, kw_only=True):
    """What a gate may look at.

    ``data`` are the fields as they are now, ``input`` is the run's; ``run`` is None for what belongs to no run, and
    ``silenced`` the host's reason why nobody may speak, or None.
    """

    context: Any = None
    data: Mapping[str, Json] = {}
    input: Json = None
    run: Any = None
    silenced: str | None = None
    now: datetime


Check = Callable[[PredContext], bool | Awaitable[bool]]
Condition = Callable[..., Any]
"""A named gate: called with the context and the argument, or with the context alone. Sync or async."""
Pred = Callable[[PredContext], Any] | Mapping[str, Json] | str
"""A gate: a callable; the name of a condition; or JSON of which every entry must hold."""

BUILT_IN = ("equals", "known", "silenced")


async def holds(check: Check | None, ctx: PredContext) -> bool:
    """Whether a compiled gate is open; None is no gate."""
    if check is None:
        return True
    held: Any = check(ctx)
    if held is True or held is False:
        return bool(held)
    return bool(await held) if inspect.isawaitable(held) else bool(held)


def check_conditions(conditions: Mapping[str, Condition], where: str = "") -> None:
    """Raises FlowInvalid for a condition that no predicate could reach, or that cannot be called as one."""
    given: Mapping[Any, Any] = conditions  # as a host wrote them
    for name, condition in given.items():
        if name in BUILT_IN:
            raise invalid(
                where, f"condition {quoted(name)} has the name of a built-in predicate", "give it another name"
            )
        if not isinstance(name, str) or not callable(condition):
            raise invalid(where, f"condition {quoted(name)} must be a function of (ctx, argument) or of (ctx)")
        _takes_argument(condition, where, name)


def compile_pred(
    pred: Pred | None,
    *,
    conditions: Mapping[str, Condition],
    fields: Mapping[str, FieldSpec],
    where: str,
    place: str = "only_if",
) -> Check | None:
    """The check that a gate compiles to, or None for no gate.

    ``where`` and ``place`` say in errors where the gate stands. Raises FlowInvalid for an unknown condition or field,
    for a value that its field could never have, and for whatever is no gate.
    """
    if pred is None:
        return None
    taken = conditions.keys() & set(BUILT_IN)
    if taken:
        check_conditions(conditions, where)
    if isinstance(pred, str) and pred not in BUILT_IN:
        return _condition(pred, None, conditions, where, place)
    if isinstance(pred, str):
        pred = {pred: True}
    if not isinstance(pred, Mapping):
        if not callable(pred):
            raise invalid(where, f"{place} must be a function, a condition's name or an object, got {type_name(pred)}")
        return pred
    checks = [
        _entry(name, argument, conditions, fields, where, place)
        for name, argument in pred.items()
        if argument is not None
    ]
    for name in pred:
        if name not in BUILT_IN and name not in conditions:
            raise unknown(where, "condition", name, [*BUILT_IN, *conditions], place)
    return checks[0] if len(checks) == 1 else _all(checks)


def _entry(
    name: str,
    argument: Json,
    conditions: Mapping[str, Condition],
    fields: Mapping[str, FieldSpec],
    where: str,
    place: str,
) -> Check:
    if name == "equals":
        return _equals(argument, fields, where)
    if name == "known":
        return _known(argument, fields, where)
    if name == "silenced":
        if not isinstance(argument, bool):
            raise invalid(where, f"silenced must be a boolean, got {type_name(argument)}")
        return lambda ctx: (ctx.silenced is not None) is argument
    return _condition(name, argument, conditions, where, place)


def _equals(wanted: Json, fields: Mapping[str, FieldSpec], where: str) -> Check:
    if not isinstance(wanted, Mapping):
        raise invalid(where, f"equals must be an object of fields and values, got {type_name(wanted)}")
    for slug, value in wanted.items():
        if slug not in fields:
            raise unknown(where, "field", slug, fields, "equals")
        if problem := value_problem(fields[slug], value):
            raise invalid(where, f"equals.{slug} {problem}", "a gate compares values as they are written")
    pairs = tuple(wanted.items())
    return lambda ctx: all(slug in ctx.data and same(ctx.data[slug], value) for slug, value in pairs)


def _known(wanted: Json, fields: Mapping[str, FieldSpec], where: str) -> Check:
    if not isinstance(wanted, (list, tuple)):
        raise invalid(where, f"known must be a list of fields, got {type_name(wanted)}")
    for slug in wanted:
        if not isinstance(slug, str) or slug not in fields:
            raise unknown(where, "field", slug, fields, "known")
    slugs = tuple(wanted)
    return lambda ctx: all(is_known(ctx.data.get(slug)) for slug in slugs)


def _condition(name: str, argument: Json, conditions: Mapping[str, Condition], where: str, place: str) -> Check:
    condition = conditions.get(name)
    if condition is None:
        raise unknown(where, "condition", name, [*BUILT_IN, *conditions], place)
    if not _takes_argument(condition, where, name):
        return condition
    return lambda ctx: condition(ctx, argument)


def _takes_argument(condition: Condition, where: str, name: str) -> bool:
    try:
        signature = inspect.signature(condition)
    except (TypeError, ValueError):
        return True  # written in C: as most conditions are
    for places in (2, 1):
        try:
            signature.bind(*range(places))
        except TypeError:
            continue
        return places == 2
    raise invalid(where, f"condition {quoted(name)} must be a function of (ctx, argument) or of (ctx)")


def _all(checks: Sequence[Check]) -> Check:
    def check(ctx: PredContext) -> bool | Awaitable[bool]:
        for place, one in enumerate(checks):
            held: Any = one(ctx)
            if held is True:
                continue
            if inspect.isawaitable(held):
                return _others(held, checks[place + 1 :], ctx)
            if not held:
                return False
        return True

    return check


async def _others(first: Awaitable[Any], checks: Sequence[Check], ctx: PredContext) -> bool:
    if not await first:
        return False
    for check in checks:
        if not await holds(check, ctx):
            return False
    return True


def same(one: Json, other: Json) -> bool:
    """Deep equality as JSON has it: true is not 1, but 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(item, other[name]) for name, item in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))
