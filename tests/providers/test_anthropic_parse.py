"""Messages: events become chunks, whatever servers make of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.conversation.content import Citation
from onrecord.conversation.usage import FINISHES, Usage
from onrecord.errors import ModelError
from onrecord.models.chunks import CallChunk, CitationChunk, Finished, SearchChunk, TextChunk, ThinkingChunk
from onrecord.net.sse import ErrorEvent
from onrecord.providers.anthropic.message_events import FINISH_OF, PAUSED
from onrecord.providers.anthropic.parse import Parser
from tests.providers.anthropic_events import (
    CANARY,
    begin,
    called,
    delta,
    end_of,
    ended,
    event,
    failure,
    read,
    reply,
    start,
    stop,
    text,
    thought,
)

pytestmark = pytest.mark.unit

PING = event("ping")
FOUND = {"type": "web_search_result", "title": "A", "url": "https://e.test/a", "encrypted_content": "x"}

# ---- text, thinking, citations ----------------------------------------------------------------------------------


def test_texts_come_out_one_by_one_and_the_end_once() -> None:
    """Empty pieces are no chunks; pings are nothing."""
    chunks = read(begin(), PING, *text(0, "", "a", 'q"}\\"}'), *text(1, "☃\n"), PING, *ended(), PING)
    assert chunks[:-1] == [TextChunk("a"), TextChunk('q"}\\"}'), TextChunk("☃\n")]
    assert chunks[-1] == Finished(finish="stop", model="m-1", usage=Usage(input_tokens=10, output_tokens=1))


def test_thinking_is_told_apart_from_text() -> None:
    """Signatures and sealed thinking are no words."""
    sealed = (start(1, type="redacted_thinking", data="x"), stop(1))
    chunks = read(*reply(thought(0, "h", "m"), sealed, text(2, "a")))
    assert [one for one in chunks if isinstance(one, (TextChunk, ThinkingChunk))] == [
        ThinkingChunk("h"),
        ThinkingChunk("m"),
        TextChunk("a"),
    ]


@pytest.mark.parametrize(
    "shown",
    [
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}       }',
        b'{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}',
        b'{"delta":{"text":"a","type":"text_delta"},"index":0,"type":"content_block_delta"}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"more":"}"}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","more":"b"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\u0061"}}',
    ],
)
def test_a_piece_is_read_alike_however_it_is_written(shown: bytes) -> None:
    """The short way is for one spelling; any other says the same."""
    assert read(begin(), start(0, type="text", text=""), shown, stop(0), *ended())[0] == TextChunk("a")


def test_words_that_a_block_begins_with_are_words() -> None:
    """Some servers send the first piece, or all, with the beginning."""
    first = (start(0, type="text", text="Hel"), delta(0, "text_delta", "lo"), stop(0))
    second = (start(1, type="thinking", thinking="hm", signature="s"), stop(1))
    assert read(*reply(first, second))[:3] == [TextChunk("Hel"), TextChunk("lo"), ThinkingChunk("hm")]


def test_sources_of_a_text_are_citations_with_its_place_in_the_whole_text() -> None:
    """The wire names no place in the text, only the block: that is the place."""
    web = {"type": "web_search_result_location", "url": "https://e.test/a", "title": "A", "encrypted_index": "x"}
    own = {"type": "search_result_location", "source": "https://e.test/b", "title": None}
    page = {"type": "page_location", "document_title": "D"}
    cited = (delta(1, "citations_delta", citation=one) for one in (web, own, page))
    blocks = [text(0, "☃ So: "), (start(1, type="text", text="", citations=[]), *cited, *text(1, "sunny")[1:])]
    (told,) = [one for one in read(*reply(*blocks, text(2, "."))) if isinstance(one, CitationChunk)]
    assert told.citations == (
        Citation(url="https://e.test/a", title="A", start=6, stop=11),
        Citation(url="https://e.test/b", title="", start=6, stop=11),
    )


def test_words_that_a_block_begins_with_count_for_the_places_of_later_ones() -> None:
    """Some servers send a whole block at once."""
    web = {"type": "web_search_result_location", "url": "https://e.test/a", "title": "A"}
    whole = (start(0, type="text", text="It is "), stop(0))
    cited = (start(1, type="text", text="", citations=[]), delta(1, "citations_delta", citation=web))
    (told,) = [one for one in read(*reply(whole, (*cited, *text(1, "sunny")[1:]))) if isinstance(one, CitationChunk)]
    assert [(one.start, one.stop) for one in told.citations] == [(6, 11)]


# ---- calls ------------------------------------------------------------------------------------------------------


def calls(*blocks: tuple[bytes, ...], reason: str = "tool_use") -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call."""
    chunks = read(*reply(*blocks, reason=reason))
    return [(one.wire_id, one.name, one.raw_args) for one in chunks if isinstance(one, CallChunk)]


