"""What the check of arguments accepts and what it says; jsonschema-rs decides where the two could differ."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.jsonio import Json
from onrecord.tools.problems import argument_problems, compiled

pytestmark = pytest.mark.unit

BOOKING = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "nights": {"type": "integer", "minimum": 1},
        "room": {"enum": ["single", "double"]},
        "guests": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["city", "nights"],
    "additionalProperties": False,
}


def told(schema: Json, value: Json) -> str:
    """The problems of one value under the name ``x``."""
    return argument_problems({"type": "object", "properties": {"x": schema}})({"x": value})


def test_arguments_that_fit_have_no_problems() -> None:
    """An empty text means that the handler may run."""
    problems = argument_problems(BOOKING)
    assert not problems({"city": "Curitiba", "nights": 2})
    assert not problems({"city": "Curitiba", "nights": 2.0, "guests": [{"name": "Ana"}], "note": None})


def test_all_problems_are_named_by_path_and_type_and_never_by_value() -> None:
    """The model can mend everything in one go, and a secret in an argument goes nowhere."""
    told = argument_problems(BOOKING)(
        {"city": 7, "room": "hunter2", "guests": [{"name": "Ana"}, {"name": 31337}], "note": [], "pw": "hunter2"}
    )
    assert told == (
        "nights: expected integer, got nothing; "
        "city: expected string, got integer; "
        'room: expected one of "single", "double", got string; '
        "guests.1.name: expected string, got integer; "
        "note: expected string or null, got array; "
        "pw: expected no such property, got string"
    )


def test_at_most_ten_problems_are_named() -> None:
    """A thousand wrong items do not become a thousand sentences."""
    schema = {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "integer"}}}}
    told = argument_problems(schema)({"ids": ["x"] * 1000})
    assert told.count("expected integer, got string") == 10
    assert told.endswith("; and more")
    wide = argument_problems({"type": "object", "additionalProperties": False})({str(n): n for n in range(1000)})
    assert wide.count("no such property") == 10


def test_a_long_name_is_cut() -> None:
    """The name of a property is the model's own text, and could be of any length."""
    told = argument_problems({"type": "object", "additionalProperties": False})({"n" * 500: 1})
    assert told == f"{'n' * 60}: expected no such property, got integer"


