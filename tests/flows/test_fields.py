"""Fields: how they are declared, what a model's words for them become, and how they are shown to it."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from onrecord.errors import FlowInvalid
from onrecord.flows.coercion import read_boolean
from onrecord.flows.fields import (
    Dropped,
    Field,
    FieldSpec,
    coerce_field,
    field_line,
    fields_of,
    is_known,
    merge_field_groups,
    params_of,
    to_wire_schema,
    value_problem,
)
from onrecord.jsonio import dumps, loads
from tests.strategies import json_values

pytestmark = pytest.mark.unit

SIZES = ("1-10", "11-50")
SPECS = fields_of(
    {
        "name": Field(ask="Ask the name."),
        "budget": Field(type="number"),
        "count": Field(type="integer"),
        "ok": Field(type="boolean"),
        "size": Field(enum=SIZES, about="Size of the team"),
    }
)


# ---- declaring -------------------------------------------------------------------------------------------------------


def test_a_mapping_declares_fields_as_values_or_as_json() -> None:
    """Without a type the choices tell it, and without choices it is a text; null in JSON says nothing."""
    made = fields_of(
        {
            "a": Field(),
            "b": Field(enum=(1, 2)),
            "c": Field(enum=(1, 2.5)),
            "d": {"type": "boolean", "label": "D", "extract": "anywhere", "description": "About it", "enum": None},
            "e é": {"ask": "Ask.", "about": "E"},
        }
    )
    assert made["a"] == FieldSpec(slug="a")
    assert made["b"] == FieldSpec(slug="b", type="integer", enum=(1, 2))
    assert made["c"] == FieldSpec(slug="c", type="number", enum=(1, 2.5))
    assert made["d"] == FieldSpec(slug="d", type="boolean", label="D", about="About it", extract="anywhere")
    assert made["e é"] == FieldSpec(slug="e é", ask="Ask.", about="E")
    assert fields_of(None) == {}


@pytest.mark.parametrize(
    ("given_value", "message"),
    [
        ({"a": {"type": "text"}}, 'field "a": unknown type "text"'),
        ({"a": {"typo": 1}}, 'field "a": unknown key "typo"'),
        ({"a": {"ask": 1}}, 'field "a": ask must be text, got integer'),
        ({"a": {"enum": "abc"}}, 'field "a": enum must be a list, got string'),
        ({"a": {"type": "string", "enum": ["x", 3]}}, 'field "a": has a choice that is no string: 3'),
        ({"a": {"type": "boolean", "enum": [True]}}, 'field "a": is a boolean, which has no enum'),
        ({"a": {"extract": "never"}}, 'field "a": unknown extract "never"'),
        ({"a": {"type": ["string"]}}, 'field "a": unknown type a value of type list'),
        ({"a": {"type": "array", "items": {"type": "string"}}}, 'field "a": unknown key "items"'),
        ({"a": "string"}, 'field "a": must be a Field or an object, got string'),
        ({"": {}}, "a field is named by a text that is not empty"),
        ({3: {}}, "a field is named by a text that is not empty"),
    ],
)
def test_a_field_that_cannot_be_is_refused(given_value: Any, message: str) -> None:
    """With its name, and the nearest right word where there is one."""
    with pytest.raises(FlowInvalid) as caught:
        fields_of(given_value)
    assert message in str(caught.value)


def test_a_parameter_may_be_optional_or_a_list() -> None:
    """What actions and mentions take: fields, which may be left out, and lists of one kind of value."""
    made = params_of(
        {
            "who": Field(about="Whom"),
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "description": "T", "optional": True},
        }
    )
    tags = FieldSpec(
        slug="tags", type="array", about="T", optional=True, items=FieldSpec(slug="tags", type="string", enum=("a",))
    )
    assert made == {"who": FieldSpec(slug="who", about="Whom"), "tags": tags}
    with pytest.raises(FlowInvalid, match="has items but is no array"):
        params_of({"x": {"type": "string", "items": {"type": "string"}}})
    with pytest.raises(FlowInvalid, match="optional must be a boolean"):
        params_of({"x": {"type": "string", "optional": 1}})
    with pytest.raises(FlowInvalid, match="has an enum of its own"):
        params_of({"x": {"type": "array", "items": {"type": "string"}, "enum": ["a"]}})
    with pytest.raises(FlowInvalid, match='unknown type "array"'):
        params_of({"x": {"type": "array"}})


# ---- known and coerced -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "known"), [("", False), (None, False), (0, True), (False, True), (" ", True)])
def test_what_is_known(value: object, known: bool) -> None:
    """A13: null and the empty text are unknown; 0 and False are values."""
    assert is_known(value) is known


BAD = Dropped("bad-value")
NOT_IN_ENUM = Dropped("not-in-enum")


@pytest.mark.parametrize(
    ("slug", "raw", "expected"),
    [
        ("budget", "1500,50", 1500.5), ("budget", "1,5", 1.5), ("budget", "1.500,50", BAD), ("budget", "lots", BAD),
        ("budget", "1,000", 1), ("budget", " 12 ", 12), ("budget", "   ", BAD), ("budget", "", BAD),
        ("budget", "+3", 3), ("budget", "-.5", -0.5), ("budget", "1e3", 1000), ("budget", "1_0", BAD),
        ("budget", "0x10", BAD), ("budget", "nan", BAD), ("budget", "Infinity", BAD), ("budget", "1e999", BAD),
        ("budget", float("nan"), BAD), ("budget", float("inf"), BAD), ("budget", True, BAD), ("budget", 2.0, 2),
        ("budget", "٣", BAD), ("budget", "1,2,3", BAD), ("budget", [1], BAD),
        ("budget", "123456789012345678", 123456789012345678),
        ("budget", 10**30, 1e30), ("budget", 10**400, BAD),
        ("count", "3.9", 3), ("count", -2.5, -2), ("count", 7, 7), ("count", 1e30, BAD), ("count", 10**30, BAD),
        ("count", "9" * 5000, BAD), ("count", False, BAD),
        ("ok", " SIM ", True), ("ok", "não", False), ("ok", "NÃO", False), ("ok", "na\u0303o", False),
        ("ok", "maybe", BAD), ("ok", 1, BAD), ("ok", 0, BAD), ("ok", "1", True), ("ok", "0", False),
        ("ok", "yes", True), ("ok", "no", False), ("ok", "nao", False), ("ok", True, True), ("ok", 1.0, BAD),
        ("name", 30, "30"), ("name", 30.0, "30"), ("name", 1.5, "1.5"), ("name", True, "true"),
        ("name", False, "false"), ("name", " as is ", " as is "), ("name", ["a"], BAD), ("name", {"a": 1}, BAD),
        ("size", "11-50", "11-50"), ("size", "12", NOT_IN_ENUM), ("size", "11-50 ", NOT_IN_ENUM), ("size", None, BAD),
    ],
)  # fmt: skip
def test_what_a_model_reports_becomes_a_value_or_is_dropped(slug: str, raw: object, expected: object) -> None:
    """A12: numbers with a decimal comma, words for yes and no, texts of numbers; choices exactly as written."""
    made = coerce_field(SPECS[slug], raw)
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(("raw", "expected"), [(1, 1), ("1", 1), (True, BAD), (2, NOT_IN_ENUM), ("1,0", 1)])
def test_choices_of_numbers_are_compared_as_numbers(raw: object, expected: object) -> None:
    """After reading, so that 1 and "1" are one choice, and true is none."""
    assert coerce_field(FieldSpec(slug="n", type="number", enum=(1, 2.5)), raw) == expected


def test_a_list_parameter_takes_lists() -> None:
    """Mentions extract values as the model gave them; of a list only that it is one is looked at."""
    spec = params_of({"tags": {"type": "array", "items": {"type": "string"}}})["tags"]
    assert coerce_field(spec, ["a"]) == ["a"]
    assert coerce_field(spec, "a") == BAD


@given(st.sampled_from(sorted(SPECS)), json_values | st.text(alphabet="0123456789.,+-eE _"))
def test_whatever_is_taken_can_be_stored_and_taken_again(slug: str, raw: object) -> None:
    """Coercion never raises, and of its own result it takes the very same."""
    made = coerce_field(SPECS[slug], raw)
    if not isinstance(made, Dropped):
        assert loads(dumps(made)) == made
        assert coerce_field(SPECS[slug], made) == made
        assert value_problem(SPECS[slug], made) == ""


def test_words_for_yes_and_no_are_read_alone() -> None:
    """The same table serves the judging of mentions and branches."""
    assert read_boolean("True") is True
    assert read_boolean(None) is None


# ---- shown to a model ------------------------------------------------------------------------------------------------


def test_the_wire_schema_has_what_is_for_the_model_and_nothing_else() -> None:
    """Type, description and choices; closed, all required and nullable: what both calls of a turn send."""
    specs = fields_of(
        {
            "a b": Field(label="L", ask="Ask.", about="About"),
            "n": Field(type="number", extract="asked"),
            "s": Field(enum=SIZES),
        }
    )
    assert to_wire_schema(specs.values(), names={"a b": "field_1"}) == {
        "type": "object",
        "properties": {
            "field_1": {"type": ["string", "null"], "description": "About"},
            "n": {"type": ["number", "null"]},
            "s": {"type": ["string", "null"], "enum": ["1-10", "11-50", None]},
        },
        "required": ["field_1", "n", "s"],
        "additionalProperties": False,
    }


def test_a_schema_without_nulls_requires_what_is_not_optional() -> None:
    """The form of an action's parameters; a list carries its items."""
    specs = params_of(
        {
            "who": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "integer", "description": "T"}, "optional": True},
        }
    )
    assert to_wire_schema(specs.values(), nullable=False) == {
        "type": "object",
        "properties": {
            "who": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "integer", "description": "T"}},
        },
        "required": ["who"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (FieldSpec(slug="a"), "a (string)"),
        (SPECS["size"], "size (string) [1-10 | 11-50]: Size of the team"),
        (FieldSpec(slug="n", type="number", enum=(1.0, 2.5)), "n (number) [1 | 2.5]"),
        (
            params_of({"t": {"type": "array", "items": {"type": "string"}, "about": "Tags"}})["t"],
            "t (list of string): Tags",
        ),
    ],
)
def test_a_field_line_names_type_choices_and_meaning(spec: FieldSpec, line: str) -> None:
    """The one form that prompts use, also under another name."""
    assert field_line(spec) == line
    assert field_line(spec, "field_1") == line.replace(spec.slug, "field_1", 1)


