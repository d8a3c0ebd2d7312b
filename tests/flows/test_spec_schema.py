"""flow_spec_schema: a model that is given it can only write flows that are read and valid."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.flow_json import from_spec
from onrecord.flows.spec_schema import flow_spec_schema
from onrecord.flows.validate import Registries, validate_flow
from onrecord.jsonio import Json, dumps
from onrecord.tools.declare import tool
from onrecord.tools.tool import Tool
from tests.flows.declared import CLOSE, EVERYTHING, FIELDS, KNOWN, done

pytestmark = pytest.mark.unit

SCHEMA = flow_spec_schema(KNOWN)


def kinds(schema: Json) -> list[str]:
    """The kinds of the steps it offers."""
    return [step["properties"]["kind"]["enum"][0] for step in schema["properties"]["steps"]["items"]["anyOf"]]


def triggers(schema: Json) -> list[str]:
    """The kinds of the triggers it offers."""
    on = schema["properties"]["on"]
    return [next(iter(trigger["properties"])) for trigger in on["items"]["anyOf"]]


def parts(schema: Json) -> Iterator[dict[str, Any]]:
    """Every schema in a schema."""
    if isinstance(schema, dict):
        yield schema
        for word, inner in schema.items():
            named = word in ("properties", "$defs")
            for one in inner.values() if named else [inner]:
                yield from parts(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from parts(one)


# ---- what is offered -------------------------------------------------------------------------------------------------


def test_each_action_has_a_step_of_its_own() -> None:
    """Q19: with its own parameters; an action without parameters has no ``with``."""
    assert kinds(SCHEMA) == ["prompt", "collect", "say", "do", "do", "wait", "wait_event", "if"]
    assert triggers(SCHEMA) == ["message", "mention", "silence", "event"]
    notify, close = [s for s in SCHEMA["properties"]["steps"]["items"]["anyOf"] if "do" in s["properties"]]
    assert notify["properties"]["do"] == {"type": "string", "enum": ["notify"]}
    assert notify["description"] == "Tells a person."
    assert close["properties"]["do"]["enum"] == ["close"]
    assert "with" not in close["properties"]
    assert notify["properties"]["with"]["properties"]["text"] == {"type": "string", "description": "What to tell"}
    assert notify["properties"]["with"]["properties"]["to"]["anyOf"][1] == {"type": "null"}


def test_what_could_name_nothing_is_left_out() -> None:
    """Q19: no do without actions, no wait_event and no event without events, no collect without fields."""
    bare = flow_spec_schema(Registries(flows=frozenset()))
    assert kinds(bare) == ["prompt", "say", "wait", "if"]
    assert triggers(bare) == ["message", "mention", "silence"]
    assert not {"collect", "clear_on_start"} & bare["properties"].keys()
    assert bare["$defs"]["gate"]["properties"].keys() == {"silenced"}
    assert bare["$defs"]["next"] == {"type": "string", "description": 'The id of a step of this flow, or "end"'}
    assert kinds(flow_spec_schema(Registries(fields=FIELDS, actions={"close": CLOSE}))) == [
        "prompt", "collect", "say", "do", "wait", "if",
    ]  # fmt: skip


def test_what_only_people_write_is_left_out() -> None:
    """Q19: tools, wording per field, editors' data, what a mention extracts, and when-branches of a wait."""
    names = {name for part in parts(SCHEMA) for name in part.get("properties", ())}
    assert not names & {"ui", "tools", "ask", "extract", "input"}
    (wait,) = [
        s for s in SCHEMA["properties"]["steps"]["items"]["anyOf"] if s["properties"]["kind"]["enum"] == ["wait"]
    ]
    assert wait["properties"]["branches"]["items"]["properties"].keys() == {"only_if", "then"}
    for step in SCHEMA["properties"]["steps"]["items"]["anyOf"]:
        assert "instructions" not in step["properties"]


