"""The stand-in behind the model port: requests made by hand, chunks, bytes, and what no input may do."""

import json
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.conversation.content import Audio, File, Image, Part, Structured, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import ContextMessage, Note, Round, ToolCall, Unit, UserMessage
from onrecord.errors import ConfigurationError
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.names import model_named
from onrecord.models.request import Offer, Piece, Reading, Request, Shape, Span, Swap, ToolSpec, View
from onrecord.providers.offline.client import named, reply_chunks
from onrecord.tools.tool import Tool

pytestmark = pytest.mark.unit

MODEL = named("offline", "")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
    "required": ["city"],
}


def offer(name: str = "price", about: str = "Price of a stay in a city.", *, destructive: bool = False) -> Offer:
    """An offered tool; its spec differs from the tool, as a decorated one may."""
    tool = Tool(name, lambda _args, _ctx: None, description="plain", parameters=SCHEMA, destructive=destructive)
    return Offer(tool=tool, spec=ToolSpec(name=name, description=about, schema=SCHEMA))


def person(text: str, *more: Part, at: str = "u") -> UserMessage:
    """A person's message."""
    return UserMessage(id=at, content=(Text(text), *more))


def called(
    result: str | None, *, status: Any = "returned", name: str = "price", args: str = '{"city":"Rome"}'
) -> Round:
    """A round with one call."""
    content = None if result is None else (Text(result),)
    call = ToolCall(id="c", wire_id="w", name=name, raw_args=args, result=content, status=status)
    return Round(id="r", calls=(call,))


def request(*units: Unit, own: int | None = None, **more: Any) -> Request:
    """A request that shows these units; ``own`` is where the brief's rounds begin (default: behind all)."""
    given: dict[str, Any] = {
        "purpose": "speak",
        "where": "main/r0",
        "pieces": (Piece(source="agent", text="Breakfast is served from 7 to 10."),),
        "conversation": Conversation(units=Conversation().units.extend(units)),
        "own": len(units) if own is None else own,
        "view": View(spans=(Span(0, len(units)),)),
        "model": MODEL,
        "offers": (offer(),),
    }
    return Request(**(given | more))


def chunks(made: Request) -> list[Chunk]:
    """The reply to a request."""
    return list(reply_chunks(made, "rules"))


def said(made: Request) -> str:
    """The text of the reply."""
    return "".join(chunk.text for chunk in chunks(made) if isinstance(chunk, TextChunk))


async def test_streams_words_and_ends_once() -> None:
    """Small pieces that join to the text, one Finished, nobody counts tokens."""
    asked = request(person("When is breakfast?"))
    async with aclosing(MODEL.stream(asked)) as stream:
        got = [chunk async for chunk in stream]
    assert len(got) > 5
    assert "".join(c.text for c in got[:-1] if isinstance(c, TextChunk)) == said(asked)
    assert got[-1] == Finished(finish="stop", usage=None, model="rules")


def test_a_call_is_one_complete_chunk() -> None:
    """With arguments as JSON and a finish that says so."""
    call, end = chunks(request(person("price in Rome")))
    assert isinstance(call, CallChunk)
    assert (call.name, json.loads(call.raw_args)) == ("price", {"city": "Rome"})
    assert end == Finished(finish="calls", model="rules")


def test_names_lead_here() -> None:
    """``offline`` and ``offline:rules`` through the registry of names; there is no other."""
    assert model_named("offline").card.name == "offline:rules"
    assert model_named("offline:rules").card == model_named("offline").card
    with pytest.raises(ConfigurationError, match="there is no model 'demo' of provider 'offline'"):
        model_named("offline:demo")


@pytest.mark.parametrize(
    "made",
    [
        request(person("price in Rome"), choice="none"),
        request(person("price in Rome"), purpose="wrap_up"),
        request(person("price in Rome"), purpose="consult"),
        request(person("price in Rome"), offers=()),
    ],
)
def test_calls_only_where_it_may(made: Request) -> None:
    """No tools, no choice, a wrap-up, a silent call: text, whatever the message asks for."""
    assert not any(isinstance(chunk, CallChunk) for chunk in chunks(made))
    assert said(made)


def test_a_named_choice_is_followed_as_far_as_the_words_go() -> None:
    """The named tool although the message is not about it; its missing argument is still asked for."""
    forced = request(person("Rome, please"), choice="weather", offers=(offer(), offer("weather", "Weather.")))
    call = chunks(forced)[0]
    assert isinstance(call, CallChunk)
    assert call.name == "weather"
    assert "I still need: city" in said(request(person("hmm hmm hmm well then go"), choice="price"))
    after = request(person("Rome, please"), called('{"total":4}'), own=1, choice="price")
    assert "total: 4" in said(after)


