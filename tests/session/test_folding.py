"""What each entry does to a session, entry by entry: limits, times, words, and takes that end in every way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Question, Said
from onrecord.conversation.log import Log
from onrecord.conversation.messages import AssistantMessage, Block, Round, ToolCall, UserMessage
from onrecord.errors import RecordInvalid
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    DataPatched,
    ModelReplied,
    ModelRequested,
    Pending,
    PieceFiled,
    PieceMark,
    Receipt,
    TextSaid,
    TurnClosed,
    TurnFailed,
    TurnInput,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    TurnResumed,
)
from onrecord.session import Folds, Session, SlotState, land, refold
from onrecord.session.session import KEPT_FILED, KEPT_INPUTS
from onrecord.session.working import NO_FOLDS
from tests.session.folds import Listing, Seen

pytestmark = pytest.mark.unit

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""The instant of each take; its entries are filed later, a second apart."""
FRESH = Session(key=SessionKey("s"))
OPENED = TurnOpened(input_kind="said", row="said::1", now=NOW)
CLOSED = TurnClosed(status="answered")
ASKED = ToolCall(id="t/main/r0/c0", wire_id="w", name="pay")
DONE = ToolCall(id="t/main/r0/c1", wire_id="x", name="look", result=(Text("seen"),), status="returned")
ROUND = Round(id="t/main/r0", content=(Text("A moment."),), calls=(ASKED, DONE))


def later(seconds: int) -> datetime:
    """When the entry with this number is filed."""
    return NOW + timedelta(minutes=1, seconds=seconds)


def filed(*bodies: Body, turn: str = "t", seq: int = 0) -> list[Entry]:
    """These bodies as entries."""
    return [
        Entry(seq=seq + n, n=n, turn=turn, take=1, where="main", at=later(n), cause=None, body=body)
        for n, body in enumerate(bodies)
    ]


def after(session: Session, *bodies: Body, turn: str = "t", folds: Folds = NO_FOLDS) -> Session:
    """The session after one take of these entries."""
    return land(session, filed(*bodies, turn=turn, seq=session.seq), folds)


def answers(session: Session) -> list[AssistantMessage]:
    """Its answers."""
    return [m for m in session.conversation.messages if isinstance(m, AssistantMessage)]


def paused(*rounds: Round) -> Session:
    """A session in which turn ``t`` waits for an answer."""
    question = Question(key="t/q0", text="Pay?", by="rule")
    pending = Pending(turn="t", row="said::1", input=Said("hi"), now=NOW, key="main", place="call", question=question,
                      rounds=rounds, take=1)  # fmt: skip
    return replace(FRESH, pending=pending)


# ---- what a session remembers ----------------------------------------------------------------------------------------


def test_the_last_keys_and_interruptions_are_remembered() -> None:
    """So many and no more: the oldest one goes."""
    many = tuple(str(n) for n in range(KEPT_INPUTS))
    full = replace(FRESH, inputs=many, interruptions=many)
    found = after(full, replace(OPENED, input_key="new"), TurnInterrupted(id="i", cause="stopped", of="t"))
    assert found.inputs == (*many[1:], "new")
    assert found.interruptions == (*many[1:], "i")
    assert after(full, OPENED, CLOSED).inputs == many


def test_the_last_digests_are_remembered_and_all_that_the_last_request_shows() -> None:
    """What it shows would otherwise be filed anew with every request; the oldest of the others goes."""
    many = tuple(f"d{n}" for n in range(KEPT_FILED))
    full = replace(FRESH, filed=many)
    shows = Receipt(pieces=(PieceMark(source="x", rank=1, digest="d0"),), offers="d1", shape="d3")
    request = ModelRequested(round="t/main/r0", purpose="speak", model="m", receipt=shows)
    found = after(full, OPENED, PieceFiled(digest="new", text=""), request, CLOSED)
    assert found.filed == ("d0", "d1", *many[3:], "new")
    assert after(full, OPENED, request, CLOSED).filed == many
    every = replace(shows, pieces=tuple(PieceMark(source="x", rank=1, digest=each) for each in (*many, "new")))
    found = after(full, OPENED, PieceFiled(digest="new", text=""), replace(request, receipt=every), CLOSED)
    assert found.filed == (*many, "new")


