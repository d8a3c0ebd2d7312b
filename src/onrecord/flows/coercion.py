"""Coercion: what a model reported for a field, read as a value of the field's type."""

from __future__ import annotations

from typing import Literal, cast
from unicodedata import normalize

from msgspec import Struct

from onrecord.errors import UsageError
from onrecord.flows.field_specs import FieldSpec, in_enum
from onrecord.flows.numerals import number_text, read_number
from onrecord.jsonio import Json

__all__ = ("Dropped", "coerce_field", "read_boolean")

_TRUE = frozenset({"true", "sim", "yes", "1"})
_FALSE = frozenset({"false", "não", "nao", "no", "0"})


class Dropped(Struct, frozen=True):
    """Why a value was not taken; ``code`` is the code of the outcome that says so."""

    code: Literal["bad-value", "not-in-enum"]


BAD_VALUE = Dropped("bad-value")
NOT_IN_ENUM = Dropped("not-in-enum")


def coerce_field(spec: FieldSpec, raw: Json) -> Json | Dropped:
    """The value of the field's type that ``raw`` stands for, or why there is none.

    Numbers may come as text, with one comma as decimal mark; booleans as words, in English and Portuguese; texts as
    numbers. Choices are compared afterwards and exactly.
    """
    if not isinstance(held := cast("object", spec), FieldSpec):
        raise UsageError(
            f"coerce_field takes a compiled field, not a {type(held).__name__}", hint='such as flows.fields["name"]'
        )
    value: Json
    if spec.type == "boolean":
        value = read_boolean(raw)
    elif spec.type == "string":
        value = number_text(raw) if isinstance(raw, (bool, int, float)) else raw if isinstance(raw, str) else None
    elif spec.type == "array":
        value = raw if isinstance(raw, list) else None
    else:
        value = read_number(raw)
        if spec.type == "integer" and isinstance(value, float):
            value = read_number(int(value))
            value = value if isinstance(value, int) else None
    if value is None:
        return BAD_VALUE
    return value if not spec.enum or in_enum(spec, value) else NOT_IN_ENUM


def read_boolean(raw: object) -> bool | None:
    """True or False from a boolean or from a word for it; None for anything else, the number 1 included."""
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, str):
        return None
    word = normalize("NFC", raw.strip().lower())
    return True if word in _TRUE else False if word in _FALSE else None