def test_speaks_from_results_and_calls_nothing_twice() -> None:
    """The call of this brief is not made again; one of an earlier turn may be."""
    assert "total: 420" in said(request(person("price in Rome"), called('{"total":420}'), own=1))
    again = request(person("price in Rome"), called('{"total":420}'), person("price in Rome", at="v"))
    assert isinstance(chunks(again)[0], CallChunk)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (called('{"error":"Permission denied: no"}', status="denied"), "was not allowed: Permission denied: no."),
        (called(None, status="not_run"), "did not work"),
        (called(None, status="cancelled"), "It is not known whether price (city: Rome) took effect."),
        (called('{"checked":"eu"}', status="partial"), "checked: eu (partly)."),
        (called("not json", args="not json"), "From price: not json."),
        (called("boom", status="failed"), "did not work: boom."),
    ],
)
def test_what_went_wrong_is_said(made: Round, expected: str) -> None:
    """Every way a call can end."""
    assert expected in said(request(person("price in Rome"), made, own=1))


def test_a_call_that_waits_is_not_shown() -> None:
    """As on every wire."""
    made = request(person("hello"), called(None, status="asked"), own=1)
    assert "price (" not in said(request(person("nothing"), called(None, status="asked"), own=1, offers=()))
    assert b'"calls":[]' in MODEL.wire(made).body


def test_the_yes_to_a_call_that_waits_is_no_yes_to_what_is_said_next() -> None:
    """A person must still answer a rule's question: another message meanwhile does not call the tool again."""
    tools = (offer("book", "Book a room in a city.", destructive=True), offer())
    asked = "I am about to run book (city: Rome). This cannot be undone. Shall I go ahead?"
    said = Round(id="r", content=(Text(asked),))
    waits = called(None, status="asked", name="book")
    for meanwhile in ("What is the price?", "Tell me the price in Oslo."):
        units: list[Unit] = [person("Book a room in Rome."), said, person("yes"), waits, person(meanwhile)]
        (chunk, *_) = chunks(request(*units, offers=tools))
        assert isinstance(chunk, CallChunk)
        assert chunk.name == "price"


def test_reads_the_view_and_not_more() -> None:
    """Spans, inserts, swapped results, and the message that the pieces carry."""
    units = (person("price in Rome"), called('{"total":420}'), person("price in Oslo", at="v"))
    swapped = request(
        *units[:2], own=1, view=View(spans=(Span(0, 2),), swaps=(Swap(unit=1, call=0, shows=(Text('{"total":1}'),)),))
    )
    assert "total: 1." in said(swapped)
    note = ContextMessage(id="n", content=(Text("The pool opens at nine."),))
    shown = request(person("When does the pool open?"), view=View(spans=(note, Span(0, 1))))
    assert "The pool opens at nine." in said(shown)
    carried = request(*units, carries=2, view=View(spans=(Span(0, 2),)))
    call = chunks(carried)[0]
    assert isinstance(call, CallChunk)
    assert json.loads(call.raw_args) == {"city": "Oslo"}
    hidden = request(*units, view=View(spans=(Span(0, 0),)))
    assert b"Rome" not in MODEL.wire(hidden).body


def test_context_and_notes_are_data() -> None:
    """Facts of the library may be quoted; its notes after results are no part of them."""
    round_ = called('{"total":4}')
    noted = Round(
        id="r",
        before=(ContextMessage(id="b", content=(Text("The lift is out of order."),)),),
        calls=(
            ToolCall(id="c", wire_id="w", name="x", result=(Text("1"),), notes=(Note("n", "note"),), status="returned"),
        ),
    )
    assert "note" not in said(request(person("go"), noted, own=1, offers=()))
    asks = request(noted, round_, person("Is the lift in order?"), offers=())
    assert "The lift is out of order." in said(asks)


def test_wire_is_what_it_was_shown() -> None:
    """Canonical JSON, equal for equal requests, without media."""
    sound = Audio(data=b"RIFF", transcript="price in Rome")
    made = request(
        UserMessage(id="u", content=(Image(data=b"\x89PNG"), File(name="r.pdf", data=b"%PDF"), sound)),
        ContextMessage(id="c", content=(Structured(kind="summary", text="s"),)),
        called('{"total":420}'),
    )
    body = MODEL.wire(made).body
    assert body == MODEL.wire(made).body
    shown = json.loads(body)
    assert shown["units"][0] == {"role": "user", "text": "[Image][File: r.pdf][Audio]"}
    assert shown["units"][1] == {"role": "data", "text": "Summary:\ns"}
    assert shown["units"][2]["calls"][0]["result"] == '{"total":420}'
    assert [tool["name"] for tool in shown["tools"]] == ["price"]
    assert MODEL.wire(made).issues == ()


