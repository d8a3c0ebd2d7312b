"""Media that a model does not take, in words: at projection, for the model that gets the request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import Note
from onrecord.models.lanes import Lane
from onrecord.models.request import Piece, Request, Swap
from onrecord.models.unit_bytes import in_words
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from tests.models.requests import CARD, call, projection, request, said, settled, user

pytestmark = pytest.mark.unit

CAT = Image(url="https://h/cat.png", description="a cat on a mat")
BARE = Image(data=b"png")
SPOKEN = Audio(data=b"wav", transcript="Is it open?")
HUM = Audio(data=b"wav")
PLAN = File(name="plan.pdf", data=b"pdf")
BLIND = replace(CARD, images=False, audio=False, files=False)
LISTLESS = replace(CARD, arrays=False)


class Watched(ChatProjection):
    """Chat Completions that notes what it is asked about."""

    seen: list[Part]

    def takes(self, part: Part, /) -> bool:
        self.seen.append(part)
        return super().takes(part)


def in_view(asked: Request) -> Request:
    """The request, with words in the place of media."""
    return replace(asked, view=replace(asked.view, stand_ins=True))


def content(asked: Request, card: Any = BLIND) -> list[Any]:
    """The contents of the messages, as a model with this card is sent them."""
    wire = projection(card).wire(in_view(asked))
    assert wire.issues == ()
    return [message["content"] for message in json.loads(wire.body)["messages"]]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (CAT, "[Image: a cat on a mat]"),
        (BARE, "[Image]"),
        (SPOKEN, "Is it open?"),
        (HUM, "[Audio]"),
        (PLAN, "[File: plan.pdf]"),
        (File(url="https://h/x"), "[File: attachment]"),
    ],
)
@pytest.mark.parametrize("card", [BLIND, LISTLESS])
def test_media_is_shown_by_its_words_and_without_any_by_its_label(part: Part, words: str, card: Any) -> None:
    """A transcript is what a person said; a description is about a picture, and says so."""
    assert content(request(user(part)), card) == [words]


def test_words_of_media_stand_on_lines_of_their_own() -> None:
    """Texts of a message are joined as they are; what stands for something is not glued to them."""
    parts = ("Look:", CAT, HUM, "Is it yours?", " Tell me.")
    assert content(request(user(*parts))) == [
        "Look:\n[Image: a cat on a mat]\n[Audio]\nIs it yours? Tell me."
    ]  # fmt: skip


def test_a_model_that_takes_it_is_sent_the_bytes_of_a_request_without_stand_ins() -> None:
    """Also where only some of the media is taken."""
    asked = request(user("a", CAT), said(settled("r", calls=[call("r", 0, result=(Text("x"), CAT))])))
    assert projection().wire(in_view(asked)).body == projection().wire(asked).body
    deaf = projection(replace(CARD, audio=False))
    (shown,) = json.loads(deaf.wire(in_view(request(user(CAT, SPOKEN)))).body)["messages"]
    assert [part["type"] for part in shown["content"]] == ["image_url", "text"]


def test_results_and_their_notes_are_shown_in_words_too() -> None:
    """A picture that a tool returned; notes of the library stay behind the result."""
    asked = call("r", 0, result=(Text("here:"), CAT), notes=(Note("by", "(from the cache)"),))
    shown = content(request(user("q"), said(settled("r", calls=[asked]))))
    assert shown[-1] == "here:\n[Image: a cat on a mat]\n(from the cache)"


def test_a_result_shown_otherwise_is_shown_in_words_where_it_must_be() -> None:
    """A swap may put media in the place of a result."""
    asked = request(user("q"), said(settled("r", calls=[call("r", 0)])))
    swapped = replace(asked, view=replace(asked.view, swaps=(Swap(unit=1, call=0, shows=(BARE,)),)))
    assert content(swapped)[-1] == "[Image]"


def test_media_of_a_carried_message_is_shown_in_words_behind_the_texts_of_the_turn() -> None:
    """The turn pieces carry its words, its other parts join them."""
    asked = request(
        user("spoken text", SPOKEN), own=1, carries=0, pieces=(Piece(source="b", text="Answer.", place="turn"),)
    )
    assert content(asked) == ["Answer.\nIs it open?"]


def test_the_conversation_keeps_what_was_sent() -> None:
    """The words are made for a request."""
    held = Conversation.of((user("a", CAT), said(settled("r", calls=[call("r", 0, result=(BARE,))]))))
    before = list(held.messages)
    content(request(conversation=held))
    assert list(held.messages) == before


def test_bytes_with_words_are_kept_apart_and_grow_by_what_is_new() -> None:
    """A lane of their own beside the same log; nothing is encoded twice."""
    wires, seen = Watched(BLIND, Dialect()), list[Part]()
    wires.seen = seen
    held = Conversation.of([user(Text(f"q{n}"), CAT, id=f"u{n}") for n in range(3)])
    asked = in_view(request(conversation=held))
    while wires.extend(asked, 2):
        pass
    first = wires.wire(asked)
    wires.sent(replace(asked, wire=first))
    assert len(seen) == 3
    more = held.add(user("last", HUM, id="u9"))
    wire = wires.wire(in_view(request(conversation=more)))
    assert len(seen) == 4
    assert wire.stable_until == 3
    assert projection(BLIND).wire(request(conversation=more)).issues  # without words: another lane, and refused
    assert len([kept for kept in more.units.beside.values() if isinstance(kept, Lane)]) == 2


def test_a_part_that_is_taken_is_left_alone() -> None:
    """The very parts, and in their order."""
    parts = (Text("a"), CAT, Text("b"))
    assert in_words(parts, projection()) == parts
    assert in_words((), projection(BLIND)) == ()
