"""Dataclasses, TypedDicts, NamedTuples and structs; unions of them; rules of their own; recursion."""

import dataclasses
import enum
import typing
from datetime import date
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Required, Self, TypedDict, TypeVar

import jsonschema_rs
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType, field

from onrecord.jsonio import Json
from onrecord.tools.annotations import Forms
from onrecord.tools.forms import Form, Unfit, whole_reader
from onrecord.tools.problems import compiled
from tests.tools.reading import form, reading

pytestmark = pytest.mark.unit

T = TypeVar("T")


class Positive(int):
    def __new__(cls, value: int) -> Self:
        if value <= 0:
            raise ValueError("must be positive")
        return super().__new__(cls, value)


@dataclasses.dataclass
class Guest:
    """Somebody who stays.

    Attributes:
        name: full name
    """

    name: str
    age: int = 30
    tags: list[str] = dataclasses.field(default_factory=list)
    seen: int = dataclasses.field(default=0, init=False)
    limit: dataclasses.InitVar[int] = 99
    count: typing.ClassVar[int] = 0

    def __post_init__(self, limit: int) -> None:
        if self.age > limit:
            raise ValueError("too old")


@dataclasses.dataclass
class Party:
    host: Guest

    def __post_init__(self) -> None:
        assert self.host


@dataclasses.dataclass
class Pair(Generic[T]):
    one: T
    many: list[T]


@dataclasses.dataclass
class Broken:
    x: int

    def __post_init__(self) -> None:
        raise KeyError("secret")


@dataclasses.dataclass
class Tree:
    value: Positive
    kids: "list[Tree]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Garden:
    tree: Tree
    again: Tree | None = None


class Room(TypedDict, total=False):
    name: Required[str]
    beds: int


class Suite(Room):
    view: NotRequired[Annotated[str, "what is seen"]]
    floor: typing_extensions.ReadOnly[int]


class Spot(NamedTuple):
    x: int
    y: int = 0


class Circle(Struct, tag="circle"):
    radius: Annotated[float, Meta(gt=0)]


class Square(Struct, tag="square", rename="camel"):
    side_length: float
    label: str | UnsetType = UNSET
    near: "list[Square]" = field(default_factory=list)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Search:
    colour: Colour = Colour.RED
    how: str | None = None
    mark: Any = object


class Numbered(Struct, tag=7, tag_field="kind"):
    x: int = 1


INT: dict[str, Any] = {"type": "integer"}


def closed(properties: Json, *required: str) -> Json:
    """The schema of an object with these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("kind", "schema", "value", "result"),
    [
        (Room, closed({"name": {"type": "string"}, "beds": INT}, "name"), {"name": "a"}, {"name": "a"}),
        (Spot, closed({"x": INT, "y": {"type": "integer", "default": 0}}, "x"), {"x": 1}, Spot(1)),
        (
            Circle,
            closed(
                {
                    "type": {"type": "string", "enum": ["circle"]},
                    "radius": {"type": "number", "exclusiveMinimum": 0},
                },
                "type",
                "radius",
            ),
            {"type": "circle", "radius": 1},
            Circle(1.0),
        ),
        (
            Numbered,
            closed({"kind": {"type": "integer", "enum": [7]}, "x": {"type": "integer", "default": 1}}, "kind"),
            {"kind": 7},
            Numbered(),
        ),
        (Pair[int], closed({"one": INT, "many": {"type": "array", "items": INT}}, "one", "many"), None, None),
        (Pair, closed({"one": {}, "many": {"type": "array"}}, "one", "many"), None, None),
        (
            Guest,
            {
                "type": "object",
                "description": "Somebody who stays.",
                "properties": {
                    "name": {"type": "string", "description": "full name"},
                    "age": {"type": "integer", "default": 30},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "limit": {"type": "integer", "default": 99},
                },
                "required": ["name"],
                "additionalProperties": False,
            },
            {"name": "Ana", "limit": 40},
            Guest("Ana"),
        ),
    ],
)
def test_a_type_with_members_as_schema_and_back(kind: Any, schema: Json, value: Json, result: Any) -> None:
    """A closed object with what its constructor takes, described by its docstring."""
    assert form(kind).schema == schema
    if value is not None:
        assert reading(kind, value) == result


def test_a_generic_type_is_filled_in() -> None:
    """The members are of the types that were asked for."""
    assert reading(Pair[date], {"one": "2026-01-02", "many": ["2026-01-03"]}) == Pair(
        date(2026, 1, 2), [date(2026, 1, 3)]
    )


def test_a_typed_dict_knows_what_is_required() -> None:
    """Required and NotRequired count, also through inheritance, and also where annotations are text."""
    assert form(Suite).schema["required"] == ["name", "floor"]
    assert form(Suite).schema["properties"]["view"] == {"type": "string", "description": "what is seen"}
    scope: dict[str, Any] = {}
    source = """