# ---- times and words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [None, NOW - timedelta(hours=1)])
def test_a_message_has_its_own_time_or_that_of_its_turn(at: datetime | None) -> None:
    """The person was last heard of when the channel got the message, and never in the future."""
    found = after(FRESH, OPENED, TurnInput(input=Said("hi", at=at), now=NOW), CLOSED)
    (message,) = found.conversation.messages
    assert isinstance(message, UserMessage)
    assert (message.id, message.turn, message.at) == ("t/u", "t", at or NOW)
    assert (found.last_user_at, found.last_assistant_at) == (min(at or NOW, NOW), None)


def test_lines_of_one_take_are_one_message() -> None:
    """Their words stand apart by an empty line, their blocks in order; it ends when the last one was said."""
    blocks = tuple(Block(source="f", rank=1, text=text) for text in "abc")
    found = after(
        FRESH, OPENED,
        TextSaid(key="k", text="One.", round="t/a/r0", verbatim=True, blocks=blocks[:2]),
        TextSaid(key="l", text="Two.", round="t/b/r0", verbatim=True, shown=(Text("2."),), blocks=blocks[2:]),
        CLOSED,
    )  # fmt: skip
    (answer,) = answers(found)
    assert (answer.id, answer.text, answer.blocks) == ("t/a1", "One.\n\n2.", blocks)
    assert [r.text for r in answer.rounds] == ["One.", "Two."]
    assert (answer.started_at, answer.completed_at, answer.proactive) == (later(0), later(2), False)
    assert (found.last_user_at, found.last_assistant_at) == (None, NOW)


@pytest.mark.parametrize(("kind", "proactive"), [("said", False), ("woke", True), ("happened", True)])
def test_an_answer_to_no_person_is_proactive(kind: str, proactive: bool) -> None:
    """By what its turn began with."""
    said = TextSaid(key="k", text="One.", round="t/a/r0", verbatim=True)
    (answer,) = answers(after(FRESH, replace(OPENED, input_kind=kind), said, CLOSED))
    assert answer.proactive is proactive


@pytest.mark.parametrize("text", ["", " \n"])
def test_who_spoke_elsewhere_is_known_by_the_time_alone(text: str) -> None:
    """Blank words make no message."""
    assistant = after(FRESH, OPENED, TextSaid(key="k", text=text), CLOSED)
    user = after(FRESH, OPENED, TextSaid(key="k", text=text, side="user"), CLOSED)
    assert (assistant.last_user_at, assistant.last_assistant_at) == (None, NOW)
    assert (user.last_user_at, user.last_assistant_at) == (NOW, None)
    assert not (*assistant.conversation.messages, *user.conversation.messages)


# ---- takes that end early --------------------------------------------------------------------------------------------


def cut_short(*rounds: Round, shown: str = "", end: type[Any] = TurnFailed) -> Session:
    """The session after a take that said something, learned something, and did not come to its end."""
    words = (Text(shown),) if shown else ()
    ends: dict[Any, Body] = {
        TurnFailed: TurnFailed(code="c", error="E", shown=words),
        TurnInterrupted: TurnInterrupted(id="i", cause="left", of="t", shown=words, heard=2),
    }
    replies = [ModelReplied(round=held) for held in rounds]
    return after(FRESH, OPENED, *replies, DataPatched(patch={"a": 1}), ends[end])


@pytest.mark.parametrize(("end", "cause", "heard"), [(TurnFailed, "failed", None), (TurnInterrupted, "left", 2)])
def test_what_was_shown_of_a_take_that_was_cut_is_kept(end: type[Any], cause: str, heard: int | None) -> None:
    """Marked with the cause; its calls without results and its data are not."""
    found = cut_short(ROUND, shown="A mo", end=end)
    (answer,) = answers(found)
    assert (answer.interrupted, answer.heard, answer.text, answer.rounds) == (cause, heard, "A mo", ())
    assert (dict(found.data), found.last_assistant_at) == ({}, NOW)