def test_a_call_comes_out_whole() -> None:
    """Its arguments as the model wrote them, to the byte."""
    assert calls(called(0, "a", "f", "", '{"n"', ": 1.50}"), called(1, "b", "g")) == [
        ("a", "f", '{"n": 1.50}'),
        ("b", "g", "{}"),
    ]


def test_arguments_may_come_with_the_beginning() -> None:
    """From servers that do not stream them."""
    whole = (start(0, type="tool_use", id="a", name="f", input={"n": 1}), stop(0))
    assert calls(whole) == [("a", "f", '{"n":1}')]
    assert calls((start(0, type="tool_use", id="a", name="f", input=None), stop(0))) == [("a", "f", "{}")]


def test_calls_have_ids_of_their_own() -> None:
    """Also where a server gives two the same, or none; of a form that the vendor takes back."""
    blocks = (called(0, "a", "f"), called(1, "a", "f"), (start(2, type="tool_use", name="g"), stop(2)))
    assert [id for id, _, _ in calls(*blocks)] == ["a", "a_2", "call_2"]


def test_arguments_that_are_no_json_come_out_as_they_are() -> None:
    """What the model wrote is for the caller to judge."""
    assert calls(called(0, "a", "f", '{"city":"Osl'), reason="max_tokens") == [("a", "f", '{"city":"Osl')]


def test_calls_make_the_end_a_call_for_tools_whatever_the_server_says() -> None:
    """Some end with another word."""
    for reason, finish in (("tool_use", "calls"), ("end_turn", "calls"), ("odd", "calls"), ("max_tokens", "length")):
        assert end_of(*reply(called(0, "a", "f"), reason=reason)).finish == finish


def test_a_call_without_a_name_is_refused() -> None:
    """It could be neither run nor replayed."""
    error = failure(begin(), *called(0, "a", "", f'{{"x":"{CANARY}"}}'))
    assert (error.kind, error.started) == ("invalid", True)


# ---- searches of the provider's own -----------------------------------------------------------------------------


def test_a_search_tells_how_it_goes() -> None:
    """Asked, running, done or failed, under one id; it is no call."""
    asked = called(0, "s1", "web_search", '{"query":"x"}', kind="server_tool_use")
    for content, status in (([FOUND], "completed"), ({"type": "web_search_tool_result_error"}, "failed")):
        result = (start(1, type="web_search_tool_result", tool_use_id="s1", content=content), stop(1))
        chunks = read(*reply(asked, result, text(2, "a")))
        assert [one for one in chunks if isinstance(one, SearchChunk)] == [
            SearchChunk(id="s1", status=one) for one in ("in_progress", "searching", status)
        ]
        assert not [one for one in chunks if isinstance(one, CallChunk)]


# ---- usage and the end ------------------------------------------------------------------------------------------


def test_usage_counts_what_was_cached_as_input_and_thinking_as_output() -> None:
    """Of beginning and end the larger counts: each counts everything so far."""
    counts: dict[str, Any] = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 1,
    }
    usage = end_of(
        begin(**counts),
        *text(0, "a"),
        *ended(input_tokens=0, output_tokens=9, output_tokens_details={"thinking_tokens": 4}),
    ).usage
    assert usage == Usage(
        input_tokens=123, output_tokens=9, cached_input_tokens=100, reasoning_tokens=4, cache_write_tokens=20
    )


