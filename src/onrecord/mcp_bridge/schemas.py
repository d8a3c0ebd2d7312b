"""The input schemas of a server, made fit for every model: well-formed, closed in themselves, bounded.

A vendor refuses a whole request for one malformed schema, so a tool with such a one is left out instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from onrecord.jsonio import Json, dumps
from onrecord.mcp_bridge.shown_words import clean, hides

__all__ = ("Refused", "fit_schema")

NODES = 3_000
DEPTH = 24
WORDS = 1_000
"""Characters of one description inside a schema."""

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_ONE = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames"})
_SEVERAL = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NOT_AT_ROOT = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const"})
_property_name = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
_VALUES = frozenset("\n\t\r")


class Refused(Exception):
    """Why a schema cannot be shown to a model, in words for the record."""


def fit_schema(schema: object, most: int) -> Mapping[str, Json]:
    """The schema of a tool's input as it is shown to a model, at most so many bytes of JSON. Raises Refused.

    Keywords of JSON Schema that models take stay, others go. References inside of the schema are written out; one that
    leads back to where it stands is left open. At the root the choices between schemas go, since vendors refuse them
    there: the server checks its arguments itself.
    """
    if not isinstance(schema, Mapping):
        raise Refused("its input schema is no object")
    walk = _Walk(schema)
    root = walk.followed(schema, ())[0]
    if root.get("type") != "object":
        raise Refused('its input schema is not of "type": "object"')
    fitted = walk.schema({word: value for word, value in root.items() if word not in _NOT_AT_ROOT}, (), 0)
    fitted.setdefault("properties", {})
    if len(dumps(fitted)) > most:
        raise Refused(f"its input schema has more than {most} bytes")
    return fitted


class _Walk:
    """One pass over a schema. What it writes is bounded by the number of schemas and values that it visits."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._left = root, NODES

    def _visit(self, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise Refused(f"its input schema has more than {NODES} parts")
        if depth > DEPTH:
            raise Refused(f"its input schema is more than {DEPTH} levels deep")

    def followed(self, schema: Mapping[str, Any], above: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The schema with what its references lead to written out, and the references that lead here."""
        while "$ref" in schema:
            pointer = schema["$ref"]
            beside = {word: value for word, value in schema.items() if word != "$ref"}
            if not isinstance(pointer, str) or not pointer.startswith("#"):
                raise Refused("its input schema refers to something outside of it")
            if pointer in above:
                return {word: beside[word] for word in ("description", "title") if word in beside}, above
            self._visit(0)
            above = (*above, pointer)
            schema = {**self._target(pointer), **beside}
        return schema, above

    def _target(self, pointer: str) -> Mapping[str, Any]:
        found: Any = self._root
        for part in pointer[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise Refused("its input schema refers to something that is not there")
        return found

    def schema(self, given: object, above: tuple[str, ...], depth: int) -> dict[str, Json]:
        self._visit(depth)
        if given is True:
            return {}
        if given is False:
            return {"not": {}}
        if not isinstance(given, Mapping):
            raise Refused("its input schema holds something that is no schema")
        given, above = self.followed(given, above)
        made: dict[str, Json] = {}
        for word, value in given.items():
            kept = self._keyword(word, value, above, depth)
            if kept is not None:
                made[word] = kept[0]
        return made

    def _keyword(self, word: object, value: Any, above: tuple[str, ...], depth: int) -> tuple[Json] | None:
        """The value of one keyword in a tuple; None where it is dropped."""
        if word == "properties":
            return (self._properties(value, above, depth),)
        if word in _ONE:
            return (value if isinstance(value, bool) else self.schema(value, above, depth + 1),)
        if word in _SEVERAL:
            if not isinstance(value, list) or not value:
                raise Refused(f"its input schema has no list of schemas behind {word!r}")
            return ([self.schema(each, above, depth + 1) for each in value],)
        if word in {"description", "title"}:
            return (clean(value, WORDS),) if isinstance(value, str) else None
        if word in {"default", "const"}:
            return (self._value(value, depth),)
        check = _CHECKS.get(word) if isinstance(word, str) else None
        if check is None:
            return None
        if not check(value):
            raise Refused(f"its input schema has a {word!r} that is none")
        return (self._value(value, depth),)

    def _properties(self, given: object, above: tuple[str, ...], depth: int) -> Json:
        if not isinstance(given, Mapping):
            raise Refused('the "properties" of its input schema are no object')
        for name in given:
            if not isinstance(name, str) or not _property_name(name):
                raise Refused("an argument has a name that models cannot be given")
        return {name: self.schema(each, above, depth + 1) for name, each in given.items()}

    def _value(self, value: Any, depth: int) -> Json:
        """A value of the schema, such as one to choose from. It cannot be cleaned: the server wants just this one."""
        self._visit(depth)
        if isinstance(value, str) and hides(value, but=_VALUES):
            raise Refused("its input schema has a value with characters that nobody sees")
        if isinstance(value, Mapping):
            for name in value:
                self._value(name, depth)
            return {name: self._value(each, depth + 1) for name, each in value.items()}
        if isinstance(value, list):
            return [self._value(each, depth + 1) for each in value]
        return value


def _is_type(value: object) -> bool:
    several = value if isinstance(value, list) else [value]
    return bool(several) and all(isinstance(each, str) and each in _TYPES for each in several)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(e, str) for e in value) and len(set(value)) == len(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_pattern(value: object) -> bool:
    if not isinstance(value, str) or len(value) > 500:
        return False
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_CHECKS = {
    "type": _is_type,
    "required": _are_names,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "format": lambda value: isinstance(value, str) and len(value) <= 50,
    "pattern": _is_pattern,
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(_COUNTS, _is_count),
}
"""Keywords with values of their own, and whether a value is one."""
