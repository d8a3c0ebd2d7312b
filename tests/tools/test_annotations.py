"""Plain types, containers, choices and limits: the schema of each, and what reading gives."""

import enum
import typing
from collections import abc, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, TypedDict, TypeVar
from uuid import UUID

import pytest
import typing_extensions
from msgspec import Meta, Struct, UnsetType

from onrecord.jsonio import Json
from onrecord.tools.forms import Unfit, Unsupported, shown_name
from onrecord.tools.problems import compiled
from tests.tools.reading import form, reading

pytestmark = pytest.mark.unit

T = TypeVar("T")
Word = TypeVar("Word", str, int)
Named = TypeVar("Named", bound=str)
City = NewType("City", str)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(enum.Enum):
    HERE = (0, 0)
    THERE = (1, 1)


class Slug(str):
    __slots__ = ()


STR: dict[str, Any] = {"type": "string"}
INT: dict[str, Any] = {"type": "integer"}
NULL: dict[str, Any] = {"type": "null"}
DATE = {"type": "string", "format": "date"}
DAY = date(2026, 1, 2)
EARLY = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
TWO = {"minItems": 2, "maxItems": 2}
DIGITS = {"pattern": "^-?(0|[1-9][0-9]*)$"}


def array(item: Json, **more: Json) -> Json:
    """The schema of an array."""
    return {"type": "array", "items": item, **more}


def mapping(item: Json, **more: Json) -> Json:
    """The schema of an object with free names."""
    return {"type": "object", "additionalProperties": item, **more}


@pytest.mark.parametrize(
    ("kind", "schema", "value", "result"),
    [
        (str, STR, "a", "a"),
        (int, INT, 3.0, 3),
        (float, {"type": "number"}, 3, 3.0),
        (float, {"type": "number"}, 10**400, float("inf")),
        (float, {"type": "number"}, -(10**400), float("-inf")),
        (bool, {"type": "boolean"}, True, True),
        (None, NULL, None, None),
        (type(None), NULL, None, None),
        (Any, {}, {"a": [1]}, {"a": [1]}),
        (object, {}, 1, 1),
        (City, STR, "Rio", "Rio"),
        (T, {}, 1, 1),
        (Named, STR, "a", "a"),
        (Word, {"anyOf": [STR, INT]}, "a", "a"),
        (Slug, STR, "a-b", Slug("a-b")),
        (date, DATE, "2026-01-02", DAY),
        (datetime, {"type": "string", "format": "date-time"}, "2026-01-02t03:04z", EARLY),
        (time, {"type": "string", "format": "time"}, "03:04", time(3, 4)),
        (timedelta, {"type": "string", "format": "duration"}, "PT1H", timedelta(hours=1)),
        (UUID, {"type": "string", "format": "uuid"}, str(UUID(int=5)), UUID(int=5)),
        (Path, STR, "/a/b", Path("/a/b")),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}, 1.0, 1),
        (Literal["a", 1, True], {"type": ["string", "integer", "boolean"], "enum": ["a", 1, True]}, True, True),
        (Literal[True, 1], {"type": ["boolean", "integer"], "enum": [True, 1]}, 1, 1),
        (Literal[1, True], {"type": ["integer", "boolean"], "enum": [1, True]}, 1, 1),
        (Literal[Colour.RED], {"type": "string", "enum": ["red"]}, "red", Colour.RED),
        (Colour, {"type": "string", "enum": ["red", "blue"]}, "blue", Colour.BLUE),
        (Level, {"type": "integer", "enum": [1, 2], "description": "1: LOW, 2: HIGH"}, 2, Level.HIGH),
        (Point, {"type": "string", "enum": ["HERE", "THERE"]}, "HERE", Point.HERE),
        (list, {"type": "array"}, [1, "a"], [1, "a"]),
        (list[Any], {"type": "array"}, [1, "a"], [1, "a"]),
        (list[int], array(INT), [1, 2.0], [1, 2]),
        (abc.Sequence[date], array(DATE), ["2026-01-02"], [DAY]),
        (typing.Iterable[str], array(STR), ["a"], ["a"]),
        (set[str], array(STR), ["a", "a"], {"a"}),
        (frozenset[int], array(INT), [1], frozenset({1})),
        (set[Any], {"type": "array"}, [1, "a"], {1, "a"}),
        (set[Literal["a", 1]], array({"type": ["string", "integer"], "enum": ["a", 1]}), ["a", 1.0], {"a", 1}),
        (deque[int], array(INT), [1], deque([1])),
        (tuple, {"type": "array"}, [1], (1,)),
        (tuple[int, ...], array(INT), [1, 2], (1, 2)),
        (tuple[int, int], array(INT, **TWO), [1, 2], (1, 2)),
        (tuple[int, str], {"type": "array", "prefixItems": [INT, STR], **TWO}, [1, "a"], (1, "a")),
        (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
        (dict[str, Any], {"type": "object"}, {"a": 1}, {"a": 1}),
        (dict[str, int], mapping(INT), {"a": 1.0}, {"a": 1}),
        (abc.Mapping[int, str], mapping(STR, propertyNames=DIGITS), {"-3": "a"}, {-3: "a"}),
        (dict[Literal["a"], int], mapping(INT, propertyNames={"type": "string", "enum": ["a"]}), {"a": 1}, {"a": 1}),
        (dict[date, int], mapping(INT, propertyNames=DATE), {"2026-01-02": 1}, {DAY: 1}),
        (dict[Any, int], mapping(INT), {"a": 1}, {"a": 1}),
        (str | None, {"anyOf": [STR, NULL]}, None, None),
        (typing.Optional[int], {"anyOf": [INT, NULL]}, 3.0, 3),  # noqa: UP045 - the old spelling too
        (int | UnsetType, INT, 1, 1),
        (typing.Final[int], INT, 1, 1),
        (Annotated[str, "the city"], {"type": "string", "description": "the city"}, "a", "a"),
    ],
)  # fmt: skip
def test_a_type_as_schema_and_back(kind: Any, schema: Json, value: Json, result: Any) -> None:
    """The schema is what a provider would expect, and a value that fits it becomes the declared type."""
    assert form(kind).schema == schema
    read = reading(kind, value)
    assert read == result
    assert type(read) is type(result)