@pytest.mark.parametrize("usage", [{}, {"input_tokens": None, "output_tokens": None}, {"input_tokens": "x"}])
def test_e16_usage_that_is_missing_or_all_null_is_none(usage: Any) -> None:
    """Nobody counted; zero would be a claim."""
    message = {"id": "1", "model": "m-1", "content": [], "usage": usage}
    assert end_of(event("message_start", message=message), *text(0, "a"), *ended()).usage is None


@pytest.mark.parametrize(("word", "finish"), [*FINISH_OF.items(), ("made-up", "unknown")])
def test_ends_are_told_in_the_library_s_words(word: str, finish: str) -> None:
    """An unheard-of one is unknown; a pause is a cut for whoever does not go on from it."""
    events = reply(text(0, "a"), reason=word)
    assert end_of(*events).finish == ("length" if finish == PAUSED else finish)
    assert end_of(*events).finish in FINISHES
    assert end_of(*events, resumes=True).finish == finish


def test_the_end_mark_may_be_missing() -> None:
    """The reason is an end by itself."""
    assert end_of(begin(), *text(0, "a"), ended()[0]).finish == "stop"


def test_a_reply_that_says_nothing_is_a_reply() -> None:
    """The model may stay silent, and may refuse without a word."""
    assert [type(one) for one in read(*reply())] == [Finished]
    assert end_of(*reply(reason="refusal")).finish == "refusal"


# ---- failures ---------------------------------------------------------------------------------------------------


def test_a_stream_that_ends_early_is_a_network_failure_wherever_it_is_cut() -> None:
    """Dropped after any event: the reply is whole, or an error says that it is not."""
    events = reply(thought(0, "hm"), text(1, CANARY), called(2, "a", "f", '{"n":1}'), reason="tool_use")
    whole = read(*events)
    for at in range(len(events) - 1):
        if events[at - 1 : at] == [events[-2]]:  # all but the end mark
            assert read(*events[:at]) == whole
        else:
            assert failure(*events[:at]).kind == "network"
    assert failure(begin()).started is False
    assert failure(begin(), start(0, type="tool_use", id="a", name="f", input={})).started is True


def test_a_block_that_began_and_never_ended_is_no_whole_reply() -> None:
    """Its call would be run half, or not at all."""
    *asked, _ = called(1, "toolu_1", "price", '{"city":"Lund"}')
    error = failure(begin(), *text(0, "Wait."), *asked, *ended("tool_use"))
    assert (error.kind, error.started) == ("network", True)


def test_an_answer_cut_before_it_began_is_invalid_and_says_where_the_tokens_went() -> None:
    """Asking again would end the same way."""
    error = failure(*reply(thought(0, CANARY), reason="max_tokens", output_tokens_details={"thinking_tokens": 7}))
    assert (error.kind, "7 tokens went to reasoning" in str(error)) == ("invalid", True)
    assert failure(*reply(reason="model_context_window_exceeded")).kind == "context"


@pytest.mark.parametrize(
    "data",
    [
        b"{" + CANARY.encode(),
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\x01b"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\xff"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}} trailing',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}',
        b'{"type":"content_block_delta","index":0}',
        b'{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"a"}}',
        b'{"type":"content_block_start","index":1}',
        b'{"type":"content_block_stop"}',
        b'{"type":"content_block_stop","index":7}',
        b'{"type":"message_start"}',
    ],
)
def test_events_that_are_not_of_the_protocol_are_refused_without_a_word_of_them(data: bytes) -> None:
    """Also in the middle of pieces, where most are read the short way."""
    assert failure(begin(), data).kind == "invalid"
    error = failure(begin(), start(0, type="text", text=""), delta(0, "text_delta", "a"), data)
    assert (error.kind, error.started) == ("invalid", True)


