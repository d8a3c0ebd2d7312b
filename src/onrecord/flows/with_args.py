"""What a Do step hands its action: checked against the action's parameters before any run gets there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from onrecord.flows.field_specs import TYPES
from onrecord.flows.invalid import invalid, nearest, quoted
from onrecord.flows.template import compile_template, render_deep
from onrecord.jsonio import Json, is_json
from onrecord.tools.issues import Issue, expectation, type_name
from onrecord.tools.problems import compiled
from onrecord.tools.tool import Tool

__all__ = ("check_args", "filled_args")

_OF_TEXT = ("const", "enum", "format", "maxLength", "minLength", "pattern")
_RELAXED = "relaxed"
_NAMED_SCHEMAS = ("$defs", "definitions", "patternProperties", "properties")


def check_args(action: Tool, args: Mapping[str, Json], where: str) -> None:
    """Raises FlowInvalid for a parameter that is missing, that the action does not have, or that has a wrong value.

    Nothing is converted, so a text is no number. What a template becomes is not known, so it may become any choice; one
    that is a placeholder and nothing else may stand for a parameter of any type.
    """
    schema = action.parameters
    properties = schema.get("properties") or {}
    told = f"action {quoted(action.id)}"
    if not is_json(args):
        raise invalid(where, "with holds what JSON cannot keep", "actions take texts, numbers, lists and objects")
    for name in args:
        if name not in properties and not schema.get("additionalProperties") and not schema.get("patternProperties"):
            raise invalid(where, f"{told} has no parameter {quoted(name)}", nearest(name, properties))
    for name in schema.get("required") or ():
        if name not in args:
            expected = expectation(properties.get(name), schema)
            raise invalid(where, f"{told} needs parameter {quoted(name)}", f"it is {_counted(expected)}")
    if issue := _first_issue(schema, dict(args)):
        raise invalid(where, f"{'.'.join(('with', *issue.path))} must be {_counted(issue.expected)}{_given(issue)}")


def _first_issue(schema: Mapping[str, Json], args: dict[str, Json]) -> Issue | None:
    properties = schema.get("properties") or {}
    whole = [name for name, value in args.items() if _keeps_type(properties.get(name), value)]
    if whole:
        args = {name: value for name, value in args.items() if name not in whole}
        schema = {**schema, "required": [name for name in schema.get("required") or () if name not in whole]}
    templated = {name for name, value in args.items() if _has_template(value)}
    if templated:
        relaxed = _relaxed(schema)
        chosen = {name: (relaxed if name in templated else schema)["properties"][name] for name in properties}
        schema = {**schema, "properties": chosen, _RELAXED: relaxed}
    found = compiled(schema)(args)
    return found[0] if found else None


def filled_args(
    action: Tool, args: Mapping[str, Json], data: Mapping[str, Json], context: object, input: Json
) -> dict[str, Json]:
    """The arguments with their templates filled in: texts as texts, but a parameter of another type gets the value."""
    properties = action.parameters.get("properties") or {}
    filled: dict[str, Json] = {}
    for name, value in args.items():
        if _keeps_type(properties.get(name), value):
            found = compile_template(value).value(data, context, input)
            filled[name] = found if is_json(found) else render_deep(value, data, context, input)
        else:
            filled[name] = render_deep(value, data, context, input)
    return filled


def _keeps_type(parameter: Any, value: Json) -> TypeGuard[str]:
    """Whether an argument is one placeholder for a parameter that is declared to be no text."""
    if not (isinstance(value, str) and "{{" in value and isinstance(parameter, Mapping)):
        return False
    named = parameter.get("type")
    types = [named] if isinstance(named, str) else named
    return isinstance(types, list) and "string" not in types and compile_template(value).is_whole


def _has_template(value: Json) -> bool:
    if isinstance(value, str):
        return "{{" in value
    if isinstance(value, Mapping):
        return any(_has_template(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_has_template(item) for item in value)


def _relaxed(schema: Any) -> Any:
    """The schema without what it says about the wording of texts; its references lead to relaxed schemas too."""
    if isinstance(schema, list):
        return [_relaxed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Json] = {}
    for word, value in schema.items():
        if word in _NAMED_SCHEMAS and isinstance(value, Mapping):
            made[word] = {name: _relaxed(inner) for name, inner in value.items()}
        elif word == "$ref" and isinstance(value, str):
            made[word] = f"#/{_RELAXED}{value[1:]}"
        elif word not in _OF_TEXT:
            made[word] = _relaxed(value)
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list) and "type" not in made:
        made["type"] = list(dict.fromkeys(type_name(choice) for choice in choices))
    return made


def _counted(expected: str) -> str:
    if expected in ("array", "object", *TYPES):
        return f"{'an' if expected[0] in 'aio' else 'a'} {expected}"
    return expected


def _given(issue: Issue) -> str:
    return f", got {issue.got}" if issue.got else ""
