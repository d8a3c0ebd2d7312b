"""Reading a record: why an entry is there, what was known at it, and lines that survive everything."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, RecordInvalid, UsageError
from onrecord.record.entry import Body, Entry, UnknownBody, kind_of
from onrecord.record.fold import takes
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import CORE_KINDS, Noted, ToolReturned, TurnClosed, TurnFailed
from onrecord.record.record import Record
from onrecord.session import refold
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.testing.conformance.samples import AT
from tests.strategies import bodies
from tests.turn.acting import Result, tool, turn

pytestmark = pytest.mark.unit


class Booked(Body, frozen=True, kw_only=True, tag="hotel.booked"):
    """A feature's body."""

    room: int


def entry(body: Body, n: int = 0, *, turn: str = "t", cause: int | None = None) -> Entry:
    """An entry with this body."""
    return Entry(seq=n, n=n, turn=turn, take=1, where="main", at=AT, cause=cause, body=body)


def numbers(entries: object) -> list[int]:
    """A fold for tests that look at the prefix alone."""
    assert isinstance(entries, tuple)
    return [e.seq for e in entries]


async def talked() -> tuple[Result, Record[Session]]:
    """A turn with one tool call."""
    result = await turn(Agent(ScriptedModel([call("look")], "Done."), tools=[tool("look")]), session="s")
    session = result.session
    assert session is not None

    def replay(part: Sequence[Entry]) -> Session:
        return refold(session.key, part, digest_key=session.digest_key)

    return result, Record(result.entries, replay)


async def test_why_is_the_causal_slice() -> None:
    """From the message over the request and the reply to the call's result, first cause first."""
    _, record = await talked()
    returned = next(e for e in record if isinstance(e.body, ToolReturned))
    assert [kind_of(e.body) for e in record.why(returned.seq)] == [
        "turn.opened", "turn.input", "model.requested", "model.replied", "tool.started", "tool.returned",
    ]  # fmt: skip


async def test_state_at_is_time_travel() -> None:
    """What the session was known to be at any entry, the running turn included."""
    result, record = await talked()
    requested = [e.seq for e in record if kind_of(e.body) == "model.requested"]
    assert [len(record.state_at(seq).conversation.units) for seq in requested] == [1, 2]
    assert record.state_at(result.entries[-1].seq) == result.session
    for seq in range(len(record)):
        assert record.state_at(seq).seq == seq + 1


def test_reasons_lead_nowhere_twice() -> None:
    """A cause that is missing ends the slice, and one that points at itself does not turn in circles."""
    record = Record([entry(Noted(by="x", text="a"), 3, cause=1), entry(Noted(by="x", text="b"), 4, cause=4)], numbers)
    assert [e.seq for e in record.why(3)] == [3]
    assert [e.seq for e in record.why(4)] == [4]


def test_what_is_not_there_is_refused_with_what_is() -> None:
    """An entry number outside, or any of an empty record."""
    record = Record([entry(Noted(by="x", text="a"), 3)], numbers)
    with pytest.raises(UsageError, match="no entry 9") as told:
        record.why(9)
    assert told.value.hint == "it holds 3 to 3"
    with pytest.raises(UsageError) as empty:
        Record([], numbers).state_at(0)
    assert empty.value.hint == "it holds nothing"


def test_turns_are_grouped_though_others_lie_between() -> None:
    """A held message between a pause and its resumption is a turn of its own."""
    notes = [entry(Noted(by="x", text=""), n, turn=t) for n, t in enumerate("abaa")]
    record = Record(notes, numbers)
    assert {t: [e.seq for e in held] for t, held in record.turns().items()} == {"a": [0, 2, 3], "b": [1]}
    assert (len(record), list(record)) == (4, notes)


def test_takes_are_whole_and_each_a_list_of_its_own() -> None:
    """Every end closes one, and what has no end yet comes last."""
    ends: list[Body] = [TurnClosed(status="silent"), TurnFailed(code="c", error="E"), Noted(by="x", text="")]
    entries = [entry(body, n) for n, body in enumerate(ends)]
    found = list(takes([entry(Noted(by="x", text=""), 9), *entries]))
    assert [[e.seq for e in take] for take in found] == [[9, 0], [1], [2]]