def test_arguments_that_are_no_object_are_named_as_a_whole() -> None:
    """The root has no path."""
    problems: Any = argument_problems(BOOKING)
    assert problems([]) == "arguments: expected object, got array"


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "boolean"}, 1, "expected boolean, got integer"),
        ({"type": "integer"}, True, "expected integer, got boolean"),
        ({"type": "integer"}, 1.5, "expected integer, got number"),
        ({"type": ["string", "null"]}, 1, "expected string or null, got integer"),
        ({"const": 1}, True, "expected 1, got boolean"),
        ({"enum": [True]}, [1, 1], "expected true, got array"),
        ({"enum": [{"a": [1]}]}, {"a": [2]}, 'expected {"a":[1]}, got object'),
        ({"enum": list(range(20))}, "x", "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ..., got string"),
        ({"minLength": 2}, "é", "expected at least 2 characters, got string"),
        ({"maxLength": 1}, "éé", "expected at most 1 character, got string"),
        ({"pattern": "^a"}, "ba", "expected text matching ^a, got string"),
        ({"format": "date"}, "2026-02-30", "expected date (like 2026-01-31), got string"),
        ({"format": "date-time"}, "tomorrow", "expected date-time (like 2026-01-31T09:30:00Z), got string"),
        ({"format": "uuid"}, "1-2", "expected uuid (like 123e4567-e89b-12d3-a456-426614174000), got string"),
        ({"format": "time"}, "25:00", "expected time (like 09:30:00), got string"),
        ({"format": "duration"}, "P1Y", "expected duration (like P1DT2H30M), got string"),
        ({"minimum": 1}, 0, "expected at least 1, got integer"),
        ({"maximum": 1}, 2, "expected at most 1, got integer"),
        ({"exclusiveMinimum": 0}, 0.0, "expected more than 0, got number"),
        ({"exclusiveMaximum": 0}, 0, "expected less than 0, got integer"),
        ({"multipleOf": 5}, 7, "expected a multiple of 5, got integer"),
        ({"multipleOf": 0.1}, 0.25, "expected a multiple of 0.1, got number"),
        ({"minItems": 2}, [1], "expected at least 2 items, got array"),
        ({"maxItems": 0}, [1], "expected at most 0 items, got array"),
        ({"minProperties": 2}, {}, "expected at least 2 properties, got object"),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, "expected at most 1 property, got object"),
        ({"anyOf": [{"const": "a"}, {"type": "integer"}]}, "b", 'expected "a" or integer, got string'),
        (
            {"oneOf": [{"minimum": 1}, {"maximum": 5}]},
            3,
            "expected what fits exactly one of the alternatives, got integer",
        ),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, 3, "expected string or null, got integer"),
        ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, 1, "expected at least 2, got integer"),
        (False, 1, "expected no value, got integer"),
        ({"type": "array", "items": False}, [1], None),
        ({"type": "array", "minItems": 1, "items": {"type": "null"}}, [], "expected at least 1 item, got array"),
    ],
)  # fmt: skip
def test_each_keyword_says_what_it_wants(schema: Json, value: Json, problem: str | None) -> None:
    """One sentence per keyword, with the schema's own numbers and choices."""
    assert told(schema, value) == (f"x: {problem}" if problem else "x.0: expected no value, got integer")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string", "format": "date"}, "date (like 2026-01-31)"),
        ({"type": "string", "format": "email"}, "string (email)"),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"oneOf": [{"const": 1}, {"$ref": "#/$defs/Pet"}]}, "1 or object"),
        ({"$ref": "#/$defs/Nobody"}, "a value"),
        ({"$ref": "#/$defs/Loop"}, "a value"),
        ({"$ref": "elsewhere.json"}, "a value"),
        ({}, "a value"),
        ({"enum": ["a", "b"]}, 'one of "a", "b"'),
        ({"type": ["string", "null"]}, "string or null"),
    ],
)
def test_a_missing_argument_is_described_by_its_schema(schema: Json, problem: str) -> None:
    """What is not there has no type, so the sentence says what should have come."""
    root = {
        "properties": {"x": schema},
        "required": ["x"],
        "$defs": {"Pet": {"type": "object"}, "Loop": {"$ref": "#/$defs/Loop"}},
    }
    assert argument_problems(root)({}) == f"x: expected {problem}, got nothing"


def test_of_several_alternatives_the_one_that_was_meant_is_explained() -> None:
    """An object that nearly fits one of them is told what it lacks there, not that it is no number."""
    circle = {"type": "object", "properties": {"radius": {"type": "number"}}, "required": ["radius"]}
    line = {
        "type": "object",
        "properties": {"from": {"type": "number"}, "to": {"type": "number"}},
        "required": ["from", "to"],
    }
    schema = {"anyOf": [circle, line, {"type": "null"}]}
    assert told(schema, {"to": 3}) in {
        "x.radius: expected number, got nothing",
        "x.from: expected number, got nothing",
    }
    assert told(schema, 5) == "x: expected object or null, got integer"
    assert told({"anyOf": [line, circle]}, {}) == "x.radius: expected number, got nothing"
    assert told({"oneOf": [line, circle]}, {}) == "x.radius: expected number, got nothing"


def test_null_may_be_allowed_by_one_keyword_and_refused_by_another() -> None:
    """The short way for what is nullable is taken where nothing else is asked."""
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert not told(nullable, None)
    assert told({**nullable, "allOf": [{"type": "string"}]}, None) == "x: expected string, got null"


