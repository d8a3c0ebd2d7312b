"""generateContent: events become chunks, whatever the model is made of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.conversation.usage import FINISHES, Usage
from onrecord.errors import ModelError
from onrecord.models.chunks import CallChunk, Finished, NativeItem, SearchChunk, TextChunk, ThinkingChunk
from onrecord.net.sse import ErrorEvent
from onrecord.providers.google.events import BREAKS, FINISH_OF
from onrecord.providers.google.parse import Parser
from tests.providers.google_events import (
    CANARY,
    COUNTS,
    SIGNATURE,
    STOP,
    calling,
    end_of,
    event,
    failure,
    natives,
    read,
)

pytestmark = pytest.mark.unit

# ---- words ------------------------------------------------------------------------------------------------------


def test_texts_come_out_one_by_one_and_the_end_once() -> None:
    """Empty pieces are no chunks."""
    chunks = read(event("a"), event(""), event("b", "c"), STOP)
    assert chunks == [TextChunk("a"), TextChunk("b"), TextChunk("c"), Finished(finish="stop", model="m-1")]


def test_thoughts_are_thinking_and_never_text() -> None:
    """Alone, beside text, and with a signature."""
    thought = {"text": "hm", "thought": True}
    chunks = read(event(thought), event(thought, "a"), event({**thought, "thoughtSignature": SIGNATURE}), STOP)
    assert [type(chunk) for chunk in chunks[:4]] == [ThinkingChunk, ThinkingChunk, TextChunk, ThinkingChunk]
    assert chunks[2] == TextChunk("a")


def test_only_the_first_candidate_is_read() -> None:
    """Others were never asked for."""
    second = {"index": 1, "content": {"parts": [{"text": "other"}]}}
    first = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
    assert read(json.dumps({"candidates": [second, first]}).encode())[0] == TextChunk("a")


def test_an_end_that_each_event_repeats_ends_nothing_early() -> None:
    """As older models write it: what comes later still belongs to the reply."""
    chunks = read(event("a", finish="STOP"), event("b", finish="STOP"))
    assert chunks == [TextChunk("a"), TextChunk("b"), Finished(finish="stop", model="m-1")]


def test_fields_and_events_of_the_future_change_nothing() -> None:
    """Beside a candidate, in it, and instead of one."""
    odd = json.dumps({"kind": "ping", "candidates": [], "novel": {"a": 1}}).encode()
    new = json.loads(event("a"))
    new["candidates"][0]["novel"] = [1]
    assert read(odd, b"{}", json.dumps(new).encode(), STOP)[0] == TextChunk("a")


# ---- calls ------------------------------------------------------------------------------------------------------


def calls(*events: bytes) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call."""
    return [(c.wire_id, c.name, c.raw_args) for c in read(*events, STOP) if isinstance(c, CallChunk)]


def test_a_call_keeps_its_id_and_gets_one_where_it_has_none() -> None:
    """Which tells it apart from the others of the reply; behind ``#`` stands what Google does not know."""
    assert calls(event(calling(args={"n": 1}, id="ab12"), calling("other"))) == [
        ("ab12", "price", '{"n":1}'),
        ("#1", "other", "{}"),
    ]


def test_an_id_that_comes_twice_is_two() -> None:
    """Also where an id looks like one of ours."""
    assert [wire for wire, _, _ in calls(event(*(calling(id=id) for id in ("a", "a", "a#1"))))] == ["a", "a#1", "a#1#2"]


def test_calls_end_a_reply_that_stopped() -> None:
    """Google says STOP for it too; a reply that was cut stays cut."""
    assert end_of(event(calling(), finish="STOP")).finish == "calls"
    assert end_of(event(calling(), finish="OTHER")).finish == "calls"
    assert end_of(event(calling(), finish="MAX_TOKENS")).finish == "length"


def test_arguments_are_as_they_came_without_the_servers_white_space() -> None:
    """Numbers keep their digits."""
    call = b'{"functionCall":{"name":"f","args":{ "n" : 1.50, "m": 12345678901234567890 }}}'
    raw = b'{"candidates":[{"content":{"parts":[%b]}}]}' % call
    assert calls(raw) == [("#0", "f", '{"n":1.50,"m":12345678901234567890}')]


@pytest.mark.parametrize("args", [None, {}])
def test_no_arguments_are_an_empty_object(args: Any) -> None:
    """Left out or empty."""
    assert calls(event(calling(args=args)))[0][2] == "{}"
    assert calls(event({"functionCall": {"name": "f", "args": None}}))[0][2] == "{}"


def test_the_same_event_once_more_is_no_second_call() -> None:
    """It counts no further token, so some proxy repeated it; another one with equal words is a call of its own."""
    once = event(calling(args={"n": 1}), usageMetadata=COUNTS)
    twice = event(calling(args={"n": 1}), usageMetadata=COUNTS | {"candidatesTokenCount": 9})
    assert len(calls(once, once)) == 1
    assert len(calls(once, twice)) == 2
    uncounted = event(calling(args={"n": 1}))
    assert len(calls(uncounted, uncounted)) == 2


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"args": {}}, "acme sent a tool call without a name"),
        ({"name": "f", "willContinue": True}, "acme sends the arguments of a call in pieces"),
        ({"partialArgs": [{"jsonPath": "$.a", "stringValue": CANARY}]}, "acme sends the arguments of a call in pieces"),
    ],
)
def test_calls_that_cannot_be_read_are_errors(call: Any, told: str) -> None:
    """Never a call with half of its arguments."""
    error = failure(event(CANARY), event({"functionCall": call}), STOP)
    assert (str(error), error.kind, error.started) == (told, "invalid", True)


