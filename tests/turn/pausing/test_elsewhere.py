"""The answer is given in another process: it gets the session as bytes, and nothing else of the turn."""

import pytest

from onrecord.conversation.conversation import units_of
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session import pack, refold, unpack
from onrecord.session.session import Session
from tests.turn.acting import Result, turn
from tests.turn.pausing.asking import statuses
from tests.turn.pausing.elsewhere import AGENTS, answered_elsewhere, scripted

pytestmark = pytest.mark.integration


async def begun(name: str, *script: str | tuple[str, ...]) -> tuple[Session, Result]:
    """The first take, here."""
    paused = await turn(AGENTS[name](scripted(script), []), "go", session="s")
    assert paused.status == "paused"
    assert paused.session is not None
    return paused.session, paused


def checked(session: Session, *records: bytes, first: Result) -> list[Entry]:
    """What both processes filed folds to the session that came back."""
    told = [entry for record in records for entry in EntryCodec().read(record.splitlines(keepends=True))]
    entries = [*first.entries, *told]
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert len({(entry.turn, entry.n) for entry in entries}) == len(entries)
    assert refold(session.key, entries, digest_key=session.digest_key) == session
    messages = list(session.conversation.messages)
    assert [u for m in messages for u in units_of(m)] == list(session.conversation.units)
    return entries


async def test_a_session_is_the_same_after_packing() -> None:
    """Rounds that wait, what was done and every counter are in the bytes."""
    session, _ = await begun("rule", ("look", "pay"))
    assert unpack(pack(session)) == session


async def test_an_approval() -> None:
    """The safe call ran here and does not run there; the approved one runs there."""
    session, first = await begun("rule", ("look", "pay", "form"))
    after, told = answered_elsewhere("rule", session, "Paid.", approved=True, by="ana")
    assert (told.status, told.text, told.ran) == ("answered", "Paid.", ("pay",))
    assert statuses(after) == ["returned", "returned", "not_run"]
    checked(after, told.record, first=first)


async def test_a_decline_with_a_note() -> None:
    """The model over there reads who declined, and why."""
    session, first = await begun("rule", ("pay",))
    after, told = answered_elsewhere("rule", session, "Then not.", approved=False, by="ana", note="too dear")
    assert (told.text, told.ran, statuses(after)) == ("Then not.", (), ["denied"])
    assert b"Declined by ana: too dear" in told.record
    checked(after, told.record, first=first)


async def test_a_handler_that_asks_twice() -> None:
    """Each answer in a process of its own; the third run of the handler has both."""
    session, first = await begun("handler", ("form",))
    session, one = answered_elsewhere("handler", session, value="XL")
    assert (one.status, session.question and session.question.text) == ("paused", "Which colour for XL?")
    after, two = answered_elsewhere("handler", session, "Ordered.", value="red")
    assert two.text == "Ordered."
    assert b"XL, red" in two.record
    checked(after, one.record, two.record, first=first)


async def test_a_batch_question() -> None:
    """The whole batch runs over there."""
    session, first = await begun("batch", ("look", "pay"))
    after, told = answered_elsewhere("batch", session, ("look",), value="Lund")
    assert (told.status, told.ran) == ("paused", ("look", "pay"))
    after, more = answered_elsewhere("batch", after, "Booked.", value="Oslo")
    assert (more.status, more.ran) == ("answered", ("look",))
    checked(after, told.record, more.record, first=first)


async def test_a_director_called_again_from_the_top() -> None:
    """An action asks, then its speaker: every line and message is filed once over three processes."""
    session, first = await begun("director")
    session, one = answered_elsewhere("director", session, ("pay",), value="XL")
    assert (one.status, one.text) == ("paused", "Size XL.")
    after, two = answered_elsewhere("director", session, "Paid.", approved=True)
    assert (two.text, two.ran) == ("Paid.", ("pay",))
    entries = checked(after, one.record, two.record, first=first)
    kinds = [str(entry.body.__struct_config__.tag) for entry in entries]
    assert (kinds.count("outcome"), kinds.count("said"), kinds.count("turn.input")) == (1, 2, 1)


async def test_a_sub_agent_that_asks() -> None:
    """The paused child travels inside its parent, and goes on over there."""
    session, first = await begun("child", ("clerk",), ("look", "pay"))
    assert session.question is not None
    assert (session.question.text, session.question.by) == ("Run pay?", "agent:clerk")
    after, told = answered_elsewhere("child", session, "Paid.", "All paid.", approved=True)
    assert (told.text, told.ran, statuses(after)) == ("All paid.", ("pay",), ["returned"])
    checked(after, told.record, first=first)
