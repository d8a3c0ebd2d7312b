"""Whatever happens to a conversation, the bytes joined from lanes are those of a fresh projection."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from onrecord.conversation.content import Image, Part, Refusal, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import AssistantMessage, ContextMessage, Note, Round, ToolCall, UserMessage
from onrecord.models.lanes import Lane
from onrecord.models.projection import Projection
from onrecord.models.request import Piece, Request, Span, Swap, View
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_responses.cards import responses_card
from onrecord.providers.openai_responses.project import ResponsesProjection
from tests.models.fresh import fresh_body
from tests.models.merging import MergingWire
from tests.models.requests import CARD, context, native, projection, request

pytestmark = pytest.mark.unit

WIRES: list[Projection] = [
    projection(),
    projection(dialect=Dialect(one_system=True)),
    projection(replace(CARD, arrays=False)),
    ResponsesProjection(*responses_card("gpt-5-mini")),
    projection(replace(CARD, images=False)),
    MergingWire(),
    MergingWire(keep=60),  # almost every unit is too large for its slot
]
IMAGES = st.builds(Image, url=st.just("https://h/i.png"), description=st.sampled_from(["", "a cat"]))
TEXTS = st.sampled_from(["", " ", "hi", 'q"uo\\te\n', "ünï ☃", "x" * 90])
PARTS: st.SearchStrategy[tuple[Part, ...]] = st.lists(st.builds(Text, TEXTS) | IMAGES, max_size=3).map(tuple)
OPERATIONS = ["user", "context", "round", "round", "close", "edit", "switch", "fork", "drop"]
STATUSES = st.sampled_from(["returned", "failed", "asked", "denied", "cancelled"])


class Story:
    """A conversation to which things happen, one drawn operation after another, on one of these wires at a time."""

    def __init__(self, draw: Any, wires: Sequence[Projection] = WIRES) -> None:
        self.draw, self.count, self.wires = draw, itertools.count(), wires
        self.closed = self.running = Conversation()
        self.old: list[Conversation] = []
        self.wire: Projection = draw(st.sampled_from(wires))
        self.scope = "s1"

    def id(self, kind: str) -> str:
        """The next id of a kind."""
        return f"{kind}{next(self.count)}"

    def context(self) -> ContextMessage:
        """A context message of any authority."""
        return context(self.draw(TEXTS), self.draw(st.sampled_from(["system", "developer", "data"])), self.id("c"))

    def round(self) -> Round:
        """A round of the present wire: native or portable, a draft, with calls in any state."""
        draw, id = self.draw, self.id("r")
        is_native, is_draft = draw(st.booleans()), draw(st.integers(0, 5)) == 0
        calls = tuple(
            ToolCall(
                id=f"{id}/c{i}",
                wire_id=f"w-{id}-{i}" if is_native else "call_0",
                name="f",
                raw_args='{"a":1}',
                result=draw(st.none() | PARTS),
                status=draw(STATUSES),
                notes=(Note("by", "a note"),) if draw(st.booleans()) else (),
            )
            for i in range(0 if is_draft else draw(st.integers(0, 2)))
        )
        words = Text(draw(TEXTS)) if draw(st.integers(0, 5)) else Refusal(draw(TEXTS))
        made = Round(
            id=id,
            content=(words,),
            calls=calls,
            before=(self.context(),) if draw(st.integers(0, 4)) == 0 else (),
            revised=(self.context(),) if is_draft else (),
            lost=("a thing",) if is_native and draw(st.booleans()) else (),
        )
        half = self.wire.model_half(made, calls, [call.wire_id for call in calls])
        if not is_native or not half:
            return made
        return replace(made, continuation=native(half, scope=self.scope, protocol=self.wire.protocol))

    def close(self) -> None:
        """The running rounds become a message; drafts leave."""
        base = len(self.closed.units)
        rounds = [unit for unit in self.running.units.since(base) if isinstance(unit, Round)]
        if rounds:
            kept = tuple(unit for unit in rounds if not unit.revised)
            self.running = self.running.close(base, AssistantMessage(id=self.id("a"), rounds=kept))
            self.closed = self.running

    def edit(self) -> None:
        """One tool result replaced; continuations of everything later are gone."""
        places = [
            (message.id, call.id, at)
            for at, message in enumerate(self.closed.messages)
            if isinstance(message, AssistantMessage)
            for held in message.rounds
            for call in held.calls
        ]
        if not places:
            return
        message, call, at = self.draw(st.sampled_from(places))
        self.running = self.closed = self.closed.edit_result(message, call, self.draw(PARTS))
        for later in list(self.closed.messages)[at + 1 :]:
            if isinstance(later, AssistantMessage):
                assert not any(held.continuation for held in later.rounds)

    def step(self) -> None:
        """One thing happens."""
        draw = self.draw
        operation = draw(st.sampled_from(OPERATIONS))
        event(operation)
        if operation in {"user", "context"}:
            self.close()
            unit = UserMessage(id=self.id("u"), content=draw(PARTS)) if operation == "user" else self.context()
            self.running = self.closed = self.closed.add(unit)
        elif operation == "round":
            self.running = self.running.grow(self.round())
        elif operation == "close":
            self.close()
        elif operation == "edit":
            self.running = self.closed
            self.edit()
        elif operation == "switch":
            self.wire, self.scope = draw(st.sampled_from(self.wires)), draw(st.sampled_from(["s1", "s2"]))
        elif operation == "fork" and self.old:
            self.running = self.closed = draw(st.sampled_from(self.old))
        elif operation == "drop":
            self.running = self.closed  # an interrupted take: its rounds stay in the shared list, unseen
        self.old.append(self.closed)

    def view(self) -> View:
        """What a request shows: windows, inserts, swaps, marks."""
        draw, units = self.draw, self.running.units
        size = len(units)
        cuts = sorted(draw(st.lists(st.integers(0, size), min_size=2, max_size=4)))
        spans: list[Span | ContextMessage] = [Span(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
        if draw(st.booleans()):
            spans = [Span(0, size)]
        if draw(st.booleans()):
            spans.insert(draw(st.integers(0, len(spans))), self.context())
        swaps = tuple(
            Swap(unit=at, call=draw(st.integers(0, len(unit.calls) - 1)), shows=draw(PARTS))
            for at, unit in enumerate(units)
            if isinstance(unit, Round) and unit.calls and draw(st.integers(0, 2)) == 0
        )
        marks = tuple(draw(st.sets(st.integers(0, size - 1), max_size=2))) if size else ()
        return View(spans=tuple(spans), swaps=swaps, marks=marks, stand_ins=draw(st.booleans()))

    def request(self) -> Request:
        """A request over the story so far."""
        draw, own = self.draw, len(self.closed.units)
        if draw(st.integers(0, 3)) == 0:
            own = draw(st.integers(0, len(self.running.units)))
        texts: dict[Literal["system", "turn", "trailing"], tuple[str, ...]] = {
            "system": ("be good", "and brief"), "turn": ("say it", "now"), "trailing": ("wrap up",),
        }  # fmt: skip
        pieces: list[Piece] = []
        for place, held in texts.items():
            if draw(st.booleans()):
                ranks = [draw(st.integers(0, 2)) for _ in held]
                pieces += [
                    Piece(source="t", text=text, rank=rank, place=place) for text, rank in zip(held, ranks, strict=True)
                ]
        carried = own > 0 and isinstance(self.running.units[own - 1], UserMessage) and draw(st.booleans())
        carries = own - 1 if carried else None
        given = {"own": own, "view": self.view(), "scope": self.scope, "carries": carries, "pieces": tuple(pieces)}
        return request(conversation=self.running, **given)


@settings(max_examples=150, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_lane_bytes_equal_fresh_bytes(data: st.DataObject) -> None:
    """Over conversations that grow, close, fork, are edited, windowed and switched between wires."""
    tell(Story(data.draw), check_rules)


def tell(story: Story, check: Callable[[Projection, bytes], None]) -> None:
    """Plays a story to its end and compares each body with a fresh one; ``check`` says what a protocol demands."""
    draw = story.draw
    for _ in range(draw(st.integers(3, 20))):
        story.step()
        if draw(st.integers(0, 3)) == 0:
            continue  # so that lanes begin late and are behind
        asked = story.request()
        if draw(st.booleans()):
            while story.wire.extend(asked, 2):
                pass
        wire = story.wire.wire(asked)
        assert wire.body == fresh_body(story.wire, asked)
        assert story.wire.wire(asked) == wire  # a second look changes nothing
        check(story.wire, wire.body)
        lanes = [kept for kept in story.running.units.beside.values() if isinstance(kept, Lane)]
        assert len(lanes) <= 2


def check_rules(wire: Projection, body: bytes) -> None:
    """What the protocol demands of any body."""
    held = json.loads(body)
    if isinstance(wire, MergingWire):
        check_merging(held["entries"])
        return
    if isinstance(wire, ResponsesProjection):
        check_items(held["input"])
        return
    due: list[str] = []
    for message in held["messages"]:
        if message["role"] == "tool":
            assert due.pop(0) == message["tool_call_id"]
        else:
            assert not due
            due = [call["id"] for call in message.get("tool_calls", ())]
    assert not due


def check_items(items: list[Any]) -> None:
    """Every call is answered once, behind all of its round."""
    due: list[str] = []
    for item in items:
        if item["type"] == "function_call":
            due.append(item["call_id"])
        elif item["type"] == "function_call_output":
            due.remove(item["call_id"])
        else:
            assert not due
    assert not due


def check_merging(entries: list[Any]) -> None:
    """Sides alternate as the protocol wants, and every call is answered at once."""
    roles = [entry["role"] for entry in entries]
    assert not roles or (roles[0] == roles[-1] == "user")
    assert all(entry["parts"] for entry in entries)
    before: list[Any] = []
    for entry in entries:
        asked = [part["call"]["id"] for part in before if "call" in part]
        answered = [part["result"]["id"] for part in entry["parts"] if "result" in part]
        assert asked == answered
        assert not answered or len(answered) == len(entry["parts"])
        assert entry["role"] == "user" or not any("call" in part for part in before)
        before = entry["parts"]
