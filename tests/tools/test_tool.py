"""Tool: what a declaration must have, and what its flags mean for a call."""

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.errors import ToolInvalid
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool

pytestmark = pytest.mark.unit


def nothing(*_: object) -> None:
    """The handler of every tool here."""


def test_a_tool_needs_only_an_id_and_a_handler() -> None:
    """Everything else has the default of the seed: no parameters, no limit, never beside others."""
    bare = Tool("ping", nothing)
    assert bare.parameters == {"type": "object", "properties": {}}
    assert (bare.description, bare.max_result_size_chars, bare.check_arguments) == ("", None, False)
    assert not bare.is_safe({})
    assert not bare.is_read_only({})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"id": ""}, "a tool needs an id"),
        ({"id": 3}, "a tool needs an id"),
        ({"handler": "x"}, "tool 'pay': the handler is not callable"),
        ({"parameters": []}, "tool 'pay': parameters must be a JSON Schema object"),
        ({"parameters": {"city": {"type": "string"}}}, "tool 'pay': parameters must be a JSON Schema object with"),
        ({"parameters": {"type": "object", "properties": []}}, "tool 'pay': the \"properties\" of parameters"),
        ({"max_result_size_chars": 0}, "tool 'pay': max_result_size_chars must be positive, got 0"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    """When it is made, by name: most providers accept a malformed one and simply never call it."""
    with pytest.raises(ToolInvalid) as refused:
        Tool(**{"id": "pay", "handler": nothing, **settings})
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("flags", "safe"),
    [
        ({}, False),
        ({"read_only": True}, True),
        ({"read_only": True, "concurrency_safe": False}, False),
        ({"concurrency_safe": True}, True),
        ({"concurrency_safe": True, "destructive": True}, False),
        ({"read_only": lambda args: args["dry"]}, True),
        ({"read_only": True, "destructive": lambda args: args["dry"]}, False),
    ],
)
def test_which_calls_may_run_beside_others(flags: dict[str, Any], *, safe: bool) -> None:
    """Never a destructive one; else concurrency_safe decides, and read_only where it says nothing."""
    assert Tool("pay", nothing, **flags).is_safe({"dry": True}) is safe


def test_a_flag_may_depend_on_the_arguments() -> None:
    """A dry run only reads."""

    def dry(args: Mapping[str, Json]) -> bool:
        return bool(args.get("dry"))

    pay = Tool("pay", nothing, read_only=dry)
    assert pay.is_read_only({"dry": True})
    assert not pay.is_read_only({})


def test_a_trait_may_refuse_the_tool_it_stands_on() -> None:
    """Every trait is asked when the tool is made."""

    class Never:
        def check(self, tool: Tool, /) -> None:
            raise ToolInvalid(f"not on {tool.id!r}")

        def arms(self) -> object | None:
            return None

    with pytest.raises(ToolInvalid, match="not on 'pay'"):
        Tool("pay", nothing, traits=(Never(),))
