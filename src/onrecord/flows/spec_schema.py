"""flow_spec_schema: what a model that writes flows is given, so that what it writes can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from onrecord.flows.field_specs import FieldSpec
from onrecord.flows.flow import OnEnd
from onrecord.flows.instructions import InstructionKind
from onrecord.flows.validate import Registries, check_registries
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool

__all__ = ("flow_spec_schema",)

Schema = dict[str, Json]

_OF_SCHEMAS = (
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
)

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_DURATION: Schema = {"type": "string", "description": 'A number and one unit: "30s", "5m", "24h" or "1.5d"'}
_TEMPLATE: Schema = {"type": "string", "description": "May hold {{data.x}}, {{context.x}} and {{input.x}}"}
_STEP_ID: Schema = {"type": "string", "description": 'The id of a step of this flow, or "end"'}
_PHRASES: Schema = {
    "type": "array",
    "items": {"type": "string"},
    "description": "What the customer may mean; one that begins with ! says what does not count. Empty: anything",
}


def flow_spec_schema(registries: Registries) -> Schema:
    """The JSON Schema of a flow that names only what these registries have.

    Every object is closed and every property required; what is optional may be null, which `from_spec` takes as not
    set. Kinds of steps and triggers that could name nothing are left out, and so is what only people write: ``ui``,
    ``tools``, ``ask``, instructions of steps, ``extract`` of mentions, the ``input`` of a chain, ``when`` of a wait.
    """
    check_registries(registries)
    made = _Schemas(registries)
    slugs = _maybe(_list(made.slug)) if registries.fields else None
    flow = _closed({
        "id": _told(_TEXT, "Short, unique and lasting: it is part of every key"),
        "name": _told(_TEXT, "Read by the model that chooses between flows"),
        "description": _maybe(_TEMPLATE),
        "on": _maybe(_list(_any(made.triggers()))),
        "anchor": _maybe(_told(_TEXT, "What it runs once for; session when null")),
        "while": _maybe(made.gate),
        "collect": slugs,
        "clear_on_start": slugs,
        "steps": _list(_any(made.steps())),
        "on_end": _maybe(_one_of(get_args(OnEnd))),
        "instructions": _maybe(_list(made.instruction)),
    })  # fmt: skip
    return {**flow, "$defs": made.definitions}


class _Schemas:
    """The parts of the schema for one set of registries; what is used in several places is defined once."""

    def __init__(self, registries: Registries) -> None:
        self.known = registries
        self.definitions: dict[str, Json] = {}
        if registries.fields:
            self.definitions["field"] = _one_of(registries.fields)
        self.slug = _ref("field")
        self.definitions["gate"] = self._gate()
        self.gate = _ref("gate")
        self.definitions["next"] = self._next()
        self.next = _maybe(_ref("next"))
        self.instruction = _closed({
            "prompt": _TEMPLATE, "kind": _maybe(_one_of(get_args(InstructionKind))), "when": _maybe(_list(_TEXT)),
            "only_if": _maybe(self.gate),
        })  # fmt: skip

    def triggers(self) -> Iterator[Schema]:
        also = {"repeat": _maybe(_any([_one_of(("once", "always")), _closed({"cooldown": _DURATION})])),
                "only_if": _maybe(self.gate)}  # fmt: skip
        yield _closed({"message": _PHRASES, **also})
        yield _closed({"mention": _PHRASES, **also})
        yield _closed({"silence": _DURATION, "business_hours": _maybe(_FLAG), **also})
        if self.known.events:
            event = {"event": _one_of(self.known.events), "after": _maybe(_DURATION)}
            yield _closed({**event, "business_hours": _maybe(_FLAG), **also})

    def steps(self) -> Iterator[Schema]:
        gated = _closed({"only_if": self.gate, "then": _ref("next")})
        exits = _maybe(_list(_any([_closed({"when": _TEXT, "then": _ref("next")}), gated])))
        yield self._step("prompt", {"prompt": _TEMPLATE, "branches": exits})
        if self.known.fields:
            yield self._step("collect", {
                "prompt": _maybe(_TEMPLATE), "collect": _list(self.slug), "question": _maybe(_TEMPLATE),
                "max_asks": _maybe({"type": "integer", "description": "At least 1; 3 when null"}), "branches": exits,
            })  # fmt: skip
        yield self._step("say", {
            "say": _TEMPLATE, "media": _maybe(_TEXT), "once": _maybe(_FLAG),
            "after_ms": _maybe({"type": "integer", "description": "Milliseconds to wait before it, at least 0"}),
        })  # fmt: skip
        for number, action in enumerate(self.known.actions.values()):
            yield self._do(action, f"with_{number}")
        yield self._step("wait", {
            "wait": _DURATION, "business_hours": _maybe(_FLAG), "else": self.next, "branches": _maybe(_list(gated)),
        })  # fmt: skip
        if self.known.events:
            wait = _closed({"event": _one_of(self.known.events), "up_to": _maybe(_DURATION)})
            yield self._step("wait_event", {"wait": wait, "else": self.next})
        yield self._step("if", {"if": self.gate, "else": self.next})

    def _step(self, kind: str, body: Mapping[str, Schema], about: str = "") -> Schema:
        made = _closed({
            "id": _told(_TEXT, "Unique in the flow; never end"), "kind": _one_of([kind]), "label": _maybe(_TEXT),
            **body, "then": self.next,
        })  # fmt: skip
        return _told(made, about) if about else made

    def _do(self, action: Tool, name: str) -> Schema:
        body: dict[str, Schema] = {"do": _one_of([action.id])}
        if action.parameters.get("properties"):
            body["with"] = _Parameters(action.parameters, name, self.definitions).whole()
        return self._step("do", {**body, "on_fail": self.next}, action.description)

    def _gate(self) -> Schema:
        loose = _any([_TEXT, {"type": "number"}, _FLAG, _list(_TEXT)])
        entries = dict[str, Schema | None]()
        if self.known.fields:
            entries["equals"] = _maybe(
                _closed({slug: _maybe(_valued(spec)) for slug, spec in self.known.fields.items()})
            )
            entries["known"] = _maybe(_list(self.slug))
        entries["silenced"] = _maybe(_FLAG)
        return _closed(entries | {name: _maybe(loose) for name in self.known.conditions})

    def _next(self) -> Schema:
        ways = [_STEP_ID]
        if self.known.fields:
            ways.append(_closed({"step": _STEP_ID, "clear": _maybe(_list(self.slug))}))
        if self.known.flows is None:
            ways.append(_closed({"flow": _TEXT}))
        elif self.known.flows:
            ways.append(_closed({"flow": _one_of(sorted(self.known.flows))}))
        return _any(ways)


class _Parameters:
    """The parameters of an action as part of this schema: closed, with all required, and what is optional nullable."""

    def __init__(self, schema: Mapping[str, Json], name: str, definitions: dict[str, Json]) -> None:
        self.schema, self.name, self.definitions = schema, name, definitions

    def whole(self) -> Schema:
        defined = self.schema.get("$defs")
        for name, inner in (defined if isinstance(defined, Mapping) else {}).items():
            self.definitions[f"{self.name}_{name}"] = self._part(inner)
        made: Schema = self._part(self.schema)
        return made

    def _part(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._part(item) for item in schema]
        if not isinstance(schema, Mapping):
            return {"not": {}} if schema is False else {}  # true, and whatever is no schema, lets anything through
        made: Schema = {}
        for word, value in schema.items():
            if word == "$ref" and isinstance(value, str):
                made[word] = self._pointer(value)
            elif word in _OF_SCHEMAS:
                made["anyOf" if word == "oneOf" else word] = self._part(value)
            elif word in ("definitions", "patternProperties") and isinstance(value, Mapping):
                made[word] = {name: self._part(inner) for name, inner in value.items()}
            elif word not in ("$defs", "default", "properties", "required"):
                made[word] = value
        if isinstance(properties := schema.get("properties"), Mapping):
            required = schema.get("required") or ()
            parts = {name: self._part(inner) for name, inner in properties.items()}
            made |= _closed({name: part if name in required else _maybe(part) for name, part in parts.items()})
        return made

    def _pointer(self, pointer: str) -> str:
        if pointer.startswith("#/$defs/"):
            return f"#/$defs/{self.name}_{pointer.removeprefix('#/$defs/')}"
        # Into the parameters themselves, or elsewhere in them: they are defined as a whole, once.
        if self.name not in self.definitions:
            self.definitions[self.name] = {}
            self.definitions[self.name] = self._part(self.schema)
        return f"#/$defs/{self.name}{pointer.removeprefix('#')}"


def _valued(spec: FieldSpec) -> Schema:
    made: Schema = {"type": spec.type}
    return {**made, "enum": list(spec.enum)} if spec.enum else made


def _closed(properties: Mapping[str, Schema | None]) -> Schema:
    kept = {name: schema for name, schema in properties.items() if schema is not None}
    return {"type": "object", "properties": kept, "required": list(kept), "additionalProperties": False}


def _maybe(schema: Schema) -> Schema:
    kind = schema.get("type")
    if isinstance(kind, str) and not schema.keys() & {"enum", "const"}:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [*(schema["anyOf"] if _is_choice(schema) else [schema]), {"type": "null"}]}


def _is_choice(schema: Schema) -> bool:
    return schema.keys() == {"anyOf"} and isinstance(schema["anyOf"], list)


def _any(options: Iterable[Schema]) -> Schema:
    listed = list(options)
    return listed[0] if len(listed) == 1 else {"anyOf": listed}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(names: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(names)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _told(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text}
