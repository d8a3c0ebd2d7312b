"""Fields: what a flow collects. Declared once, as a class or a mapping, and compiled to `FieldSpec`s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from onrecord.errors import FlowInvalid
from onrecord.flows.coercion import Dropped, coerce_field
from onrecord.flows.field_specs import (
    EXTRACTS,
    TYPES,
    Extract,
    Field,
    FieldSpec,
    FieldType,
    field_line,
    fits,
    is_known,
    to_wire_schema,
    value_problem,
)
from onrecord.flows.invalid import got, invalid, nearest, quoted, text_problem, unknown
from onrecord.jsonio import Json
from onrecord.tools.issues import type_name

__all__ = (
    "Dropped",
    "Extract",
    "Field",
    "FieldSpec",
    "FieldType",
    "coerce_field",
    "field_line",
    "fields_of",
    "is_known",
    "merge_field_groups",
    "params_of",
    "to_wire_schema",
    "value_problem",
)

_KEYS = ("type", "enum", "label", "description", "about", "ask", "extract")
_PARAM_KEYS = (*_KEYS, "optional", "items")


def fields_of(given: type | Mapping[str, Field | Mapping[str, Json]] | None) -> dict[str, FieldSpec]:
    """Fields by slug, from a dataclass, msgspec struct, TypedDict or pydantic model, or from a mapping.

    Raises FlowInvalid for a type that is no text, number, whole number or boolean, and for an ``enum`` that does not
    fit it.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {slug: _spec(slug, one, _KEYS) for slug, one in given.items()}
    from onrecord.flows.field_classes import fields_of_class

    return {slug: _spec(slug, one, _KEYS) for slug, one in fields_of_class(given).items()}


def params_of(given: Mapping[str, Field | Mapping[str, Json]]) -> dict[str, FieldSpec]:
    """Parameters by name: fields, which may be ``optional``, or ``{"type": "array", "items": {...}}``."""
    return {name: _spec(name, one, _PARAM_KEYS) for name, one in given.items()}


def merge_field_groups(groups: Mapping[str, type | Mapping[str, Field | Mapping[str, Json]]]) -> dict[str, Field]:
    """One set of fields out of several that name them apart, such as one per flow; ``groups`` are by group name.

    Of texts and choices the first that says something counts. Raises FlowInvalid for a field with two types, or with
    two lists of choices.
    """
    merged: dict[str, FieldSpec] = {}
    told: dict[str, Field | Mapping[str, Json]]
    extracts: dict[str, Extract] = {}
    if not isinstance(held := cast("object", groups), Mapping):
        raise FlowInvalid(
            f"groups of fields must be an object, {got(held)}", hint='write {"hotel": Stay, "shop": Order}'
        )
    places: dict[tuple[str, str], str] = {}
    for group, fields in groups.items():
        told = dict(fields) if isinstance(fields, Mapping) else _written(fields)
        for slug, spec in fields_of(fields).items():
            if extract := _extract_told(told.get(slug)):
                extracts.setdefault(slug, extract)
            merged[slug] = _merged(merged[slug], spec, group, places) if slug in merged else spec
            places.setdefault((slug, "type"), group)
            if spec.enum:
                places.setdefault((slug, "enum"), group)
    return {
        slug: Field(
            type=_scalar(spec), ask=spec.ask, about=spec.about, extract=extracts.get(slug), enum=spec.enum,
            label=spec.label,
        )
        for slug, spec in merged.items()
    }  # fmt: skip


def _written(kind: type) -> dict[str, Field | Mapping[str, Json]]:
    from onrecord.flows.field_classes import fields_of_class

    return dict(fields_of_class(kind))


def _extract_told(given: Field | Mapping[str, Json] | None) -> Extract | None:
    told = given.extract if isinstance(given, Field) else (given or {}).get("extract")
    return told or None


def _scalar(spec: FieldSpec) -> FieldType:
    return "string" if spec.type == "array" else spec.type


