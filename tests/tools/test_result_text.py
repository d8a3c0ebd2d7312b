"""What the model reads of a result, to the byte."""

import dataclasses
import enum
from collections import ChainMap
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from onrecord.conversation.content import Image, Text
from onrecord.jsonio import Json, loads
from onrecord.tools.result_text import as_result, cut, misfit, readable, serialise
from onrecord.tools.tool import ToolResult

pytestmark = pytest.mark.unit

IMAGE = Image(url="https://h/i")


class Row(msgspec.Struct):
    city: str


@dataclasses.dataclass
class Price:
    total: Decimal


class Room(pydantic.BaseModel):
    name: str
    until: datetime


class Grade(enum.StrEnum):
    GOOD = "good"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('as it is: "quoted" é', 'as it is: "quoted" é'),
        ("", ""),
        (UNSET, '{"ok":true}'),
        (None, "null"),
        ({"preço": 420, "cidade": "São Paulo"}, '{"preço":420,"cidade":"São Paulo"}'),
        ([1, 2.5, True, None], "[1,2.5,true,null]"),
        (Row("Curitiba"), '{"city":"Curitiba"}'),
        (Price(Decimal("9.90")), '{"total":"9.90"}'),
        (Room(name="a", until=datetime(2026, 1, 2, tzinfo=UTC)), '{"name":"a","until":"2026-01-02T00:00:00Z"}'),
        ([Room(name="a", until=datetime(2026, 1, 2, tzinfo=UTC))], '[{"name":"a","until":"2026-01-02T00:00:00Z"}]'),
        (Grade.GOOD, "good"),
        ({Grade.GOOD: UUID(int=1)}, '{"good":"00000000-0000-0000-0000-000000000001"}'),
        (ChainMap({"a": 1}), '{"a":1}'),
        ({"a": 1}.keys(), '["a"]'),
        (2**70, "1180591620717411303424"),
        ({"n": [2**70, True, "é", {3}, Row("x")]}, '{"n":[1180591620717411303424,true,"é",[3],{"city":"x"}]}'),
        (float("nan"), "null"),
    ],
)  # fmt: skip
def test_a_value_as_the_model_reads_it(value: Any, text: str) -> None:
    """Text as it is, a value left out as ok, anything else as compact JSON with its own letters."""
    assert serialise(value) == text
    assert type(serialise(value)) is str


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, [lambda: None], {"n": [2**70, object()]}])
def test_what_json_cannot_hold_is_said_to_be_so(value: object) -> None:
    """Nothing is raised: the call ran, and the model is told that its result cannot be shown."""
    assert serialise(value) == "[result could not be serialized]"


def test_a_value_that_contains_itself_cannot_be_shown() -> None:
    """Neither a crash nor an endless text."""
    ring: list[object] = []
    ring.append(ring)
    assert serialise(ring) == "[result could not be serialized]"


def test_half_a_character_never_reaches_the_wire() -> None:
    """Unpaired surrogates, which no UTF-8 can hold, are replaced; halves that belong together are joined."""
    assert serialise("a\ud83d\ude00b") == "a😀b"
    assert serialise("a\ud83db") == "a\ufffdb"
    assert serialise({"n\ud83d": ["a\ud83d"]}) == '{"n\ufffd":["a\ufffd"]}'
    assert readable((Text("a\ud83d"), IMAGE, Text("b"))) == (Text("a\ufffd"), IMAGE, Text("b"))


@pytest.mark.parametrize(
    ("result", "patch", "wrong"),
    [
        (ToolResult(1, status="partial", data={"a": 1}), {"b": [2]}, ""),
        (ToolResult(), {}, ""),
        (ToolResult((Text("a"), IMAGE)), {}, ""),
        (ToolResult(status=cast("Any", "denied")), {}, "a status that there is not"),
        (ToolResult(facts=cast("Any", ("a fact",))), {}, "facts that are no entry bodies"),
        (ToolResult(facts=cast("Any", [])), {}, "facts that are no entry bodies"),
        (ToolResult(data=cast("Any", [1])), {}, "data that is no JSON object"),
        (ToolResult(data=cast("Any", {1: 2})), {}, "data that is no JSON object"),
        (ToolResult(), {"a": object()}, "data that is no JSON object"),
        (ToolResult(Text(cast("Any", 3))), {}, "a text that is none"),
        (ToolResult([Text("a"), Text(cast("Any", None))]), {}, "a text that is none"),
    ],
)
def test_a_result_that_could_not_be_read_again_is_told_apart(
    result: ToolResult, patch: dict[str, Any], wrong: str
) -> None:
    """Before it is stored, and by what is wrong with it."""
    assert misfit(result, patch) == wrong


small = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
names = st.text(max_size=4)


@given(st.recursive(small, lambda i: st.lists(i, max_size=3) | st.dictionaries(names, i, max_size=3), max_leaves=8))
def test_any_json_becomes_text_that_is_this_json(value: Json) -> None:
    """Serialising never raises, and loses nothing."""
    text = serialise(value)
    assert text == value if isinstance(value, str) else loads(text) == value


def test_returning_nothing_is_no_value_but_a_result_may_be_null() -> None:
    """A function without a return statement is done; ``ToolResult(None)`` says null."""
    assert serialise(as_result(None).value) == '{"ok":true}'
    assert serialise(as_result(ToolResult()).value) == '{"ok":true}'
    assert serialise(as_result(ToolResult(None)).value) == "null"
    assert serialise(as_result({"a": 1}).value) == '{"a":1}'
    assert as_result(ToolResult(1, data={"x": 2})).data == {"x": 2}


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    """The first M characters, a newline, and the notice."""
    assert cut("abcdef", 4) == "abcd\n[truncated: 6 chars total, showing the first 4]"
    assert cut("éèêë", 4) == "éèêë"
    assert cut("abcdef", None) == "abcdef"
