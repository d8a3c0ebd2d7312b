import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from onrecord.conversation.content import File, Image, Refusal, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import AssistantMessage, ContextMessage, Message, Round, UserMessage
from onrecord.conversation.render import stamped, user_parts
from onrecord.conversation.transcript import history_of, merge_loaded, messages_from
from onrecord.errors import UsageError

pytestmark = pytest.mark.unit

AT = datetime(2026, 4, 25, 18, 47, tzinfo=UTC)
LATER = datetime(2026, 4, 25, 19, 12, tzinfo=UTC)
B64 = base64.b64encode(b"bytes").decode()

Record = Mapping[str, Any]


def one(record: Record) -> Message:
    """The message of one record."""
    (message,) = messages_from([record])
    return message


def user(record: Record) -> UserMessage:
    """A person's message from the keys of its record."""
    message = one({"role": "user", **record})
    assert isinstance(message, UserMessage)
    return message


def answer(*records: Record) -> AssistantMessage:
    """The one answer that some records make."""
    (message,) = messages_from(records)
    assert isinstance(message, AssistantMessage)
    return message


def call(call_id: str, name: str = "weather", arguments: object = "{}") -> dict[str, Any]:
    """A call in Chat's nested form."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], content: object = None) -> dict[str, Any]:
    """An assistant record with calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(call_id: str, content: object) -> dict[str, Any]:
    """A tool record."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# ---- acceptance cases ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sources", [{"data": b"x", "url": "https://e.test/a"}, {}])
def test_a1_a_file_has_exactly_one_source(sources: dict[str, Any]) -> None:
    """A1: two sources and none are refused; one of each kind succeeds, at every decode too."""
    with pytest.raises(ValueError, match="exactly one source"):
        File(**sources)
    for good in ({"data": b"x"}, {"url": "https://e.test/a"}, {"file_id": "f1"}):
        held = File(**good)
        assert msgspec.json.decode(msgspec.json.encode(held), type=File) == held


def test_a2_a_file_by_its_id() -> None:
    """A2: a Chat file part with a file id becomes our file part."""
    assert user({"content": [{"type": "file", "file": {"file_id": "f1"}}]}).content == (File(file_id="f1"),)


@pytest.mark.parametrize("inner", [{"file_data": B64, "file_id": "f1"}, {}])
def test_a3_a_file_with_two_sources_or_none_raises(inner: dict[str, Any]) -> None:
    """A3: exactly one source, named with the record that breaks it."""
    with pytest.raises(UsageError, match=r"record 0: a file needs exactly one source") as caught:
        user({"content": [{"type": "file", "file": inner}]})
    assert caught.value.code == "history-invalid"


def test_a4_an_error_record_is_data_with_a_prefix() -> None:
    """A4: the text reaches a wire as a user part.

    It is a context message of authority ``data`` here, which every wire sends as a user part: no person wrote it.
    """
    message = one({"role": "error", "content": "Remote sent 400"})
    assert isinstance(message, ContextMessage)
    assert message.content == (Text("User encountered error: Remote sent 400"),)
    assert message.authority == "data"


def test_a5_calls_results_and_an_answer_are_one_message() -> None:
    """A5: two rounds, the call returned, and nothing claims which model it was."""
    message = answer(asks(call("c1")), result("c1", "sunny"), {"role": "assistant", "content": "Done"})
    first, second = message.rounds
    assert first.calls[0].status == "returned"
    assert first.calls[0].result == (Text("sunny"),)
    assert second.text == "Done"
    assert (first.use, second.use) == (None, None)
    assert message.id.startswith("h0-")
    assert first.calls[0].id == f"{message.id}/r0/c0"


@pytest.mark.parametrize(
    "bad", [{"id": "c", "function": {"name": "f"}}, {"id": "c", "function": {"arguments": "{}"}}, {"id": "c"}, "c"]
)
def test_a7_an_unfinished_call_raises(bad: Any) -> None:
    """A7: a call without both a name and arguments cannot be shown again."""
    with pytest.raises(UsageError, match="name and arguments"):
        answer(asks(bad))


def test_a10_our_own_messages_pass_through() -> None:
    """A10: where the store kept the generated answer, it is used as it is, and nobody can change what is stored.

    The original kept a copy beside the display record; here the stored message is the immutable answer itself.
    """
    held = AssistantMessage(id="t/a0", turn="t", rounds=(Round(id="t/main/r0", content=(Text("hi"),)),))
    assert messages_from([held])[0] is held
    as_json = msgspec.to_builtins(held)
    assert messages_from([as_json]) == (held,)
    with pytest.raises(AttributeError):
        held.rounds = ()  # type: ignore[misc]  # wrong on purpose


def test_a11_call_result_and_answer_keep_their_order() -> None:
    """A11: the next request shows call, result, answer in that order.

    Decision 7 drops the original's ``providerTranscript`` key; the promise is kept for the same list of records.
    """
    message = answer(asks(call("c1")), result("c1", "sunny"), {"role": "assistant", "content": "Done"})
    assert [(len(u.calls), u.text) for u in Conversation.of([message]).units if isinstance(u, Round)] == [
        (1, ""),
        (0, "Done"),
    ]
    assert [record["role"] for record in history_of([message])] == ["assistant", "tool", "assistant"]


def test_a12_created_at_is_the_time_of_the_message() -> None:
    """A12: the stored time renders as the prefix (see `test_render` for the form)."""
    message = user({"content": "hello", "created_at": "2026-04-25T18:47:00+00:00"})
    assert stamped(user_parts(message), message.at) == (Text("[2026-04-25 18:47] hello"),)


def test_a14_a_legacy_message_keeps_its_first_stamp() -> None:
    """A14: sends at 18:47 and 19:12 show the same prefix, since what is stored after the first carries its time."""
    legacy = {"role": "user", "content": "legacy prompt"}
    stored = messages_from([legacy], at=AT)
    again = messages_from(history_of(stored), at=LATER)
    for message in (*stored, *again):
        assert isinstance(message, UserMessage)
        assert stamped(user_parts(message), message.at) == (Text("[2026-04-25 18:47] legacy prompt"),)
    assert history_of(stored)[0]["created_at"] == AT.isoformat()


def test_a15_an_image_alone_gets_the_prefix_in_front() -> None:
    """A15: through an imported record."""
    message = user({"content": [{"type": "image_url", "image_url": {"url": "https://e.test/a"}}], "created_at": AT})
    assert stamped(user_parts(message), message.at) == (Text("[2026-04-25 18:47] "), Image(url="https://e.test/a"))


def test_a16_the_reply_line_quotes_the_target() -> None:
    """A16: 600 characters become 479 and an ellipsis, in our own store and from a plain record."""
    records = [{"role": "user", "id": "m1", "content": "x" * 600}, reply("m1")]
    assert user_parts(replying(records)) == (Text("[Replying to: " + "x" * 479 + "…]\nyes"),)


def test_a17_targets_without_text_and_unknown_targets() -> None:
    """A17: white space only names the id; an unknown target gives no line."""
    blank = {"role": "user", "id": "m1", "content": [{"type": "text", "text": " \n "}]}
    assert user_parts(replying([blank, reply("m1")])) == (Text("[Replying to: message m1]\nyes"),)
    assert user_parts(replying([reply("gone")])) == (Text("yes"),)


def test_a18_merging_loaded_with_current() -> None:
    """A18: stored messages lead, new ones follow, one system message stays."""
    sys1, sys2 = (ContextMessage(id=i, content=(Text(i),), authority="system") for i in ("sys1", "sys2"))
    a, b = (UserMessage(id=i, content=(Text(i),), at=AT) for i in ("a", "b"))
    assert merge_loaded([sys1, a], [sys2, a, b]) == (sys1, a, b)
    assert merge_loaded([], [sys1, a]) == (sys1, a)
    assert merge_loaded([sys1, a], [sys2]) == (sys1, a)
    assert merge_loaded([sys1], []) == (sys1,)
    assert merge_loaded([], [sys1]) == ()
    changed = UserMessage(id="a", content=(Text("other"),), at=AT)
    said = AssistantMessage(id="s", shown=(Text("hi"),))
    assert merge_loaded([a, said], [changed, said]) == (a, said, changed)


# ---- reading ------------------------------------------------------------------------------------------------------
def reply(target: str) -> dict[str, Any]:
    """A person's record that replies to another."""
    return {"role": "user", "content": "yes", "reply_to_message_id": target}


