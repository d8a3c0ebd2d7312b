"""Fields declared as a class: what annotations, docstrings and `Field`s tell."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, Required, TypedDict

import msgspec
import pydantic
import pytest

from onrecord.errors import FlowInvalid
from onrecord.flows.fields import Field, FieldSpec, fields_of

pytestmark = pytest.mark.unit


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class AsDataclass:
    """A stay.

    Args:
        city: Where to.
    """

    city: Annotated[str | None, Field(ask="Ask the city.")] = None
    nights: int = 1
    price: Annotated[float, "Per night"] = 0.0
    agreed: Annotated[bool, Field(label="Agreed?")] = False
    size: Annotated[Literal["S", "M"] | None, Field(about="Of the room")] = None
    colour: Colour = Colour.RED
    rooms: Annotated[int, Field(enum=(1, 2))] = 1
    view: Literal["sea"] | None = None
    kind: ClassVar[str] = "stay"
    more: str = field(default="", repr=False)


class AsStruct(msgspec.Struct):
    city: Annotated[str, msgspec.Meta(description="Where to."), Field(ask="Ask the city.")] = ""
    nights: int = 1


class AsDict(TypedDict, total=False):
    city: Required[Annotated[str, Field(ask="Ask the city.", about="Where to.")]]
    nights: int


class AsModel(pydantic.BaseModel):
    city: Annotated[str | None, Field(ask="Ask the city.")] = pydantic.Field(None, description="Where to.")
    nights: Annotated[int, pydantic.Field(ge=1)] = 1
    kind: Annotated[Literal["stay"], pydantic.Field(description="Of booking")] = "stay"


CITY = FieldSpec(slug="city", type="string", ask="Ask the city.", about="Where to.")
NIGHTS = FieldSpec(slug="nights", type="integer")


@pytest.mark.parametrize("kind", [AsDataclass, AsStruct, AsDict, AsModel])
def test_a_class_of_any_usual_kind_declares_fields(kind: type) -> None:
    """What a `Field` leaves out is told by the annotation and the docstring."""
    made = fields_of(kind)
    assert made["city"] == CITY
    assert made["nights"] == NIGHTS


def test_what_pydantic_says_of_a_field_counts() -> None:
    """A single choice is one, and its description describes the field."""
    assert fields_of(AsModel)["kind"] == FieldSpec(slug="kind", about="Of booking", enum=("stay",))


def test_an_annotation_tells_type_choices_and_where_a_value_may_come_from() -> None:
    """A Literal and an Enum are choices; a boolean is taken only where it is asked; class variables are no fields."""
    made = fields_of(AsDataclass)
    assert list(made) == ["city", "nights", "price", "agreed", "size", "colour", "rooms", "view", "more"]
    assert made["price"] == FieldSpec(slug="price", type="number", about="Per night")
    assert made["agreed"] == FieldSpec(slug="agreed", type="boolean", label="Agreed?", extract="asked")
    assert made["size"] == FieldSpec(slug="size", type="string", about="Of the room", enum=("S", "M"))
    assert made["colour"].enum == ("red", "blue")
    assert made["view"] == FieldSpec(slug="view", type="string", enum=("sea",))
    assert made["rooms"] == FieldSpec(slug="rooms", type="integer", enum=(1, 2))


@dataclass
class NotScalar:
    tags: list[str]


@dataclass
class NotJson:
    raw: bytes


@dataclass
class Mixed:
    size: Literal["S", 1]


@dataclass
class Unresolved:
    city: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - what is tested


class Plain:
    city: str


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NotScalar, 'field "tags" has type list[str]'),
        (NotJson, 'field "raw": bytes has no JSON Schema'),
        (Mixed, 'field "size": has a choice that is no string: 1'),
        (Unresolved, "an annotation of Unresolved cannot be resolved"),
        (Plain, "fields= takes a class with fields or a mapping, got Plain"),
        (5, "fields= takes a class with fields or a mapping, got integer"),
    ],
)
def test_a_class_that_declares_no_fields_is_refused(kind: Any, message: str) -> None:
    """With the field and its type, and what a field may be."""
    with pytest.raises(FlowInvalid) as caught:
        fields_of(kind)
    assert message in str(caught.value)
