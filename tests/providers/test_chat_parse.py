"""Chat Completions: events become chunks, whatever servers make of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.conversation.content import Citation
from onrecord.conversation.usage import FINISHES, Usage
from onrecord.errors import ModelError
from onrecord.models.chunks import CallChunk, CitationChunk, Finished, NativeItem, TextChunk, ThinkingChunk
from onrecord.net.sse import ErrorEvent
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.events import FINISH_OF
from onrecord.providers.openai_chat.parse import Parser
from tests.providers.chat_events import CANARY, DONE, STOP, USAGE, end_of, event, failure, fragment, read

pytestmark = pytest.mark.unit

# ---- text, reasoning, refusals ----------------------------------------------------------------------------------


def test_texts_come_out_one_by_one_and_the_end_once() -> None:
    """Empty pieces are no chunks."""
    first = event({"role": "assistant", "content": ""})
    chunks = read(first, event({"content": "a"}), event({"content": "b"}), STOP, DONE)
    assert chunks == [TextChunk("a"), TextChunk("b"), Finished(finish="stop", model="m-1")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_either_field_is_thinking(field: str) -> None:
    """And not text, also beside some."""
    chunks = read(event({field: "hm", "content": None}), event({field: "so", "content": "a"}), STOP, DONE)
    assert chunks[:3] == [ThinkingChunk("hm"), ThinkingChunk("so"), TextChunk("a")]


def test_reasoning_in_both_fields_is_told_once() -> None:
    """Some servers send it under both names."""
    both = event({"reasoning_content": "hm", "reasoning": "hm"})
    assert read(both, event({"content": "a"}), STOP)[:2] == [ThinkingChunk("hm"), TextChunk("a")]


def test_content_as_a_list_of_pieces_is_read() -> None:
    """Words and thinking; what is neither is named, and goes back to its vendor at its place."""
    pieces = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "other"}]},
        {"type": "text", "text": "a"},
        {"type": "reference", "reference_ids": [1]},
        {"type": "text", "text": "b"},
        {"type": "text", "text": ""},
    ]
    *words, item, end = read(event({"content": pieces}), event({"content": "c"}), STOP)
    assert words == [ThinkingChunk("hm"), TextChunk("a"), TextChunk("b"), TextChunk("c")]
    assert isinstance(item, NativeItem)
    said = [{"type": "text", "text": "a"}, pieces[2], {"type": "text", "text": "bc"}]
    assert json.loads(bytes(item.raw)) == {"role": "assistant", "content": said}
    assert end == Finished(finish="stop", model="m-1", lost=("content of type 'reference'",))
    plain = event({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]})
    assert read(plain, STOP)[:-1] == [ThinkingChunk("hm"), TextChunk("a")]


def test_media_that_the_model_made_is_named_and_kept() -> None:
    """No other wire has a place for it, and this library none either."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}}
    *_, item, end = read(
        event({"content": "Here."}), event({"images": [image]}), event({"audio": {"id": "a1", "data": "YQ=="}}),
        event({"audio": {"data": "Yg=="}}), STOP,
    )  # fmt: skip
    assert isinstance(item, NativeItem)
    told = {"role": "assistant", "content": "Here.", "images": [image], "audio": {"id": "a1"}}
    assert json.loads(bytes(item.raw)) == told
    assert isinstance(end, Finished)
    assert end.lost == ("images that the model made", "audio that the model made")
    *_, end = read(event({"content": "No.", "images": [image]}), event({"refusal": "No."}), STOP)
    assert end == Finished(finish="refusal", model="m-1", lost=("images that the model made",))


def test_a_refusal_is_marked_and_so_is_the_end() -> None:
    """The wire says that it is one."""
    chunks = read(event({"refusal": "No."}), STOP, DONE)
    assert chunks == [TextChunk("No.", refusal=True), Finished(finish="refusal", model="m-1")]