def replying(records: list[dict[str, Any]]) -> UserMessage:
    """The last message of some records."""
    message = messages_from(records)[-1]
    assert isinstance(message, UserMessage)
    return message


@pytest.mark.parametrize(
    ("role", "authority"),
    [("system", "system"), ("developer", "developer"), ("context", "data"), ("event", "data"), ("summary", "data")],
)
def test_roles_of_library_text(role: str, authority: str) -> None:
    """System and developer text keep their authority; the rest is data."""
    message = one({"role": role, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    assert isinstance(message, ContextMessage)
    assert (message.authority, message.content) == (authority, (Text("a"), Text("b")))


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

BAD_RECORDS = [
    ({"role": "user", "content": [{"type": "video"}]}, "type 'video'"),
    ({"role": "user", "content": [7]}, "must be an object"),
    ({"role": "user", "content": 7}, "string or a list"),
    ({"role": "user", "content": [{"type": "text", "text": 1}]}, "'text' must be a string"),
    ({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "%%"}}]}, "not base64"),
    ({"role": "user", "content": [{"type": "file", "file": "f"}]}, "must hold an object"),
    ({"role": "user", "content": "x", "created_at": "yesterday"}, "Invalid"),
    ({"role": "user", "content": "x", "notice": 7}, "'notice' must be a string, got int"),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": 7}}]}, "'url' must be a string, got int"),
    ({"role": "user", "content": [{"type": "image_file", "image_file": {"file_id": 7}}]}, "'file_id' must be a string"),
    ({"role": "user", "content": [{"type": "input_audio", "input_audio": {"url": 7}}]}, "'url' must be a string"),
    ({"role": "user", "content": [{"type": "file", "file": {"file_url": 7}}]}, "'file_url' must be a string"),
    ({"role": "user", "content": [{"type": "file", "file": {"file_id": 7}}]}, "'file_id' must be a string"),
    ({"role": "user", "content": [{"type": ["text"], "text": "x"}]}, "type ['text']"),
    ({"role": "user", "content": "x", "more": CIRCLE}, "nested too deeply"),
    ({"role": "assistant", "content": [{"type": ["text"], "text": "x"}]}, "type ['text']"),
    ({"type": "canary-2"}, "Invalid value - at `$.type`"),
    ({"role": "system", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}, "text only"),
    ({"role": "assistant", "content": [{"type": "image_url"}]}, "type 'image_url'"),
    ({"role": "assistant", "content": 5}, "'content' must be a string"),
    ({"role": "narrator", "content": "x"}, "unknown role 'narrator'"),
    ({"role": ["user"], "content": "x"}, "unknown role"),
    ({"content": "x"}, "unknown role None"),
    ({"role": "tool", "tool_call_id": "c9", "content": "x"}, "no call that waits"),
]


