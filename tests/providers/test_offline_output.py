"""Typed output of the stand-in: filled from the message, valid against its schema."""

from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord import Agent
from onrecord.jsonio import Json
from onrecord.providers.offline.filling import filled
from onrecord.providers.offline.scene import Line

pytestmark = pytest.mark.unit

S = {"type": "string"}


def fill(schema: dict[str, Any], *texts: str, spoken: str = "") -> Json:
    """The value for a schema after a person said these texts."""
    return filled(schema, [Line(who="person", text=text) for text in texts], name="value", spoken=spoken)


CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
    "required": ["kind", "lives"],
}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}, "name": S}, "required": ["kind", "name"]}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    """A list of at least one of these."""
    return {"type": "array", "minItems": 1, "items": items}


FILLED: list[tuple[dict[str, Any], str, Any]] = [
    ({"type": "integer"}, "for 3 nights", 3),
    ({"type": "boolean"}, "hm", False),
    ({"type": ["null", "string"]}, "hm", None),
    ({"enum": ["low", "high"]}, "a high one", "high"),
    (
        {"type": "object", "properties": {"city": S, "nights": {"type": "integer"}}, "required": ["city", "nights"]},
        "two nights in Oslo",
        {"city": "Oslo", "nights": 2},
    ),
    (
        {"type": "object", "properties": {"stay": {"type": "object", "properties": {"city": S}, "required": ["city"]}},
         "required": ["stay"]},
        "a night in Oslo",
        {"stay": {"city": "Oslo"}},
    ),
    ({"anyOf": [CAT, DOG]}, "a dog, please", {"kind": "dog", "name": ""}),
    ({"anyOf": [CAT, DOG]}, "a cat with 9 lives", {"kind": "cat", "lives": 9}),
    ({"type": "object", "properties": {"title": S}, "required": ["title"]}, "It broke. Hurry.", {"title": "It broke."}),
    ({"type": "object", "properties": {"n": {"type": "integer", "default": 4}}, "required": ["n"]}, "hm", {"n": 4}),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, "hm", [0, 1]),
    ({"type": "object", "properties": {"pin": {"type": "string", "pattern": "^[0-9]{4}$"}}, "required": ["pin"]}, "hm",
     {"pin": "0000"}),
    ({"type": "object", "minProperties": 2, "properties": {"a b": S}, "additionalProperties": S}, "hm",
     {"a b": "", "key2": ""}),
    ({"type": "array", "prefixItems": [S, {"type": "boolean"}], "minItems": 2}, "hm", ["", False]),
    ({"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": True}, "hm", ["x", "y"]),
    ({"type": "array", "items": {"type": ["string", "null"]}, "minItems": 1}, "hm", [None]),
    ({"type": "array", "items": S, "minItems": 2, "uniqueItems": True}, "hm", ["", "1"]),
    ({"type": "array", "prefixItems": [S], "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, "hm",
     ["", 0, 1]),
    ({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True}, "hm", [False, True]),
    ({"type": "object", "properties": {"key2": S}, "required": ["key2"], "minProperties": 2}, "hm",
     {"key2": "", "key3": None}),
    ({"type": "integer", "maximum": -5}, "hm", -5),
    ({"type": "integer", "exclusiveMaximum": -5}, "hm", -6),
    ({"type": "integer", "exclusiveMinimum": 3}, "hm", 4),
    (listed(listed(listed(listed({"type": "integer"})))), "hm", [[[[0]]]]),
    ({"type": "number", "minimum": 2.5}, "hm", 2.5),
    ({}, "hm", None),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "expected"), FILLED)
def test_filled_from_the_message(schema: dict[str, Any], text: str, expected: Any) -> None:
    """Found by type and pattern, null where allowed, a default, or the least that fits."""
    value = fill(schema, text)
    assert value == expected
    assert jsonschema_rs.is_valid(schema, value)


def test_fields_for_people_hold_what_is_said() -> None:
    """The words of the reply, not the person's."""
    schema = {
        "type": "object",
        "properties": {"answer": S, "sure": {"type": "boolean"}},
        "required": ["answer", "sure"],
    }
    assert fill(schema, "When?", spoken="At seven.") == {"answer": "At seven.", "sure": False}