def test_sources_of_the_text_are_citations() -> None:
    """Where an annotation names a URL."""
    about = {"url": "https://e.test/a", "title": "A", "start_index": 0, "end_index": 6}
    annotations = [{"type": "url_citation", "url_citation": about}, {}]
    chunks = read(event({"content": "Sunny.", "annotations": annotations}), STOP)
    assert chunks[1] == CitationChunk((Citation(url="https://e.test/a", title="A", start=0, stop=6),))
    about |= {"start_index": True, "end_index": "6"}  # no places
    chunks = read(event({"content": "Sunny.", "annotations": annotations}), STOP)
    assert chunks[1] == CitationChunk((Citation(url="https://e.test/a", title="A", start=0, stop=0),))
    assert isinstance(chunks[1], CitationChunk)
    assert type(chunks[1].citations[0].start) is int


def test_only_the_first_choice_is_read() -> None:
    """Others were never asked for."""
    second = json.dumps({"choices": [{"index": 1, "delta": {"content": "other"}}]}).encode()
    assert read(second, event({"content": "a"}), STOP)[:1] == [TextChunk("a")]


def test_what_comes_after_the_end_is_not_read() -> None:
    """Text after the end mark is no text, in the short way of reading neither."""
    texts = [event({"content": "a"}), event({"content": "b"})]
    assert read(*texts, STOP, DONE, *texts)[:-1] == [TextChunk("a"), TextChunk("b")]


# ---- calls ------------------------------------------------------------------------------------------------------