def test_a_recursive_schema_is_followed_as_deep_as_the_value() -> None:
    """References into $defs, also with escaped names, are checked like anything else."""
    tree = {
        "type": "object",
        "properties": {"leaf": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/a~1tree"}}},
        "additionalProperties": False,
    }
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/a~1tree"}}, "$defs": {"a/tree": tree}}
    problems = argument_problems(schema)
    assert not problems({"root": {"kids": [{"leaf": 1}, {"kids": [{"leaf": 2}]}]}})
    assert problems({"root": {"kids": [{"kids": [{"leaf": "x"}]}]}}) == (
        "root.kids.0.kids.0.leaf: expected integer, got string"
    )


def test_names_in_a_reference_are_escaped_once() -> None:
    """``~01`` is the name ``~1`` and not a slash."""
    schema = {"properties": {"x": {"$ref": "#/$defs/~01"}}, "$defs": {"~1": {"type": "integer"}, "/": {}}}
    assert argument_problems(schema)({"x": "a"}) == "x: expected integer, got string"


def test_what_is_nested_too_deeply_is_a_problem_and_no_crash() -> None:
    """A value as deep as a decoder lets through cannot take the turn down."""
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    schema = {"properties": {"x": {"$ref": "#/$defs/L"}}, "$defs": {"L": {"items": {"$ref": "#/$defs/L"}}}}
    assert argument_problems(schema)({"x": deep}) == (
        "arguments: expected a value that is nested less deeply, got object"
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"type": ["thing"]},
        {"enum": "abc"},
        {"properties": []},
        {"required": "x"},
        {"required": [1]},
        {"pattern": "("},
        {"pattern": 1},
        {"format": "unheard-of"},
        {"format": 3},
        {"minimum": "1", "maximum": None, "multipleOf": 0, "exclusiveMinimum": True},
        {"items": "x", "prefixItems": {}},
        {"anyOf": [], "oneOf": {}, "allOf": None},
        {"$ref": 3},
        {"$ref": "#/$defs/Loop", "$defs": {"Loop": {"$ref": "#/$defs/Round"}, "Round": {"$ref": "#/$defs/Loop"}}},
        {"patternProperties": {"(": {"type": "string"}}},
        {"additionalProperties": "no", "propertyNames": 3},
        {"$ref": "https://example.org/schema"},
        {"not": {}},
        {"anyOf": 3, "oneOf": [{}]},
    ],
)
def test_keywords_that_make_no_sense_are_not_checked(schema: Json) -> None:
    """A foreign server's odd schema leaves its tool callable."""
    problems = argument_problems(schema)
    for value in ({}, {"x": 1}, {"x": ["a", None]}):
        assert not problems(value)


def test_names_may_be_governed_by_patterns() -> None:
    """A name that matches a pattern is no extra, and names themselves may have a schema."""
    schema = {
        "properties": {"id": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }
    problems = argument_problems(schema)
    assert not problems({"id": 1, "x-note": "n"})
    assert problems({"x-note": 1, "y": 1}) == (
        "x-note: expected string, got integer; y: expected no such property, got integer"
    )
    short = argument_problems({"propertyNames": {"maxLength": 2}})
    assert short({"abc": 1}) == "abc: expected a name that is at most 2 characters, got another name"


def test_patterns_and_the_schema_of_names_hold_for_known_names_too() -> None:
    """Being listed under ``properties`` exempts a name from nothing."""
    schema = {
        "properties": {"x-a": {"type": "string"}, "x-long": {}},
        "patternProperties": {"^x-": {"maxLength": 2}},
        "propertyNames": {"maxLength": 3},
    }
    problems = argument_problems(schema)
    assert not problems({"x-a": "ab"})
    assert problems({"x-a": 1}) == "x-a: expected string, got integer"
    assert problems({"x-a": "abc", "x-long": 1}) == (
        "x-a: expected at most 2 characters, got string; "
        "x-long: expected a name that is at most 3 characters, got another name"
    )


def test_a_reference_by_anchor_is_not_followed() -> None:
    """``#Node`` is a name and no path: taken for the whole schema, it would refuse what a foreign server accepts."""
    node = {"$anchor": "Node", "type": "string"}
    problems = argument_problems({"type": "object", "properties": {"x": {"$ref": "#Node"}}, "$defs": {"N": node}})
    assert not problems({"x": "a"})
    whole = argument_problems({"type": "object", "properties": {"x": {"$ref": "#"}}})
    assert whole({"x": {"x": 1}}) == "x.x: expected object, got integer"


def test_exactly_one_of_the_alternatives_may_fit() -> None:
    """Which is what oneOf means."""
    assert not told({"oneOf": [{"type": "string"}, {"type": "null"}]}, None)


def test_all_parts_of_allof_are_told() -> None:
    """Each of them has to be mended."""
    assert told({"allOf": [{"minimum": 2}, {"multipleOf": 2}]}, 1) == (
        "x: expected at least 2, got integer; x: expected a multiple of 2, got integer"
    )


def test_prefix_items_come_before_items() -> None:
    """A tuple is checked place by place."""
    schema = {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}}
    assert not told(schema, [1, "a", None])
    assert told(schema, ["a", 1, 2]) == (
        "x.0: expected integer, got string; x.1: expected string, got integer; x.2: expected null, got integer"
    )
    assert not told({**schema, "minItems": 1}, [1])


