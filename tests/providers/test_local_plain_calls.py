"""Calls and typed answers from models whose chat templates cannot be relied on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
from msgspec import Raw

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import Round, UserMessage
from onrecord.jsonio import Json
from onrecord.models.chunks import CallChunk, Chunk, Finished, NativeItem, TextChunk, ThinkingChunk
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Offer, Piece, Reading, Request, Settings, Shape, Span, ToolSpec, View, Wire
from onrecord.providers.local.plain_calls import PlainCalls
from onrecord.tools.tool import Flag, Tool

pytestmark = pytest.mark.unit

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BOOKING = {"type": "object", "properties": {"nights": {"type": "integer"}}, "required": ["nights"]}
CALL = '{"name": "weather", "arguments": {"city": "Oslo"}}'
FOUND = CallChunk(wire_id="text-0", name="weather", raw_args='{"city": "Oslo"}')


class Played:
    """A model that says what it is told to, and keeps what it was asked."""

    card = ModelCard(provider="local", model="small", protocol="played")

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.asked: list[Request] = []
        self.closed = False

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        self.asked.append(request)
        try:
            for chunk in self.chunks:
                yield chunk
        finally:
            self.closed = True

    def wire(self, request: Request, /) -> Wire:
        self.asked.append(request)
        return Wire(body=b"{}")


def _unused(_args: Mapping[str, Json], _ctx: object) -> None:
    raise AssertionError


def offer(name: str = "weather", schema: Mapping[str, Json] = CITY, *, read_only: Flag = True) -> Offer:
    """A tool as a request offers it."""
    return Offer(
        tool=Tool(name, _unused, parameters=schema, read_only=read_only),
        spec=ToolSpec(name=name, description="", schema=schema),
    )


def shape(schema: Mapping[str, Json] = BOOKING) -> Shape[str]:
    """A shape that reads nothing."""
    return Shape(name="booking", schema=schema, read=lambda settled: Reading(text=settled.text, value=settled.text))


def request(model: Model, own: int = 1, **more: Any) -> Request:
    """A request after one message."""
    conversation = Conversation.of([UserMessage(id="u1", content=(Text("Hello"),))])
    return Request(
        purpose="speak",
        where="main/r1",
        pieces=(Piece(source="instructions", text="Be brief."),),
        conversation=conversation,
        own=own,
        view=View(spans=(Span(0, 1),)),
        model=model,
        settings=Settings(),
        **more,
    )


async def said(*chunks: Chunk, **more: Any) -> list[Chunk]:
    """What comes out for what the model says."""
    model = Played(*chunks)
    found = [chunk async for chunk in PlainCalls(model).stream(request(model, **more))]
    assert model.closed
    return found


def asked(**more: Any) -> Request:
    """The request that reaches the model."""
    model = Played()
    PlainCalls(model).wire(request(model, **more))
    return model.asked[0]


async def test_calls_in_the_text_become_calls() -> None:
    """And the end says that there were calls."""
    pieces: list[Chunk] = [TextChunk(f"Sure.\n{CALL[:9]}"), TextChunk(CALL[9:]), Finished(finish="stop", model="small")]
    assert await said(*pieces, offers=(offer(),)) == [
        TextChunk("Sure.\n"),
        FOUND,
        Finished(finish="calls", model="small"),
    ]


async def test_after_other_words_only_harmless_tools_count() -> None:
    """A call that is shown as an example must not book a room, nor one whose arguments decide what it does."""
    pieces: list[Chunk] = [TextChunk(f"You can use this:\n{CALL}"), Finished()]
    flags: tuple[Flag, ...] = (False, lambda _args: True)
    for read_only in flags:
        found = await said(*pieces, offers=(offer(read_only=read_only),))
        assert "".join(chunk.text for chunk in found if isinstance(chunk, TextChunk)) == f"You can use this:\n{CALL}"
    assert FOUND in await said(*pieces, offers=(offer(),))


async def test_a_call_that_only_the_end_decides() -> None:
    """A call with a brace missing, cut by the cap: still a call."""
    pieces: list[Chunk] = [TextChunk("{" + CALL), Finished(finish="length")]
    assert await said(*pieces, offers=(offer(),)) == [FOUND, Finished(finish="calls")]


@pytest.mark.parametrize("more", [{}, {"offers": (offer("other"),)}, {"offers": (offer(),), "choice": "none"}])
async def test_without_such_an_offer_it_is_text(more: dict[str, Any]) -> None:
    """No offer, another offer, or a request for no calls."""
    found = await said(TextChunk(CALL), Finished(), **more)
    assert "".join(chunk.text for chunk in found if isinstance(chunk, TextChunk)) == CALL
    assert found[-1] == Finished()


async def test_everything_else_passes_through_in_order() -> None:
    """Reasoning, refusals, native calls and the continuation."""
    pieces: list[Chunk] = [
        ThinkingChunk("Hm."),
        TextChunk("I must not.", refusal=True),
        TextChunk("Hello"),
        CallChunk(wire_id="native", name="weather", raw_args="{}"),
        NativeItem(raw=Raw(b"{}")),
        Finished(finish="calls"),
    ]
    assert await said(*pieces, offers=(offer(),)) == pieces


async def test_a_native_message_that_says_the_calls_as_text_is_not_kept() -> None:
    """It would be replayed in place of the round that has the calls."""
    pieces: list[Chunk] = [TextChunk(CALL), NativeItem(raw=Raw(b"{}")), Finished(finish="content")]
    assert await said(*pieces, offers=(offer(),)) == [FOUND, Finished(finish="content")]


def test_a_plain_request_is_not_touched() -> None:
    """Tools alone change nothing: the same request goes on."""
    model = Played()
    plain = request(model, offers=(offer(),))
    assert PlainCalls(model)._constrained(plain) is plain
    assert PlainCalls(model).card is model.card
    assert PlainCalls(model).extend(plain) == 0


def test_the_schema_of_a_shape_is_told() -> None:
    """In the system text, if there is a schema."""
    own = shape()
    sent = asked(shape=own)
    assert sent.shape is own
    assert sent.pieces[-1].place == "system"
    assert '"nights"' in sent.pieces[-1].text
    assert asked(shape=shape({})).pieces == sent.pieces[:-1]


@pytest.mark.parametrize("choice", ["required", "weather"])
def test_a_forced_call_is_a_shape(choice: str) -> None:
    """Of one tool or of any, and the choice itself is not sent."""
    sent = asked(offers=(offer(), offer("book", BOOKING)), choice=choice)
    assert sent.choice == "auto"
    assert sent.shape is not None
    weather = {
        "type": "object",
        "properties": {"name": {"const": "weather"}, "arguments": CITY},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    if choice == "weather":
        assert sent.shape.schema == weather
    else:
        assert sent.shape.schema["anyOf"][0] == weather
        assert len(sent.shape.schema["anyOf"]) == 2
    assert sent.shape.read(Round(id="r", content=(Text(CALL),))).text == CALL


def test_tools_beside_a_shape_are_one_choice() -> None:
    """A call or the answer; only calls when forced; only the answer when calls are off."""
    own = shape()
    sent = asked(shape=own, offers=(offer(),))
    assert sent.shape is not None
    assert sent.shape.schema["anyOf"][0] == BOOKING
    assert sent.shape.read is own.read
    assert sent.pieces[-1].place == "trailing"
    assert "function call" in sent.pieces[-1].text
    later = asked(shape=own, offers=(offer(),), own=0)
    assert later.pieces == sent.pieces[:-1]  # told again after a result, a small model calls again
    forced = asked(shape=own, offers=(offer(),), choice="required")
    assert forced.shape is not None
    assert "anyOf" not in forced.shape.schema
    unoffered = asked(shape=own, offers=(offer(),), choice="none")
    assert unoffered.shape is own
    assert unoffered.choice == "none"


def test_definitions_move_to_the_root() -> None:
    """References go on pointing at them, old spelling or new."""
    room = {"enum": ["single", "double"]}
    typed = {"$schema": "x", "type": "object", "properties": {"room": {"$ref": "#/definitions/Room"}}}
    call = {"type": "object", "properties": {"rooms": {"items": [{"$ref": "#/$defs/Room"}]}}, "$defs": {"Room": room}}
    sent = asked(shape=shape(typed | {"definitions": {"Room": room}}), offers=(offer("book", call),))
    assert sent.shape is not None
    assert sent.shape.schema["$defs"] == {"Room": room}
    answer, called = sent.shape.schema["anyOf"]
    assert answer == {"type": "object", "properties": {"room": {"$ref": "#/$defs/Room"}}}
    assert called["properties"]["arguments"] == {"type": "object", "properties": call["properties"]}


def test_two_tools_may_share_definitions_of_the_old_spelling() -> None:
    """Definitions that refer to each other are the same ones in both schemas, and neither is given up."""
    shared = {"Room": {"properties": {"view": {"$ref": "#/definitions/View"}}}, "View": {"enum": ["sea", "yard"]}}
    typed = {"type": "object", "properties": {"room": {"$ref": "#/definitions/Room"}}, "definitions": shared}
    sent = asked(offers=(offer("book", typed), offer("cancel", typed)), choice="required")
    assert sent.shape is not None
    assert sent.shape.schema["$defs"]["Room"] == {"properties": {"view": {"$ref": "#/$defs/View"}}}
    for called in sent.shape.schema["anyOf"]:
        assert called["properties"]["arguments"]["properties"] == {"room": {"$ref": "#/$defs/Room"}}


@pytest.mark.parametrize(
    "awkward",
    [
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
        {"type": "object", "$defs": {"Room": {"type": "integer"}}, "properties": {"room": {"$ref": "#/$defs/Room"}}},
    ],
)
def test_what_cannot_stand_inside_another_schema_allows_any_object(awkward: Mapping[str, Json]) -> None:
    """Self-references, and two definitions of one name."""
    first = offer("book", {"type": "object", "$defs": {"Room": {"type": "string"}}})
    sent = asked(offers=(first, offer("weather", awkward)), choice="required")
    assert sent.shape is not None
    assert sent.shape.schema["anyOf"][1]["properties"]["arguments"] == {"type": "object"}


def test_equal_requests_ask_for_the_same_shape() -> None:
    """So that bytes made for one can be used again; and the memory of them is bounded."""
    model, own, tool = Played(), shape(), offer()
    wrapped = PlainCalls(model)
    first, second = (wrapped._constrained(request(model, shape=own, offers=(tool,))) for _ in range(2))
    assert first.shape is second.shape
    for _ in range(70):
        wrapped._constrained(request(model, shape=shape()))
    assert len(wrapped._asked) <= 64
