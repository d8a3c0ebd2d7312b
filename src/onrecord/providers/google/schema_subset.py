"""JSON Schemas in the form that Google takes."""

from __future__ import annotations

from collections.abc import Mapping

from onrecord.jsonio import Json

__all__ = ("takeable",)

_BY_NAME = frozenset({"properties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties"})


def takeable(schema: Json) -> Json:
    """The same schema without ``const``, which Google does not take: an ``enum`` of one value means the same."""
    if not isinstance(schema, Mapping):
        return schema
    return dict(_keyword(name, held) for name, held in schema.items())


def _keyword(name: str, held: Json) -> tuple[str, Json]:
    if name == "const":
        return "enum", [held]
    if name in _BY_NAME and isinstance(held, Mapping):
        return name, {key: takeable(one) for key, one in held.items()}
    if name in _LISTS and isinstance(held, (list, tuple)):
        return name, [takeable(one) for one in held]
    return name, takeable(held) if name in _ONE else held
