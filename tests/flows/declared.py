"""What the tests of declarations name: fields, actions, events and conditions, and small flows over them."""

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.errors import FlowInvalid
from onrecord.flows.fields import Field, fields_of
from onrecord.flows.flow import Event
from onrecord.flows.predicates import PredContext
from onrecord.flows.validate import Registries, validate_flow
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool

FIELDS = fields_of(
    {
        "name": Field(ask="Ask the name."),
        "company": Field(ask="Ask the company."),
        "model": Field(),
        "budget": Field(type="number", ask="Ask."),
        "size": Field(enum=("1-10", "11-50"), ask="Ask."),
        "ok": Field(type="boolean", ask="Ask."),
    }
)


def vip(ctx: PredContext, argument: object) -> bool:
    """A condition of the host."""
    return bool(argument == ctx.context)


def done(args: Mapping[str, Json], ctx: object) -> None:
    """An action that does nothing."""


NOTIFY = Tool(
    "notify",
    done,
    "Tells a person.",
    parameters={
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to tell"},
            "to": {"type": "string", "enum": ["sales", "help"]},
            "count": {"type": "number"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        },
        "required": ["text"],
        "$defs": {"tag": {"type": "string", "enum": ["new", "old"]}},
    },
)
CLOSE = Tool("close", done)

KNOWN = Registries(
    fields=FIELDS,
    actions={"notify": NOTIFY, "close": CLOSE},
    events={"ping": Event(), "booked": Event(direction="inbound")},
    conditions={"vip": vip},
    tools=frozenset({"price", "book"}),
    flows=frozenset({"f", "other"}),
)


def spec(*steps: Json, **told: Any) -> dict[str, Json]:
    """A flow as JSON."""
    return {"id": "f", "name": "F", "steps": list(steps), **told}


PROMPT = {"id": "a", "kind": "prompt", "prompt": "Ask how to help."}

EVERYTHING = {
    "id": "f",
    "name": "F",
    "description": "About {{data.name}}",
    "on": [
        {"message": ["asks price", "!only thanks"], "repeat": "always"},
        {"message": []},
        {"mention": ["names a rival"], "extract": {"quote": {"type": "string"}}, "only_if": "vip"},
        {"silence": "24h", "business_hours": True, "repeat": {"cooldown": "7d"}},
        {"event": "ping", "after": "1h", "business_hours": True, "only_if": {"vip": "gold"}},
    ],
    "anchor": "lead",
    "while": {"silenced": False},
    "collect": ["name"],
    "clear_on_start": ["ok"],
    "steps": [
        {
            "id": "a", "kind": "prompt", "prompt": "Greet.", "tools": [],
            "instructions": [
                {"prompt": "Be brief.", "kind": "must", "when": ["asks", "!thanks"]},
                {"id": "i2", "prompt": "No prices.", "kind": "never", "when": "asks", "only_if": {"known": ["name"]}},
            ],
            "branches": [
                {"when": "wants a person", "then": {"flow": "other", "input": {"a": [1]}}},
                {"only_if": {"equals": {"size": "1-10"}}, "then": "end"},
            ],
        },
        {
            "id": "b", "kind": "collect", "label": "Who", "collect": ["name", "ok"], "prompt": "Find out.",
            "ask": {"name": "Your name?"}, "question": "Who are you?", "max_asks": 2, "tools": ["price"],
            "branches": [{"when": "does not want to", "then": "c"}], "ui": {"x": 1, "y": [2]},
        },
        {
            "id": "c", "kind": "say", "say": "Hi {{data.name}}", "media": "logo", "once": True, "after_ms": 5,
            "then": {"step": "b", "clear": ["ok"]},
        },
        {
            "id": "d", "kind": "do", "do": "notify", "with": {"text": "{{data.name}}", "tags": ["new"]},
            "on_fail": "end", "then": "w",
        },
        {
            "id": "w", "kind": "wait", "wait": "2d", "business_hours": True, "else": "e",
            "branches": [{"only_if": "vip", "then": "end"}],
        },
        {"id": "e", "kind": "wait_event", "wait": {"event": "booked", "up_to": "3d"}, "else": "i"},
        {"id": "e2", "kind": "wait_event", "wait": {"event": "ping"}},
        {
            "id": "i", "kind": "if", "if": {"equals": {"ok": True}}, "then": {"step": "a", "clear": ["ok"]},
            "else": "end",
        },
    ],
    "on_end": "stay",
    "instructions": [{"prompt": "Say you."}],
    "tools": ["book"],
}  # fmt: skip
"""A flow with every kind of step and trigger, and no value that is a default."""


def refusal(flow: Any, known: Registries = KNOWN) -> tuple[str, str]:
    """What is said against a flow, and the hint."""
    with pytest.raises(FlowInvalid) as caught:
        validate_flow(flow, known)
    return str(caught.value), caught.value.hint
