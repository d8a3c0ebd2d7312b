"""Conversations that no wire expects keep every vendor's rules, wherever they began and whatever a view shows.

Rounds are made from replies of every wire, with their native items; the bodies are checked by `vendor_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.content import Audio, File, Image, Refusal, Text, Thinking
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import (
    AssistantMessage,
    ContextMessage,
    Continuation,
    Message,
    Note,
    Round,
    ToolCall,
    UserMessage,
)
from onrecord.models.chunks import Chunk, NativeItem
from onrecord.models.held_reply import round_of
from onrecord.models.model import Model, scope_of
from onrecord.models.request import HeadMarks, Piece, Request, Settings, Span, Swap, View
from onrecord.net.sse import EventParser
from tests.models.requests import offer, request, user
from tests.providers.moving import KITS
from tests.providers.vendor_rules import RULES
from tests.providers.wires import CHAT, WIRES, Wire, each_wire

pytestmark = pytest.mark.unit


def _vendor(wire: Wire) -> str:
    return "zai" if wire is CHAT else wire.vendors[0]


MODELS: Mapping[str, Model] = {wire.name: wire.make("http://127.0.0.1:9/v1", _vendor(wire)) for wire in WIRES}


def _replied(wire: Wire, body: bytes) -> Round:
    """The round that a wire's reply becomes, with its own items."""
    parser, out = wire.parser(_vendor(wire)), list[Chunk]()
    for data in EventParser().feed(body):
        out += parser.feed(data)
    out += parser.close()
    card = MODELS[wire.name].card
    items = tuple(Raw(bytes(chunk.raw)) for chunk in out if isinstance(chunk, NativeItem))
    held = Continuation(protocol=card.protocol, scope=scope_of(card, "s"), items=items) if items else None
    return replace(round_of(out), continuation=held)


REPLIES = [
    _replied(wire, body)
    for wire in WIRES
    for body in (KITS[wire.name].calls(), KITS[wire.name].cited("Lisbon."), KITS[wire.name].refusal("I will not."))
]

texts = st.sampled_from(["", " ", "\n", "hi", "部屋 🛏", "\x00", "a" * 300])
media = st.sampled_from([
    Image(data=b"\x89PNG"), Image(url="https://a/b.png", description="a bed"), Image(file_id="file-1"),
    Image(url="data:image/png;base64,AAAA"), Audio(data=b"RIFF", transcript="hello"), Audio(url="https://a/b.mp3"),
    File(data=b"%PDF", name="a.pdf"), File(url="https://a/b.pdf"), File(file_id="file-2"),
    File(data=b"\xff", media="text/plain"),
])  # fmt: skip
parts = st.lists(st.one_of(texts.map(Text), media), max_size=3).map(tuple)
contexts = st.builds(
    ContextMessage, id=st.just("x"), content=texts.map(lambda text: (Text(text),)),
    authority=st.sampled_from(["system", "developer", "data"]),
)  # fmt: skip
names = st.sampled_from(["price", "a.b", "a b", "部屋", "x" * 65, "x" * 129, "", "3d", "\x00"])
raw = st.sampled_from(["{}", '{"a":1}', "", "[]", "no", '{"a":1,"a":2}', '{"a":' * 300 + "1" + "}" * 300, "null"])
statuses = st.sampled_from([
    "asked", "returned", "failed", "denied", "invalid", "absent", "partial", "not_run", "cancelled",
])  # fmt: skip
calls = st.builds(
    ToolCall, id=st.just("c"), wire_id=st.sampled_from(["same", "", "a b", "#1", "x" * 99]), name=names, raw_args=raw,
    result=st.none() | parts, notes=st.lists(st.just(Note("by", "a note")), max_size=1).map(tuple), status=statuses,
)  # fmt: skip
words = st.lists(
    st.one_of(texts.map(Text), texts.map(Refusal), texts.map(Thinking)), max_size=3
).map(tuple)  # fmt: skip
some_contexts = st.lists(contexts, max_size=1).map(tuple)
own_rounds = st.builds(
    Round, id=st.just("r"), before=some_contexts, content=words, calls=st.lists(calls, max_size=3).map(tuple),
    revised=some_contexts,
)  # fmt: skip