# ---- lines -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(bodies, max_size=5))
def test_every_core_body_survives_its_line(drawn: list[Body]) -> None:
    """With any content."""
    codec, entries = EntryCodec(), [entry(body, n) for n, body in enumerate(drawn)]
    assert list(codec.read(codec.lines(entries))) == entries


def test_a_feature_s_bodies_are_typed_where_it_is_mounted() -> None:
    """Elsewhere they are kept byte for byte, so that a tool that knows less loses nothing."""
    typed, plain = EntryCodec([Booked]), EntryCodec()
    line = typed.encode(entry(Booked(room=7)))
    assert typed.decode(line).body == Booked(room=7)
    unknown = plain.decode(line)
    assert isinstance(unknown.body, UnknownBody)
    assert (kind_of(unknown.body), plain.encode(unknown)) == ("hotel.booked", line)
    assert plain.encode_body(unknown.body) == typed.encode_body(Booked(room=7))
    assert typed.decode_body(unknown.body.raw) == Booked(room=7)


@pytest.mark.parametrize("told", [b'"\xff"', b'"\\ud800"', b"[" * 5000 + b"]" * 5000])
def test_an_unknown_body_is_json_or_none(told: bytes) -> None:
    """Nobody knows its fields, and yet a redaction reads all of them."""
    with pytest.raises(RecordInvalid):
        EntryCodec().decode_body(b'{"kind":"hotel.booked","room":%b}' % told)


def test_unknown_bodies_keep_their_spelling() -> None:
    """Spaces, order of fields and numbers as they were written."""
    raw = b'{"kind" : "hotel.noted", "b": 1.0, "a": [ ] }'
    body = EntryCodec().decode_body(Raw(raw))
    assert isinstance(body, UnknownBody)
    assert bytes(body.raw) == raw


def test_two_bodies_of_one_kind_are_refused() -> None:
    """Also one that takes the kind of the core; the same body twice is fine."""

    class Other(Body, frozen=True, kw_only=True, tag="hotel.booked"):
        pass

    EntryCodec([Booked, Booked])
    with pytest.raises(ConfigurationError, match=r"'hotel\.booked'"):
        EntryCodec([Booked, Other])


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"seq":1}', b'{"seq":"x"}', b"\xff"])
def test_a_line_that_is_no_entry_is_told_by_its_number(line: bytes) -> None:
    """Never by its content; a last line without its end may be cut short."""
    with pytest.raises(RecordInvalid, match="talk, line 3: ") as told:
        list(EntryCodec().read([b"\n", b"  \n", line], name="talk"))
    assert "cut short" in told.value.hint
    with pytest.raises(RecordInvalid) as ended:
        list(EntryCodec().read([line + b"\n"], name="talk"))
    assert ended.value.hint == ""


def test_content_of_a_broken_line_is_not_told() -> None:
    """A body that does not fit its kind: the error names fields and types."""
    line = EntryCodec().encode(entry(Noted(by="x", text="a"))).replace(b'"a"', b'["canary-3"]')
    with pytest.raises(RecordInvalid, match=r"\$\.text") as told:
        EntryCodec().decode(line)
    assert "canary-3" not in f"{told.value} {told.value.hint}"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"kind":"said","key":"k","text":"a","side":"canary-3"}', "Invalid value - at `$.side`"),
        (b'{"kind":"context.added","content":[{"type":"canary-3 - at `$"}]}', "Invalid value - at `$.content[0].type`"),
        (b'{"kind":"data.patched","patch":{"canary-3":' + b"[" * 9000 + b"]" * 9000 + b"}}", "nested too deeply"),
        (b'{"kind":"note","by":"x","text":"canary-3\xff"}', "not valid JSON"),
    ],
    ids=["literal", "tag", "depth", "unicode"],
)
def test_a_body_that_does_not_decode_is_told_by_its_place_alone(body: bytes, told: str) -> None:
    """Where a field allows only some values, where nesting has no end and where bytes are no text, too."""
    with pytest.raises(RecordInvalid) as refused:
        EntryCodec().decode_body(body)
    assert str(refused.value) == f"a record body does not decode: {told}"


def test_the_core_has_twenty_four_kinds() -> None:
    """A closed set: features add kinds of their own, the core never does."""
    assert len({str(kind.__struct_config__.tag) for kind in CORE_KINDS}) == len(CORE_KINDS) == 24