def test_names_are_choices() -> None:
    """Fields, events, conditions and flows, each where it may stand."""
    assert SCHEMA["$defs"]["field"] == {"type": "string", "enum": list(FIELDS)}
    gate = SCHEMA["$defs"]["gate"]["properties"]
    assert gate.keys() == {"equals", "known", "silenced", "vip"}
    assert gate["vip"] == {
        "anyOf": [
            {"type": "string"}, {"type": "number"}, {"type": "boolean"},
            {"type": "array", "items": {"type": "string"}}, {"type": "null"},
        ]
    }  # fmt: skip
    assert gate["equals"]["properties"]["budget"] == {"type": ["number", "null"]}
    assert gate["equals"]["properties"]["size"] == {
        "anyOf": [{"type": "string", "enum": ["1-10", "11-50"]}, {"type": "null"}]
    }
    chains = [way for way in SCHEMA["$defs"]["next"]["anyOf"] if "flow" in way.get("properties", ())]
    assert chains[0]["properties"]["flow"]["enum"] == ["f", "other"]
    unknown = flow_spec_schema(Registries())
    assert unknown["$defs"]["next"]["anyOf"][1]["properties"]["flow"] == {"type": "string"}


# ---- what vendors can take -------------------------------------------------------------------------------------------


@tool
def place(order: dict[str, int], items: list[tuple[str, int]], note: str | None = None) -> None:
    """An action with a map and an optional text."""


