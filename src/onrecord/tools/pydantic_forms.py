"""Forms of whatever speaks pydantic: its own schema made plain, and its own validation.

pydantic is never imported here. A type that speaks it exists only where it has been imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from onrecord.jsonio import Json, dumps
from onrecord.tools.annotations import Forms
from onrecord.tools.forms import Form, Unfit, Unsupported, shown_name
from onrecord.tools.issues import Issue

__all__ = ("of_pydantic", "speaks_pydantic")

_DEFINITIONS = "#/$defs/"
_DROPPED = frozenset({"$defs", "discriminator", "title"})


def speaks_pydantic(kind: type) -> bool:
    """Whether pydantic is in use and this type, or this kind of metadata, is meant for it."""
    if "pydantic" not in sys.modules:
        return False
    mine = kind.__module__.partition(".")[0] in {"pydantic", "pydantic_core"}
    return mine or hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")


def of_pydantic(forms: Forms, kind: Any) -> Form:
    """The form of a pydantic model, dataclass or annotated type. Raises Unsupported."""
    pydantic: Any = sys.modules["pydantic"]
    try:
        adapter = pydantic.TypeAdapter(kind)
        schema = adapter.json_schema()
    except pydantic.errors.PydanticUserError as error:
        told = f"pydantic has no JSON Schema for {shown_name(kind)} ({error.code})"
        raise Unsupported(told, "the code names its explanation in pydantic's documentation") from error
    definitions = schema.get("$defs", {})
    plain = _Plain(forms, definitions).schema(schema)

    def read(value: Json) -> Any:
        # As JSON, so that strict models take what JSON can only say as text.
        try:
            return adapter.validate_json(dumps(value))
        except pydantic.ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)
            raise Unfit([Issue(tuple(map(str, one["loc"])), one["msg"]) for one in found]) from error

    return Form(plain, read, fallible=True)


class _Plain:
    """Rewrites a schema of pydantic the way ours are: inlined but for recursion, closed, without titles."""

    def __init__(self, forms: Forms, definitions: Mapping[str, Json]) -> None:
        self._forms, self._definitions = forms, definitions
        self._recursive = {name for name in definitions if name in set(self._reachable(name))}
        self._names: dict[str, str] = {}

    def schema(self, given: Json) -> Json:
        if not isinstance(given, Mapping):
            return given
        words = {word: value for word, value in given.items() if word not in _DROPPED}
        if not self._forms.defaults or words.get("default", "") is None:
            words.pop("default", None)
        if isinstance(reference := words.pop("$ref", None), str):
            return {**self._target(reference), **{word: self._word(word, value) for word, value in words.items()}}
        if "const" in words:
            words["enum"] = [words.pop("const")]
        if "oneOf" in words:
            words["anyOf"] = words.pop("oneOf")
        if "properties" in words:
            words.setdefault("additionalProperties", False)
        return {word: self._word(word, value) for word, value in words.items()}

    def _word(self, word: str, value: Json) -> Json:
        if word in {"items", "additionalProperties", "propertyNames"}:
            return self.schema(value)
        if word in {"properties", "patternProperties"}:
            return {name: self.schema(inner) for name, inner in value.items()}
        if word in {"anyOf", "allOf", "prefixItems"}:
            return [self.schema(inner) for inner in value]
        return value

    def _target(self, reference: str) -> Mapping[str, Json]:
        name = reference.removeprefix(_DEFINITIONS)
        if name not in self._recursive:
            return dict(self.schema(self._definitions[name]))
        if name not in self._names:
            self._names[name] = self._forms.define(name, {})
            self._forms.definitions[self._names[name]] = self.schema(self._definitions[name])
        return {"$ref": f"{_DEFINITIONS}{self._names[name]}"}

    def _reachable(self, name: str) -> Iterator[str]:
        seen: set[str] = set()
        waiting = list(_references(self._definitions[name]))
        while waiting:
            found = waiting.pop()
            if found not in seen:
                seen.add(found)
                yield found
                waiting += _references(self._definitions[found])


def _references(schema: Json) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for word, value in schema.items():
            if word == "$ref" and isinstance(value, str):
                yield value.removeprefix(_DEFINITIONS)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
