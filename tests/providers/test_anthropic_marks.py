"""Messages: cache marks, which are spliced into a body and never kept with the bytes of a conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.models.lanes import Lane
from onrecord.models.request import HeadMarks, Piece, Request, Settings, Span, View
from onrecord.providers.anthropic.project import AnthropicProjection
from tests.models.requests import call, offer, request, said, settled, system, user
from tests.providers.anthropic_requests import projection

pytestmark = pytest.mark.unit

SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
TALK = (
    user("q0"),
    said(settled("r", "mm", calls=[call("r", 0), call("r", 1)]), settled("s", "so")),
    user("q1", id="u1"),
    user("q2", id="u2"),
    user("q3", id="u3"),
)
PIECES = (system("a", 1), system(" ", 2), system("b", 3), Piece(source="t", text="now", place="turn"))


def asks(*marks: int, head: HeadMarks | None = None, **fields: Any) -> Request:
    """A request with these marks; units 0 and 3 to 5 are questions, 1 a round with results, 2 a last word."""
    view = View(spans=(Span(0, 6),), marks=marks, head=head)
    return request(*TALK, view=view, pieces=PIECES, offers=(offer(), offer("other")), **fields)


def marked(asked: Request, wire: AnthropicProjection | None = None) -> list[tuple[str, Any]]:
    """What is marked, in the order in which the vendor reads it, and how."""
    body = json.loads((wire or projection()).wire(asked).body)
    blocks = [*body["tools"], *body.get("system", ())]
    blocks += [block for entry in body["messages"] for block in entry["content"]]
    shown = ((block.get("name") or block.get("text") or block["type"], block.get("cache_control")) for block in blocks)
    return [(name, mark) for name, mark in shown if mark is not None]


def test_a_mark_is_on_the_last_block_of_its_unit() -> None:
    """A message, or the last result of a round; nothing of the model's is ever marked."""
    assert marked(asks()) == []
    assert marked(asks(0, 1, 2)) == [("q0", SHORT), ("tool_result", SHORT)]
    (held,) = [
        b for e in json.loads(projection().wire(asks(1)).body)["messages"] for b in e["content"] if "cache_control" in b
    ]
    assert held["tool_use_id"].endswith(json.loads(projection().wire(asks(1)).body)["messages"][1]["content"][-1]["id"])


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (HeadMarks(), []),
        (HeadMarks(tools=True), ["other"]),
        (HeadMarks(system=1), ["a"]),
        (HeadMarks(system=2), ["a"]),
        (HeadMarks(system=3), ["b"]),
        (HeadMarks(system=9, tools=True), ["other", "b"]),
    ],
)
def test_marks_before_the_units_are_behind_tools_and_system_pieces(head: HeadMarks, expected: list[str]) -> None:
    """Pieces are counted as they were given; blank ones have no block."""
    assert [name for name, _ in marked(asks(head=head))] == expected


def test_the_schema_of_a_reply_stands_behind_the_mark() -> None:
    """It may differ from request to request; what is cached does not."""
    from tests.providers.test_anthropic_body import SHAPE

    body = json.loads(projection().wire(asks(head=HeadMarks(system=9), shape=SHAPE)).body)
    assert ["cache_control" in block for block in body["system"]] == [False, True, False]


def test_long_marks_are_long_everywhere() -> None:
    """The vendor wants longer ones before shorter ones; here all are one kind."""
    head = HeadMarks(system=1, tools=True, ttl="long")
    wire = projection()
    assert marked(asks(0, head=head), wire) == [("other", LONG), ("a", LONG), ("q0", LONG)]
    assert marked(asks(0), wire) == [("q0", SHORT)]
    assert marked(asks(0, head=head), wire) == [("other", LONG), ("a", LONG), ("q0", LONG)]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ((5,), ["other", "b", "q3"]),
        ((5, 4), ["other", "b", "q2", "q3"]),
        ((5, 4, 3), ["b", "q1", "q2", "q3"]),
        ((5, 4, 3, 2), ["b", "q1", "q2", "q3"]),
        ((5, 4, 3, 1), ["tool_result", "q1", "q2", "q3"]),
        ((5, 4, 3, 1, 0), ["tool_result", "q1", "q2", "q3"]),
        ((5, 5, 99), ["other", "b", "q3"]),
    ],
)
def test_of_more_than_four_marks_the_last_ones_stay(marks: tuple[int, ...], expected: list[str]) -> None:
    """The vendor takes four; a mark where nothing can be marked takes no place."""
    assert [name for name, _ in marked(asks(*marks, head=HeadMarks(system=9, tools=True)))] == expected


def test_marks_are_never_kept_with_a_conversation() -> None:
    """Marked or not, the next request has the bytes of one that was never marked; both kinds share what is kept."""
    wire, plain = projection(), projection()
    conversation = asks().conversation
    for head in (None, HeadMarks(ttl="long")):
        asked = Request(
            **{n: getattr(asks(0, 1, head=head), n) for n in asked_fields()} | {"conversation": conversation}
        )
        assert b"cache_control" in wire.wire(asked).body
    lanes = [held for held in conversation.units.beside.values() if isinstance(held, Lane)]
    assert len(lanes) == 1
    assert all(b"cache_control" not in slot for slot in lanes[0].slots)
    assert wire.wire(asks()).body == plain.wire(asks()).body


def asked_fields() -> tuple[str, ...]:
    """The fields of a request."""
    return Request.__struct_fields__


def test_what_was_sent_with_marks_is_stable_in_the_next_request() -> None:
    """Moving a mark changes no byte that the vendor compares."""
    wire = projection()
    conversation = asks().conversation
    for marks, head, stable in (((0,), None, None), ((3,), HeadMarks(ttl="long"), 6), ((0, 1, 3, 4, 5), None, 6)):
        view = View(spans=(Span(0, 6),), marks=marks, head=head)
        asked = request(conversation=conversation, view=view, settings=Settings(max_tokens=9))
        assert wire.wire(asked).stable_until == stable
        wire.sent(asked)