async def test_typed_output_of_an_agent() -> None:
    """Through the door, with results of a tool as a source."""

    @dataclass
    class Stay:
        city: str
        nights: int
        note: str | None = None

    agent: Agent[object, Stay] = Agent("offline", output=Stay)
    result = await agent.turn("Two nights in Oslo")
    assert result.output == Stay("Oslo", 2)


names = st.sampled_from(["city", "name", "nights", "code", "message", "title", "when", "é", "a b", "0"])
bounds = st.integers(-20, 20)


def numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Number schemas that some number meets."""

    def made(low: int, span: int, keys: tuple[bool, bool]) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": kind}
        return schema | ({"minimum": low} if keys[0] else {}) | ({"maximum": low + span} if keys[1] else {})

    return st.builds(made, bounds, st.integers(0, 9), st.tuples(st.booleans(), st.booleans()))


def strings(low: int, span: int, form: str | None) -> dict[str, Any]:
    """String schemas with a length or a format."""
    return {"type": "string", "format": form} if form else {"type": "string", "minLength": low, "maxLength": low + span}


leaves = st.one_of(
    numbers("integer"),
    numbers("number"),
    st.builds(lambda low: {"type": "integer", "exclusiveMinimum": low, "multipleOf": 3}, bounds),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + 1}, bounds),
    st.builds(
        strings, st.integers(0, 5), st.integers(0, 5), st.sampled_from([None, "date", "email", "uuid", "date-time"])
    ),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"const": "fixed"}),
    st.builds(lambda values: {"enum": values}, st.lists(st.text(max_size=4), min_size=1, max_size=3)),
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects, lists and alternatives of schemas."""

    def an_object(properties: dict[str, Any], optional: int, closed: bool) -> dict[str, Any]:
        required = sorted(properties)[optional:]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": not closed}

    return st.one_of(
        st.builds(an_object, st.dictionaries(names, inner, max_size=4), st.integers(0, 3), st.booleans()),
        st.builds(lambda items, low: {"type": "array", "items": items, "minItems": low}, inner, st.integers(0, 2)),
        st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner),
        st.builds(lambda one: {"anyOf": [one, {"type": "null"}]}, inner),
    )


texts = st.text(max_size=30) | st.sampled_from(
    ["Two nights in Oslo for Ana Costa", "code AB-12, fixed", "2026-05-03", "ana@e.test", "-7", "yes", '"x"', "1e9"]
)


def test_a_text_fits_only_the_alternative_whose_format_it_has() -> None:
    """A number written as text is no address, though another alternative is a number."""
    schema = {
        "type": "object",
        "properties": {"title": {"anyOf": [{"type": "integer"}, {"type": "string", "format": "email"}]}},
        "required": ["title"],
    }
    assert isinstance(fill(schema, "0")["title"], int)
    assert jsonschema_rs.is_valid(schema, fill(schema, "ana@e.test"), validate_formats=True)


def test_so_does_one_among_alternatives_of_alternatives() -> None:
    """Also where the number that was said is no answer to the other question, and so is left for this one."""
    title = {"anyOf": [{"type": "integer"}, {"type": "string", "format": "email"}]}
    for held in (title, {"anyOf": [title, {"type": "null"}]}, {"oneOf": [{"anyOf": [title, {"type": "null"}]}]}):
        city = {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 3}
        schema = {"type": "object", "properties": {"city": city, "title": held}, "required": ["city", "title"]}
        assert jsonschema_rs.is_valid(schema, fill(schema, "0"), validate_formats=True), held


@settings(max_examples=150, deadline=None)
@given(st.recursive(leaves, nested, max_leaves=8), st.lists(texts, max_size=3), texts)
def test_always_valid_against_its_schema(schema: dict[str, Any], said: list[str], spoken: str) -> None:
    """Whatever was said; an independent validator is the judge. And the same again."""
    value = fill(schema, *said, spoken=spoken)
    assert jsonschema_rs.is_valid(schema, value, validate_formats=True)
    assert fill(schema, *said, spoken=spoken) == value
