"""Guards: conditions on what a tool returned, as data, with evidence for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, get_args

import msgspec
from msgspec import Struct

from onrecord.conversation.messages import CallStatus
from onrecord.conversation.short import clipped
from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json, dumps, is_json, loads

__all__ = ("STATUSES", "Evidence", "Guard", "ToolOutcome", "check_guard", "guard_text", "judged", "unsatisfiable")

Guard = Mapping[str, Mapping[str, Json]]
"""``{key: {operator: value}}``, all of which must hold."""

STATUSES = frozenset(get_args(CallStatus)) - {"asked", "not_run"}
"""What a call that ran, or was refused, can have come to."""

SHOWN = 80

ABSENT = object()


class ToolOutcome(Struct, frozen=True, kw_only=True, dict=True):
    """What a call of the last round came to, as routes read it.

    ``tool`` is its id, ``status`` that of the call (``returned``, ``failed``, ``denied`` ...), ``text`` what the model
    reads of it, ``call`` the id of the call.
    """

    tool: str
    status: str
    text: str
    call: str = ""

    def field(self, name: str) -> object:
        """A field of the result, where the result is a JSON object that has it."""
        return self._fields.get(name, ABSENT)

    @cached_property
    def _fields(self) -> Mapping[str, object]:
        """Read once, however many guards look: results may be long."""
        try:
            value = loads(self.text)
        except msgspec.DecodeError:
            return {}
        return value if isinstance(value, dict) else {}


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of a guard, and whether it held; ``actual`` is what was found, cut to a line."""

    key: str
    op: str
    value: Json
    actual: str
    passed: bool


def _same(one: object, other: object) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    def compare(one: object, other: object) -> bool:
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (one, other))
        return (numbers or (isinstance(one, str) and isinstance(other, str))) and test(one, other)

    return compare


OPERATORS: Mapping[str, Callable[[object, Any], bool]] = {
    "eq": _same,
    "ne": lambda one, other: not _same(one, other),
    "gt": _ordered(lambda a, b: a > b),
    "gte": _ordered(lambda a, b: a >= b),
    "lt": _ordered(lambda a, b: a < b),
    "lte": _ordered(lambda a, b: a <= b),
    "in": lambda one, many: any(_same(one, each) for each in many),
    "not_in": lambda one, many: not any(_same(one, each) for each in many),
}


def check_guard(guard: Guard, where: str) -> None:
    """ConfigurationError for a guard that is no such mapping, an unknown operator, or a value that JSON cannot hold."""
    given: object = guard
    if not isinstance(given, Mapping) or not guard:
        raise ConfigurationError(f"the guard of {where} says nothing", hint='write {"status": {"eq": "failed"}}')
    for key, conditions in guard.items():
        stated: object = conditions
        if not isinstance(stated, Mapping) or not conditions:
            raise ConfigurationError(
                f"the guard of {where} has no condition for {key!r}", hint='{"total": {"gt": 100}}'
            )
        for op, value in conditions.items():
            if op not in OPERATORS:
                raise ConfigurationError(
                    f"the guard of {where} has the unknown operator {op!r}", hint=f"known are {', '.join(OPERATORS)}"
                )
            if not is_json(value) or (op in {"in", "not_in"} and not isinstance(value, (list, tuple))):
                raise ConfigurationError(f"the guard of {where}: the value of {op!r} for {key!r} is not of its kind")


def judged(guard: Guard, outcome: ToolOutcome, hop: Mapping[str, object]) -> tuple[Evidence, ...]:
    """Every condition with what was found. A field that is not there fulfils none."""
    rows: list[Evidence] = []
    for key, conditions in guard.items():
        actual = hop[key] if key in hop else outcome.field(key)
        for op, value in conditions.items():
            passed = actual is not ABSENT and OPERATORS[op](actual, value)
            rows.append(Evidence(key=key, op=op, value=value, actual=_summary(actual), passed=passed))
    return tuple(rows)


def _summary(value: object) -> str:
    if value is ABSENT:
        return "absent"
    told = value if isinstance(value, str) else dumps(value).decode()
    return clipped(told, SHOWN)


def guard_text(guard: Guard) -> str:
    """A guard on one line: ``status eq "failed", total gt 100``."""
    return ", ".join(f"{key} {op} {dumps(value).decode()}" for key, ops in guard.items() for op, value in ops.items())


# ---- what can be proved of one ---------------------------------------------------------------------------------------


def unsatisfiable(guard: Guard, source: str, tools: frozenset[str] | None) -> str:
    """Why a guard can hold under no result at all, or an empty string. ``tools`` are all there are, where known."""
    for key, conditions in guard.items():
        for told in _contradictions(conditions):
            return f"{key}: {told}"
        allowed: frozenset[str] | None = {
            "status": STATUSES,
            "tool_name": tools,
            "current_skill": frozenset({source}),
        }.get(key)
        if allowed is not None and not any(
            all(OPERATORS[op](one, value) for op, value in conditions.items()) for one in allowed
        ):
            return f"{key}: nothing that it can be fulfils it"
    return ""


def _contradictions(conditions: Mapping[str, Json]) -> Iterator[str]:
    fixed = [conditions["eq"]] if "eq" in conditions else None
    if "in" in conditions:
        fixed = [v for v in conditions["in"] if fixed is None or any(_same(v, f) for f in fixed)]
    if fixed is not None:
        if not any(all(OPERATORS[op](one, value) for op, value in conditions.items()) for one in fixed):
            yield "no value fulfils all of its conditions"
        return
    low = [(conditions[op], op == "gt") for op in ("gt", "gte") if op in conditions]
    high = [(conditions[op], op == "lt") for op in ("lt", "lte") if op in conditions]
    for bottom, above in low:
        for top, below in high:
            if type(bottom) is not type(top) and isinstance(bottom, str) != isinstance(top, str):
                yield "it compares with a text and with a number"
            elif bottom > top or (bottom == top and (above or below)):
                yield "its range is empty"