def test_wire_holds_context_and_corrections_of_a_round_and_nothing_that_a_swap_hides() -> None:
    """In the order of the conversation; a result swapped for nothing is not there."""
    round_ = Round(
        id="r",
        before=(ContextMessage(id="b", content=(Text("The lift is out of order."),)),),
        calls=called("secret").calls,
        revised=(ContextMessage(id="v", content=(Text("Be shorter."),), authority="developer"),),
    )
    swapped = View(spans=(Span(0, 1),), swaps=(Swap(unit=0, call=0, shows=()),))
    before, model, after = json.loads(MODEL.wire(request(round_, view=swapped)).body)["units"]
    assert before == {"role": "data", "text": "The lift is out of order."}
    assert model["calls"][0]["result"] == ""
    assert after == {"role": "developer", "text": "Be shorter."}


def test_hears_transcripts() -> None:
    """What a person said aloud counts as their words; two messages in a row are one."""
    spoken = UserMessage(id="u", content=(Audio(data=b"RIFF", transcript="What does a stay cost"),))
    call = chunks(request(spoken, person("in Rome", at="v")))[0]
    assert isinstance(call, CallChunk)
    assert json.loads(call.raw_args) == {"city": "Rome"}


ANY = st.text(max_size=60) | st.sampled_from(
    ["yes", "no", "book Rome", "Sí", "¿", "“", "'", "1e999", "9" * 400, "\x00"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=5), st.text(max_size=40), st.booleans())
def test_any_text_gives_one_reply_and_the_same_again(texts: list[str], result: str, destructive: bool) -> None:
    """Never raises, always ends, is deterministic, and calls only what is offered with what fits."""
    units: list[Unit] = []
    for index, text in enumerate(texts):
        units.append(person(text, at=f"u{index}"))
        if index + 1 < len(texts):
            units.append(Round(id=f"r{index}", content=(Text(text),)) if index % 2 else called(result))
    offers = (offer(), offer("book", "Book a room in a city.", destructive=destructive))
    made = request(*units, offers=offers)
    got = chunks(made)
    assert got == chunks(made)
    assert isinstance(got[-1], Finished)
    assert MODEL.wire(made).body
    if isinstance(got[0], CallChunk):
        args = json.loads(got[0].raw_args)
        assert isinstance(args["city"], str)
        assert type(args.get("nights", 1)) is int


def _reading(settled: Round) -> Reading[Any]:
    return Reading(text=settled.text, value=None)


SHAPE = Shape[Any](
    name="answer", schema={"type": "object", "properties": {"message": {"type": "string"}}}, read=_reading
)


def test_an_envelope_carries_the_words() -> None:
    """A message field is what people read; a silent call leaves it empty."""
    asked = request(person("When is breakfast?"), offers=(), shape=SHAPE)
    assert "from 7 to 10." in json.loads(said(asked))["message"]
    assert json.loads(said(request(person("When is breakfast?"), offers=(), shape=SHAPE, purpose="judge"))) == {}


LINES = [
    "Book a room in Rome", "Book Oslo for 3 nights", "yes", "Yes, please", "no", "3 nights", "price in Rome", "thanks",
    "Shall I go ahead?", "book", "Rome", "do it", "cancel", "wait", "hmm", "is it safe?",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6))
def test_nothing_destructive_without_a_yes_to_its_own_question(texts: list[str]) -> None:
    """Over whole conversations: the call before which it did not ask and hear yes does not exist."""
    offers = (offer(), offer("book", "Book a room in a city.", destructive=True))
    units: list[Unit] = []
    before = ""
    for index, text in enumerate(texts):
        units.append(person(text, at=f"u{index}"))
        own = len(units)
        got: list[Chunk] = []
        for _ in range(3):
            got = chunks(request(*units, own=own, offers=offers))
            call = got[0]
            if not isinstance(call, CallChunk):
                break
            if call.name == "book":
                city = json.loads(call.raw_args)["city"]
                assert f"I am about to run book (city: {city}" in before
                assert text in {"yes", "Yes, please", "do it"}
            units.append(called('{"total":1}', name=call.name, args=call.raw_args))
        before = "".join(chunk.text for chunk in got if isinstance(chunk, TextChunk))
        units.append(Round(id=f"a{index}", content=(Text(before),)))


def test_a_pasted_file_is_no_burden() -> None:
    """One endless word, and many words, are read in bounded time (the suite's time limit is the judge)."""
    for text in ("a" * 300_000, "lorem ipsum dolor " * 20_000, "1" * 100_000, "A1-" * 50_000, "(" * 100_000):
        assert chunks(request(person(text), offers=tuple(offer(f"tool{i}", f"Does thing {i}.") for i in range(20))))