def test_a_failure_that_showed_nothing_marks_nothing() -> None:
    """Rounds whose calls all returned stay; one that waited goes, and with it the message."""
    settled = replace(ROUND, calls=(DONE,))
    (answer,) = answers(cut_short(settled))
    assert (answer.interrupted, answer.rounds) == (None, (settled,))
    assert not answers(cut_short(ROUND))


def test_a_take_without_an_end_reads_as_its_turn_sees_itself() -> None:
    """Its data counts, its last round is a unit already, and its message is not there yet."""
    said = TurnInput(input=Said("hi"), now=NOW)
    entries = filed(OPENED, said, ModelReplied(round=ROUND), DataPatched(patch={"a": 1}))
    found = refold(FRESH.key, entries)
    assert (dict(found.data), found.seq, answers(found)) == ({"a": 1}, 4, [])
    assert [unit.id for unit in found.conversation.units] == ["t/u", ROUND.id]


# ---- pauses ----------------------------------------------------------------------------------------------------------


def test_a_dropped_question_leaves_its_calls_cancelled() -> None:
    """Those that returned did return; the message stands before what dropped it."""
    found = after(paused(ROUND), replace(OPENED, drops="t"), TurnInput(input=Said("no"), now=NOW), CLOSED, turn="u")
    first, second = found.conversation.messages
    assert isinstance(first, AssistantMessage)
    assert (first.id, first.turn, second.id) == ("t/a1x", "t", "u/u")
    assert [(c.status, c.result) for c in first.rounds[0].calls] == [("cancelled", None), ("returned", DONE.result)]
    assert found.pending is None


def test_only_the_question_that_a_message_names_is_dropped() -> None:
    """And a director's own call, or nothing said yet, leaves no message."""
    assert after(paused(ROUND), replace(OPENED, drops="other"), CLOSED, turn="u").pending is not None
    for rounds in ((), (replace(ROUND, id="t/pay/act0"),)):
        found = after(paused(*rounds), replace(OPENED, drops="t"), CLOSED, turn="u")
        assert (found.pending, answers(found)) == (None, [])


@pytest.mark.parametrize(("session", "turn"), [(FRESH, "t"), (paused(ROUND), "u")])
def test_only_a_paused_turn_is_resumed(session: Session, turn: str) -> None:
    """Another one is no valid record."""
    resumed = TurnResumed(answer=Answered("t/q0", approved=True), now=NOW)
    with pytest.raises(RecordInvalid, match=f"turn '{turn}' is resumed"):
        after(session, resumed, CLOSED, turn=turn)
    found = after(paused(ROUND), replace(resumed, input_key="k"), CLOSED)
    assert (found.pending, found.inputs) == (None, ("k",))
    assert [r.id for r in answers(found)[0].rounds] == [ROUND.id]


def test_a_fold_of_a_paused_turn_waits_for_it() -> None:
    """Another turn in between has a state of its own; the paused one goes on from its own, and then it is gone."""
    folds = Folds([Listing("turn.closed", "turn.resumed", name="turn", scope="turn", unfinished=True)])
    known = SlotState(1, Log([Seen("tool.returned", 3)]))
    held = replace(paused(ROUND), slots={"turn": known})
    between = after(held, OPENED, CLOSED, turn="u", folds=folds)
    assert between.slots == {"turn": known}
    assert between.pending is not None
    resumed = TurnResumed(answer=Answered("t/q0", approved=True), now=NOW)
    again = after(between, resumed, TurnPaused(pending=between.pending), folds=folds)
    assert [s.n for s in again.slots["turn"].value] == [3, 0]
    assert after(between, resumed, CLOSED, folds=folds).slots == {}
