"""Responses: what the events of a stream become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.conversation.content import Citation
from onrecord.conversation.usage import Usage
from onrecord.models.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    Finished,
    NativeItem,
    SearchChunk,
    TextChunk,
    ThinkingChunk,
)
from onrecord.providers.openai_responses.parse import Parser
from tests.providers.responses_events import (
    USAGE,
    added,
    called,
    cites,
    delta,
    done,
    end_of,
    ended,
    event,
    message,
    numbered,
    raw,
    read,
    spoken,
    text,
)

pytestmark = pytest.mark.unit


def without_natives(chunks: list[Chunk]) -> list[Chunk]:
    """All chunks but those of the continuation and of the end."""
    return [chunk for chunk in chunks if not isinstance(chunk, (NativeItem, Finished))]


def natives(chunks: list[Chunk]) -> list[Any]:
    """The continuation, read."""
    return [json.loads(bytes(chunk.raw)) for chunk in chunks if isinstance(chunk, NativeItem)]


def said(chunks: list[Chunk]) -> str:
    """The whole text."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


# ---- text -----------------------------------------------------------------------------------------------


def test_text_comes_in_the_pieces_of_the_stream() -> None:
    """Then the item as it was, and the end."""
    assert read(*spoken("Hel", "lo"), ended(usage=USAGE)) == [
        TextChunk("Hel"),
        TextChunk("lo"),
        NativeItem(raw=msgspec_raw(message("Hello"))),
        Finished(
            finish="stop",
            usage=Usage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=2),
            model="m-1",
        ),
    ]


def msgspec_raw(item: Any) -> Any:
    """An item as its bytes."""
    from msgspec import Raw

    return Raw(raw(item)[0])


def test_empty_pieces_wake_nobody() -> None:
    """Nor does one that is no text."""
    assert read(delta(""), delta(None), delta({"a": 1}), *spoken("x"), ended())[0] == TextChunk("x")


def test_a_message_that_was_never_streamed_is_read_from_its_end() -> None:
    """So are the last words of one that was streamed in part."""
    assert without_natives(read(done(message("Hello")), ended())) == [TextChunk("Hello")]
    assert without_natives(read(delta("Hel"), done(message("Hello")), ended())) == [TextChunk("Hel"), TextChunk("lo")]


def test_an_item_whose_event_is_missing_is_read_from_the_response() -> None:
    """The last event repeats the whole output."""
    output = [message("Hello"), called()]
    chunks = read(*spoken("Hello"), ended(output=output))
    assert without_natives(chunks) == [TextChunk("Hello"), CallChunk(wire_id="c1", name="price", raw_args="{}")]
    assert natives(chunks) == output


def test_what_the_response_repeats_is_not_said_again() -> None:
    """Also where it repeats it otherwise, as sealed reasoning is."""
    sealed = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "first"}
    again = {**sealed, "encrypted_content": "second"}
    chunks = read(done(sealed), *spoken("x", index=1), done(message("x"), 1), ended(output=[again, message("x")]))
    assert without_natives(chunks) == [TextChunk("x")]
    assert natives(chunks) == [sealed, message("x")]


def test_a_blank_line_stands_between_two_messages() -> None:
    """The wire has them apart; parts of one message are one text."""
    chunks = read(*spoken("Let me see.", phase="commentary"), *spoken("Forty", "-two.", index=1), ended())
    assert said(chunks) == "Let me see.\n\nForty-two."
    two_parts = [delta("a"), delta("b", part=1), done(message("a", "b"))]
    assert said(read(*two_parts, ended())) == "ab"
    assert said(read(done(message("a")), done(message(), 1), done(message("b"), 2), ended())) == "a\n\nb"


def test_a_refusal_is_a_text_of_its_own() -> None:
    """Streamed or not, and beside text."""
    refused = {"type": "refusal", "refusal": "No."}
    streamed = read(delta("Well. "), delta("No.", part=1, kind="refusal"), done(message("Well. ", refused)), ended())
    assert without_natives(streamed) == [TextChunk("Well. "), TextChunk("No.", refusal=True)]
    assert streamed[-1] == Finished(finish="refusal", model="m-1")
    assert without_natives(read(done(message(refused)), ended())) == [TextChunk("No.", refusal=True)]


