"""A JSON object is found wherever a model put it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.embedded import first_object
from tests.strategies import json_values

pytestmark = pytest.mark.unit

WANTED = frozenset({"flows", "fields"})
SIZE = 100_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"flows":{"a":1}}', {"flows": {"a": 1}}),
        (' \n{"flows":{}}\n', {"flows": {}}),
        ('```json\n{"flows":{}}\n```', {"flows": {}}),
        ('```{"flows":{}}```', {"flows": {}}),
        ('Here it is:\n```json\n{"flows":{}}\n```\nDone.', {"flows": {}}),
        ('Sure! {"flows":{"a":1}} Anything else?', {"flows": {"a": 1}}),
        ('{"note":"a } in a text {","flows":{}} x', {"note": "a } in a text {", "flows": {}}),
        ('{"a":"\\"}","flows":{}} x', {"a": '"}', "flows": {}}),
        ('[{"flows":{}}]', {"flows": {}}),
        ('{"other":1} {"flows":{}}', {"flows": {}}),
        ('{"other":1} and {"more":2}', {"other": 1}),
        ('{broken {"flows":{"a":1}} }', {"flows": {"a": 1}}),
        ('{"broken" {"flows":{"a":1}} }', {"flows": {"a": 1}}),
        ('Never closed: {"x": {"flows":{"a":1}}', {"flows": {"a": 1}}),
        ('He said "hi" {"flows":{}}', {"flows": {}}),
    ],
)
def test_an_object_is_found(text: str, found: dict[str, Any]) -> None:
    """Alone, in a fence, among words, after something broken; one with an expected key before any other."""
    assert first_object(text, WANTED) == found


@pytest.mark.parametrize(
    "text", ["", "  ", "no idea", "``````", "[1,2]", '"{x}"', "}{", "{name}", '{"flows":', "7", '{"a":tru}']
)
def test_without_an_object_there_is_none(text: str) -> None:
    """Lists, texts, numbers and what is cut off are no objects."""
    assert first_object(text, WANTED) is None


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3), st.text("abc \n.,", max_size=20))
def test_an_object_among_words_is_read_as_it_is(value: dict[str, Any], words: str) -> None:
    """Whatever it holds, in either way to write it."""
    for plain in (True, False):
        written = json.dumps(value, ensure_ascii=plain)
        assert first_object(f"{words}{written}{words}", frozenset(value)) == value
        assert first_object(f"```json\n{written}\n```", frozenset(value)) == value


@given(st.text('{}[]"\\:,a`\n ', max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    """It finds an object or nothing."""
    assert isinstance(first_object(text, WANTED), (dict, type(None)))


@pytest.mark.parametrize(
    "unit", ["{", "}", '"', "\\", "`", '{"', '{"a":', "{}", '{"a":{"b":1 x} ', '{"a":1,', "``` ", "{ ", "[", '{"a":"\\']
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """What takes quadratic time would not end within the time a test has."""
    found = first_object(unit * (SIZE // len(unit)), WANTED)
    assert found in (None, {})


@pytest.mark.parametrize("wrong", ["x", ""])
def test_deep_nesting_takes_linear_time(wrong: str) -> None:
    """Also where every level is balanced and none is JSON."""
    deep = SIZE // 6
    assert first_object('{"a":' * deep + wrong + "}" * deep, WANTED) is None