@st.composite
def replied_rounds(draw: st.DrawFn) -> Round:
    """A reply of some wire, its calls in any state."""
    held = draw(st.sampled_from(REPLIES))
    settled = tuple(replace(call, status=draw(statuses), result=draw(st.none() | parts)) for call in held.calls)
    return replace(held, calls=settled, before=draw(some_contexts), revised=draw(some_contexts))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Messages in any order, each with names of its own for its parts."""
    users = st.builds(UserMessage, id=st.just("u"), content=parts)
    rounds = st.lists(st.one_of(own_rounds, replied_rounds()), max_size=3)
    kinds = st.one_of(users, contexts, rounds.map(lambda held: AssistantMessage(id="a", rounds=tuple(held))))
    out: list[Message] = []
    for n, message in enumerate(draw(st.lists(kinds, max_size=6))):
        if isinstance(message, AssistantMessage):
            message = replace(  # noqa: PLW2901 - the same with names
                message, id=f"m{n}", rounds=tuple(_named(one, f"m{n}/r{i}") for i, one in enumerate(message.rounds))
            )
            out.append(message)
        else:
            out.append(replace(message, id=f"m{n}"))
    return Conversation.of(out)


def _named(held: Round, id: str) -> Round:
    """A round with ids of its own, those of its server too: it never says the same one twice in a conversation."""
    calls, kept = [], held.continuation
    for i, call in enumerate(held.calls):
        wire = call.wire_id
        if kept is not None:
            wire = f"{call.wire_id}-{id}".replace("/", "-")
            known, new = f'"{call.wire_id}"'.encode(), f'"{wire}"'.encode()
            kept = replace(kept, items=tuple(Raw(bytes(item).replace(known, new)) for item in kept.items))
        calls.append(replace(call, id=f"{id}/c{i}", wire_id=wire))
    return replace(held, id=id, calls=tuple(calls), continuation=kept)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A request of any view over such a conversation."""
    conversation = draw(conversations())
    size = len(conversation.units)
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=4)))
    spans: list[Span | ContextMessage] = [Span(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    if draw(st.booleans()):
        spans = [Span(0, size)]
    if draw(st.booleans()):
        spans.insert(draw(st.integers(0, len(spans))), draw(contexts))
    places = st.integers(0, max(0, size - 1))
    swaps = st.builds(Swap, unit=places, call=st.integers(0, 2), shows=parts)
    view = View(
        spans=tuple(spans), swaps=tuple(draw(st.lists(swaps, max_size=2))),
        marks=tuple(sorted(set(draw(st.lists(places, max_size=6))))) if size else (),
        head=draw(st.none() | st.builds(HeadMarks, system=st.integers(0, 2), tools=st.booleans())),
        stand_ins=draw(st.booleans()), degrade=draw(st.booleans()),
    )  # fmt: skip
    placed = st.builds(Piece, source=st.just("p"), text=texts, place=st.sampled_from(["system", "turn", "trailing"]))
    users = [i for i, unit in enumerate(conversation.units) if isinstance(unit, UserMessage)]
    return request(
        conversation=conversation, view=view, pieces=tuple(draw(st.lists(placed, max_size=3))),
        own=draw(st.integers(0, size)), carries=draw(st.none() | st.sampled_from(users)) if users else None,
        offers=(offer(),) if draw(st.booleans()) else (), settings=Settings(max_tokens=draw(st.none() | st.just(9))),
    )  # fmt: skip


@each_wire
@given(asked=requests())
@settings(max_examples=60)
def test_a_body_keeps_the_rules_of_its_vendor(wire: Wire, asked: Request) -> None:
    """At home, where a round's own items are replayed, and in a foreign scope; after a change of wires, too."""
    model = MODELS[wire.name]
    for scope in (scope_of(model.card, "s"), "elsewhere"):
        held: Any = model.wire(replace(asked, model=model, scope=scope))
        body: dict[str, Any] = json.loads(held.body)
        if not held.refusing(asked.view):
            RULES[wire.name](body)


# ---- tools ----------------------------------------------------------------------------------------------------------
UNFIT = {
    "a.b": {"chat", "responses", "messages"}, "a b": set(MODELS), "部屋": set(MODELS),
    "x" * 65: {"chat", "responses", "google"}, "x" * 129: set(MODELS), "a:b": {"chat", "responses", "messages"},
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_a_tool_whose_name_the_vendor_refuses_is_named_before_the_request(name: str) -> None:
    """`@tool` takes no such names; a `Tool` from elsewhere may have one, and some vendors take what others do not."""
    asked = request(user("hi"), offers=(offer(name),))
    assert {wire for wire, model in MODELS.items() if model.wire(asked).issues} == UNFIT[name]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "object", "properties": None}}},
        {"type": "object", "properties": {}, "required": None, "$defs": None, "definitions": []},
        {"type": "object", "properties": {"a": None, "b": True, "c": {"enum": list(range(5000))}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}},
        },
        {"type": "object", "properties": {"a": {"anyOf": None, "items": 5, "type": [None, {}]}}, "required": [1, None]},
    ],
)
def test_a_schema_of_any_kind_is_sent_as_it_is(schema: dict[str, Any]) -> None:
    """Whether it is a good one is for the vendor to say; it is sent, not strictly."""
    given = offer()
    odd = replace(given, spec=replace(given.spec, schema=schema))
    for wire, model in MODELS.items():
        body = json.loads(model.wire(request(user("hi"), model=model, offers=(odd,))).body)
        RULES[wire](body)
        assert "strict" not in str(body["tools"]) or "'strict': False" in str(body["tools"])
