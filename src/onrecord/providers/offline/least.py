"""The least value that a JSON Schema accepts, as far as its plain rules go."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import count

from onrecord.jsonio import Json
from onrecord.providers.offline.parameters import branches, resolved, single
from onrecord.tools.problems import compiled

__all__ = ("least",)

DEEPEST = 12
FORMATS: Mapping[str, str] = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "unknown@example.invalid",
    "uri": "about:blank",
    "url": "about:blank",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "ipv4": "192.0.2.0",
    "ipv6": "::",
    "hostname": "example.invalid",
}
# Tried in turn where a pattern is asked for.
SAMPLES = (
    "",
    "0",
    "a",
    "A",
    "00",
    "0000",
    "aa",
    "AA",
    "AAA",
    "a0",
    "A0",
    "000",
    "0000-00-00",
    "AA-00",
    "#000000",
    "0.0",
)


def least(schema: Json, whole: Mapping[str, Json], depth: int = 0) -> Json:
    """Null where that fits, else a default, the first choice, the smallest number, text, list or object."""
    held = resolved(schema, whole)
    if not held or depth > DEEPEST:
        return None
    check = compiled(held, whole)
    if not check(None):
        return None
    for option in branches(held, whole):
        value = _plain(single(option, whole), whole, depth)
        if not check(value):
            return value
    return _plain(single(held, whole), whole, depth)


def _plain(schema: Mapping[str, Json], whole: Mapping[str, Json], depth: int) -> Json:
    fixed = [schema[key] for key in ("const", "default") if key in schema] or schema.get("enum")
    if isinstance(fixed, list) and fixed:
        return fixed[0]
    match schema.get("type") or ("object" if "properties" in schema else "string"):
        case "object":
            return _object(schema, whole, depth)
        case "array":
            return _array(schema, whole, depth)
        case "string":
            return _text(schema)
        case "integer" | "number" as kind:
            return _number(schema, whole_numbers=kind == "integer")
        case "boolean":
            return False
        case _:
            return None


def _object(schema: Mapping[str, Json], whole: Mapping[str, Json], depth: int) -> dict[str, Json]:
    properties, needed = schema.get("properties"), schema.get("required")
    inner = properties if isinstance(properties, Mapping) else {}
    made = {name: least(inner.get(name, {}), whole, depth + 1) for name in needed} if isinstance(needed, list) else {}
    others = [name for name in inner if name not in made]
    more = schema.get("additionalProperties")
    while len(made) < _count(schema, "minProperties"):
        name = others.pop(0) if others else next(key for n in count(len(made) + 1) if (key := f"key{n}") not in made)
        made[name] = least(inner.get(name, more), whole, depth + 1)
    return made


def _array(schema: Mapping[str, Json], whole: Mapping[str, Json], depth: int) -> list[Json]:
    leading = schema.get("prefixItems")
    made = [least(one, whole, depth + 1) for one in leading] if isinstance(leading, list) else []
    items = resolved(schema.get("items"), whole)
    choices = items.get("enum") if isinstance(items.get("enum"), list) else []
    while len(made) < _count(schema, "minItems"):
        value = choices[len(made) % len(choices)] if choices else least(items, whole, depth + 1)
        made.append(_another(value, made) if schema.get("uniqueItems") and value in made else value)
    return made


def _another(value: Json, made: list[Json]) -> Json:
    """A value of the same kind that is not there yet, where its kind can be counted on."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}{len(made)}"
    if isinstance(value, (int, float)):
        return max(one for one in made if isinstance(one, (int, float))) + 1
    return value


def _text(schema: Mapping[str, Json]) -> str:
    form = FORMATS.get(str(schema.get("format", "")), "")
    low, high = _count(schema, "minLength"), schema.get("maxLength")
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        padded = form.ljust(low, "-")
        return padded if not isinstance(high, int) or len(padded) <= high else form
    for sample in (form, *SAMPLES, "a" * low, "0" * low, "A" * low):
        short = not isinstance(high, int) or len(sample) <= high
        if short and len(sample) >= low and _matches(pattern, sample):
            return sample
    return form


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _number(schema: Mapping[str, Json], *, whole_numbers: bool) -> int | float:
    step = schema.get("multipleOf")
    step = step if isinstance(step, (int, float)) and step > 0 else 1
    low, strict_low = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, strict_high = schema.get("maximum"), schema.get("exclusiveMaximum")
    value: int | float = 0
    if isinstance(low, (int, float)) and value < low:
        value = math.ceil(low / step) * step if whole_numbers or "multipleOf" in schema else low
    if isinstance(strict_low, (int, float)) and value <= strict_low:
        value = (math.floor(strict_low / step) + 1) * step
    if isinstance(high, (int, float)) and value > high:
        value = math.floor(high / step) * step if whole_numbers or "multipleOf" in schema else high
    if isinstance(strict_high, (int, float)) and value >= strict_high:
        value = (math.ceil(strict_high / step) - 1) * step
    between = isinstance(strict_low, (int, float)) and value <= strict_low
    if not whole_numbers and between and isinstance(strict_low, (int, float)):
        other = strict_high if isinstance(strict_high, (int, float)) else high
        value = (strict_low + other) / 2 if isinstance(other, (int, float)) else value
    return value


def _count(schema: Mapping[str, Json], key: str) -> int:
    value = schema.get(key, 0)
    return min(value, 1000) if isinstance(value, int) else 0
