"""Forms of the types that are no container: texts, numbers, times, choices; and the limits put on any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import Enum
from types import NoneType
from typing import Any

from onrecord.jsonio import Json
from onrecord.tools.formats import read_date, read_datetime, read_duration, read_time
from onrecord.tools.forms import Form, Unsupported, refusing, shown_name
from onrecord.tools.issues import type_name

__all__ = ("ANYTHING", "constrained", "enumerated", "leaf", "of_enum")

ANYTHING = Form({})


def _float(value: Json) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_PLAIN: Mapping[type, Form] = {
    NoneType: Form({"type": "null"}),
    bool: Form({"type": "boolean"}),
    date: Form({"type": "string", "format": "date"}, read_date),
    datetime: Form({"type": "string", "format": "date-time"}, read_datetime),
    float: Form({"type": "number"}, _float),
    int: Form({"type": "integer"}, int),
    str: Form({"type": "string"}),
    time: Form({"type": "string", "format": "time"}, read_time),
    timedelta: Form({"type": "string", "format": "duration"}, read_duration),
}
_NUMBER_TEXT = "^-?[0-9]+([.][0-9]+)?$"
# Known by name, so that their modules are loaded by whoever uses them and not by us.
_NAMED: Mapping[tuple[str, str], Callable[[type], Form]] = {
    ("decimal", "Decimal"): lambda kind: Form(
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _NUMBER_TEXT}]}, lambda value: kind(str(value))
    ),
    ("uuid", "UUID"): lambda kind: Form({"type": "string", "format": "uuid"}, kind),
    ("pathlib", "Path"): lambda kind: Form({"type": "string"}, kind),
    ("pathlib", "PurePath"): lambda kind: Form({"type": "string"}, kind),
}
_HINTS = {
    "bytes": "take text, for example in base64",
    "complex": "take two numbers",
    "UnsetType": "use it only beside another type: int | UnsetType",
}


def leaf(kind: type) -> Form:
    """The form of a type without parts. Raises Unsupported."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    module = "pathlib" if kind.__module__.startswith("pathlib") else kind.__module__  # a package since Python 3.13
    if named := _NAMED.get((module, kind.__qualname__)):
        return named(kind)
    for plain in (str, int, float):
        if issubclass(kind, plain):
            return Form(_PLAIN[plain].schema, refusing(kind), fallible=True)
    hint = _HINTS.get(kind.__name__, "use a dataclass, TypedDict, msgspec struct, pydantic model, or plain types")
    raise Unsupported(f"{shown_name(kind)} has no JSON Schema", hint)


def of_enum(kind: type[Enum]) -> Form:
    """An enum: its values where they are JSON, else its names."""
    members = list(kind)
    if not members:
        raise Unsupported(f"{shown_name(kind)} has no members", "give it some")
    by_value = all(isinstance(member.value, (str, int, float, NoneType)) for member in members)
    form = enumerated([(member.value if by_value else member.name, member) for member in members])
    if by_value and not any(isinstance(member.value, str) for member in members):
        names = ", ".join(f"{member.value}: {member.name}" for member in members)
        return Form({**form.schema, "description": names}, form.read)
    return form


def enumerated(choices: Sequence[tuple[Json, Any]]) -> Form:
    """A fixed choice of JSON values, each with the Python value it stands for. Raises Unsupported."""
    values = [value for value, _ in choices]
    if not all(isinstance(value, (str, int, float, NoneType)) for value in values):
        raise Unsupported("a Literal holds what is no JSON", "use text, whole numbers, True, False or None")
    kinds = list(dict.fromkeys(type_name(value) for value in values))
    schema = {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}
    if all(value is meant and not isinstance(value, (int, float)) for value, meant in choices):
        return Form(schema)
    meanings = {_told_apart(value): meant for value, meant in choices}
    return Form(schema, lambda value: meanings[_told_apart(value)])


def _told_apart(value: Json) -> tuple[bool, Json]:
    return isinstance(value, bool), value


_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def constrained(form: Form, kind: Any, metadata: Sequence[Any]) -> Form:
    """A form with what ``Annotated[...]`` says beside the type: a description, bounds, lengths, a pattern.

    Reads plain text, `msgspec.Meta` and whatever has attributes of the same names (as annotated-types does). Raises
    Unsupported for a limit that the schema of this type cannot carry.
    """
    schema = dict(form.schema)
    for one in metadata:
        if isinstance(one, str):
            schema["description"] = one
            continue
        schema.update(_limits(one, _types(schema), kind))
        for name, word in (("description", "description"), ("documentation", "description"), ("title", "title")):
            if isinstance(text := getattr(one, name, None), str):
                schema[word] = text
        if isinstance(examples := getattr(one, "examples", None), list):
            schema["examples"] = examples
        if isinstance(extra := getattr(one, "extra_json_schema", None), dict):
            schema.update(extra)
    return Form(schema, form.read, form.fallible)


def _limits(one: Any, types: set[str], kind: Any) -> Mapping[str, Json]:
    limits: dict[str, Json] = {}
    for name, word in _BOUNDS.items():
        if (limit := getattr(one, name, None)) is not None and not callable(limit):
            _require(_is_number(limit) and types <= {"integer", "number"}, kind, name)
            limits[word] = limit
    for name, side in (("min_length", "min"), ("max_length", "max")):
        if _is_number(limit := getattr(one, name, None)):
            _require(len(types) == 1 and types <= _LENGTHS.keys(), kind, name)
            limits[f"{side}{_LENGTHS[next(iter(types))]}"] = limit
    if isinstance(pattern := getattr(one, "pattern", None), str):
        _require(types == {"string"}, kind, "pattern")
        limits["pattern"] = pattern
    return limits


def _require(carried: bool, kind: Any, limit: str) -> None:  # noqa: FBT001 - reads as a sentence at its calls
    if not carried:
        raise Unsupported(f"{shown_name(kind)} cannot carry {limit!r}", "check it in validate_input= instead")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _types(schema: Mapping[str, Json]) -> set[str]:
    if options := schema.get("anyOf"):
        return {kind for option in options for kind in _types(option)}
    kinds = schema.get("type", [])
    return set(kinds if isinstance(kinds, list) else [kinds]) - {"null"}
