"""Pydantic models and annotated types as arguments and answers; and everything without pydantic."""

import enum
from datetime import date
from typing import Annotated, Generic, Literal, TypeVar

import pydantic
import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from onrecord.tools.annotations import Forms
from onrecord.tools.declare import tool
from onrecord.tools.forms import Unfit, Unsupported
from onrecord.tools.problems import compiled
from tests.tools.reading import form, reading

pytestmark = pytest.mark.unit

T = TypeVar("T")


class Extra(BaseModel):
    title: str
    price: float | None = None


class Stay(BaseModel):
    """Where and when."""

    model_config = ConfigDict(strict=True)

    city: str = Field(description="Where", min_length=2)
    day: date
    extras: list[Extra] = []
    more: dict[str, Extra] = {}
    span: tuple[int, str] | None = None
    kind: Literal["room"] = Field("room", alias="type")

    @pydantic.field_validator("city")
    @classmethod
    def known(cls, city: str) -> str:
        """Only one city is bookable."""
        if city == "Atlantis":
            raise ValueError("no such city")
        return city


class Node(BaseModel):
    value: int
    kids: list["Node"] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: int = 1


class Size(enum.Enum):
    SMALL = "small"


class Kennel(BaseModel):
    size: Size = Size.SMALL
    first: Dog = Dog(kind="dog")


class Box(BaseModel, Generic[T]):
    content: T


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")


@pydantic.dataclasses.dataclass
class Spot:
    x: Annotated[int, Field(ge=0)]


class Handle(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: "Thing"


class Thing:
    """Nothing pydantic knows."""


Handle.model_rebuild()
Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def test_a_model_is_shown_plain() -> None:
    """Inlined, closed, without titles, under its aliases; the same as our own schemas look."""
    extra = {
        "properties": {
            "title": {"type": "string"},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        },
        "required": ["title"],
        "type": "object",
        "additionalProperties": False,
    }
    assert form(Stay).schema == {
        "description": "Where and when.",
        "properties": {
            "city": {"description": "Where", "minLength": 2, "type": "string"},
            "day": {"format": "date", "type": "string"},
            "extras": {"default": [], "items": extra, "type": "array"},
            "more": {"additionalProperties": extra, "default": {}, "type": "object"},
            "span": {
                "anyOf": [
                    {
                        "maxItems": 2,
                        "minItems": 2,
                        "prefixItems": [{"type": "integer"}, {"type": "string"}],
                        "type": "array",
                    },
                    {"type": "null"},
                ],
            },
            "type": {"default": "room", "type": "string", "enum": ["room"]},
        },
        "required": ["city", "day"],
        "type": "object",
        "additionalProperties": False,
    }
    assert "default" not in str(Forms({}, defaults=False).of(Stay).schema)
    assert "additionalProperties" not in form(Loose).schema or form(Loose).schema["additionalProperties"] is True


def test_defaults_beside_a_reference_are_shown_or_left_out_like_any_other() -> None:
    """An enum or a model among the members has a definition of its own, which changes nothing."""
    stay = form(Kennel).schema["properties"]
    assert stay["size"] == {"type": "string", "enum": ["small"], "default": "small"}
    assert stay["first"]["default"] == {"kind": "dog", "bark": 1}
    assert "default" not in str(Forms({}, defaults=False).of(Kennel).schema)


def test_values_are_validated_by_pydantic_itself() -> None:
    """Also by strict models, for which JSON's text is a date."""
    stay = reading(Stay, {"city": "Rio", "day": "2026-01-02", "extras": [{"title": "spa", "price": 9.5}]})
    assert stay == Stay.model_validate(
        {"city": "Rio", "day": date(2026, 1, 2), "extras": [Extra(title="spa", price=9.5)]}
    )
    assert reading(Spot, {"x": 1}) == Spot(1)
    assert reading(Box[int], {"content": 1}) == Box[int](content=1)
    assert reading(list[Stay], [{"city": "Rio", "day": "2026-01-02"}])[0].city == "Rio"


def test_what_its_validators_refuse_is_told_with_its_place_and_without_the_value() -> None:
    """Like anything else that is wrong with an argument."""
    with pytest.raises(Unfit) as refused:
        reading(Stay, {"city": "Atlantis", "day": "2026-01-02"})
    assert str(refused.value) == "city: Value error, no such city"

    @tool
    def book(stay: Stay, nights: Annotated[int, AfterValidator(lambda n: n)] = 1) -> str:
        return stay.city

    assert book.problems is not None
    assert book.problems({"stay": {"city": "Atlantis", "day": "2026-01-02"}}) == (
        "stay.city: Value error, no such city"
    )
    assert book.problems({"stay": {"city": 1}}) == (
        "stay.day: expected date (like 2026-01-31), got nothing; stay.city: expected string, got integer"
    )
    assert not book.problems({"stay": {"city": "Rio", "day": "2026-01-02"}, "nights": 2})


def test_validators_in_annotated_count() -> None:
    """They would be lost if only the type were read."""

    def even(number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number

    with pytest.raises(Unfit, match="must be even"):
        reading(Annotated[int, AfterValidator(even)], 3)
    assert form(Annotated[int, Field(ge=1, description="d")]).schema == {
        "minimum": 1,
        "description": "d",
        "type": "integer",
    }


def test_alternatives_are_told_apart_by_their_tag() -> None:
    """A discriminated union is an anyOf that every provider takes, still read by pydantic."""
    assert list(form(Pet).schema) == ["anyOf"]
    assert reading(Pet, {"kind": "dog"}) == Dog(kind="dog")
    assert compiled(form(Pet).schema)({"kind": "cow"})


def test_a_recursive_model_is_defined_once() -> None:
    """And two declarations of it stay apart."""
    forms = Forms({})
    schema = forms.closed(forms.of(Node).schema)
    assert schema["$ref"] == "#/$defs/Node"
    assert schema["$defs"]["Node"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/Node"}
    assert reading(Node, {"value": 1, "kids": [{"value": 2}]}).kids[0].value == 2
    assert reading(Box[Node], {"content": {"value": 1}}).content == Node(value=1)
    with pytest.raises(AssertionError):
        reading(Node, {"value": 1, "kids": [{}]})


def test_a_model_without_json_schema_is_refused() -> None:
    """Naming it, and pydantic's code for the reason."""
    with pytest.raises(Unsupported, match=r"pydantic has no JSON Schema for Handle \(invalid-for-json-schema\)"):
        form(Handle)
