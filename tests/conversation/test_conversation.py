"""A conversation changes by making another one: what both share is shared, and native output never outlives an edit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import INTERRUPTED, Conversation, units_of
from onrecord.conversation.messages import (
    AssistantMessage,
    ContextMessage,
    Continuation,
    Message,
    Round,
    ToolCall,
    UserMessage,
)

pytestmark = pytest.mark.unit

NATIVE = Continuation(protocol="p", scope="s", items=(Raw(b"{}"),))


def said(id: str) -> UserMessage:
    """A message of a person."""
    return UserMessage(id=id, content=(Text(id),))


def called(id: str, *results: str) -> Round:
    """A round with native output, and a call for each result."""
    calls = tuple(
        ToolCall(id=f"{id}/c{n}", wire_id="w", name="t", result=(Text(text),), status="returned")
        for n, text in enumerate(results)
    )
    return Round(id=id, content=(Text(id),), calls=calls, continuation=NATIVE)


def answered(id: str, *rounds: Round) -> AssistantMessage:
    """A message of these rounds."""
    return AssistantMessage(id=id, rounds=rounds, shown=(Text(id),))


TALK = (
    said("u1"), answered("a1", called("r0", "x", "y"), called("r1", "z"), called("r2")),
    said("u2"), answered("a2", called("r3", "w"), called("r4")),
)  # fmt: skip


def native(conversation: Conversation) -> list[str]:
    """The rounds that keep their native output, by their ids."""
    return [u.id for u in conversation.units if isinstance(u, Round) and u.continuation is not None]


def flat(conversation: Conversation) -> bool:
    """Its units are those of its messages."""
    return list(conversation.units) == [u for m in conversation.messages for u in units_of(m)]


def test_units_are_messages_and_rounds_in_order() -> None:
    """What a request shows, one after the other."""
    held = Conversation.of(TALK)
    assert [u.id for u in held.units] == ["u1", "r0", "r1", "r2", "u2", "r3", "r4"]
    assert native(held) == ["r0", "r1", "r2", "r3", "r4"]


def test_closing_a_turn_copies_nothing() -> None:
    """Rounds that were shown while the turn ran are its message's: both logs only grow."""
    held = Conversation.of([said("u1")])
    running = held.grow(called("r0", "x")).grow(called("r1"))
    rounds = tuple(u for u in running.units.since(1) if isinstance(u, Round))
    closed = running.close(1, answered("a1", *rounds))
    assert closed.units.shared_with(running.units) == 3
    assert closed.units.beside is held.units.beside
    assert (len(held.units), flat(closed)) == (1, True)


def test_a_draft_leaves_when_its_turn_closes() -> None:
    """Only then the unit log forks, at the first difference, and older views keep the draft."""
    held = Conversation.of([said("u1")])
    draft = replace(called("r0"), revised=(ContextMessage(id="v"),))
    running = held.grow(draft).grow(called("r1"))
    closed = running.close(1, answered("a1", called("r1")))
    assert [u.id for u in closed.units] == ["u1", "r1"]
    assert [u.id for u in running.units] == ["u1", "r0", "r1"]


@pytest.mark.parametrize(
    ("message", "call", "kept"),
    [
        ("a1", "r0/c0", []),
        ("a1", "r0/c1", []),
        ("a1", "r1/c0", ["r0"]),
        ("a2", "r3/c0", ["r0", "r1", "r2"]),
    ],
)
def test_an_edited_result_voids_native_output_from_its_round_on(message: str, call: str, kept: list[str]) -> None:
    """Exactly from there: what stands before it is what it was, everything behind came from the old one."""
    before = Conversation.of(TALK)
    after = before.edit_result(message, call, (Text("edited"),))
    assert (native(after), flat(after)) == (kept, True)
    results = {c.id: c.result for u in after.units if isinstance(u, Round) for c in u.calls}
    assert results[call] == (Text("edited"),)
    untouched = {c.id: c.result for u in before.units if isinstance(u, Round) for c in u.calls if c.id != call}
    assert {id: r for id, r in results.items() if id != call} == untouched
    first = next(n for n, u in enumerate(after.units) if isinstance(u, Round) and call.startswith(f"{u.id}/"))
    assert after.units.shared_with(before.units) == first
    assert native(before) == ["r0", "r1", "r2", "r3", "r4"]