def _merged(first: FieldSpec, second: FieldSpec, group: str, places: Mapping[tuple[str, str], str]) -> FieldSpec:
    slug = first.slug
    if first.type != second.type:
        before = places[slug, "type"]
        raise FlowInvalid(
            f'field {quoted(slug)} has two types: "{first.type}" in {quoted(before)}, "{second.type}" in '
            f"{quoted(group)}",
            hint="Give one slug one type.",
        )
    if first.enum and second.enum and first.enum != second.enum:
        before = places[slug, "enum"]
        raise FlowInvalid(
            f"field {quoted(slug)} has two lists of choices, in {quoted(before)} and in {quoted(group)}",
            hint="Give one slug one enum, in one order.",
        )
    return replace(
        first,
        ask=first.ask or second.ask,
        about=first.about or second.about,
        label=first.label or second.label,
        enum=first.enum or second.enum,
    )


def _spec(slug: object, given: Field | Mapping[str, Json], keys: Sequence[str]) -> FieldSpec:
    if not isinstance(slug, str) or not slug:
        raise FlowInvalid(f"a field is named by a text that is not empty, got {quoted(slug)}")
    where = f"field {quoted(slug)}"
    if problem := text_problem(slug):
        raise invalid(where, f"has a name that {problem}")
    if isinstance(given, Field):
        told = {name: getattr(given, name) for name in given.__struct_fields__}
    elif isinstance(given, Mapping):
        told = {name: value for name, value in given.items() if value is not None}
    else:
        raise invalid(where, f"must be a Field or an object, got {type_name(given)}", 'write {"type": "string"}')
    for name in told:
        if name not in keys:
            raise unknown(where, "key", name, keys)
    return _checked(where, slug, told)


def _checked(where: str, slug: str, told: Mapping[str, Any]) -> FieldSpec:
    _check_words(where, told)
    extract = told.get("extract") or None
    if extract is not None and not (isinstance(extract, str) and extract in EXTRACTS):
        raise invalid(where, f"unknown extract {quoted(extract)}", nearest(extract, EXTRACTS))
    enum = _choices(where, told.get("enum"))
    kind = told.get("type") or _type_of(enum)
    if not isinstance(kind, str):
        raise invalid(where, f"unknown type {quoted(kind)}", nearest(kind, TYPES))
    made = FieldSpec(
        slug=slug, ask=told.get("ask", ""), about=told.get("about") or told.get("description", ""), enum=enum,
        label=told.get("label", ""), optional=told.get("optional", False),
        extract=extract or ("asked" if kind == "boolean" else "anywhere"),
    )  # fmt: skip
    if kind == "array" and "items" in told:
        if enum:
            raise invalid(where, "has an enum of its own", "an array has the enum in its items")
        return replace(made, type=kind, items=_spec(slug, told["items"], _KEYS))
    if kind not in TYPES:
        raise invalid(where, f"unknown type {quoted(kind)}", nearest(kind, TYPES))
    if "items" in told:
        raise invalid(where, f"has items but is no array but a {kind}", 'write "type": "array"')
    if kind == "boolean" and enum:
        raise invalid(where, "is a boolean, which has no enum", "leave the enum out")
    for choice in enum:
        if not fits(kind, choice):
            raise invalid(where, f"has a choice that is no {kind}: {quoted(choice)}")
    return replace(made, type=kind)


def _check_words(where: str, told: Mapping[str, Any]) -> None:
    for name in ("ask", "about", "description", "label"):
        if problem := text_problem(told.get(name, "")):
            raise invalid(where, f"{name} {problem}")
    if not isinstance(told.get("optional", False), bool):
        raise invalid(where, f"optional must be a boolean, got {type_name(told['optional'])}")


def _choices(where: str, given: object) -> tuple[Any, ...]:
    if not isinstance(given, (list, tuple, type(None))):
        raise invalid(where, f"enum must be a list, got {type_name(given)}")
    for choice in given or ():
        if isinstance(choice, str) and (problem := text_problem(choice)):
            raise invalid(where, f"has a choice that {problem}")
    return tuple(given or ())


def _type_of(enum: Sequence[object]) -> FieldType:
    if not enum or any(isinstance(choice, str) for choice in enum):
        return "string"
    return "integer" if all(isinstance(choice, int) for choice in enum) else "number"