TREE: Json = {
    "type": "object",
    "properties": {
        "node": {
            "type": "object",
            "properties": {
                "children": {"type": "array", "items": {"$ref": "#/properties/node"}},
                "kind": {"const": 1},
                "more": {"type": "object", "additionalProperties": {"$ref": "#/$defs/leaf"}},
            },
            "required": ["children"],
        },
        "leaf": {"$ref": "#/$defs/leaf", "default": 1},
        "open": {"type": "object", "additionalProperties": True},
        "either": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/leaf"}]},
    },
    "required": ["either"],
    "$defs": {"leaf": {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/leaf"}}}},
}


@pytest.mark.parametrize(
    "known", [KNOWN, Registries(), Registries(actions={"tree": Tool("tree", done, parameters=TREE)})]
)
def test_every_object_is_closed_and_requires_everything(known: Registries) -> None:
    """Q19: the strict form that vendors ask for, with anyOf for alternatives and no defaults."""
    schema = flow_spec_schema(known)
    for part in parts(schema):
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        assert not part.keys() & {"oneOf", "default"}
    jsonschema_rs.meta.validate(schema)


def test_references_of_an_action_lead_to_its_own_definitions() -> None:
    """Also those into the parameters themselves, and two actions with definitions of one name."""
    other = {
        "type": "object",
        "properties": {"leaf": {"$ref": "#/definitions/leaf"}},
        "definitions": {"leaf": {"type": "integer"}},
    }
    actions = {"tree": Tool("tree", done, parameters=TREE), "other": Tool("other", done, parameters=other)}
    check = jsonschema_rs.validator_for(flow_spec_schema(Registries(actions=actions)))

    def flow(action: str, **args: Json) -> Json:
        step = {"id": "a", "kind": "do", "label": None, "do": action, "with": args, "on_fail": None, "then": None}
        return {
            "id": "f", "name": "F", "description": None, "on": None, "anchor": None, "while": None, "steps": [step],
            "on_end": None, "instructions": None,
        }  # fmt: skip

    node: Json = {"children": [{"children": [], "kind": 1, "more": None}], "kind": None, "more": {"x": {"leaf": None}}}
    assert check.is_valid(flow("tree", open=None, node=node, leaf={"leaf": {"leaf": None}}, either="x"))
    assert not check.is_valid(
        flow("tree", open=None, node={"children": [5], "kind": None, "more": None}, leaf=None, either="x")
    )
    assert not check.is_valid(flow("tree", open=None, node=None, leaf={"leaf": 5}, either="x"))
    wrong: Json = {"children": [], "kind": None, "more": {"x": 5}}
    assert not check.is_valid(flow("tree", open=None, node=wrong, leaf=None, either="x"))
    assert check.is_valid(flow("other", leaf=5))
    assert not check.is_valid(flow("other", leaf={"leaf": None}))


def test_parameters_that_are_a_map_stay_one() -> None:
    """What an action's author left open cannot be closed; everything around it is."""
    schema = flow_spec_schema(Registries(actions={"place": place}))
    (step,) = [s for s in schema["properties"]["steps"]["items"]["anyOf"] if "do" in s["properties"]]
    given_with = step["properties"]["with"]
    assert given_with["required"] == ["order", "items", "note"]
    assert given_with["properties"]["order"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert "default" not in given_with["properties"]["note"]


# ---- what is written is read -----------------------------------------------------------------------------------------


def test_a_flow_of_everything_that_is_offered_fits() -> None:
    """Completed with nulls; what only people write is left out first."""
    by_people = ("tools", "instructions", "ask", "ui")
    everything: dict[str, Any] = {name: value for name, value in EVERYTHING.items() if name != "tools"}
    everything["steps"] = [{n: v for n, v in step.items() if n not in by_people} for step in everything["steps"]]
    everything["steps"][0]["branches"] = [{"when": "wants a person", "then": {"flow": "other"}}]
    everything["steps"][4]["branches"] = [{"only_if": {"vip": True}, "then": "end"}]
    everything["on"] = [
        everything["on"][0],
        {"mention": ["names a rival"], "only_if": {"vip": "gold"}},
        *everything["on"][3:],
    ]
    flow = completed(everything, SCHEMA, SCHEMA)
    jsonschema_rs.validate(SCHEMA, flow)
    assert validate_flow(flow, KNOWN) == ()
    assert from_spec(flow) == from_spec(everything)


def options(schema: Json, root: Json) -> Iterator[dict[str, Any]]:
    """The alternatives of a schema, without references."""
    if "$ref" in schema:
        yield from options(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from options(one, root)
    else:
        yield schema


def completed(value: Json, schema: Json, root: Json) -> Json:
    """The value with a null for every property it does not have."""
    allowed = list(options(schema, root))
    if isinstance(value, list):
        items = next(one["items"] for one in allowed if "items" in one)
        return [completed(item, items, root) for item in value]
    if not isinstance(value, dict):
        return value
    fitting = [one["properties"] for one in allowed if value.keys() <= one.get("properties", {}).keys()]
    names = next(one for one in fitting if "kind" not in value or one["kind"].get("enum") in ([value["kind"]], None))
    return {name: completed(value[name], names[name], root) if name in value else None for name in names}


def drawn(draw: st.DrawFn, schema: Json, root: Json) -> Json:
    """A value that a schema allows, as a careful model would fill it in."""
    if "$ref" in schema:
        return drawn(draw, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        return drawn(draw, draw(st.sampled_from(schema["anyOf"])), root)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"] if isinstance(schema["type"], str) else draw(st.sampled_from(schema["type"]))
    if kind == "object":
        return {name: drawn(draw, inner, root) for name, inner in schema["properties"].items()}
    if kind == "array":
        return [drawn(draw, schema["items"], root) for _ in range(draw(st.integers(1, 2)))]
    if kind == "string":
        about = schema.get("description", "")
        if "A number and one unit" in about:
            return draw(st.sampled_from(["30s", "1.5d"]))
        return "end" if "a step of this flow" in about else draw(st.sampled_from(["a", "b c", "{{data.name}}"]))
    return {"boolean": True, "integer": 1, "number": 1.5, "null": None}[kind]


@st.composite
def written(draw: st.DrawFn) -> Json:
    """A flow as a model writes it: what the schema allows, with ids that are its own."""
    flow = drawn(draw, SCHEMA, SCHEMA)
    return {**flow, "steps": [{**step, "id": f"s{number}"} for number, step in enumerate(flow["steps"])]}


@given(written())
def test_what_a_model_writes_by_the_schema_is_valid(flow: Json) -> None:
    """Q19: every name is one that exists, so only its own ids and targets are the model's to get right."""
    jsonschema_rs.validate(SCHEMA, flow)
    validate_flow(flow, KNOWN)
    assert len(dumps(SCHEMA)) < 15_000
