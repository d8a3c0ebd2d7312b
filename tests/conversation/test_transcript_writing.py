from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.conversation.content import Refusal, Text
from onrecord.conversation.messages import AssistantMessage, ContextMessage, Message, Round, ToolCall, UserMessage
from onrecord.conversation.transcript import history_of, messages_from

pytestmark = pytest.mark.unit


def test_history_has_the_call_ids_of_the_seed() -> None:
    """``call-<round>-<index>``, null content, one tool record per settled call."""
    done = ToolCall(
        id="c", wire_id="w", name="price", raw_args='{"city":"Rio"}', result=(Text("420"),), status="returned"
    )
    denied = ToolCall(id="d", wire_id="w", name="book", raw_args="{}", status="denied")
    waiting = ToolCall(id="e", wire_id="w", name="odd", raw_args="oops")
    message = AssistantMessage(
        id="a", rounds=(Round(id="r", calls=(done, denied, waiting)), Round(id="q", content=(Text("Done"),)))
    )
    assert history_of([message]) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call-0-0", "name": "price", "arguments": {"city": "Rio"}},
                {"id": "call-0-1", "name": "book", "arguments": {}},
                {"id": "call-0-2", "name": "odd", "arguments": "oops"},
            ],
        },
        {"role": "tool", "tool_call_id": "call-0-0", "name": "price", "content": "420"},
        {
            "role": "tool",
            "tool_call_id": "call-0-1",
            "name": "book",
            "content": '{"error":"denied"}',
            "status": "denied",
        },
        {"role": "assistant", "content": "Done"},
    ]


def test_history_of_everything_else() -> None:
    """Context, notices, replies, refusals and interruptions."""
    messages: list[Message] = [
        ContextMessage(id="s", content=(Text("Be kind."),), authority="system"),
        ContextMessage(id="d", content=(Text("data"),)),
        UserMessage(id="u", content=(Text("hi"),), notice="recipe:x", reply_to="m", reply_preview="p"),
        AssistantMessage(id="a", rounds=(Round(id="r", content=(Refusal("No."),)),)),
        AssistantMessage(id="b", rounds=(Round(id="r"),), shown=(Text("one two"),), interrupted="spoken over", heard=3),
    ]
    assert history_of(messages) == [
        {"role": "system", "content": "Be kind."},
        {"role": "context", "content": "data"},
        {
            "role": "user",
            "content": "hi",
            "notice": {"source": "recipe:x"},
            "reply_to_message_id": "m",
            "reply_preview": "p",
        },
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": "one", "interrupted": "spoken over"},
    ]


@pytest.mark.parametrize(
    ("raw", "written"), [("{}", {}), ("{ }", {}), (' {"a": 1}', {"a": 1}), ("", ""), ("[]", "[]"), ('{"a"', '{"a"')]
)
def test_arguments_are_an_object_where_they_are_one(raw: str, written: object) -> None:
    """However it was spelt; anything else stays what the model wrote."""
    asked = ToolCall(id="c", wire_id="w", name="f", raw_args=raw)
    (record,) = history_of([AssistantMessage(id="a", rounds=(Round(id="r", calls=(asked,)),))])
    assert record["tool_calls"][0]["arguments"] == written


def called(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """A call in Chat's nested form, and its result."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": arguments},
    ]


text = st.text(max_size=12)
json_object = st.dictionaries(text, st.integers(-9, 9) | text | st.none(), max_size=2)
records = st.lists(
    st.one_of(
        st.builds(lambda t: {"role": "user", "content": t}, text),
        st.builds(lambda t: {"role": "system", "content": t}, text),
        st.builds(lambda t: {"role": "assistant", "content": t}, text.filter(bool)),
        st.builds(called, json_object),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(records)
def test_out_and_back_says_the_same(drawn: list[Any]) -> None:
    """Writing what was read, and reading that again, changes nothing more."""
    flat = [record for item in drawn for record in (item if isinstance(item, list) else [item])]
    first = history_of(messages_from(flat))
    assert history_of(messages_from(first)) == first
    assert [r["role"] for r in first] == [r["role"] for r in flat]
