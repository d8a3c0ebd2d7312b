"""What Google really sent, against what a person reads in the recordings; what it was asked, against what we ask."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from onrecord.conversation.content import Text
from onrecord.conversation.messages import Continuation, Round, ToolCall
from onrecord.models.chunks import CallChunk, Chunk, CitationChunk, Finished, NativeItem, SearchChunk, TextChunk
from onrecord.net.sse import EventParser
from onrecord.providers.google.cards import PROTOCOL, google_card
from onrecord.providers.google.parse import Parser
from onrecord.providers.google.project import GoogleProjection
from tests.models.requests import request, said, system, user
from tests.providers.wires import TRAFFIC, needs_traffic

pytestmark = pytest.mark.integration

RECORDED: dict[str, Any] = {
    f"{file.stem}/{n}": held
    for file in sorted((TRAFFIC / "google").glob("*.json"))
    for n, held in enumerate(json.loads(file.read_text(encoding="utf-8")))
}


class Fact(NamedTuple):
    """What a recording says: pieces of its text, calls, tokens (in, out, thought), how it ended, sources."""

    text: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    tokens: tuple[int, int, int] = (0, 0, 0)
    finish: str = "stop"
    model: str = "gemini-2.0-flash"
    sources: tuple[str, ...] = ()
    signed: int = 0


PASSAGES = tuple(
    """\
