"""Parameters of a JSON Schema, as the stand-in sees them: name, kind, what to ask for, which values fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from onrecord.jsonio import Json
from onrecord.providers.offline.candidates import PATTERNS
from onrecord.providers.offline.overlap import CAMEL, fold, roots
from onrecord.tools.problems import compiled

__all__ = ("Parameter", "branches", "parameters_of", "resolved", "single")

# Words of a parameter's name that say what its text looks like, in the three languages the stand-in knows.
HINTS: Mapping[str, frozenset[str]] = {
    "email": frozenset("email mail correo".split()),
    "uri": frozenset("url uri link website".split()),
    "uuid": frozenset({"uuid"}),
    "phone": frozenset("phone telephone mobile telefone telefono celular whatsapp".split()),
    "date": frozenset("date day data fecha checkin checkout arrival birthday".split()),
    "time": frozenset("time hour hora horario".split()),
    "code": frozenset(
        "code id ref reference booking reservation order ticket number sku token tracking codigo".split()
    ),
    "place": frozenset(
        """city town place location country destination origin from to source target region district cidade ciudad
        lugar destino origem origen pais airport station where""".split()
    ),
    "person": frozenset("name guest who person customer client passenger traveler user nome nombre hospede".split()),
    "text": frozenset(
        """query question text message topic subject q search prompt sentence phrase note content body title keyword
        keywords term terms answer reply response summary comment description reason mensagem mensaje
        pergunta""".split()
    ),
}
SPELLED = frozenset({"email", "uri", "url", "uuid"})
"""Formats that checks leave alone, as JSON Schema does, and the stand-in does not: nothing else reads these values."""
FORMATS = {"email": "email", "uri": "uri", "url": "uri", "uuid": "uuid", "date": "date", "date-time": "date-time",
           "time": "time", "phone": "phone"}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One named value that a schema asks for.

    ``outer`` is its schema behind references, ``schema`` the one alternative of it that is not null.
    """

    name: str
    schema: Mapping[str, Json]
    required: bool
    about: str
    fits: Callable[[Json], bool]
    whole: Mapping[str, Json]
    outer: Mapping[str, Json]

    @cached_property
    def kind(self) -> str:
        """choice, boolean, number, array, object, what a string looks like (``any`` if unknown), or none of these."""
        schema = self.schema
        if "const" in schema or isinstance(schema.get("enum"), list):
            return "choice"
        kind = schema.get("type")
        if kind in {"integer", "number"}:
            return "number"
        if kind in {"boolean", "array", "object"}:
            return str(kind)
        if kind not in {None, "string"}:
            return "none"
        form = FORMATS.get(str(schema.get("format", "")))
        if form is not None:
            return form
        return self._hinted(self.name) or self._hinted(self.about) or "any"

    @cached_property
    def choices(self) -> tuple[Json, ...]:
        """The values of an enumeration."""
        if "const" in self.schema:
            return (self.schema["const"],)
        held = self.schema.get("enum")
        return tuple(held) if isinstance(held, list) else ()

    @cached_property
    def roots(self) -> frozenset[str]:
        """The roots of its name and description."""
        return frozenset(roots(f"{self.name} {self.about}"))

    @cached_property
    def name_roots(self) -> frozenset[str]:
        """The roots of its name alone."""
        return frozenset(roots(self.name)) or frozenset({fold(self.name)})

    def _hinted(self, text: str) -> str:
        spelled = [fold(word) for word in re.findall(r"[^\W_]+", CAMEL.sub(" ", text))]
        for word in reversed(spelled) if text == self.name else spelled:
            for kind, hints in HINTS.items():
                if word in hints:
                    return kind
        return ""


def parameters_of(schema: Mapping[str, Json], whole: Mapping[str, Json] | None = None) -> tuple[Parameter, ...]:
    """The properties of an object schema, required ones first, each in the order of the schema."""
    whole = schema if whole is None else whole
    schema = single(schema, whole)
    properties = schema.get("properties")
    needed = schema.get("required")
    if not isinstance(properties, Mapping):
        return ()
    required = set(needed) if isinstance(needed, list) else set()
    held = [parameter(name, inner, name in required, whole) for name, inner in properties.items()]
    return tuple(sorted(held, key=lambda one: not one.required))


def parameter(name: str, schema: Json, required: bool, whole: Mapping[str, Json]) -> Parameter:  # noqa: FBT001 - it stands last in a call of three
    """One parameter from its schema; ``whole`` is where references point."""
    outer = resolved(schema, whole)
    inner = single(outer, whole)
    about = str(outer.get("description") or inner.get("description") or outer.get("title") or "")
    check = compiled(outer, whole)
    options = [(compiled(one, whole), _spelling(single(one, whole))) for one in branches(outer, whole)]

    def fits(value: Json) -> bool:
        if check(value):
            return False
        if not isinstance(value, str):
            return True
        return any(not wrong(value) and (spelled is None or spelled.fullmatch(value)) for wrong, spelled in options)

    return Parameter(name, inner, required, about, fits, whole, outer)


def _spelling(schema: Mapping[str, Json]) -> re.Pattern[str] | None:
    """How a text of this schema's format is spelled, where that is known."""
    form = schema.get("format")
    return PATTERNS.get(FORMATS.get(str(form), "")) if form in SPELLED else None


def resolved(schema: Json, whole: Mapping[str, Json]) -> Mapping[str, Json]:
    """A schema behind its reference (``#/$defs/City``); an empty one where it leads nowhere."""
    for _ in range(16):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: Json = whole
        for step in reference.removeprefix("#").strip("/").split("/") if reference.strip("#/") else ():
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside} if isinstance(target, Mapping) else beside
    return {}


def branches(schema: Mapping[str, Json], whole: Mapping[str, Json], depth: int = 4) -> tuple[Mapping[str, Json], ...]:
    """The alternatives of ``anyOf``, ``oneOf`` or a list of types; one, itself, for any other schema.

    Alternatives inside of them are among them, down to this depth: a schema may refer to itself.
    """
    for key in ("anyOf", "oneOf"):
        held = schema.get(key)
        if isinstance(held, Sequence) and not isinstance(held, str) and held:
            rest = {name: value for name, value in schema.items() if name != key}
            found: list[Mapping[str, Json]] = [{**rest, **resolved(one, whole)} for one in held]
            if depth:
                found = [inner for one in found for inner in branches(one, whole, depth - 1)]
            return tuple(found)
    kinds = schema.get("type")
    if isinstance(kinds, list) and kinds:
        return tuple({**schema, "type": kind} for kind in kinds)
    return (schema,)


def single(schema: Json, whole: Mapping[str, Json]) -> Mapping[str, Json]:
    """A schema as one alternative: the first that is not null, with what ``allOf`` adds."""
    held = resolved(schema, whole)
    for _ in range(8):
        options = branches(held, whole)
        if len(options) == 1 and options[0] is held:
            break
        held = next((one for one in options if one.get("type") != "null"), options[0])
    parts = held.get("allOf")
    if isinstance(parts, list) and parts:
        merged: dict[str, Json] = {key: value for key, value in held.items() if key != "allOf"}
        for part in parts:
            _merge(merged, resolved(part, whole))
        return merged
    return held


def _merge(into: dict[str, Json], more: Mapping[str, Json]) -> None:
    for key, value in more.items():
        if key == "properties" and isinstance(value, Mapping):
            into[key] = {**into.get(key, {}), **value}
        elif key == "required" and isinstance(value, list):
            into[key] = [*into.get(key, []), *value]
        else:
            into.setdefault(key, value)