def test_a_server_that_trims_what_it_has_finished_is_believed() -> None:
    """The pieces are what was said."""
    assert said(read(delta(" Hi\n"), done(message("Hi")), ended())) == " Hi\n"
    assert said(read(delta("Hi"), done(message(" Hi")), ended())) == "Hi"


def test_events_without_places_go_by_their_order() -> None:
    """Older servers leave the numbers out."""
    plain = [
        event("output_text.delta", delta="a"),
        event("output_item.done", item=message("a")),
        event("output_text.delta", delta="b"),
        event("output_item.done", item=message("b")),
    ]
    chunks = read(*plain, ended())
    assert (said(chunks), len(natives(chunks))) == ("a\n\nb", 2)


# ---- thoughts, searches, sources ------------------------------------------------------------------------------------


def test_thoughts_are_chunks_of_their_own_with_a_blank_line_between_two() -> None:
    """Parts of a summary, and what was thought before and after a search."""

    def thought(words: str, index: int, part: int) -> Any:
        return event("reasoning_summary_text.delta", delta=words, output_index=index, summary_index=part)

    chunks = read(
        thought("one", 0, 0), thought(" and", 0, 0), thought("two", 0, 1), thought("three", 1, 0),
        *spoken("x", index=2), ended(),
    )  # fmt: skip
    assert without_natives(chunks) == [
        ThinkingChunk("one"),
        ThinkingChunk(" and"),
        ThinkingChunk("\n\ntwo"),
        ThinkingChunk("\n\nthree"),
        TextChunk("x"),
    ]


def test_reasoning_in_the_clear_is_read_too() -> None:
    """As servers of open models send it."""
    item = {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    streamed = [event("reasoning_text.delta", delta="hm", output_index=0, content_index=0), done(item)]
    for events in (streamed, [done(item)]):
        assert without_natives(read(*events, *spoken("x", index=1), ended())) == [ThinkingChunk("hm"), TextChunk("x")]


def test_a_summary_that_was_not_streamed_is_read_from_its_item() -> None:
    """Part by part."""
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}, "odd"]
    chunks = read(done({"type": "reasoning", "summary": summary}), *spoken("x", index=1), ended())
    assert without_natives(chunks)[:2] == [ThinkingChunk("a"), ThinkingChunk("\n\nb")]


def test_c10_a_search_tells_its_states_once_each() -> None:
    """Search half of the case: the finished item says what its own events already said."""
    item = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}}
    states = [
        event(f"web_search_call.{s}", item_id="ws", output_index=0) for s in ("in_progress", "searching", "completed")
    ]
    chunks = read(added(item), *states, done(item), *spoken("x", index=1), ended())
    assert without_natives(chunks)[:-1] == [
        SearchChunk(id="ws", status="in_progress"),
        SearchChunk(id="ws", status="searching"),
        SearchChunk(id="ws", status="completed"),
    ]
    assert natives(chunks)[0] == item
    alone = read(done(item), *spoken("x", index=1), ended())
    assert alone[0] == SearchChunk(id="ws", status="completed")
    failed = read(done({**item, "status": "failed"}), *spoken("x", index=1), ended())
    assert failed[0] == SearchChunk(id="ws", status="failed")
    odd = read(event("web_search_call.pondering", item_id="ws"), done({**item, "status": 3}), ended())
    assert without_natives(odd) == []


def test_c10_sources_address_the_text_of_the_whole_reply() -> None:
    """Citation half of the case: offsets of a second message count from the start of the first."""
    first, second = cites("https://a.test", 0, 6), cites("https://b.test", 1, 3)
    note = event("output_text.annotation.added", annotation=first, output_index=0, content_index=0)
    late = event("output_text.annotation.added", annotation=second, output_index=1, content_index=0)
    chunks = read(
        delta("Answer"), note, done(message(text("Answer", first))),
        delta("More", 1), late, done(message(text("More", second)), 1), ended(),
    )  # fmt: skip
    assert [chunk for chunk in chunks if isinstance(chunk, CitationChunk)] == [
        CitationChunk((Citation(url="https://a.test", title="T", start=0, stop=6),)),
        CitationChunk((Citation(url="https://b.test", title="T", start=9, stop=11),)),
    ]
    assert said(chunks)[9:11] == "or"