@pytest.mark.parametrize("status", ["asked", "failed", "denied"])
def test_an_edited_result_is_one_that_returned(status: Any) -> None:
    """Whatever became of the call before: now there is a result."""
    call = ToolCall(id="r0/c0", wire_id="w", name="t", status=status)
    before = Conversation.of([answered("a1", Round(id="r0", calls=(call,)))])
    (after,) = before.edit_result("a1", "r0/c0", (Text("edited"),)).units
    assert isinstance(after, Round)
    assert (after.calls[0].status, after.calls[0].result) == ("returned", (Text("edited"),))


def test_a_removed_message_voids_native_output_behind_it() -> None:
    """Later rounds answered something that is not there any more."""
    before = Conversation.of(TALK)
    after = before.put(before.index_of("u2"), message=None)
    assert ([m.id for m in after.messages], native(after)) == (["u1", "a1", "a2"], ["r0", "r1", "r2"])
    assert (after.messages.shared_with(before.messages), flat(after)) == (2, True)


def test_a_late_interruption_shows_what_was_heard() -> None:
    """The words of the message end there, its tool rounds stay, and native output of it and behind it goes."""
    before = Conversation.of(TALK)
    message = before.messages[1]
    assert isinstance(message, AssistantMessage)
    after = before.put(1, message=replace(message, interrupted="spoken over", heard=1))
    assert [u.id for u in after.units] == ["u1", "r0", "r1", "a1/cut", "u2", "r3", "r4"]
    assert getattr(after.units[3], "text", "") == f"a {INTERRUPTED}"
    assert (native(after), flat(after)) == ([], True)


def test_a_result_of_an_interrupted_message_can_be_edited() -> None:
    """Its rounds without calls show no unit of their own, and the edited one is found all the same."""
    lead = Round(id="r0", content=(Text("One moment."),))
    cut = replace(answered("a1", lead, called("r1", "x"), called("r2", "y")), interrupted="stopped")
    before = Conversation.of([said("u1"), cut])
    after = before.edit_result("a1", "r1/c0", (Text("edited"),))
    assert [u.id for u in after.units] == ["u1", "r1", "r2", "a1/cut"]
    edited = after.units[1]
    assert isinstance(edited, Round)
    assert edited.calls[0].result == (Text("edited"),)
    assert (native(after), flat(after)) == ([], True)


@pytest.mark.parametrize(("message", "call", "missing"), [("a9", "r0/c0", "a9"), ("a1", "r9/c0", "r9/c0"),
                                                          ("u1", "r0/c0", "r0/c0")])  # fmt: skip
def test_what_is_not_there_is_named(message: str, call: str, missing: str) -> None:
    """A lookup that fails says what it looked for."""
    with pytest.raises(LookupError, match=missing):
        Conversation.of(TALK).edit_result(message, call, ())


@given(st.lists(st.integers(0, 3), max_size=12), st.data())
def test_units_follow_messages_whatever_is_put(kinds: list[int], data: st.DataObject) -> None:
    """Grown, closed, put and removed in any order, units are always those of the messages."""
    held = Conversation()
    for n, kind in enumerate(kinds):
        message: Message | None = said(f"m{n}") if kind else answered(f"m{n}", called(f"r{n}", "x"))
        if kind < 2 or not len(held.messages):
            assert message is not None
            held = held.add(message)
        else:
            index = data.draw(st.integers(0, len(held.messages) - 1))
            held = held.put(index, message=message if kind == 2 else None)
        assert flat(held)
        assert flat(Conversation.of(held.messages))