def test_a_decimal_keeps_its_digits() -> None:
    """Written as a number or as text, money stays exact."""
    assert reading(Decimal, 19.99) == reading(Decimal, "19.99") == Decimal("19.99")
    assert compiled(form(Decimal).schema)("1e5")


@pytest.mark.parametrize("text", ["2026-1-2", "20260102", "2026-W01-1", "2026-01-02T", "2026-01-02 03", "noon", ""])
def test_a_day_or_an_instant_has_one_spelling(text: str) -> None:
    """The compact and week forms that Python would also read are not what a schema's reader expects."""
    assert compiled(form(date).schema)(text)
    assert compiled(form(datetime).schema)(text)
    assert compiled(form(time).schema)(text)


class Alias:
    """What a ``type Nested = ...`` statement of Python 3.12 leaves behind."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__value__: Any = None


def test_a_type_alias_may_be_recursive() -> None:
    """It becomes a definition that refers to itself."""
    nested = Alias("Nested")
    nested.__value__ = typing.Union[int, list[nested]]  # type: ignore[valid-type]  # an instance  # noqa: UP007 - no type for `|`
    assert form(nested).schema == {"$ref": "#/$defs/Nested"}
    assert reading(nested, [1, [2.0]]) == [1, [2]]
    plain = typing_extensions.TypeAliasType("plain", int)
    assert form(plain).schema == INT


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (
            Annotated[int, Meta(ge=1, le=9, description="d", title="t", examples=[1])],
            {"type": "integer", "minimum": 1, "maximum": 9, "description": "d", "title": "t", "examples": [1]},
        ),
        (
            Annotated[float, Meta(gt=0, lt=1, extra_json_schema={"x-unit": "m"})],
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "x-unit": "m"},
        ),
        (Annotated[int, Meta(multiple_of=5)], {"type": "integer", "multipleOf": 5}),
        (
            Annotated[str, Meta(min_length=1, max_length=3, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"},
        ),
        (Annotated[list[int], Meta(max_length=3)], array(INT, maxItems=3)),
        (Annotated[dict[str, int], Meta(min_length=1)], mapping(INT, minProperties=1)),
        (Annotated[int | None, Meta(ge=1)], {"anyOf": [INT, NULL], "minimum": 1}),
        (Annotated[str, typing_extensions.Doc("d"), object()], {"type": "string", "description": "d"}),
        (Annotated[int, type("Ge", (), {"ge": 2})()], {"type": "integer", "minimum": 2}),
    ],
)
def test_what_annotated_says_is_in_the_schema(kind: Any, schema: Json) -> None:
    """Descriptions, bounds, lengths and patterns of msgspec.Meta and whatever has attributes of those names."""
    assert form(kind).schema == schema


class Row(Struct, array_like=True):
    x: int


class Lost(TypedDict):
    x: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - that is the point


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (bytes, "bytes has no JSON Schema"),
        (complex, "complex has no JSON Schema"),
        (UnsetType, "UnsetType has no JSON Schema"),
        (Callable[[], int], "Callable has no JSON Schema"),
        (type[int], "type has no JSON Schema"),
        ("text", "text has no JSON Schema"),
        (typing.Never, "Never has no JSON Schema"),
        (Literal[b"x"], "a Literal holds what is no JSON"),
        (enum.Enum("Empty", {}), "Empty has no members"),
        (set[dict[str, int]], "set[dict[str, int]] would hold what cannot be in a set"),
        (dict[tuple[int, int], int], "dict[tuple[int, int], int] has keys that JSON cannot hold"),
        (Row, "Row is array_like, its members have no names in JSON"),
        (Lost, "an annotation of Lost cannot be resolved (name 'Nowhere' is not defined)"),
        (Annotated[datetime, type("Ge", (), {"ge": 1})()], "datetime cannot carry 'ge'"),
        (Annotated[date, type("Le", (), {"le": DAY})()], "date cannot carry 'le'"),
        (Annotated[int, Meta(min_length=1)], "int cannot carry 'min_length'"),
        (Annotated[int, Meta(pattern="a")], "int cannot carry 'pattern'"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_advice(kind: Any, what: str) -> None:
    """At declaration, by name, and with what to do."""
    with pytest.raises(Unsupported) as refused:
        form(kind)
    assert refused.value.what == what
    assert refused.value.hint


@pytest.mark.parametrize("kind", [set, set[Any], frozenset[int | list[int]]])
def test_a_value_that_cannot_be_in_a_set_is_refused(kind: Any) -> None:
    """The schema lets it through, so that reading has to say what is wrong."""
    assert form(kind).fallible
    with pytest.raises(Unfit, match="holds what cannot be in a set"):
        reading(kind, [1, [2]])
    assert not form(set[int | str]).fallible


def test_keys_with_rules_of_their_own_are_refused() -> None:
    """A name that is refused after the check could not be told with its place."""
    with pytest.raises(Unsupported, match="keys that JSON cannot hold"):
        form(dict[Slug, int])


def test_types_are_shown_as_written() -> None:
    """Messages speak the author's language."""
    assert shown_name(Colour) == "Colour"
    assert shown_name(typing.Optional[int]) == "Optional[int]"  # noqa: UP045 - the old spelling too