def test_huge_numbers_are_compared_without_overflow() -> None:
    """JSON has no largest number."""
    assert not told({"multipleOf": 0.5}, 10**400)
    assert not told({"multipleOf": 0.1}, 1e300)
    assert not told({"multipleOf": 0.1}, 0.3)
    assert told({"multipleOf": 2}, 1e-9)
    assert told({"multipleOf": 0.1}, float("inf"))
    assert told({"maximum": 1.5}, 10**400) == "x: expected at most 1.5, got integer"


def test_other_mappings_count_as_objects() -> None:
    """Hosts may hand over frozen mappings."""
    from types import MappingProxyType

    assert not argument_problems(BOOKING)(MappingProxyType({"city": "x", "nights": 1}))
    assert not told({"type": "array", "items": {"type": "integer"}, "minItems": 1}, (1, 2))


def test_what_is_not_json_is_named_as_such() -> None:
    """A host's own object in the arguments is refused, not misread."""
    assert told({"type": "string"}, object()) == "x: expected string, got something that is not JSON"
    assert told({"enum": ["a"]}, bytearray(b"a")) == 'x: expected "a", got something that is not JSON'


# ---- properties -----------------------------------------------------------------------------------------------------
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=10,
)
bounds = st.integers(-3, 5)
leaves = st.one_of(
    st.just({}),
    st.booleans(),
    st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]).map(lambda t: {"type": t}),
    st.lists(st.sampled_from(["string", "integer", "null"]), min_size=1, unique=True).map(lambda t: {"type": t}),
    st.lists(values, min_size=1, max_size=3).map(lambda choices: {"enum": choices}),
    values.map(lambda value: {"const": value}),
    st.tuples(
        st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), bounds
    ).map(lambda pair: dict([pair])),
    st.tuples(
        st.sampled_from(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]),
        st.integers(0, 3),
    ).map(lambda pair: dict([pair])),
    st.sampled_from([{"pattern": "^a"}, {"multipleOf": 2}, {"$ref": "#/$defs/D"}]),
)  # fmt: skip


def _composed(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    names = st.sampled_from(["a", "b", "c"])
    return st.one_of(
        st.fixed_dictionaries(
            {"properties": st.dictionaries(names, inner, max_size=3), "required": st.lists(names, unique=True)},
            optional={
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
                "propertyNames": inner,
            },
        ),
        st.fixed_dictionaries({"items": inner}, optional={"prefixItems": st.lists(inner, min_size=1, max_size=2)}),
        st.tuples(st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: dict([pair])
        ),
    )


schemas = st.recursive(leaves, _composed, max_leaves=6)


@given(schemas, schemas, values)
def test_it_accepts_exactly_what_jsonschema_accepts(schema: Json, definition: Json, value: Json) -> None:
    """For the keywords that are checked, the verdict is that of a complete implementation."""
    if '"$ref"' in repr(definition).replace("'", '"'):
        definition = {"type": "string"}
    root = {"allOf": [schema], "$defs": {"D": definition}}
    assert (not compiled(root)(value)) == jsonschema_rs.validator_for(root).is_valid(value)


@given(values, values)
def test_neither_schema_nor_arguments_can_make_it_raise(schema: Json, value: Json) -> None:
    """Whatever is passed as a schema, the answer is a text."""
    words = ["type", "enum", "properties", "required", "items", "anyOf", "$ref", "pattern", "minimum", "minLength"]
    for word in words:
        assert isinstance(argument_problems({word: schema, "properties": {"a": {word: schema}}})({"a": value}), str)