As of Tuesday afternoon, the temperature is around 69°F (21°C), with a real feel of about 76°F (24°C) and humidity at \
approximately 68%.
Another report indicates a temperature of 68°F with passing clouds.
There is a very low chance of rain throughout the day.
The forecast for the remainder of the day predicts sunny skies with highs ranging from the mid-60s to the lower 80s.
Some sources suggest the high could reach up to 85°F.
Tonight, the weather is expected to be partly cloudy with lows in the upper 50s.
Hourly forecasts show temperatures remaining in the low 70s during the afternoon before gradually cooling down in the \
evening.
Hourly forecasts show temperatures remaining in the low 70s during the afternoon before gradually cooling down in the \
evening.
The chance of rain remains low throughout the day.""".splitlines()
)
FACTS = {
    "google_model_iter_stream/0": Fact(
        calls=(("get_capital", '{"country":"France"}'),), tokens=(52, 5, 0), finish="calls"
    ),
    "google_model_iter_stream/1": Fact(
        calls=(("get_temperature", '{"city":"Paris"}'),), tokens=(64, 5, 0), finish="calls"
    ),
    "google_model_iter_stream/2": Fact(text=("The temperature in Paris is 30°C.\n",), tokens=(79, 12, 0)),
    "google_model_stream/0": Fact(
        text=("The capital of France is Paris.\n",), tokens=(13, 8, 0), model="gemini-2.0-flash-exp"
    ),
    "google_model_web_search_tool_stream/0": Fact(
        text=("### Weather in San Francisco", PASSAGES[0], "remains low throughout the day."),
        tokens=(17 + 102, 241 + 412, 412),
        model="gemini-2.5-pro",
        sources=PASSAGES,
    ),
    "google_streaming_tool_call_thought_signature/0": Fact(
        calls=(("get_country", "{}"),), tokens=(29, 212, 202), finish="calls", model="gemini-3-pro-preview", signed=1
    ),
    "google_streaming_tool_call_thought_signature/1": Fact(
        text=("The capital of Mexico is Mexico City.",), tokens=(257, 8, 0), model="gemini-3-pro-preview"
    ),
}  # fmt: skip


def chunks_of(name: str) -> list[Chunk]:
    """The reply of one exchange, streamed or whole."""
    held, parser = RECORDED[name]["response"], Parser("google")
    if not isinstance(held, str):
        return [*parser.whole(json.dumps(held).encode()), *parser.close()]
    events = EventParser()
    out = [chunk for data in (*events.feed(held.encode()), *events.close()) for chunk in parser.feed(data)]
    return [*out, *parser.close()]


@needs_traffic
@pytest.mark.parametrize("name", FACTS)
def test_each_reply_says_what_its_recording_says(name: str) -> None:
    """Text, calls, arguments, tokens, model, end, and the passage of each source."""
    fact, chunks = FACTS[name], chunks_of(name)
    end = chunks[-1]
    assert isinstance(end, Finished)
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
    assert all(piece in text for piece in fact.text)
    assert bool(text) == bool(fact.text)
    if len(fact.text) == 1:
        assert text == fact.text[0]
    assert tuple((c.name, c.raw_args) for c in chunks if isinstance(c, CallChunk)) == fact.calls
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens, end.usage.reasoning_tokens) == fact.tokens
    assert (end.finish, end.model) == (fact.finish, fact.model)
    cited = [source for chunk in chunks if isinstance(chunk, CitationChunk) for source in chunk.citations]
    assert tuple(text[source.start : source.stop] for source in cited) == fact.sources
    assert all(source.url.startswith("https://") and source.title for source in cited)
    assert len([chunk for chunk in chunks if isinstance(chunk, NativeItem)]) == fact.signed


@needs_traffic
def test_every_recording_is_in_the_table_and_adds_up() -> None:
    """What the library counts is what Google counts in all."""
    streamed = {name for name, held in RECORDED.items() if isinstance(held["response"], str)}
    assert streamed == set(FACTS)
    for name in streamed:
        counts = RECORDED[name]["response"].rpartition('"totalTokenCount": ')[2]
        end = chunks_of(name)[-1]
        assert isinstance(end, Finished)
        assert end.usage is not None
        assert end.usage.input_tokens + end.usage.output_tokens == int(counts.partition(",")[0].partition("}")[0])


@needs_traffic
def test_an_answer_that_was_not_streamed_is_read_as_a_whole() -> None:
    """With a search and sources whose places count characters."""
    chunks = chunks_of("google_model_web_search_tool_stream/1")
    (text,) = [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]
    cited = [source for chunk in chunks if isinstance(chunk, CitationChunk) for source in chunk.citations]
    supports = RECORDED["google_model_web_search_tool_stream/1"]["response"]["candidates"][0]["groundingMetadata"]
    passages = [
        held["segment"]["text"] for held in supports["groundingSupports"] for _ in held["groundingChunkIndices"]
    ]
    assert [text[source.start : source.stop] for source in cited] == passages
    assert [chunk.status for chunk in chunks if isinstance(chunk, SearchChunk)] == ["completed"]


# ---- what was asked -----------------------------------------------------------------------------------------------


def exchange(name: str, n: int) -> Any:
    """What Google was really asked, without the ids that the library of the recording made up."""
    held = json.loads(json.dumps(RECORDED[f"{name}/{n}"]["request"]))
    for entry in held["contents"]:
        for part in entry["parts"]:
            for kind in ("functionCall", "functionResponse"):
                part.get(kind, {}).pop("id", None)
    return held


@needs_traffic
def test_the_signed_round_is_asked_as_it_was_recorded() -> None:
    """The call with its signature byte for byte as Google streamed it, then its result."""
    name = "google_streaming_tool_call_thought_signature"
    chunks = chunks_of(f"{name}/0")
    (called,) = [chunk for chunk in chunks if isinstance(chunk, CallChunk)]
    items = tuple(chunk.raw for chunk in chunks if isinstance(chunk, NativeItem))
    result = ToolCall(
        id="r/c0", wire_id=called.wire_id, name=called.name, raw_args=called.raw_args, result=(Text("Mexico"),),
        status="returned",
    )  # fmt: skip
    held = Round(id="r", calls=(result,), continuation=Continuation(protocol=PROTOCOL, scope="s", items=items))
    question = user("What is the capital of the user country? Call the tool")
    wire = GoogleProjection(*google_card("gemini-3-pro-preview"))
    contents = json.loads(wire.wire(request(question, said(held), scope="s")).body)["contents"]
    recorded = exchange(name, 1)["contents"]
    assert contents[0] == recorded[0]
    (part,) = contents[1]["parts"]
    streamed = json.loads(RECORDED[f"{name}/0"]["response"].split("data: ")[1])
    assert part == streamed["candidates"][0]["content"]["parts"][0]
    (answer,) = contents[2]["parts"]
    assert answer == {"functionResponse": {"name": "get_country", "response": {"result": "Mexico"}}}
    assert recorded[2]["parts"][0]["functionResponse"]["name"] == "get_country"
    assert bytes(items[0]) in RECORDED[f"{name}/0"]["response"].encode()


@needs_traffic
def test_a_talk_with_instructions_is_asked_as_it_was_recorded() -> None:
    """The same contents and the same instructions."""
    recorded = exchange("google_model_stream", 0)
    wire = GoogleProjection(*google_card("gemini-2.0-flash-exp"))
    asked = request(user("What is the capital of France?"), pieces=(system("You are a helpful chatbot."),))
    body = json.loads(wire.wire(asked).body)
    assert body["contents"] == recorded["contents"]
    assert body["systemInstruction"]["parts"] == recorded["systemInstruction"]["parts"]