# ---- groups ----------------------------------------------------------------------------------------------------------


class Stay(Struct):
    city: Annotated[str, Meta(description="Where to."), Field(ask="Ask the city.")] = ""


def test_groups_of_fields_become_one_set() -> None:
    """Of each text the first that says something counts, in the order of the groups; a class may be a group."""
    merged = merge_field_groups(
        {
            "sales": {"name": Field(ask="Ask."), "ok": Field(type="boolean"), "size": Field()},
            "help": {
                "name": Field(ask="Other.", about="Who", label="Name"),
                "ok": Field(type="boolean", extract="anywhere"),
                "size": Field(enum=SIZES),
            },
            "stay": Stay,
        }
    )
    assert merged["name"] == Field(type="string", ask="Ask.", about="Who", label="Name")
    assert merged["ok"] == Field(type="boolean", extract="anywhere")
    assert merged["size"] == Field(type="string", enum=SIZES)
    assert fields_of(merged)["city"] == FieldSpec(slug="city", about="Where to.", ask="Ask the city.")


def test_one_field_has_one_type_and_one_list_of_choices() -> None:
    """Both groups are named, so that it is clear which two to make agree."""
    with pytest.raises(FlowInvalid) as caught:
        merge_field_groups({"a": {"x": Field()}, "b": {"x": Field(type="number")}})
    assert str(caught.value) == 'field "x" has two types: "string" in "a", "number" in "b"'
    assert caught.value.hint == "Give one slug one type."
    groups = {"a": {"x": Field()}, "b": {"x": Field(enum=("1", "2"))}, "c": {"x": Field(enum=("2", "1"))}}
    with pytest.raises(FlowInvalid, match='two lists of choices, in "b" and in "c"'):
        merge_field_groups(groups)


# ---- values as they are written --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slug", "value", "problem"),
    [
        ("budget", "3", "must be a number, got string"),
        ("budget", True, "must be a number, got boolean"),
        ("budget", float("nan"), "must be a number, got number"),
        ("budget", 3, ""),
        ("count", 3.5, "must be an integer, got number"),
        ("count", 3.0, ""),
        ("ok", 1, "must be a boolean, got integer"),
        ("name", None, "must be a string, got null"),
        ("size", "12", 'must be one of "1-10", "11-50"'),
        ("size", "{{input.size}}", ""),
        ("size", "1-10", ""),
    ],
)
def test_a_written_value_is_not_converted(slug: str, value: object, problem: str) -> None:
    """What an author writes must have the type already; a template may become any choice."""
    assert value_problem(SPECS[slug], value) == problem


def test_the_items_of_a_list_are_looked_at_one_by_one() -> None:
    """The first that does not fit is named by its number."""
    spec = params_of({"t": {"type": "array", "items": {"type": "integer"}}})["t"]
    assert value_problem(spec, [1, "2"]) == "has an item #2 that must be an integer, got string"
    assert value_problem(spec, (1, 2)) == ""
    assert value_problem(spec, "12") == "must be an array, got string"
