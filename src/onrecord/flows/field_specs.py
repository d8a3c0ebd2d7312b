"""FieldSpec: one thing to collect, what may stand in it, and how it is shown to a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from onrecord.flows.invalid import quoted
from onrecord.flows.numerals import number_text
from onrecord.jsonio import Json
from onrecord.tools.issues import type_name

__all__ = (
    "EXTRACTS",
    "TYPES",
    "Extract",
    "Field",
    "FieldSpec",
    "FieldType",
    "field_line",
    "fits",
    "in_enum",
    "is_known",
    "to_wire_schema",
    "value_problem",
)

FieldType = Literal["string", "number", "integer", "boolean"]
Extract = Literal["anywhere", "asked"]

TYPES: tuple[FieldType, ...] = ("string", "number", "integer", "boolean")
EXTRACTS: tuple[Extract, ...] = ("anywhere", "asked")


class Field(Struct, frozen=True, kw_only=True):
    """One thing to collect, as an author writes it: in ``Annotated[str, Field(ask=...)]`` or in a mapping.

    ``type`` is told by the annotation, else by ``enum``, else it is ``string``. ``about`` describes the field for the
    model, ``label`` for people. ``ask`` says how to ask. ``extract``: from ``anywhere`` in what a customer writes, or
    only where it was ``asked``, which is the default of a boolean.
    """

    type: FieldType | None = None
    ask: str = ""
    about: str = ""
    extract: Extract | None = None
    enum: Sequence[str | int | float] = ()
    label: str = ""


class FieldSpec(Struct, frozen=True, kw_only=True):
    """A field as flows use it. As a parameter it may also be an ``array`` of ``items``, and ``optional``."""

    slug: str
    type: Literal["string", "number", "integer", "boolean", "array"] = "string"
    ask: str = ""
    about: str = ""
    extract: Extract = "anywhere"
    enum: tuple[str | int | float, ...] = ()
    label: str = ""
    items: FieldSpec | None = None
    optional: bool = False


def is_known(value: object) -> bool:
    """Whether a field has a value: nothing, null and the empty text are none; 0 and False are."""
    return value is not None and not (isinstance(value, str) and not value)


def value_problem(spec: FieldSpec, value: Json) -> str:
    """What keeps a value from being one of this field, such as ``must be a number, got string``; else empty.

    Nothing is converted: a string is no number, and a boolean is none either. A template may become any choice.
    """
    if not fits(spec.type, value):
        article = "an" if spec.type[0] in "aio" else "a"
        return f"must be {article} {spec.type}, got {type_name(value)}"
    if spec.items is not None:
        for number, item in enumerate(value):
            if problem := value_problem(spec.items, item):
                return f"has an item #{number + 1} that {problem}"
    if spec.enum and not (isinstance(value, str) and "{{" in value) and not in_enum(spec, value):
        return f"must be one of {', '.join(quoted(choice) for choice in spec.enum)}"
    return ""


def in_enum(spec: FieldSpec, value: object) -> bool:
    """Whether the value is one of the choices, exactly as they are written."""
    return any(type(choice) is type(value) and choice == value for choice in spec.enum) or (
        isinstance(value, (int, float)) and not isinstance(value, bool) and value in spec.enum
    )


def to_wire_schema(
    specs: Iterable[FieldSpec], *, nullable: bool = True, names: Mapping[str, str] | None = None
) -> dict[str, Json]:
    """The JSON Schema of an object with these fields: closed, and with nothing in it that is not for the model.

    ``nullable``: all are required and may be null. Otherwise they may not, and optional ones are not required.
    ``names``: under which name a slug travels, where it is not its own.
    """
    wire = names or {}
    listed = list(specs)
    return {
        "type": "object",
        "properties": {wire.get(spec.slug, spec.slug): _property(spec, nullable=nullable) for spec in listed},
        "required": [wire.get(spec.slug, spec.slug) for spec in listed if nullable or not spec.optional],
        "additionalProperties": False,
    }


def field_line(spec: FieldSpec, name: str = "") -> str:
    """How a prompt names a field: ``size (string) [1-10 | 11-50]: Size of the team``."""
    kind = f"list of {spec.items.type}" if spec.items is not None else spec.type
    choices = spec.enum or (spec.items.enum if spec.items is not None else ())
    shown = f" [{' | '.join(c if isinstance(c, str) else number_text(c) for c in choices)}]" if choices else ""
    return f"{name or spec.slug} ({kind}){shown}{f': {spec.about}' if spec.about else ''}"


def fits(kind: str, value: object) -> bool:
    """Whether a value has the type of this name as it is. A number may be whole; a boolean is none."""
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    if kind == "array":
        return isinstance(value, (list, tuple))
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, (int, float)) and not (isinstance(value, float) and not math.isfinite(value))


def _property(spec: FieldSpec, *, nullable: bool) -> dict[str, Json]:
    made: dict[str, Json] = {"type": [spec.type, "null"] if nullable else spec.type}
    if spec.about:
        made["description"] = spec.about
    if spec.enum:
        # Without null among them a model that is held to the schema would have to pick one that nobody said.
        made["enum"] = [*spec.enum, None] if nullable else list(spec.enum)
    if spec.items is not None:
        made["items"] = _property(spec.items, nullable=False)
    return made