def test_events_of_the_future_are_not_read() -> None:
    """Whatever their fields are."""
    future = [event("pong"), event("tick", delta="x", message=[], usage=3), b'{"index":"x","type":"z"}', b'{"a":1}']
    assert read(begin(), *future, *text(0, "a"), *ended())[0] == TextChunk("a")


def test_the_same_event_twice_is_once_where_that_can_be_told() -> None:
    """Beginnings and ends are; anything that contradicts what came is refused."""
    first, piece, last = text(0, "a")
    twice = [begin(), begin(), first, first, piece, last, last, *ended(), *ended()]
    assert read(*twice) == read(begin(), first, piece, last, *ended())
    assert failure(begin(), begin("msg_2")).kind == "invalid"
    assert failure(begin(), first, piece, first).kind == "invalid"
    assert failure(begin(), first, start(0, type="text", text="b")).kind == "invalid"
    assert failure(begin(), first, piece, last, piece).kind == "invalid"


@pytest.mark.parametrize(
    ("told", "kind", "status"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overload", 529),
        ({"type": "rate_limit_error", "message": CANARY}, "rate", 429),
        ({"type": "api_error", "message": CANARY}, "overload", 500),
        ({"type": "invalid_request_error", "message": f"prompt is too long: {CANARY}"}, "context", 400),
        ({"type": "invalid_request_error", "message": CANARY}, "invalid", 400),
        ({"type": "authentication_error", "message": CANARY}, "auth", 401),
        ({"type": "an_error_of_the_future", "message": CANARY}, "overload", None),
        (CANARY, "overload", None),
        (None, "overload", None),
    ],
)
def test_an_error_in_the_stream_is_told_with_the_status_that_its_type_stands_for(
    told: Any, kind: str, status: int | None
) -> None:
    """So that a busy server is asked again, as it is before a stream."""
    data = event("error", error=told)
    for one in (data, ErrorEvent(data)):
        error = failure(begin(), one)
        assert (error.kind, error.status, error.started) == (kind, status, False)
    late = failure(begin(), start(0, type="text", text=""), delta(0, "text_delta", "a"), data)
    assert (late.kind, late.started) == (kind, True)


@pytest.mark.parametrize("data", [CANARY.encode(), b"null", b'{"message":"bad"}', b'{"type":"ping"}'])
def test_an_event_marked_as_an_error_is_one_whatever_it_says(data: bytes) -> None:
    """Also without JSON."""
    assert failure(ErrorEvent(data)).kind == "overload"


# ---- answers that are no stream ---------------------------------------------------------------------------------


def test_a_whole_answer_gives_the_chunks_of_its_stream() -> None:
    """From servers that ignore what was asked."""
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
    ]
    usage = {"input_tokens": 10, "output_tokens": 1}
    body = {"id": "1", "type": "message", "model": "m-1", "content": content, "stop_reason": "tool_use", "usage": usage}
    parser = Parser("acme")
    chunks = [*parser.whole(json.dumps(body, separators=(",", ":")).encode()), *parser.close()]
    streamed = read(*reply(thought(0, "hm"), text(1, "a"), called(2, "a", "f", '{"n":1}'), reason="tool_use"))
    assert chunks == streamed
    assert parser.done


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', "overload"),
        (b'{"error":{"type":"rate_limit_error"}}', "rate"),
        (b"[]", "invalid"),
        (b'{"content":3}', "invalid"),
        (b'{"type":"message","content":[{"type":"tool_use"}],"stop_reason":"tool_use"}', "invalid"),
    ],
)
def test_a_whole_answer_that_is_none_is_an_error(body: bytes, kind: str) -> None:
    """With a status of 200."""
    with pytest.raises(ModelError) as caught:
        Parser("acme").whole(body)
    assert caught.value.kind == kind


def test_a_whole_answer_without_an_end_is_not_whole() -> None:
    """It was cut where it was made."""
    parser = Parser("acme")
    parser.whole(b'{"type":"message","content":[{"type":"text","text":"a"}]}')
    with pytest.raises(ModelError) as caught:
        parser.close()
    assert caught.value.kind == "network"