@pytest.mark.parametrize(("record", "problem"), BAD_RECORDS)
def test_bad_records_name_their_place(record: Record, problem: str) -> None:
    """The error names the record and what is wrong with it."""
    with pytest.raises(UsageError, match=r"history record 1: ") as caught:
        messages_from([{"role": "user", "content": "fine"}, record])
    assert problem in str(caught.value)


def test_what_is_no_record_is_refused() -> None:
    """Neither a mapping nor a message."""
    with pytest.raises(UsageError, match="not int"):
        messages_from([7])  # type: ignore[list-item]  # wrong on purpose


def test_a_result_without_a_waiting_call_raises() -> None:
    """A second result for one call is a broken history."""
    with pytest.raises(UsageError, match=r"records 0 to 2: the result for 'c1' has no call"):
        messages_from([asks(call("c1")), result("c1", "a"), result("c1", "b")])


def test_results_go_to_the_nearest_round_that_waits() -> None:
    """Call ids may repeat in later rounds."""
    message = answer(asks(call("c")), asks(call("c")), result("c", "late"), result("c", "early"))
    assert [held.calls[0].result for held in message.rounds] == [(Text("early"),), (Text("late"),)]


def test_a_missing_result_leaves_the_call_asked() -> None:
    """Missing is never an empty success."""
    assert answer(asks(call("c"))).rounds[0].calls[0].status == "asked"