def test_arguments_that_are_no_unicode_are_an_error() -> None:
    """They could not be stored."""
    raw = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":"\xff"}}}]}}]}'
    assert failure(raw).kind == "invalid"


# ---- what Google wants back -------------------------------------------------------------------------------------


def test_signed_parts_are_kept_byte_for_byte() -> None:
    """Words between them are joined, those with a signature are not."""
    first, last = calling(args={"n": 1}, signature=SIGNATURE), {"text": "", "thoughtSignature": "last"}
    thought = {"text": "hm", "thought": True}
    kept = natives(event(thought), event(thought), event("a"), event("b"), event(first), event("c"), event(last), STOP)
    assert kept == [{"text": "hmhm", "thought": True}, {"text": "ab"}, first, {"text": "c"}, last]
    raw = event(first)
    (item,) = [chunk for chunk in read(raw, STOP) if isinstance(chunk, NativeItem)]
    assert bytes(item.raw) in raw


def test_words_and_unsigned_calls_need_nothing_native() -> None:
    """The portable form says as much."""
    assert natives(event({"text": "hm", "thought": True}, "a"), event(calling(args={"n": 1})), STOP) == []


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"inlineData": {"mimeType": "image/png", "data": "YQ=="}}, "media that the model made (image/png)"),
        ({"executableCode": {"language": "PYTHON", "code": "1"}}, "code that Google ran"),
        ({"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, "what code that Google ran printed"),
        ({"fileData": {"fileUri": "x"}, "thoughtSignature": "s"}, "a part of Google's kind 'fileData'"),
        ({"hologram": [1]}, "a part of Google's kind 'hologram'"),
    ],
)
def test_what_no_other_wire_can_carry_is_kept_and_named(part: Any, told: str) -> None:
    """In its place; alone it is a reply all the same."""
    chunks = read(event("a", part, "b"), STOP)
    items = [chunk for chunk in chunks if isinstance(chunk, NativeItem)]
    assert [json.loads(bytes(item.raw)) for item in items] == [{"text": "a"}, part, {"text": "b"}]
    assert [item.lost for item in items] == ["", told, ""]
    assert natives(event(part), STOP) == [part]


def test_an_unknown_field_of_a_known_part_is_kept_and_loses_nothing() -> None:
    """The words can still be told to anybody."""
    part = {"text": "a", "novel": 1}
    (text, item, _) = read(event(part), STOP)
    assert text == TextChunk("a")
    assert isinstance(item, NativeItem)
    assert (json.loads(bytes(item.raw)), item.lost) == (part, "")


def test_searches_of_googles_own_are_native_and_told() -> None:
    """A call and its response, where they come as parts; they are no loss elsewhere."""
    call = {
        "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": {"queries": ["q"]}},
        "thoughtSignature": "x",
    }
    response = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": {}}}
    other = {"toolCall": {"toolType": "URL_CONTEXT", "id": "u1"}}
    chunks = read(event(call), event(response), event(other, "a"), STOP)
    searched = [chunk for chunk in chunks if isinstance(chunk, SearchChunk)]
    assert searched == [SearchChunk(id="s1", status="searching"), SearchChunk(id="s1", status="completed")]
    items = [chunk for chunk in chunks if isinstance(chunk, NativeItem)]
    assert [json.loads(bytes(item.raw)) for item in items] == [call, response, other, {"text": "a"}]
    assert not any(item.lost for item in items)


# ---- the end ----------------------------------------------------------------------------------------------------


def test_tokens_add_up_to_googles_total() -> None:
    """Thoughts are output, what a search put before the model is input; the last count holds."""
    early = event("a", usageMetadata={"promptTokenCount": 99})
    usage = end_of(early, event(finish="STOP", usageMetadata=COUNTS)).usage
    assert usage == Usage(input_tokens=13, output_tokens=12, cached_input_tokens=4, reasoning_tokens=7)
    assert usage.input_tokens + usage.output_tokens == COUNTS["totalTokenCount"]


@pytest.mark.parametrize("counts", [{}, {"trafficType": "ON_DEMAND"}, {"promptTokenCount": "many"}])
def test_e16_nothing_counted_is_no_usage(counts: dict[str, Any]) -> None:
    """Rather than zero."""
    assert end_of(event("a", finish="STOP", usageMetadata=counts)).usage is None


@pytest.mark.parametrize(("reason", "finish"), [*FINISH_OF.items(), ("OTHER", "unknown"), ("SOMETHING_NEW", "unknown")])
def test_how_a_reply_ended(reason: str, finish: str) -> None:
    """In the library's words."""
    assert end_of(event("a"), event(finish=reason)).finish == finish
    assert finish in FINISHES


