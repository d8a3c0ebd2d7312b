"""What a Do step hands its action: checked against the action's parameters when the agent is built."""

import pytest

from onrecord.flows.flow import Flow
from onrecord.flows.steps import Do
from onrecord.flows.validate import Registries, validate_flow
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool
from tests.flows.declared import KNOWN, done, refusal, spec

pytestmark = pytest.mark.unit


def with_args(**args: Json) -> dict[str, Json]:
    """A flow that calls the action `notify`."""
    return spec({"id": "a", "do": "notify", "with": args})


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, 'action "notify" needs parameter "text"'),
        ({"text": "x", "txt": "y"}, 'action "notify" has no parameter "txt"'),
        ({"text": 3}, "with.text must be a string, got integer"),
        ({"text": "x", "count": "3"}, "with.count must be a number, got string"),
        ({"text": "x", "count": "{{input.n}}"}, "with.count must be a number, got string"),
        ({"text": "x", "count": True}, "with.count must be a number, got boolean"),
        ({"text": "x", "to": "board"}, 'with.to must be one of "sales", "help"'),
        ({"text": "x", "to": 3}, "with.to must be a string, got integer"),
        ({"text": "x", "tags": "new"}, "with.tags must be an array, got string"),
        ({"text": "x", "tags": ["new", "odd"]}, 'with.tags.1 must be one of "new", "old"'),
        ({"text": "{{data.name}}", "tags": ["odd"]}, 'with.tags.0 must be one of "new", "old"'),
        ({"text": "x", "tags": [3, "{{data.name}}"]}, "with.tags.0 must be a string, got integer"),
    ],
)  # fmt: skip
def test_what_an_action_does_not_take_is_refused(args: dict[str, Json], told: str) -> None:
    """Q6: missing, unknown, of a wrong type, or off the list; a template is a text, so it is no number."""
    assert told in refusal(with_args(**args))[0]


@pytest.mark.parametrize(
    "args",
    [
        {"text": "x", "to": "{{input.m}}"},
        {"text": "{{data.name}}", "to": "help", "count": 1.5, "tags": ["old", "{{input.tag}}"]},
        {"text": "x", "tags": []},
    ],
)
def test_a_template_may_become_any_choice(args: dict[str, Json]) -> None:
    """Q6: what it will be is known when the step is reached."""
    assert validate_flow(with_args(**args), KNOWN) == ()


def test_any_schema_of_an_action_is_checked() -> None:
    """Alternatives, limits, constants, references into itself; one that is open takes more."""
    node: Json = {"type": "object", "properties": {"next": {"$ref": "#/properties/node"}, "id": {"const": "n"}}}
    odd = Tool(
        "odd",
        done,
        parameters={
            "type": "object",
            "properties": {
                "at": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
                "code": {"type": "string", "pattern": "^A", "maxLength": 3},
                "kind": {"enum": ["x", 1]},
                "node": node,
            },
            "additionalProperties": {"type": "boolean"},
        },
    )
    known = Registries(actions={"odd": odd})

    def given(args: Json) -> Json:
        return spec({"id": "a", "do": "odd", "with": args})

    deep = {"next": {"next": {"id": "{{input.id}}"}}}
    assert validate_flow(given({"at": 2, "code": "A{{input.x}}", "kind": "{{data.k}}", "node": deep}), known) == ()
    assert validate_flow(given({"more": True}), known) == ()
    assert "with.more must be a boolean" in refusal(given({"more": 1}), known)[0]
    assert "with.at must be at least 1" in refusal(given({"at": 0}), known)[0]
    assert "with.code must be text matching ^A" in refusal(given({"code": "B"}), known)[0]
    assert 'with.kind must be one of "x", 1' in refusal(given({"kind": 2}), known)[0]
    assert (
        "with.node.next.next.id must be a string"
        in refusal(given({"node": {"next": {"next": {"id": 3, "x": "{{y}}"}}}}), known)[0]
    )
    assert 'with.node.next.id must be "n"' in refusal(given({"node": {"next": {"id": "m"}}}), known)[0]


def test_an_action_is_given_json() -> None:
    """A value of the host's own would not survive a pause."""
    flow = Flow("f", steps=[Do("notify", args={"text": object()})])
    assert "with holds what JSON cannot keep" in refusal(flow)[0]
