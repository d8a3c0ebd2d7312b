"""Entries that name a call which is not in their round: a result says nothing, a start is no valid record."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from onrecord.conversation.content import Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Round, ToolCall
from onrecord.errors import RecordInvalid
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ModelReplied, ToolReturned, ToolStarted, TurnClosed, TurnInput, TurnOpened
from onrecord.session import Session, refold

pytestmark = pytest.mark.unit

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
CALLS = tuple(ToolCall(id=f"t/a/r0/c{n}", wire_id=f"w{n}", name="look", args={"n": n}) for n in range(3))
ROUND = Round(id="t/a/r0", calls=CALLS)


def folded(*bodies: Body) -> Session:
    """The session after a turn whose round got these entries."""
    begun: Sequence[Body] = (
        TurnOpened(input_kind="said", row="said::1", now=AT, agent="agent"),
        TurnInput(input=Said("hi"), now=AT),
        ModelReplied(round=ROUND, purpose="speak"),
    )
    entries = [
        Entry(seq=n, n=n, turn="t", take=1, where="main", at=AT, cause=None, body=body)
        for n, body in enumerate((*begun, *bodies, TurnClosed(status="silent")))
    ]
    return refold(SessionKey("s"), entries)


def returned(call: str) -> ToolReturned:
    """The result of a call."""
    return ToolReturned(call=call, round=ROUND.id, name="look", status="returned", result=(Text("seen"),))


def started(call: str, n: int) -> ToolStarted:
    """The start of a call with other arguments."""
    return ToolStarted(call=call, round=ROUND.id, name="look", args={"n": n}, key="k")


def calls_of(session: Session) -> tuple[ToolCall, ...]:
    """The calls of the only round."""
    (held,) = (unit for unit in session.conversation.units if isinstance(unit, Round))
    return held.calls


@pytest.mark.parametrize("at", range(3))
def test_one_call_of_several_is_settled_in_its_place(at: int) -> None:
    """Its arguments and result are the entries', the others are as they were."""
    calls = calls_of(folded(started(CALLS[at].id, 7), returned(CALLS[at].id)))
    assert [call.id for call in calls] == [call.id for call in CALLS]
    assert calls[at].args == {"n": 7}
    assert calls[at].result == (Text("seen"),)
    assert [call for n, call in enumerate(calls) if n != at] == [call for n, call in enumerate(CALLS) if n != at]


def test_a_result_of_no_call_says_nothing() -> None:
    """The round stays as it is."""
    assert calls_of(folded(returned("t/a/r0/c9"))) == CALLS


def test_a_start_of_no_call_is_no_valid_record() -> None:
    """The error names the call."""
    with pytest.raises(RecordInvalid, match="t/a/r0/c9"):
        folded(started("t/a/r0/c9", 1))
