"""The envelope that a speaker answers in: what is asked for, and how a reply is read back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.conversation.content import Refusal, Text
from onrecord.conversation.messages import Round
from onrecord.flows.envelope import merge_fields, speak_shape, wire_names
from onrecord.flows.fields import FieldSpec, fields_of
from onrecord.models.request import Reading

pytestmark = pytest.mark.unit

FIELDS = fields_of({
    "name": {"type": "string"},
    "size": {"type": "string", "enum": ["1-10", "11-50"], "about": "Size of the team"},
    "budget": {"type": "number"},
    "ok": {"type": "boolean"},
})  # fmt: skip


def pending(*slugs: str) -> tuple[FieldSpec, ...]:
    """Fields in an order; those that are not declared above are texts."""
    return tuple(FIELDS.get(slug) or FieldSpec(slug=slug) for slug in slugs)


def read(text: str, *slugs: str) -> Reading[Any]:
    """What the shape reads in a reply."""
    return speak_shape(pending(*slugs)).read(Round(id="r", content=(Text(text),)))


# ---- what is asked for -----------------------------------------------------------------------------------------------


def test_m1_message_first_then_the_pending_fields_all_nullable() -> None:
    """Case M1: closed, everything required in order; a field has its enum and description."""
    shape = speak_shape(pending("name", "size"))
    assert shape.name == "speak"
    assert json.dumps(shape.schema) == json.dumps({
        "type": "object",
        "properties": {
            "message": {"type": ["string", "null"]},
            "name": {"type": ["string", "null"]},
            "size": {"type": ["string", "null"], "description": "Size of the team", "enum": ["1-10", "11-50", None]},
        },
        "required": ["message", "name", "size"],
        "additionalProperties": False,
    })  # fmt: skip


def test_k5_without_pending_fields_only_the_message_is_asked_for() -> None:
    """Cases K5 and M17: the idle speaker, and an answer that a fixed question follows."""
    assert list(speak_shape().schema["properties"]) == ["message"]


def test_the_same_fields_have_the_same_shape() -> None:
    """So that a provider can keep what it made of it."""
    assert speak_shape(pending("name", "size")) is speak_shape(pending("name", "size"))
    assert speak_shape(pending("size", "name")) is not speak_shape(pending("name", "size"))


def test_m18_slugs_that_cannot_travel_are_mapped_back() -> None:
    """Case M18: ``field_1`` is taken by a field, so ``full name`` travels as ``field_2``."""
    fields = pending("full name", "field_1")
    assert wire_names(fields) == {"full name": "field_2", "field_1": "field_1"}
    assert list(speak_shape(fields).schema["properties"]) == ["message", "field_2", "field_1"]
    got = read('{"message":"Thanks","field_2":"Jo Doe","field_1":"x"}', "full name", "field_1")
    assert got.value == {"full name": "Jo Doe", "field_1": "x"}


def test_a_field_may_have_the_name_of_something_in_the_envelope() -> None:
    """It travels under an alias; the message stays the message."""
    fields = pending("message", "toolCalls")
    assert wire_names(fields) == {"message": "field_1", "toolCalls": "field_2"}
    got = read('{"message":"Hi","field_1":"a note","field_2":"many"}', "message", "toolCalls")
    assert (got.text, got.value, got.calls) == ("Hi", {"message": "a note", "toolCalls": "many"}, ())


# ---- what is read ----------------------------------------------------------------------------------------------------


def test_values_are_read_as_the_model_gave_them() -> None:
    """Nothing is converted yet; null, empty and unexpected ones are left out, 0 and false are values."""
    slugs = ("name", "size", "budget", "ok")
    got = read('{"name":"","size":null,"budget":0,"ok":false,"ghost":1,"message":"Hi"}', *slugs)
    assert (got.text, got.value) == ("Hi", {"budget": 0, "ok": False})
    assert read('{"message":null,"budget":"1500,50","ok":"sim"}', "budget", "ok").value == {
        "budget": "1500,50", "ok": "sim"
    }  # fmt: skip


def test_m19_bare_text_is_the_message() -> None:
    """Case M19: from a provider that returns no JSON at all."""
    got = read("What is your name?", "name")
    assert (got.text, got.value, got.calls) == ("What is your name?", {}, ())


def test_an_envelope_in_a_fence_or_among_words_is_read() -> None:
    """What the model wrote around it is no part of the reply."""
    got = read('Here you go:\n```json\n{"name":"Jo","message":"Hi"}\n```', "name")
    assert (got.text, got.value) == ("Hi", {"name": "Jo"})


def test_a_field_that_is_not_pending_is_no_field() -> None:
    """A shape without fields reads none."""
    assert read('{"message":"Hi","name":"Jo"}').value == {}


def test_an_envelope_that_was_cut_off_keeps_what_was_whole() -> None:
    """So nobody is asked twice for what was told."""
    got = read('{"name":"Jo","message":"Hi Jo, how', "name")
    assert (got.text, got.value) == ("Hi Jo, how", {"name": "Jo"})
    assert read('{"message":"Hi","name":"J', "name").value == {}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("None", None), ("undefined", None), ("NaN", None), ("Jo Smith", "Jo Smith"), ("True", "True"),
        ('"two\nlines"', "two\nlines"), ('"\\ud83d"', "\ufffd"), ('["a"]', ["a"]), ('{"a":1}', {"a": 1}),
        ("[1,]", None), ("[" * 300 + "]" * 300, None),
    ],
)  # fmt: skip
def test_a_value_that_is_not_quite_json_is_read_where_it_says_something(written: str, value: object) -> None:
    """Words without quotes are texts; what cannot be read is no value."""
    got = read(f'{{"name": {written}, "message": "Hi"}}', "name")
    assert got.text == "Hi"
    assert got.value.get("name") == value


def test_words_of_a_refusal_are_words() -> None:
    """As they are streamed."""
    settled = Round(id="r", content=(Refusal("No."), Text(' {"message":"Hi"}')))
    assert speak_shape().read(settled).text == "Hi"
    assert speak_shape().read(Round(id="r", content=(Refusal("No."),))).text == "No."


# ---- calls -------------------------------------------------------------------------------------------------------


def calls(written: str) -> list[tuple[str, str, object]]:
    """The calls in an envelope."""
    return [(call.name, call.raw_args, call.args) for call in read(f'{{"message":null,{written}}}').calls]


@pytest.mark.parametrize(
    "written",
    [
        '"toolCalls":[{"toolName":"price","arguments":{"n":30}}]',
        '"tool_calls":[{"tool_name":"price","arguments":{"n":30}}]',
        '"tool_calls":[{"name":"price","arguments":"{\\"n\\":30}"}]',
        '"tool_calls":[{"type":"function","function":{"name":"price","arguments":"{\\"n\\":30}"}}]',
        '"toolCalls":[{"arguments":{"n":1}},{"toolName":7},"x",null,{"toolName":"price","arguments":{"n":30}}]',
    ],
)
def test_calls_written_into_the_envelope_are_calls(written: str) -> None:
    """However they are spelled; entries without a name are none."""
    assert calls(written) == [("price", '{"n":30}', {"n": 30})]


def test_a_call_without_arguments_has_none() -> None:
    """Left out, null or empty."""
    assert [args for _, _, args in calls('"toolCalls":[{"toolName":"a"},{"toolName":"b","arguments":null}]')] == [
        {},
        {},
    ]
    assert calls('"toolCalls":[{"toolName":"a","arguments":""}]') == [("a", "", {})]


def test_arguments_that_are_no_object_stay_as_they_were_written() -> None:
    """There are none in them, and the loop can refuse the call instead of running it without."""
    assert calls('"toolCalls":[{"toolName":"a","arguments":[1]},{"toolName":"b","arguments":"{\\"n\\":"}]') == [
        ("a", "[1]", {}), ("b", '{"n":', {})
    ]  # fmt: skip


def test_calls_that_were_cut_off_are_no_calls() -> None:
    """Half of a call is never carried out."""
    assert not read('{"message":"Let me see","toolCalls":[{"toolName":"pay","arguments":{"n":1}},{"to').calls
    assert not read('{"message":"Let me see","toolCalls":"price"}').calls


# ---- several rounds --------------------------------------------------------------------------------------------------


def test_d8_later_rounds_win_and_null_takes_nothing_back() -> None:
    """Case D8."""
    first = read('{"name":"Jo","size":"1-10","toolCalls":[{"toolName":"price","arguments":{}}]}', "name", "size")
    second = read('{"message":"Done","name":null,"size":"11-50"}', "name", "size")
    assert merge_fields(first.value, second.value) == {"name": "Jo", "size": "11-50"}
    assert merge_fields(None, {"a": 1}) == {"a": 1}


# ---- read and filter -------------------------------------------------------------------------------------------------


def streamed(text: str, size: int) -> str:
    """What the shape's filter lets through."""
    make = speak_shape(pending("name", "size")).filter
    assert make is not None
    each = make()
    items = [item for at in range(0, len(text), size) for item in each.feed(text[at : at + size])]
    return "".join(item for item in (*items, *each.close()) if isinstance(item, str))


