"""Output types: the schema that is served, and the value made of an answer."""

import dataclasses
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import ConfigurationError, OutputInvalid
from onrecord.tools.schema import output_schema

pytestmark = pytest.mark.unit


@dataclasses.dataclass
class Verdict:
    word: Literal["yes", "no"]
    score: float = 0.5

    def __post_init__(self) -> None:
        if self.score > 1:
            raise ValueError("a score is at most 1")


class Facts(TypedDict):
    facts: list[str]


class Point(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    x: int


class Tree(msgspec.Struct):
    kids: "list[Tree]"


def wrapped(schema: Any) -> Any:
    """The object around a type that is none."""
    return {"type": "object", "properties": {"value": schema}, "required": ["value"], "additionalProperties": False}


def test_an_object_is_served_as_itself() -> None:
    """Closed, without defaults, which providers refuse in an answer's schema."""
    schema, convert = output_schema(Verdict)
    assert schema == {
        "type": "object",
        "properties": {"word": {"type": "string", "enum": ["yes", "no"]}, "score": {"type": "number"}},
        "required": ["word"],
        "additionalProperties": False,
    }
    assert convert('{"word":"yes","score":1}') == Verdict("yes", 1.0)
    assert convert({"word": "no"}) == Verdict("no")


@pytest.mark.parametrize(
    ("kind", "inner", "text", "value"),
    [
        (int, {"type": "integer"}, '{"value":3}', 3),
        (str, {"type": "string"}, '{"value":"a"}', "a"),
        (bool, {"type": "boolean"}, "true", True),
        (list[Point], None, '{"value":[{"x":1}]}', [Point(1)]),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, '"b"', "b"),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, '{"value":null}', None),
        (Point | Facts, None, '{"value":{"facts":["a"]}}', {"facts": ["a"]}),
    ],
)
def test_anything_else_is_wrapped_and_taken_out_again(kind: Any, inner: Any, text: str, value: Any) -> None:
    """Providers want an object at the root; a model that leaves the wrapper out is understood."""
    schema, convert = output_schema(kind)
    assert set(schema["properties"]) == {"value"}
    assert inner is None or schema == wrapped(inner)
    assert convert(text) == value


@pytest.mark.parametrize(
    ("kind", "value"), [(Facts, {"facts": []}), (Point, Point(1)), (Model, Model(x=1)), (dict[str, int], {"x": 1})]
)
def test_every_kind_of_object_is_made(kind: Any, value: Any) -> None:
    """TypedDict, struct, pydantic model, plain mapping."""
    schema, convert = output_schema(kind)
    assert schema["type"] == "object"
    assert convert(msgspec.json.encode({"facts": []} if kind is Facts else {"x": 1}).decode()) == value


def test_a_recursive_type_has_an_object_at_its_root() -> None:
    """A bare reference at the root is refused by providers."""
    schema, convert = output_schema(Tree)
    assert schema["type"] == "object"
    assert schema["properties"] == {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}
    assert convert('{"kids":[{"kids":[]}]}') == Tree([Tree([])])
    listed, _ = output_schema(list[Tree])
    assert listed["properties"]["value"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in listed["$defs"]


def test_names_in_annotations_may_be_local() -> None:
    """When they are passed along."""

    @dataclasses.dataclass
    class Inner:
        x: int

    @dataclasses.dataclass
    class Outer:
        inner: "Inner"

    assert output_schema(Outer, {"Inner": Inner})[1]('{"inner":{"x":1}}') == Outer(Inner(1))


NEWLINES = "\n" * 30_000


def test_a_code_fence_is_forgiven() -> None:
    """Small models cannot leave it out."""
    convert = output_schema(Point)[1]
    assert convert('```json\n{"x": 1}\n```') == convert(' {"x":1}\n') == Point(1)
    assert convert('```\n{"x": 1}```\n') == Point(1)
    assert convert('```json  \n\n\n{"x": 1}\n\n ```') == Point(1)
    with pytest.raises(OutputInvalid, match="begins with other text"):
        convert('```{"x": 1}```')


def test_a_fence_that_never_ends_is_refused_in_time() -> None:
    """Models that lose the thread write line after line."""
    for answer in (f"```json{NEWLINES}x", f'```json\n{{"x": 1{NEWLINES}}}'):
        with pytest.raises(OutputInvalid, match="begins with other text"):
            output_schema(Point)[1](answer)


@pytest.mark.parametrize(
    ("answer", "problem", "path"),
    [
        ("", "not JSON: it is empty", ""),
        ("Sure! {}", "not JSON: it begins with other text", ""),
        ("no", "not JSON: it begins with other text", ""),
        ('{"word" "no"}', "not JSON: JSON is malformed: expected ':' (byte 8)", ""),
        ("[]", "expected object, got array", ""),
        (
            '{"word":"maybe","score":"high","why":"secret"}',
            (
                'word: expected one of "yes", "no", got string; score: expected number, got string; '
                "why: expected no such property, got string"
            ),
            "word",
        ),
        ({"word": "yes", "score": 2}, "a score is at most 1", ""),
    ],
)
def test_what_does_not_fit_is_told_with_the_first_path(answer: Any, problem: str, path: str) -> None:
    """All problems in words for the model that is asked again; never the answer's text."""
    with pytest.raises(OutputInvalid) as invalid:
        output_schema(Verdict)[1](answer)
    assert (invalid.value.problem, invalid.value.path) == (problem, path)


def test_what_is_told_in_public_names_no_property_that_only_the_answer_has() -> None:
    """The model reads its own words back; a record must not hold them."""
    with pytest.raises(OutputInvalid) as invalid:
        output_schema(list[Point])[1]('{"value":[{"x":"1","the secret":2}]}')
    told = "0.x: expected integer, got string; 0.{}: expected no such property, got integer"
    assert invalid.value.problem == told.format("the secret")
    assert getattr(invalid.value, "public", "") == told.format("*")


def test_a_path_leads_through_lists_and_members() -> None:
    """Joined by dots, below the wrapper."""
    with pytest.raises(OutputInvalid) as invalid:
        output_schema(list[Point])[1]('{"value":[{"x":1},{"x":"1"}]}')
    assert invalid.value.path == "1.x"


def test_an_answer_that_is_nested_too_deeply_is_invalid() -> None:
    """Whether the decoder, the check or the reading gives up first."""
    convert = output_schema(Tree)[1]
    for depth in (100, 200, 400, 100_000):
        text = '{"kids":[' * depth + "]}" * depth
        try:
            assert convert(text)
        except OutputInvalid as invalid:
            assert "nested" in invalid.problem  # noqa: PT017 - where it begins depends on the stack


def test_a_type_that_json_cannot_hold_is_refused() -> None:
    """When the agent is built, not when the answer comes."""
    with pytest.raises(ConfigurationError, match="output type bytes: bytes has no JSON Schema") as refused:
        output_schema(bytes)
    assert refused.value.hint


@given(st.text(max_size=20))
def test_no_answer_makes_it_raise_anything_else(text: str) -> None:
    """Whatever a model writes, the reader gets a value or OutputInvalid."""
    for kind in (int, Verdict, list[Point]):
        try:
            output_schema(kind)[1](text)
        except OutputInvalid:
            continue