from __future__ import annotations
from typing import *

class Stay(TypedDict, total=False):
    a: Annotated[Required[int], "x"]
    b: int
"""
    exec(source, scope)  # noqa: S102 - the only way to a module with text annotations and a class of its own
    assert Forms(scope).of(scope["Stay"]).schema["required"] == ["a"]


def test_a_struct_is_shown_under_its_encoded_names() -> None:
    """Renaming, tags and unset fields work as msgspec does them."""
    forms = Forms({})
    assert forms.of(Square | Circle).schema["anyOf"][0] == {"$ref": "#/$defs/Square"}
    properties = forms.definitions["Square"]["properties"]
    assert list(properties) == ["type", "sideLength", "label", "near"]
    assert properties["label"] == {"type": "string"}
    value = {"type": "square", "sideLength": 2, "near": [{"type": "square", "sideLength": 1}]}
    assert reading(Square | Circle, value) == Square(2.0, near=[Square(1.0)])
    assert reading(Square | Circle, {"type": "circle", "radius": 1}) == Circle(1.0)


def test_a_union_is_read_as_the_first_type_that_fits() -> None:
    """In the order written, also for two dataclasses, which msgspec alone could not tell apart."""
    assert reading(Guest | Spot | str, {"x": 1}) == Spot(1)
    assert reading(Guest | Spot | str, "a") == "a"
    assert reading(date | str, "2026-01-02") == date(2026, 1, 2)
    assert reading(date | str, "tomorrow") == "tomorrow"
    assert reading(Positive | int, -1) == -1
    assert reading(Positive | Literal["none"] | None, 4) == 4
    with pytest.raises(Unfit, match="must be positive"):
        reading(Positive | Literal["none"] | date, -1)
    unchecked = form(date | Positive).read
    assert unchecked is not None
    with pytest.raises(Unfit, match="fits none of the alternatives"):
        unchecked(None)


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (list[Guest], [{"name": "a"}, {"name": "b", "age": 100}], "1: too old"),
        (dict[str, Positive], {"a": 0}, "a: must be positive"),
        (tuple[int, Positive], [1, 0], "1: must be positive"),
        (Pair[Positive], {"one": 1, "many": [1, 2, -3]}, "many.2: must be positive"),
        (Tree, {"value": 1, "kids": [{"value": 1, "kids": [{"value": 0}]}]}, "kids.0.kids.0.value: must be positive"),
        (Broken, {"x": 1}, "cannot be used (KeyError)"),
        (Party, {"host": {"name": "a", "age": 100}}, "host: too old"),
        (Guest | None, {"name": "a", "age": 100}, "too old"),
    ],
)
def test_what_a_type_refuses_by_its_own_rules_is_told_with_its_place(kind: Any, value: Json, told: str) -> None:
    """The author's words for a refusal; of any other failure only its kind, as it could quote the value."""
    assert form(kind).fallible
    with pytest.raises(Unfit) as refused:
        reading(kind, value)
    assert str(refused.value) == told