@given(st.text('{}":,\\`\n namesgz01', max_size=80), st.integers(1, 9))
def test_what_is_read_is_what_was_streamed(text: str, size: int) -> None:
    """The words of a reply are what its filter let through, on every input."""
    assert read(text, "name", "size").text == streamed(text, size)


PARTS = (
    '{"message":"', '"name":"', '"size":', '"', '",', "null", "{", "}", "[", "]", ",", ":", "Jo", " ", "```json\n",
    "```", "\\u00e9", "\\ud83d", "\\", '\\"', '"toolCalls":[', "x" * 65, "\n", '{"other":1}', "1",
)  # fmt: skip


@given(st.lists(st.sampled_from(PARTS)), st.integers(1, 9))
def test_what_is_read_of_pieces_of_envelopes_is_what_was_streamed(parts: list[str], size: int) -> None:
    """The same for what envelopes are made of, in any order; and reading never raises."""
    text = "".join(parts)
    assert read(text, "name", "size").text == streamed(text, size)


@given(st.text('{}":,\\`\n names', max_size=80), st.text(max_size=5))
def test_any_reply_is_read(text: str, more: str) -> None:
    """Whatever it is, there are words, fields that are pending, and calls with a name."""
    got = read(f"{text}{more}", "name")
    assert set(got.value) <= {"name"}
    assert all(call.name for call in got.calls)