def calls(*deltas: Any, finish: str = "tool_calls") -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call."""
    chunks = read(*(event(delta) for delta in deltas), event(finish=finish), DONE)
    return [(c.wire_id, c.name, c.raw_args) for c in chunks if isinstance(c, CallChunk)]


def test_fragments_belong_together_by_index() -> None:
    """However they are mixed."""
    assert calls(
        fragment(0, "a", "first", ""), fragment(1, "b", "second", "{"), fragment(0, args='{"n":'),
        fragment(1, args="}"), fragment(0, args="1}"),
    ) == [("a", "first", '{"n":1}'), ("b", "second", "{}")]  # fmt: skip


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        pytest.param(
            [fragment(None, "a", "f", "{}"), fragment(None, "b", "f", '{"n":1}')],
            [("a", "f", "{}"), ("b", "f", '{"n":1}')],
            id="no index, an id each",
        ),
        pytest.param(
            [fragment(None, "a", "f", "{"), fragment(None, None, None, "}")],
            [("a", "f", "{}")],
            id="no index, in fragments",
        ),
        pytest.param(
            [fragment(0, "a", "f", "{}"), fragment(0, "b", "f", "{}")],
            [("a", "f", "{}"), ("b", "f", "{}")],
            id="one index for all",
        ),
        pytest.param(
            [fragment(0, "a", "f", "{"), fragment(0, "a", "f", "}")],
            [("a", "f", "{}")],
            id="id and name in every fragment",
        ),
        pytest.param([fragment(0, "a"), fragment(0, None, "f", "{}")], [("a", "f", "{}")], id="name comes later"),
        pytest.param([fragment(0, "a", "fu"), fragment(0, None, "nct")], [("a", "funct", "{}")], id="name in pieces"),
        pytest.param([fragment(0, "", "f", "{}")], [("call_0", "f", "{}")], id="an empty id"),
        pytest.param(
            [fragment(0, None, "f"), fragment(1, None, "g")], [("call_0", "f", "{}"), ("call_1", "g", "{}")], id="no id"
        ),
        pytest.param([fragment(0, "a", "f", {"n": 1})], [("a", "f", '{"n":1}')], id="arguments as an object"),
        pytest.param(
            [{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}]}],
            [("a", "f", "{}")],
            id="arguments null",
        ),
        pytest.param(
            [{"tool_calls": [{"index": 0, "id": "a", "function": None}]}, fragment(0, None, "f")],
            [("a", "f", "{}")],
            id="function null",
        ),
        pytest.param([{"tool_calls": None}, fragment(0, "a", "f")], [("a", "f", "{}")], id="calls null"),
        pytest.param(
            [fragment(0, "a", "f", "{}"), fragment(1, "a", "f", '{"n":1}')],
            [("a", "f", "{}"), ("a#2", "f", '{"n":1}')],
            id="one id for two calls",
        ),
        pytest.param(
            [fragment(2, "c", "f"), fragment(0, "a", "g")], [("c", "f", "{}"), ("a", "g", "{}")], id="order of arrival"
        ),
    ],
)
def test_calls_are_put_together_as_servers_send_them(deltas: list[Any], expected: list[tuple[str, str, str]]) -> None:
    """Each of these was seen from some server."""
    assert calls(*deltas) == expected


def test_arguments_that_are_no_json_come_out_as_they_are() -> None:
    """What the model wrote is for the caller to judge."""
    assert calls(fragment(0, "a", "f", '{"city":"Osl'), finish="length") == [("a", "f", '{"city":"Osl')]


def test_calls_make_the_end_a_call_for_tools_whatever_the_server_says() -> None:
    """Some end with stop."""
    for finish, expected in (("tool_calls", "calls"), ("stop", "calls"), ("odd", "calls"), ("length", "length")):
        assert end_of(event(fragment(0, "a", "f", "{}")), event(finish=finish), DONE).finish == expected


def test_a_call_without_a_name_is_refused() -> None:
    """It could be neither run nor replayed."""
    error = failure(event(fragment(0, "a", None, f'{{"x":"{CANARY}"}}')), event(finish="tool_calls"))
    assert (error.kind, error.started) == ("invalid", True)


# ---- usage and the end ------------------------------------------------------------------------------------------


def test_usage_counts_cached_and_reasoning_tokens() -> None:
    """It comes with the end or in an event of its own, without choices."""
    counted = Usage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=2)
    alone = json.dumps({"choices": [], "usage": USAGE}).encode()
    assert end_of(event({"content": "a"}), STOP, alone, DONE).usage == counted
    assert end_of(event({"content": "a"}, "stop", usage=USAGE), DONE).usage == counted


def test_reasoning_that_is_counted_apart_is_output_too() -> None:
    """The total of xAI says so; where the total leaves no room for it, it is in the count already."""
    for total, written in ((37, 7 + 20), (17, 7), (None, 7)):
        counts = {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": total}
        told = end_of(STOP, event(usage=counts | {"completion_tokens_details": {"reasoning_tokens": 20}}), DONE).usage
        assert told is not None
        assert (told.output_tokens, told.reasoning_tokens) == (written, 20)


def test_cached_tokens_are_read_from_the_field_of_deepseek_too() -> None:
    """Where the details have none."""
    usage: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 7}
    for told in (usage, usage | {"prompt_tokens_details": {}}, usage | {"prompt_tokens_details": {"cached_tokens": 0}}):
        assert end_of(event({"content": "a"}, "stop", usage=told)).usage == Usage(
            input_tokens=10, output_tokens=5, cached_input_tokens=7
        )


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": None, "completion_tokens": None, "total": None}, "none", {"prompt_tokens": "x"}],
)
def test_e16_usage_that_is_missing_or_all_null_is_none(usage: Any) -> None:
    """Nobody counted; zero would be a claim."""
    assert end_of(event({"content": "a"}, "stop", usage=usage), DONE).usage is None
    assert end_of(event({"content": "a"}, "stop"), DONE).usage is None


@pytest.mark.parametrize(("word", "finish"), [*FINISH_OF.items(), ("made-up", "unknown")])
def test_ends_are_told_in_the_library_s_words(word: str, finish: str) -> None:
    """An unheard-of one is unknown."""
    assert end_of(event({"content": "a"}), event(finish=word)).finish == finish
    assert finish in FINISHES


def test_the_end_mark_may_be_missing_or_the_reason_may() -> None:
    """Either is an end; white space around the mark does not matter."""
    assert end_of(event({"content": "a"}), STOP).finish == "stop"
    assert end_of(event({"content": "a"}), b" [DONE] ").finish == "unknown"


def test_a_reply_that_says_nothing_is_a_reply() -> None:
    """The model may stay silent."""
    assert read(event({"role": "assistant", "content": ""}), STOP, DONE) == [Finished(finish="stop", model="m-1")]


# ---- failures ---------------------------------------------------------------------------------------------------


def test_a_stream_that_ends_early_is_a_network_failure() -> None:
    """After what arrived was handed out."""
    error = failure(event({"content": CANARY}))
    assert (error.kind, error.started) == ("network", True)
    assert failure().started is False
    assert failure(event(fragment(0, "a", "f", "{"))).started is True


def test_a_stream_with_nothing_in_it_is_an_overload() -> None:
    """Not even one choice."""
    assert failure(DONE).kind == "overload"


def test_an_answer_cut_before_it_began_is_invalid_and_says_where_the_tokens_went() -> None:
    """Asking again would end the same way."""
    error = failure(event({"reasoning": CANARY}), event(finish="length", usage=USAGE), DONE)
    assert error.kind == "invalid"
    assert "2 tokens went to reasoning" in str(error)
    assert failure(event(finish="length"), DONE).kind == "invalid"


@pytest.mark.parametrize(
    "data",
    [
        b"{" + CANARY.encode(),
        b"\xff\xfe",
        b'{"choices":"' + CANARY.encode() + b'"}',
        b'{"choices":[{"delta":{"content":7}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a\x01b"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\xff"}}]}',
        b"null",
        b"[]",
    ],
)
def test_events_that_are_not_of_the_protocol_are_refused_without_a_word_of_them(data: bytes) -> None:
    """Also after events that are, where most are read the short way."""
    assert failure(data).kind == "invalid"
    error = failure(event({"content": "a"}), event({"content": "b"}), data)
    assert (error.kind, error.started) == ("invalid", True)


def test_an_error_object_in_the_stream_is_told_by_the_table() -> None:
    """Quoting its code, never its words."""
    for held, kind in (
        ({"error": {"code": 429, "message": CANARY}}, "rate"),
        ({"error": {"message": CANARY, "type": "server_error"}}, "overload"),
        ({"error": CANARY}, "overload"),
        ({"object": "error", "message": CANARY, "code": 400}, "invalid"),
        ({"type": "error", "error": None, "message": "maximum context length"}, "context"),
    ):
        assert failure(json.dumps(held).encode()).kind == kind
    assert "(server_error)" in str(failure(b'{"error":{"type":"server_error"}}'))
    late = failure(event({"content": "a"}), b'{"choices":[],"error":{"code":503}}')
    assert (late.kind, late.status, late.started) == ("overload", 503, True)


def test_an_error_field_of_null_is_no_error() -> None:
    """Some servers send it with every event."""
    assert read(event({"content": "a"}, "stop", error=None))[:1] == [TextChunk("a")]


@pytest.mark.parametrize("data", [b'{"error":{"code":"x"}}', b'{"message":"bad"}', CANARY.encode(), b"null"])
def test_an_event_marked_as_an_error_is_one_whatever_it_says(data: bytes) -> None:
    """Also without JSON."""
    assert failure(ErrorEvent(data)).kind == "overload"


@pytest.mark.parametrize("word", ["insufficient_system_resource", "network_error", "error"])
def test_ends_that_mean_a_failure_are_one(word: str) -> None:
    """The reply was broken off."""
    assert failure(event({"content": "a"}), event(finish=word)).kind == "overload"


# ---- answers that are no stream ---------------------------------------------------------------------------------


def test_a_whole_answer_gives_the_chunks_of_its_stream() -> None:
    """From servers that ignore what was asked."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm", "tool_calls": [call]}
    choice = {"message": message, "finish_reason": "tool_calls"}
    body = json.dumps({"model": "m-1", "choices": [choice], "usage": USAGE})
    parser = Parser("acme", Dialect())
    chunks = [*parser.whole(body.encode()), *parser.close()]
    assert chunks[:3] == [ThinkingChunk("hm"), TextChunk("a"), CallChunk(wire_id="a", name="f", raw_args="{}")]
    assert chunks[3] == Finished(
        finish="calls", model="m-1",
        usage=Usage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=2),
    )  # fmt: skip


def test_a_whole_answer_that_is_an_error_is_one() -> None:
    """With a status of 200."""
    parser = Parser("acme", Dialect())
    with pytest.raises(ModelError) as caught:
        parser.whole(b'{"error":{"code":500}}')
    assert caught.value.kind == "overload"