def test_a_value_that_is_too_deep_to_read_is_refused() -> None:
    """Reading may need more of the stack than checking did."""

    def endless(value: Json) -> Any:
        return endless(value)

    with pytest.raises(Unfit, match="is nested too deeply"):
        whole_reader(Form({}, endless, fallible=True))(1)
    assert whole_reader(Form({}))(1) == 1


def test_a_recursive_type_is_defined_once_and_the_rest_inlined() -> None:
    """Only what contains itself needs a reference; two types of one name do not collide."""
    forms = Forms({})
    schema = forms.closed(forms.of(Garden).schema)
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert schema["properties"]["again"]["anyOf"][0] == {"$ref": "#/$defs/Tree"}
    assert list(schema["$defs"]) == ["Tree"]
    assert [forms.define("Tree", {}), forms.define("Tree", {})] == ["Tree2", "Tree3"]
    assert "$ref" not in str(form(Guest).schema)


def test_defaults_that_say_nothing_are_not_shown() -> None:
    """None and what is no JSON stay in Python; an answer's schema shows none at all, as providers refuse them."""
    properties = form(Search).schema["properties"]
    assert properties["colour"]["default"] == "red"
    assert "default" not in properties["how"]
    assert "default" not in properties["mark"]
    assert "default" not in Forms({}, defaults=False).of(Search).schema["properties"]["colour"]


# ---- properties -----------------------------------------------------------------------------------------------------
plain: st.SearchStrategy[Any] = st.sampled_from(
    [str, int, float, bool, None, Any, Literal["a", 1], Spot, Room, Circle, Guest, Numbered, Tree, Suite]
)
types = st.recursive(
    plain,
    lambda inner: st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]  # made at run time
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]  # made at run time
        st.tuples(inner, inner).map(lambda pair: typing.Union[pair]),  # noqa: UP007 - made at run time
        st.tuples(inner, inner).map(lambda pair: tuple[pair]),  # type: ignore[valid-type]  # made at run time
        inner.map(lambda kind: Pair[kind]),  # type: ignore[valid-type]  # made at run time
    ),
    max_leaves=4,
)
names = ["x", "y", "name", "beds", "type", "radius", "age", "one", "many", "kind", "value", "kids", "view", "floor"]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from([1.0, 2.5, "a", "circle", 7]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=4),
    max_leaves=6,
)


def _fitting(schema: Json, root: Json) -> st.SearchStrategy[Json]:
    if "$ref" in schema:
        return st.just({"value": 1, "kids": []})
    if "anyOf" in schema:
        return st.one_of([_fitting(option, root) for option in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    made: dict[str, st.SearchStrategy[Json]] = {
        "string": st.text(max_size=3),
        "integer": st.integers(1, 90),
        "number": st.floats(1, 9) | st.integers(1, 9),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return st.tuples(*(_fitting(item, root) for item in schema["prefixItems"])).map(list)
        item = _fitting(schema.get("items", {}), root)
        return st.lists(item, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 3))
    if schema.get("type") == "object":
        if "properties" not in schema:
            return st.dictionaries(
                st.text(max_size=2), _fitting(schema.get("additionalProperties", {}), root), max_size=2
            )
        members = {name: _fitting(inner, root) for name, inner in schema["properties"].items()}
        needed = {name: members.pop(name) for name in schema.get("required", [])}
        return st.fixed_dictionaries(needed, optional=members)
    return made.get(schema.get("type", ""), values)


@given(types, values, st.data())
def test_what_the_schema_accepts_can_be_read(kind: Any, odd: Json, data: st.DataObject) -> None:
    """Check, jsonschema-rs and reading agree; only a rule of the type's own may still refuse what fits."""
    forms = Forms({})
    made = forms.of(kind)
    schema = forms.closed(made.schema)
    fits = data.draw(_fitting(made.schema, schema))
    oracle = jsonschema_rs.validator_for(schema)
    check = compiled(schema)
    assert not check(fits)
    for value in (fits, odd):
        assert (not check(value)) == oracle.is_valid(value)
        if not check(value) and made.read is not None:
            try:
                made.read(value)
            except Unfit:
                assert made.fallible