def test_sources_that_had_no_event_are_read_from_the_message() -> None:
    """Those that had one are not told twice; what is no web page is no source, and an odd place is none."""
    one, two = cites("https://a.test", 0, 1), cites("https://b.test", True, "x", title=None)
    other = {"type": "file_citation", "file_id": "f", "index": 0}
    note = event("output_text.annotation.added", annotation=one, output_index=0, content_index=0)
    chunks = read(delta("Hi"), note, done(message(text("Hi", one, other, two))), ended())
    assert [chunk for chunk in chunks if isinstance(chunk, CitationChunk)] == [
        CitationChunk((Citation(url="https://a.test", title="T", start=0, stop=1),)),
        CitationChunk((Citation(url="https://b.test"),)),
    ]
    unstreamed = read(done(message("a")), done(message(text("b", one)), 1), ended())
    assert CitationChunk((Citation(url="https://a.test", title="T", start=3, stop=4),)) in unstreamed


# ---- calls and items ------------------------------------------------------------------------------------------------


def test_a_call_comes_whole_when_its_item_is_finished() -> None:
    """Pieces of its arguments say nothing that the item does not."""
    pieces = [event("function_call_arguments.delta", delta=part, output_index=0) for part in ('{"a"', ":1}")]
    whole = event("function_call_arguments.done", arguments='{"a":1}', output_index=0)
    chunks = read(added(called(args="")), *pieces, whole, done(called(args='{"a":1}')), ended())
    assert without_natives(chunks) == [CallChunk(wire_id="c1", name="price", raw_args='{"a":1}')]
    assert chunks[-1] == Finished(finish="calls", model="m-1")


def test_parallel_calls_and_the_text_before_them_keep_their_order() -> None:
    """As output items do."""
    events = [*spoken("Let me see."), done(called("a", call_id="c1"), 1), done(called("b", call_id="c2"), 2)]
    found = without_natives(read(*events, ended()))
    assert [getattr(chunk, "name", "") for chunk in found] == ["", "a", "b"]


@pytest.mark.parametrize(("args", "kept"), [('{"a":', '{"a":'), (None, ""), ({"a": 1}, '{"a":1}')])
def test_arguments_stay_as_the_model_wrote_them(args: Any, kept: str) -> None:
    """JSON or not; a server that sends an object means its text."""
    assert read(done(called(args=args)), ended())[0] == CallChunk(wire_id="c1", name="price", raw_args=kept)


def test_a_call_without_a_name_of_its_own_takes_that_of_its_item() -> None:
    """Results have to name something."""
    assert read(done(called(call_id="")), ended())[0] == CallChunk(wire_id="f", name="price", raw_args="{}")


def test_native_items_are_kept_byte_for_byte_in_output_order() -> None:
    """White space, unknown and nested keys; finished in another order they are put right."""
    second = b'{ "type":"function_call", "call_id":"c","name":"f","arguments":"{}", "x": {"y": [1, 2]} }'
    first = b'{"type":"reasoning","encrypted_content":"\\u00e9","summary":[]}'
    out = [
        b'{"type":"response.output_item.done","output_index":%d,"item":%b}' % one for one in ((1, second), (0, first))
    ]
    chunks = read(*out, ended())
    assert [bytes(chunk.raw) for chunk in chunks if isinstance(chunk, NativeItem)] == [first, second]


def test_c12_what_has_no_portable_form_is_named_and_kept() -> None:
    """Parser half of the case: one entry for the item, and the readable text."""
    odd = message("Readable.", {"type": "hologram", "data": "x"})
    chunks = read(done(odd), ended())
    assert said(chunks) == "Readable."
    (kept,) = [chunk for chunk in chunks if isinstance(chunk, NativeItem)]
    assert (json.loads(bytes(kept.raw)), kept.lost) == (odd, "content of type 'hologram'")
    (unknown,) = [chunk for chunk in read(done({"type": "hologram"}), ended()) if isinstance(chunk, NativeItem)]
    assert unknown.lost == "an item of type 'hologram'"
    (empty,) = [chunk for chunk in read(done(message("x", "y", {})), ended()) if isinstance(chunk, NativeItem)]
    assert empty.lost == "content of type 'None'"


