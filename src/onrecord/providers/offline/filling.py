"""Typed output by type and pattern: what the conversation gives, null where allowed, else the least that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onrecord.jsonio import Json
from onrecord.providers.offline.least import least
from onrecord.providers.offline.overlap import fold, roots, sentences
from onrecord.providers.offline.parameters import Parameter, branches, parameters_of, resolved, single
from onrecord.providers.offline.scene import Line
from onrecord.providers.offline.values import Hearing, find_values
from onrecord.tools.problems import compiled

__all__ = ("filled",)

SPOKEN = frozenset("message answer reply response speech".split())
"""Fields that hold what people read."""
QUOTED = frozenset("summary title subject topic request text content description question query".split())
"""Fields that may quote the person's first sentence."""
DEEPEST = 6


def filled(schema: Mapping[str, Json], lines: Sequence[Line], *, name: str, spoken: str) -> Json:
    """A value for a JSON Schema from the newest line back; ``spoken`` is what a field for people's eyes says.

    Valid against the schema wherever a value can be made at all: a ``pattern`` that no found or plain text meets
    cannot be invented.
    """
    value = _Filler(schema, lines, spoken).value(schema, name, 0)
    check = compiled(schema)
    if not check(value):
        return value
    plain = least(schema, schema)
    return value if check(plain) else plain


class _Filler:
    """One schema on its way to a value."""

    def __init__(self, whole: Mapping[str, Json], lines: Sequence[Line], spoken: str) -> None:
        self.whole, self.lines, self.spoken = whole, lines, spoken
        self.latest = next((line.text for line in reversed(lines) if line.who == "person"), "")

    def value(self, schema: Json, name: str, depth: int) -> Json:
        held = resolved(schema, self.whole)
        options = [one for one in branches(held, self.whole) if one.get("type") != "null"]
        objects = [one for one in (single(o, self.whole) for o in options) if _is_object(one)]
        if objects:
            made = [self._object(one, depth) for one in objects]
            best = max(range(len(made)), key=lambda i: (self._named(objects[i]), made[i][1], -i))
            value, count = made[best]
            nothing = count == 0 and not compiled(held, self.whole)(None)
            return None if nothing and depth else value
        (one,) = parameters_of({"properties": {name: held}, "required": [name]}, self.whole)
        return self._one(one, find_values([one], self.lines, Hearing()), depth)

    def _object(self, schema: Mapping[str, Json], depth: int) -> tuple[dict[str, Json], int]:
        """The object, and how many of its values came from the conversation."""
        parameters = parameters_of(schema, self.whole)
        found = find_values([one for one in parameters if one.kind != "object"], self.lines, Hearing())
        made: dict[str, Json] = {}
        for one in parameters:
            told = one.name in found or (self.spoken and fold(one.name) in SPOKEN)
            if not one.required and not told and (depth >= DEEPEST or one.kind != "object"):
                continue
            made[one.name] = self._one(one, found, depth)
        order = {name: place for place, name in enumerate(schema.get("properties", {}))}
        return {name: made[name] for name in sorted(made, key=lambda key: order[key])}, len(found)

    def _one(self, one: Parameter, found: Mapping[str, Json], depth: int) -> Json:
        spelled = fold(one.name)
        if spelled in SPOKEN and self.spoken and one.fits(self.spoken):
            return self.spoken
        if one.name in found:
            return found[one.name]
        if one.kind == "object" and depth < DEEPEST:
            value = self.value(one.outer, one.name, depth + 1)
            return value if one.fits(value) else least(one.outer, self.whole)
        if "default" in one.outer and one.fits(one.outer["default"]):
            return one.outer["default"]
        if spelled in QUOTED and self.latest:
            first = next(iter(sentences(self.latest)), self.latest)
            if one.fits(first):
                return first
        return None if one.fits(None) else least(one.outer, self.whole)

    def _named(self, schema: Mapping[str, Json]) -> int:
        """How many of an alternative's fixed values, or of the words of its title, the latest message has."""
        said = set(roots(self.latest))
        fixed = [one for one in parameters_of(schema, self.whole) if len(one.choices) == 1]
        texts = [str(choice) for one in fixed for choice in one.choices] + [str(schema.get("title", ""))]
        return sum(bool(set(roots(text)) & said) for text in texts)


def _is_object(schema: Mapping[str, Json]) -> bool:
    return schema.get("type") == "object" or isinstance(schema.get("properties"), Mapping)
