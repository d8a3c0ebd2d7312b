"""What was sent, as digests; and a request rebuilt from the record, with every gap named (architecture §8)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.messages import ContextMessage, Round, UserMessage
from onrecord.errors import UsageError
from onrecord.models.request import Piece, Request, Span, Swap
from onrecord.record.kinds import ModelReplied, ModelRequested, PieceFiled, RoundSettled
from onrecord.record.record import Record
from onrecord.session.folding import refold
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Hooks
from onrecord.turn.receipt import rebuild
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, tool, turn

pytestmark = pytest.mark.unit


def record_of(*results: Any) -> Record[Session]:
    """The record of one session's turns."""
    last = results[-1].session
    entries = [e for r in results for e in r.entries]
    return Record(entries, partial(refold, last.key, digest_key=last.digest_key))


def requested(record: Record[Session]) -> list[int]:
    """Where requests were filed."""
    return [e.seq for e in record if isinstance(e.body, ModelRequested)]


async def two_turns(**given: Any) -> tuple[ScriptedModel, Record[Session]]:
    """Two turns of one session, the second with a tool."""
    model = ScriptedModel("1", call("lookup"), "2")
    agent: Agent[Any, Any] = Agent(model, instructions="Be kind.", tools=[tool()], **given)
    first = await turn(agent, "a", session="s")
    return model, record_of(first, await turn(agent, "b", session=first.session))


async def test_a_request_is_rebuilt_from_the_record_without_a_gap() -> None:
    """Pieces, what was shown, and the definitions of tools: equal to what was sent."""
    model, record = await two_turns(output=int, features=[])
    for seq, sent in zip(requested(record), model.requests, strict=False):
        again = rebuild(record, seq)
        assert again.gaps == ()
        assert [text for _, text in again.pieces] == [p.text for p in sent.pieces]
        (span,) = sent.view.spans
        assert isinstance(span, Span)
        assert list(again.shown) == sent.conversation.units[span.start : span.stop]
        assert '"lookup"' in again.offers
        assert again.shape.startswith('["answer",')


async def test_a_text_is_filed_once_per_session() -> None:
    """However often it is sent."""
    _, record = await two_turns()
    texts = [e.body.text for e in record if isinstance(e.body, PieceFiled)]
    assert len(texts) == len(set(texts)) == 2


async def test_inserts_and_swaps_of_a_view_are_on_the_receipt() -> None:
    """A request that showed something else than the conversation says so."""
    note = ContextMessage(id="note", content=(Text("dropped 1"),), writer="window")

    async def window(turn: Turn, request: Request) -> Request:
        units = len(request.conversation.units)
        swaps = (Swap(unit=1, call=0, shows=(Text("[old]"),)),) if units > 1 else ()
        return replace(request, view=replace(request.view, spans=(note, Span(0, units)), swaps=swaps))

    model = ScriptedModel(call("lookup"), "done")
    result = await turn(Agent(model, tools=[tool()], features=[Named("window", Hooks(on_request=window))]), session="s")
    record = record_of(result)
    again = rebuild(record, requested(record)[-1])
    assert again.gaps == ()
    assert again.shown[0] == note
    assert [type(u) for u in again.shown[1:]] == [UserMessage, Round]
    assert again.swaps == {(1, 0): (Text("[old]"),)}


async def test_settings_and_choice_are_on_the_receipt() -> None:
    """As far as they were set."""

    async def cool(turn: Turn, request: Request) -> Request:
        return replace(request, settings=replace(request.settings, temperature=0.5))

    result = await turn(Agent(ScriptedModel("x"), features=[Named("cool", Hooks(on_request=cool))]))
    (body,) = bodies(result, ModelRequested)
    assert body.receipt is not None
    assert (body.receipt.settings, body.receipt.choice) == ({"temperature": 0.5}, "auto")
    (plain,) = bodies(await turn(Agent(ScriptedModel("x"))), ModelRequested)
    assert plain.receipt is not None
    assert plain.receipt.settings == {}


async def test_a_receipt_holds_no_text() -> None:
    """Digests only; the texts lie in entries of their own, once."""

    async def piece(turn: Turn, request: Request) -> Request:
        return replace(request, pieces=(*request.pieces, Piece(source="p", text="canary")))

    result = await turn(Agent(ScriptedModel("x"), features=[Named("p", Hooks(on_request=piece))]), "canary")
    assert "canary" not in repr(bodies(result, ModelRequested))


# ---- gaps ------------------------------------------------------------------------------------------------------------


def changed(record: Record[Session], kind: type[Any], **fields: Any) -> Record[Session]:
    """The record with every body of one kind changed."""
    entries = [replace(e, body=replace(e.body, **fields)) if isinstance(e.body, kind) else e for e in record.entries]
    return Record(entries, record._replay)


async def test_a_changed_text_is_a_gap() -> None:
    """Its digest does not match, and what it was for has no text."""
    _, record = await two_turns()
    again = rebuild(changed(record, PieceFiled, text="forged"), requested(record)[0])
    named = [gap.what for gap in again.gaps]
    assert "piece 'instructions'" in named
    assert "offers" in named
    assert any(what.startswith("text filed at") for what in named)
    assert {gap.why for gap in again.gaps} == {
        "its digest does not match its text", "no matching text was filed before it"
    }  # fmt: skip


async def test_a_changed_conversation_is_a_gap() -> None:
    """The chained digest vouches for everything before it."""
    model, record = await two_turns()
    forged = [
        replace(e, body=replace(e.body, round=replace(e.body.round, content=(Text("forged"),))))
        if isinstance(e.body, ModelReplied) and e.body.round.text == "1"
        else e
        for e in record.entries
    ]
    again = rebuild(Record(forged, record._replay), requested(record)[1])
    assert [gap.why for gap in again.gaps] == ["their chained digest does not match"]
    assert model.calls == ["speak"] * 3


async def test_missing_units_are_a_gap() -> None:
    """The record does not reach as far as the request did."""
    _, record = await two_turns()
    seq = requested(record)[2]
    dropped = [
        e for e in record.entries if not (type(e.body).__name__ == "TurnInput" and e.turn == record.entries[0].turn)
    ]
    again = rebuild(Record(dropped, record._replay), seq)
    assert next(gap.what for gap in again.gaps) == "conversation"
    assert any("does not reach that far" in gap.why for gap in again.gaps)


async def test_only_requests_with_a_receipt_can_be_rebuilt() -> None:
    """Any other entry is refused."""
    _, record = await two_turns()
    with pytest.raises(UsageError, match="entry 0 is no request with a receipt") as refused:
        rebuild(record, 0)
    assert refused.value.hint == "look for entries of kind model.requested"
    assert not any(isinstance(e.body, RoundSettled) for e in record)


async def test_a_session_that_sends_ever_new_texts_files_each() -> None:
    """What is remembered of filed texts is bounded; every request can still be rebuilt."""
    model = ScriptedModel(*["x"] * 70)
    agent: Agent[Any, Any] = Agent(model, instructions=lambda turn: f"text {len(turn.conversation.messages)}")
    results, session = [], None
    for _ in range(70):
        results.append(await turn(agent, session=session or "s"))
        session = results[-1].session
    record = record_of(*results)
    assert all(rebuild(record, seq).gaps == () for seq in requested(record)[-3:])
    assert sum(isinstance(e.body, PieceFiled) for e in record) == 70