@pytest.mark.parametrize("reason", BREAKS)
def test_a_reply_that_broke_is_an_error_that_says_why(reason: str) -> None:
    """With the wire's own word, and what to do."""
    error = failure(event(CANARY), event(finish=reason))
    assert error.kind == BREAKS[reason][0]
    assert f"({reason})" in str(error)
    assert error.hint


@pytest.mark.parametrize(
    ("events", "kind", "told"),
    [
        ((STOP,), "overload", "acme sent an empty answer"),
        ((event({"text": "hm", "thought": True}, finish="STOP"),), "overload", "acme sent an empty answer"),
        (
            (event(finish="MAX_TOKENS", usageMetadata=COUNTS),),
            "invalid",
            "acme used up the output cap before it said anything (7 tokens went to reasoning)",
        ),
        ((event(finish="SAFETY"),), "content", "acme stopped its reply before it said anything (SAFETY)"),
    ],
)
def test_a_reply_without_words_and_calls_is_an_error(events: tuple[bytes, ...], kind: str, told: str) -> None:
    """An empty message would help nobody."""
    error = failure(*events)
    assert (error.kind, str(error)) == (kind, told)


def test_a_blocked_prompt_is_an_error_of_content() -> None:
    """By the wire's word for it, as far as it is one."""
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}}
    error = failure(json.dumps(blocked).encode())
    assert (error.kind, str(error)) == ("content", "acme refused the prompt (PROHIBITED_CONTENT)")
    assert not error.started
    error = failure(json.dumps({"promptFeedback": {"blockReason": CANARY}}).encode())
    assert str(error) == "acme refused the prompt (no stated reason)"


@pytest.mark.parametrize("events", [(), (event("a"),), (event(calling()),)])
def test_a_stream_that_ends_early_is_a_network_failure(events: tuple[bytes, ...]) -> None:
    """Without a reason for its end, a reply is not whole."""
    error = failure(*events)
    assert (error.kind, error.started) == ("network", bool(events))


# ---- failures inside a stream -----------------------------------------------------------------------------------

BUSY = {"error": {"code": 503, "message": CANARY, "status": "UNAVAILABLE"}}


@pytest.mark.parametrize("data", [BUSY, [BUSY], {**BUSY, "candidates": []}])
def test_an_error_inside_a_stream_is_told_with_its_status(data: Any) -> None:
    """As an object or in a list."""
    error = failure(event("a"), json.dumps(data).encode())
    assert (error.kind, error.status, error.started) == ("overload", 503, True)
    assert "(UNAVAILABLE)" in str(error)


def test_an_event_named_error_is_one() -> None:
    """Whatever is in it."""
    for data in (b"no json", json.dumps(BUSY).encode()):
        with pytest.raises(ModelError) as caught:
            Parser("acme").feed(ErrorEvent(data))
        assert caught.value.kind == "overload"


@pytest.mark.parametrize("data", [b"{{", b"[1,2]", b"[]", b'"a"', b"\xff", b'{"candidates":1}'])
def test_what_is_not_of_the_protocol_is_an_error(data: bytes) -> None:
    """And is not passed over."""
    error = failure(event(CANARY), data, STOP)
    assert (error.kind, str(error)) == ("invalid", "acme sent an event that is not of its protocol")


@pytest.mark.parametrize("part", [b'{"text":"\xff"}', b'{"text":5}', b'{"functionCall":[]}', b"7", b"null"])
def test_a_part_that_is_not_of_the_protocol_is_an_error(part: bytes) -> None:
    """What cannot be read might have been the answer."""
    error = failure(event(CANARY), b'{"candidates":[{"content":{"parts":[%b]}}]}' % part, STOP)
    assert (error.kind, str(error)) == ("invalid", "acme sent a part that is not of its protocol")


@pytest.mark.parametrize("field", [b'"groundingMetadata":{"webSearchQueries":["\xff"]}', b'"novel":"\xff"'])
def test_no_unicode_beside_the_words_costs_no_word(field: bytes) -> None:
    """It is not read as words."""
    raw = b'{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP",%b}]}' % field
    assert read(raw) == [TextChunk("a"), Finished(finish="stop")]


# ---- answers that are no stream ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        event("Hello", finish="STOP"),
        b"[" + event("Hel") + b",\n" + event("lo", finish="STOP") + b"]",
    ],
)
def test_a_whole_answer_is_read(body: bytes) -> None:
    """One object; or the list that a proxy makes of a stream when it drops the query."""
    parser = Parser("acme")
    chunks = [*parser.whole(body), *parser.close()]
    assert parser.done
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "Hello"
    assert chunks[-1] == Finished(finish="stop", model="m-1")


@pytest.mark.parametrize("body", [b"[{]", b"[", b"", b'[{"error":{"code":503,"message":"m"}}]'])
def test_a_whole_answer_that_is_none_is_an_error(body: bytes) -> None:
    """Broken, or an error in a list."""
    with pytest.raises(ModelError):
        Parser("acme").whole(body)
