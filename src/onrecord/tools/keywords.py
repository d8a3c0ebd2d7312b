"""The keywords of JSON Schema that are checked, compiled into closures.

The subset: ``type`` (one or a list), ``enum``, ``const``, ``properties``, ``required``, ``additionalProperties``,
``patternProperties``, ``propertyNames``, ``items``, ``prefixItems``, lengths, bounds, ``multipleOf``, ``pattern``,
``format`` (see `formats`), ``anyOf``, ``oneOf``, ``allOf`` and ``$ref`` inside the same schema. Other keywords, and
keywords written in a way that makes no sense, are not checked: a tool of a foreign server must stay callable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onrecord.jsonio import Json
from onrecord.tools.formats import FORMATS
from onrecord.tools.issues import (
    MOST_ISSUES,
    Issue,
    choices_text,
    either,
    expectation,
    format_text,
    resolved,
    type_name,
)

__all__ = ("Check", "Compiler", "Found")

Found = Sequence[Issue] | None
"""What is wrong with a value; None or nothing when it is fine."""

Check = Callable[[Json], Found]

_EXACT: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "array": frozenset({list, tuple}),
    "object": frozenset({dict}),
}


def anything(value: Json) -> Found:
    """Accepts every value."""
    return None


def _nothing(value: Json) -> Found:
    return [Issue((), "no value", type_name(value))]


class Compiler:
    """Compiles one schema; each reference is compiled once, when a value first reaches it."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._targets: dict[str, Check] = {}

    def check(self, schema: Json) -> Check:
        """The check of a schema. What is no schema accepts everything."""
        if schema is False:
            return _nothing
        if not isinstance(schema, Mapping):
            return anything
        kind = _type_check(schema.get("type"))
        others = [check for compile_one in _GROUPS if (check := compile_one(self, schema)) is not None]
        if kind is None:
            return _all(others)
        return _typed(kind, _all(others)) if others else kind

    def reference(self, schema: Mapping[str, Json]) -> Check | None:
        """``$ref``, followed only when a value gets there, so that recursive schemas end."""
        pointer = schema.get("$ref")
        target = resolved(pointer, self._root)
        if not isinstance(pointer, str) or target is None or self._circles(pointer):
            return None

        def check(value: Json) -> Found:
            found = self._targets.get(pointer)
            if found is None:
                found = self._targets[pointer] = self.check(target)
            return found(value)

        return check

    def _circles(self, pointer: str) -> bool:
        seen = {pointer}
        target = resolved(pointer, self._root)
        while isinstance(target, Mapping) and isinstance(following := target.get("$ref"), str):
            if following in seen:
                return True
            seen.add(following)
            target = resolved(following, self._root)
        return False

    def choices(self, schema: Mapping[str, Json]) -> Check | None:
        """``enum`` and ``const``; True is not 1, but 1.0 is."""
        if isinstance(schema.get("enum"), list):
            choices = schema["enum"]
        elif "const" in schema:
            choices = [schema["const"]]
        else:
            return None
        allowed = {_comparable(choice) for choice in choices}
        expected = choices_text(choices)

        def check(value: Json) -> Found:
            return None if _comparable(value) in allowed else [Issue((), expected, type_name(value))]

        return check

    def alternatives(self, schema: Mapping[str, Json]) -> Check | None:
        """``anyOf``, ``oneOf`` and ``allOf``."""
        checks = []
        for word, combine in (("anyOf", _any_of), ("oneOf", _one_of), ("allOf", _all)):
            if isinstance(options := schema.get(word), list) and options:
                checks.append(combine([self.check(option) for option in options]))
        if not checks:
            return None
        found, options = _all(checks), schema.get("anyOf")
        # Where all that is asked is "this or null", null is told at once and not as a failure of the first option.
        nullable = len(checks) == 1 and isinstance(options, list) and {"type": "null"} in options
        return (lambda value: None if value is None else found(value)) if nullable else found

    def text(self, schema: Mapping[str, Json]) -> Check | None:
        """``minLength``, ``maxLength``, ``pattern`` and ``format``."""
        rules: list[tuple[Callable[[Any], bool], str]] = _sizes(schema, "Length", "character")
        if (pattern := _pattern(schema.get("pattern"))) is not None:
            rules.append((lambda text: pattern.search(text) is not None, f"text matching {pattern.pattern}"))
        if isinstance(name := schema.get("format"), str) and name in FORMATS:
            rules.append((FORMATS[name], format_text(name)))
        return _ruled(str, rules)

    def number(self, schema: Mapping[str, Json]) -> Check | None:
        """``minimum``, ``maximum``, their exclusive forms, and ``multipleOf``."""
        rules: list[tuple[Callable[[Any], bool], str]] = []
        if (low := _number(schema.get("minimum"))) is not None:
            rules.append((lambda value: value >= low, f"at least {low}"))
        if (above := _number(schema.get("exclusiveMinimum"))) is not None:
            rules.append((lambda value: value > above, f"more than {above}"))
        if (high := _number(schema.get("maximum"))) is not None:
            rules.append((lambda value: value <= high, f"at most {high}"))
        if (below := _number(schema.get("exclusiveMaximum"))) is not None:
            rules.append((lambda value: value < below, f"less than {below}"))
        if (step := _number(schema.get("multipleOf"))) is not None and step > 0:
            rules.append((lambda value: _divides(step, value), f"a multiple of {step}"))
        return _ruled((int, float), rules)

    def array(self, schema: Mapping[str, Json]) -> Check | None:
        """``prefixItems``, ``items``, ``minItems`` and ``maxItems``."""
        sizes = _ruled((list, tuple), _sizes(schema, "Items", "item"))
        first = schema.get("prefixItems")
        heads = [self.check(head) for head in first] if isinstance(first, list) else []
        rest = self.check(schema.get("items"))
        if rest is anything and not heads:
            return sizes

        def check(value: Json) -> Found:
            if not isinstance(value, (list, tuple)):
                return None
            issues: list[Issue] = []
            for index, item in enumerate(value):
                if found := (heads[index] if index < len(heads) else rest)(item):
                    issues += [issue.below(str(index)) for issue in found]
                    if len(issues) > MOST_ISSUES:
                        break
            return issues

        return check if sizes is None else _all([sizes, check])

    def object(self, schema: Mapping[str, Json]) -> Check | None:
        """``properties``, ``required`` and the keywords about other names."""
        given = schema.get("properties")
        properties = given if isinstance(given, Mapping) else {}
        known = {name: self.check(inner) for name, inner in properties.items()}
        more = schema.get("additionalProperties")
        extra = _closed if more is False else self.check(more)
        ruled = self._ruled_names(schema, known, extra)
        listed = schema.get("required")
        required = tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()
        sizes = _ruled((Mapping,), _sizes(schema, "Properties", "property"))
        if not known and not required and extra is anything and ruled is None:
            return sizes

        def check(value: Json) -> Found:
            if value.__class__ is not dict and not isinstance(value, Mapping):
                return None
            issues = [
                Issue((name,), expectation(properties.get(name), self._root), "nothing")
                for name in required
                if name not in value
            ]
            for name, item in value.items():
                if found := known.get(name, extra)(item) if ruled is None else ruled(name, item):
                    issues += [issue.below(str(name)) for issue in found]
                    if len(issues) > MOST_ISSUES:
                        break
            return issues

        return check if sizes is None else _all([sizes, check])

    def _ruled_names(
        self, schema: Mapping[str, Json], known: Mapping[str, Check], extra: Check
    ) -> Callable[[str, Json], Found] | None:
        """``patternProperties`` and ``propertyNames``, which hold for ``properties`` too; None where neither is."""
        given = schema.get("patternProperties")
        patterns = [
            (pattern, self.check(inner))
            for text, inner in (given.items() if isinstance(given, Mapping) else ())
            if (pattern := _pattern(text)) is not None
        ]
        names = self.check(schema.get("propertyNames"))
        if not patterns and names is anything:
            return None

        def check(name: str, item: Json) -> Found:
            if wrong := names(name):
                return [Issue((), f"a name that is {issue.expected}", "another name") for issue in wrong]
            matching = [inner for pattern, inner in patterns if pattern.search(str(name))]
            if name in known:
                matching.insert(0, known[name])
            return _all(matching or [extra])(item)

        return check


