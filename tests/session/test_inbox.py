"""Rows as values: what they are stored as, and what they tell of themselves."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Interruption, Said, Started, Woke
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import StoreError, UsageError
from onrecord.record.kinds import HistoryChanged
from onrecord.session.inbox import (
    LONGEST_DELAY_MS,
    LONGEST_LEASE,
    RowBody,
    check_lease,
    check_reason,
    comes_first,
    decode_mark,
    decode_row_body,
    encode_mark,
    encode_row_body,
    instant,
    is_message,
    kind_of_row,
    outgoing_row,
    superseded,
    wake_row,
)
from onrecord.testing.conformance.samples import AT, ELSEWHERE, examples, row

pytestmark = pytest.mark.unit

S = SessionKey("s")
CANARY = "canary-2ab7"
KINDS = ("said", "happened", "started", "woke", "answered", "interruption", "history.changed", "out")


def plain(kind: type) -> Any:
    """A body of a kind, with every field set, that a row may have."""
    body = examples(kind)[0]
    return replace(body, after_ms=5) if isinstance(body, Outgoing) else body


@pytest.mark.parametrize("kind", get_args(RowBody))
def test_a_body_comes_back_as_what_it_was(kind: type) -> None:
    """Equal and of its type, by the kind it was stored under."""
    body = plain(kind)
    found = decode_row_body(kind_of_row(body), encode_row_body(row(body, key="k")))
    assert (found, type(found)) == (body, kind)


def test_kinds_of_rows_are_stored_names() -> None:
    """Rows of older files are read by them."""
    assert tuple(kind_of_row(plain(kind)) for kind in get_args(RowBody)) == KINDS


@pytest.mark.parametrize(("kind", "body"), [("said", b"{"), ("said", b'{"type":"woke","key":"w"}'), ("nothing", b"{}")])
def test_what_is_no_body_is_told_as_damage(kind: str, body: bytes) -> None:
    """Bytes that do not decode, another kind's, and a kind that nobody knows."""
    with pytest.raises(StoreError, match=kind) as told:
        decode_row_body(kind, body)
    assert (told.value.code, bool(told.value.hint)) == ("store-corrupt", True)


def test_a_mark_comes_back_as_what_it_was() -> None:
    """The interruption that tells a take to stop."""
    mark = examples(Interruption)[0]
    assert decode_mark(encode_mark(S, mark)) == mark


def test_a_row_shows_nothing_of_its_content() -> None:
    """Neither key nor body nor options, whatever its state."""
    held = row(Said(CANARY, key=CANARY), key=CANARY)
    states = (held, replace(held, owner="w", lease_until=AT, attempt=2), replace(held, dead="attempts"))
    assert [repr(one) for one in states] == [
        "Row('s', 'in', n=0, attempt=0)",
        "Row('s', 'in', n=0, attempt=2, leased)",
        "Row('s', 'in', n=0, attempt=0, parked: attempts)",
    ]


def test_a_wake_becomes_a_row_of_its_session() -> None:
    """Due at its time, under the key of its kind; of another session if it says so."""
    made = wake_row(S, Wake(key="call back", at=AT, payload={"n": 1}))
    assert made == row(Woke("call back", at=AT, payload={"n": 1}), key="woke::call back", due=AT)
    other = SessionKey("other", tenant="t")
    assert wake_row(S, Wake(key="w", at=AT, session=other)).session == other


def test_a_message_becomes_a_row_out_under_its_key() -> None:
    """When it is due is for the store to say."""
    message = Outgoing(key="t/main", text="hi", after_ms=5)
    made = outgoing_row(S, message)
    assert (made.session, made.box, made.key, made.body, made.due) == (S, "out", "t/main", message, None)


@pytest.mark.parametrize(
    ("body", "message", "first"),
    [
        (Said("hi"), True, False),
        (Answered("q"), True, False),
        (Happened("paid", key="e"), False, False),
        (Started("tour", key="e"), False, False),
        (Woke("w"), False, False),
        (Interruption(id="i"), False, True),
        (HistoryChanged(op="edit", by="owner"), False, True),
    ],
)
def test_rows_are_messages_or_come_first_or_neither(body: RowBody, message: bool, first: bool) -> None:
    """Which of the rules of order is theirs."""
    assert (is_message(body), comes_first(body)) == (message, first)


def test_a_mark_of_superseding_is_one_of_its_row() -> None:
    """So that the same message marks the others once."""
    assert superseded(row("hi")) == Interruption(id="superseded:said::hi", cause="superseded")


def test_an_instant_is_kept_in_utc() -> None:
    """The same one, however it was told."""
    assert instant(ELSEWHERE) == AT
    assert instant(ELSEWHERE).tzinfo is UTC


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 - on purpose
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_an_instant_that_nobody_knows_is_refused(at: datetime) -> None:
    """It has no offset, or none in the calendar."""
    with pytest.raises(StoreError, match="offset") as told:
        instant(at)
    assert told.value.code == "store-row"


def test_a_lease_lasts_up_to_a_day() -> None:
    """Beyond it, and without an owner, it is refused."""
    check_lease("w1", LONGEST_LEASE)
    for owner, ttl in (("w1", LONGEST_LEASE + 1), ("w1", float("inf")), ("", 1)):
        with pytest.raises(UsageError, match="owner"):
            check_lease(owner, ttl)
    with pytest.raises(StoreError, match="Unicode"):
        check_lease("w \ud83d", 1)


def test_a_reason_is_a_text() -> None:
    """That can be stored."""
    check_reason("attempts")
    with pytest.raises(StoreError, match="Unicode"):
        check_reason("\ud83d")


def test_the_longest_delay_is_a_hundred_years() -> None:
    """More than that is a mistake, and is told as one."""
    encode_row_body(row(Outgoing(key="m", text="hi", after_ms=LONGEST_DELAY_MS)))
    with pytest.raises(StoreError, match="hundred years"):
        encode_row_body(row(Outgoing(key="m", text="hi", after_ms=LONGEST_DELAY_MS + 1)))
