"""Fields declared as a class: dataclass, msgspec struct, TypedDict or pydantic model, with or without `Field`s."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from onrecord.errors import FlowInvalid
from onrecord.flows.field_specs import TYPES, Field
from onrecord.flows.invalid import got, quoted
from onrecord.jsonio import Json
from onrecord.tools.annotations import Forms
from onrecord.tools.docstrings import documented
from onrecord.tools.forms import Unsupported, shown_name

__all__ = ("fields_of_class",)

_HINT = "a field is a text, a number, a whole number, a boolean or a Literal of texts or numbers"


def fields_of_class(kind: Any) -> dict[str, Field]:
    """The fields of a class by name; what its `Field`s leave out is told by annotations and the docstring."""
    names = _names(kind)
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception as error:
        raise FlowInvalid(
            f"an annotation of {shown_name(kind)} cannot be resolved ({error})",
            hint="define its types at module level, and import them outside `if TYPE_CHECKING:`",
        ) from error
    text = kind.__dict__.get("__doc__") or ""
    # A dataclass without a docstring gets its signature as one.
    told = {} if text.startswith(f"{kind.__name__}(") else documented(text).arguments
    pydantic = getattr(kind, "model_fields", {})
    return {
        name: _field(name, hints[name], getattr(pydantic.get(name), "description", None) or told.get(name, ""))
        for name in names
    }


def _names(kind: Any) -> Iterable[str]:
    if isinstance(kind, type):
        if issubclass(kind, Struct):
            return kind.__struct_fields__
        if dataclasses.is_dataclass(kind):
            return [field.name for field in dataclasses.fields(kind)]
        if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
            return list(kind.__annotations__)
        if hasattr(kind, "model_fields"):
            return list(kind.model_fields)
    shown = f"got {shown_name(kind)}" if isinstance(kind, type) else got(kind)
    raise FlowInvalid(
        f"fields= takes a class with fields or a mapping, {shown}",
        hint="write a dataclass, a msgspec struct, a TypedDict or a pydantic model",
    )


def _field(name: str, hint: Any, text: str) -> Field:
    while getattr(typing.get_origin(hint), "_name", "") in {"Required", "NotRequired", "ReadOnly"}:
        hint = typing.get_args(hint)[0]
    given = Field()
    if typing.get_origin(hint) is typing.Annotated:
        mine = [one for one in hint.__metadata__ if isinstance(one, Field)]
        others = tuple(one for one in hint.__metadata__ if not isinstance(one, Field))
        given = mine[-1] if mine else given
        # Built by subscription, for the annotation is a value here.
        hint = typing.Annotated[(hint.__origin__, *others)] if others else hint.__origin__
    schema = _schema(name, hint)
    return replace(
        given,
        type=given.type or schema["type"],
        enum=given.enum or tuple(schema.get("enum", ())),
        about=given.about or schema.get("description") or text or "",
    )


def _schema(name: str, hint: Any) -> Mapping[str, Json]:
    try:
        schema = Forms({}).of(hint).schema
    except Unsupported as wrong:
        raise FlowInvalid(f"field {quoted(name)}: {wrong.what}", hint=_HINT) from wrong
    description = schema.get("description")
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        schema = {"description": description, **options[0]}
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next((kind for kind in kinds if kind != "null"), None)
    told = schema.get("enum", [schema["const"]] if "const" in schema else ())
    choices = [choice for choice in told if choice is not None]
    if kinds not in TYPES:
        raise FlowInvalid(f"field {quoted(name)} has type {shown_name(hint)}", hint=_HINT)
    return {**schema, "type": kinds, "enum": choices}