def test_plain_calls_keep_what_was_written() -> None:
    """Arguments as an object or as any text; a missing id is made up by place."""
    message = answer(
        {
            "role": "assistant",
            "content": "A moment.",
            "tool_calls": [{"name": "price", "arguments": {"city": "Rio"}}, {"name": "odd", "arguments": "not json"}],
        }
    )
    first, second = message.rounds[0].calls
    assert (first.wire_id, first.raw_args, first.args) == ("call-0-0", '{"city":"Rio"}', {"city": "Rio"})
    assert (second.raw_args, second.args) == ("not json", {})
    assert message.text == "A moment."


def test_refusals_stand_apart_from_text() -> None:
    """A refusal beside the content comes last."""
    message = answer({"role": "assistant", "content": [{"type": "text", "text": "Hm."}], "refusal": "No."})
    assert message.rounds[0].content == (Text("Hm."), Refusal("No."))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"total": 420}, (Text('{"total":420}'),)),
        ([], (Text("[]"),)),
        ([1, 2], (Text("[1,2]"),)),
        ([{"type": "text", "text": "a"}], (Text("a"),)),
        (None, (Text("null"),)),
        ([{"type": "file", "name": "a.txt"}], (Text('[{"type":"file","name":"a.txt"}]'),)),
        ([{"type": ["x"]}], (Text('[{"type":["x"]}]'),)),
    ],
)
def test_results_of_any_kind(content: object, expected: object) -> None:
    """Strings and parts as they are, other values as JSON text."""
    assert answer(asks(call("c")), result("c", content)).rounds[0].calls[0].result == expected


def test_failed_and_interrupted_records() -> None:
    """What a store noted beside the record is kept."""
    message = answer(
        asks(call("c"), content="Let me see."),
        result("c", "boom") | {"is_error": True},
        {
            "role": "assistant",
            "content": "It is",
            "interrupted": True,
            "completed_at": AT,
            "proactive": {"source": "x"},
        },
    )
    assert message.rounds[0].calls[0].status == "failed"
    assert (message.interrupted, message.text, message.completed_at) == ("stopped", "It is", AT)
    assert message.proactive
    assert [u.text for u in Conversation.of([message]).units if isinstance(u, Round)] == [
        "Let me see.",
        "It is [interrupted here]",
    ]


def test_an_answer_of_several_records_keeps_its_times_and_statuses() -> None:
    """It began with its first record and ended with its last; a status that a store wrote is the call's."""
    message = answer(
        asks(call("c"), call("d"), call("e")) | {"created_at": AT, "completed_at": AT},
        result("c", "no") | {"status": "denied", "is_error": True},
        result("d", "yes") | {"status": "odd"},
        result("e", "no") | {"status": ["denied"], "is_error": True},
        {"role": "assistant", "content": "Done", "created_at": LATER, "completed_at": LATER},
    )
    assert (message.started_at, message.completed_at) == (AT, LATER)
    assert [held.status for held in message.rounds[0].calls] == ["denied", "returned", "failed"]


@pytest.mark.parametrize(("written", "cut"), [(1, "stopped"), ("spoken over", "spoken over"), (False, None)])
def test_an_interruption_has_a_cause(written: object, cut: str | None) -> None:
    """The one that a store wrote down, else that somebody stopped it."""
    assert answer({"role": "assistant", "content": "It is", "interrupted": written}).interrupted == cut


def test_arguments_that_no_wire_could_take_stay_text() -> None:
    """What nests deeper than a model's own arguments may is no object here either."""
    deep = '{"a":' + "[" * 300 + "]" * 300 + "}"
    message = answer(asks(call("c", arguments=deep)))
    assert (message.rounds[0].calls[0].raw_args, message.rounds[0].calls[0].args) == (deep, {})
    assert history_of([message])[0]["tool_calls"][0]["arguments"] == deep


def test_ids_depend_on_place_and_content_alone() -> None:
    """Equal leading records give equal ids; an answer that grew is another message."""
    records: list[Record] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    grown = [*records, {"role": "user", "content": "c"}]
    ids = [m.id for m in messages_from(records)]
    assert [m.id for m in messages_from(grown)][:2] == ids
    assert messages_from([{"role": "user", "content": "A"}])[0].id != ids[0]
    more = [*records, {"role": "assistant", "content": "still the same answer"}]
    assert messages_from(more)[1].id != ids[1]
    assert re.fullmatch("x0-[0-9a-f]{8}", messages_from(records, "x")[0].id)