@pytest.mark.parametrize("kind", ["reasoning", "compaction", "web_search_call"])
def test_reasoning_compaction_and_searches_are_never_lost(kind: str) -> None:
    """They have no portable form, and nothing is missed."""
    (item, _) = [c for c in read(done({"type": kind, "id": "x"}), ended()) if isinstance(c, (NativeItem, Finished))]
    assert isinstance(item, NativeItem)
    assert item.lost == ""


# ---- the end, and what is no part of it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [None, {"input_tokens": None, "output_tokens": None, "total_tokens": None}, "many", {"total_tokens": 3}],
)
def test_e16_usage_that_is_missing_or_all_null_is_none(usage: Any) -> None:
    """Responses half of the case; what cannot be read is missing."""
    assert end_of(*spoken("x"), ended(usage=usage)).usage is None
    assert end_of(*spoken("x"), ended()).usage is None


def test_usage_without_details_counts_what_there_is() -> None:
    """Also as fractions, which some servers send."""
    assert end_of(*spoken("x"), ended(usage={"input_tokens": 3.0})).usage == Usage(input_tokens=3)
    held = {"input_tokens": 3, "input_tokens_details": None, "output_tokens_details": {"reasoning_tokens": None}}
    assert end_of(*spoken("x"), ended(usage=held)).usage == Usage(input_tokens=3)


def test_events_that_nobody_knows_yet_are_skipped() -> None:
    """Whatever they hold, and under which names."""
    future = [
        event("thought.painted", delta={"a": 1}, item=[1], response=7, sequence_number="9", output_index=None),
        event("audio.delta", delta="UklGR", output_index=0),
        {"type": "weather"},
    ]
    assert said(read(*future, *spoken("x"), *future, ended())) == "x"


def test_what_comes_after_the_end_is_not_read() -> None:
    """Not even an error, or what is no JSON."""
    assert said(read(*spoken("x"), ended(), b"garbage", delta("y"), {"type": "error"})) == "x"


def test_an_end_mark_of_another_wire_ends_nothing() -> None:
    """Some servers write it behind every stream."""
    assert said(read(*spoken("x"), b"[DONE]", ended(), b"[DONE]")) == "x"


def test_a_whole_answer_is_read_as_its_stream_would_be() -> None:
    """From servers that do not stream."""
    output = [
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        message(text("Hi", cites("https://a", 0, 2))),
    ]
    body = {"status": "completed", "model": "m-1", "output": output, "usage": USAGE, "error": None}
    parser = Parser("acme")
    chunks = [*parser.whole(json.dumps(body).encode()), *parser.close()]
    assert without_natives(chunks) == [
        SearchChunk(id="ws", status="completed"),
        TextChunk("Hi"),
        CitationChunk((Citation(url="https://a", title="T", start=0, stop=2),)),
    ]
    assert natives(chunks) == output
    assert parser.done


# ---- numbers --------------------------------------------------------------------------------------------


def test_an_event_that_comes_twice_counts_once() -> None:
    """By its number, wherever the stream repeats itself."""
    events = numbered(event("created", response={}), *spoken("ha", "ha"), ended())
    plain = read(*events)
    for at in range(len(events)):
        assert read(*events[: at + 1], *events[at:]) == plain
        assert read(*events[: at + 1], *events[: at + 1], *events[at + 1 :]) == plain


def test_gaps_in_the_numbers_are_no_failure_where_nothing_is_missing() -> None:
    """Servers skip events that were not asked for; numbers may begin anywhere."""
    events = numbered(*spoken("ha", "ha"), ended(), start=5)
    events[1]["sequence_number"] = 40
    for one in events[2:]:
        one["sequence_number"] += 60
    assert said(read(*events)) == "haha"


@pytest.mark.parametrize("number", [0, -1, 7])
def test_a_server_that_gives_all_events_one_number_does_not_count(number: int) -> None:
    """Equal pieces are then equal pieces, not repetitions."""
    events = [{**one, "sequence_number": number} for one in (*spoken("ha", "ha"), ended())]
    assert said(read(*events)) == "haha"