_GROUPS: Sequence[Callable[[Compiler, Mapping[str, Json]], Check | None]] = (
    Compiler.reference,
    Compiler.choices,
    Compiler.text,
    Compiler.number,
    Compiler.array,
    Compiler.object,
    Compiler.alternatives,
)


def _closed(value: Json) -> Found:
    return [Issue((), "no such property", type_name(value))]


def _type_check(kinds: Json) -> Check | None:
    names = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
    if not names or not _EXACT.keys() >= set(names):
        return None
    exact = frozenset().union(*(_EXACT[name] for name in names))
    expected = either(names)
    whole, mapping = "integer" in names, "object" in names

    def check(value: Json) -> Found:
        if value.__class__ in exact:
            return None
        if whole and isinstance(value, float) and value.is_integer():
            return None
        if mapping and isinstance(value, Mapping):
            return None
        return [Issue((), expected, type_name(value))]

    return check


def _typed(kind: Check, others: Check) -> Check:
    return lambda value: kind(value) or others(value)


def _all(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    if not checks:
        return anything

    def check(value: Json) -> Found:
        issues: list[Issue] = []
        for one in checks:
            if found := one(value):
                issues += found
        return issues

    return check


def _any_of(options: Sequence[Check]) -> Check:
    def check(value: Json) -> Found:
        failures = []
        for option in options:
            found = option(value)
            if not found:
                return None
            failures.append(found)
        return _nearest(failures, value)

    return check


def _one_of(options: Sequence[Check]) -> Check:
    def check(value: Json) -> Found:
        results = [option(value) for option in options]
        fitting = sum(not found for found in results)
        if fitting == 1:
            return None
        if fitting > 1:
            return [Issue((), "what fits exactly one of the alternatives", type_name(value))]
        return _nearest([found for found in results if found], value)

    return check


def _nearest(failures: Sequence[Sequence[Issue]], value: Json) -> Found:
    """The alternative that was meant is the one whose own type fits; without one, all of them are named."""
    inside = [found for found in failures if all(issue.path for issue in found)]
    if inside:
        return min(inside, key=len)
    return [Issue((), either(i.expected for found in failures for i in found if not i.path), type_name(value))]


def _ruled(kinds: Any, rules: Sequence[tuple[Callable[[Any], bool], str]]) -> Check | None:
    if not rules:
        return None

    def check(value: Json) -> Found:
        if not isinstance(value, kinds) or value.__class__ is bool:
            return None
        for fits, _ in rules:
            if not fits(value):
                return [Issue((), expected, type_name(value)) for fits, expected in rules if not fits(value)]
        return None

    return check


def _sizes(schema: Mapping[str, Json], suffix: str, what: str) -> list[tuple[Callable[[Any], bool], str]]:
    rules: list[tuple[Callable[[Any], bool], str]] = []
    if (least := _number(schema.get(f"min{suffix}"))) is not None:
        rules.append((lambda value: len(value) >= least, f"at least {_count(least, what)}"))
    if (most := _number(schema.get(f"max{suffix}"))) is not None:
        rules.append((lambda value: len(value) <= most, f"at most {_count(most, what)}"))
    return rules


def _count(number: float, what: str) -> str:
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else many}"


def _number(value: Json) -> int | float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _divides(step: float, value: float) -> bool:
    if isinstance(step, int) and isinstance(value, int):
        return value % step == 0
    try:
        return bool(_exact(value) % _exact(step) == 0)
    except ValueError:  # infinite
        return False


def _exact(number: float) -> Any:
    from fractions import Fraction

    # 0.3 is three times 0.1 as they are written, though not as they are stored.
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _pattern(text: Json) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if isinstance(text, str) else None
    except re.error:
        return None


def _comparable(value: Json) -> Json:
    if value.__class__ is str or value is None:
        return value
    if isinstance(value, Mapping):
        return frozenset((name, _comparable(item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_comparable(item) for item in value)
    if isinstance(value, bool):
        return (_BOOLEAN, value)
    return value if isinstance(value, (str, int, float)) else _NO_JSON


_BOOLEAN = object()  # True equals 1 in Python, but not in JSON
_NO_JSON = object()  # a host's own object, which may have no hash
