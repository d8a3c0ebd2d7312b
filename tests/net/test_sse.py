"""Server-sent events come out the same however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.net.sse import ErrorEvent, EventParser, EventTooLarge

pytestmark = pytest.mark.unit


def parse(*pieces: bytes, max_event: int = 1 << 20) -> list[bytes]:
    """The events of a stream that comes in these pieces."""
    parser = EventParser(max_event)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


def by_the_book(stream: bytes) -> list[bytes]:
    """The rules of the format applied to a whole stream, slowly."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[bytes] = []
    data: list[bytes] = []
    for line in [*text.split(b"\n"), b""]:
        if not line:
            if b"\n".join(data):
                events.append(b"\n".join(data))
            data = []
            continue
        name, _, value = line.partition(b":")
        if name in {b"data", b"error"} and (name == b"data" or b":" in line):
            data.append(value[1:] if value.startswith(b" ") else value)
    return events


WORDS = st.sampled_from([b"", b"a", b"{}", b" x", b"[DONE]", b"data: x", b": y", "é漢".encode(), b"\x00"])
LINES = st.one_of(
    st.builds(lambda word: b"data: " + word, WORDS),
    st.builds(lambda word: b"data:" + word, WORDS),
    st.builds(lambda word: b"event: " + word, WORDS),
    st.builds(lambda word: b":" + word, WORDS),
    st.builds(lambda word: b"id: " + word, WORDS),
    st.sampled_from([b"data", b"", b"", b"", b"event: error", b"error: bad", b"error", b"retry: 3"]),
)
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Streams of any lines and line ends."""
    lines = draw(st.lists(st.tuples(LINES, ENDS), max_size=12))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"".join(line + end for line, end in lines)


@given(streams(), st.lists(st.integers(0, 200), max_size=12))
def test_any_cut_gives_the_events_of_the_whole(stream: bytes, cuts: list[int]) -> None:
    """However a stream is cut, and whatever its line ends, the events are those of the format's rules."""
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert parse(*pieces) == by_the_book(stream)


@given(streams())
def test_one_byte_at_a_time(stream: bytes) -> None:
    """The finest cut of all."""
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == by_the_book(stream)


@given(st.lists(st.binary(min_size=1, max_size=40).filter(lambda data: not set(data) & set(b"\r\n")), max_size=8))
def test_plain_data_lines_come_out_as_they_went_in(payloads: list[bytes]) -> None:
    """The shape nearly every server sends loses and adds nothing."""
    stream = b"".join(b"data: %b\n\n" % payload for payload in payloads)
    assert parse(stream) == payloads
    named = b"".join(b"event: delta\ndata: %b\n\n" % payload for payload in payloads)
    assert parse(named) == payloads


def test_an_event_is_given_as_soon_as_its_blank_line_is_there() -> None:
    """No event waits for the next one, with CR LF neither."""
    parser = EventParser()
    assert parser.feed(b"data: one\n\nda") == [b"one"]
    assert parser.feed(b"ta: two\r\n\r") == [b"two"]
    assert parser.feed(b"\ndata: three\n\n") == [b"three"]
    assert parser.feed(b"data: four\n") == []
    assert parser.feed(b"\n") == [b"four"]


def test_lines_of_data_are_joined() -> None:
    """Several data lines of one event become one, comments and other fields do not."""
    assert parse(b": hello\nid: 7\ndata: {\nretry: 10\ndata: }\n\n") == [b"{\n}"]


def test_events_without_data_are_dropped() -> None:
    """Among others of the plainest shape too."""
    assert parse(b"data: \n\ndata: a\n\ndata: \n\ndata: b\n\n") == [b"a", b"b"]
    assert parse(b"data:\n\ndata: a\n\nid: 1\n\n") == [b"a"]


def test_an_error_event_can_be_told_from_others() -> None:
    """What the sender named an error is marked, by the event's name or by a field of that name."""
    events = parse(b'event: error\ndata: {"type":"error"}\n\nerror: {"code":500}\n\nevent: x\ndata: y\n\ndata: z\n\n')
    assert events == [b'{"type":"error"}', b'{"code":500}', b"y", b"z"]
    assert [isinstance(event, ErrorEvent) for event in events] == [True, True, False, False]


def test_the_last_event_needs_no_blank_line() -> None:
    """A server that just ends is understood."""
    assert parse(b"data: a\n\ndata: [DONE]") == [b"a", b"[DONE]"]


@pytest.mark.parametrize("step", [7, 1 << 10])
def test_an_event_over_the_limit_is_refused(step: int) -> None:
    """The limit holds for one event, not for the stream, and for what has not ended yet."""
    small = b"data: " + b"x" * 80 + b"\n\n"
    assert len(parse(small * 50, max_event=100)) == 50
    assert len(parse(small * 50, max_event=len(small) - 2)) == 50
    big = b"data: " + b"x" * 200
    pieces = [big[start : start + step] for start in range(0, len(big), step)]
    with pytest.raises(EventTooLarge):
        parse(*pieces, max_event=100)
    with pytest.raises(EventTooLarge):
        EventParser(100).feed(small + big + b"\n\n" + small)


def test_a_huge_event_in_small_pieces_is_read_in_one_pass() -> None:
    """Twenty megabytes in pieces of 4 KB come out whole; searching from the start each time would take minutes."""
    data = b"x" * (20 << 20)
    stream = b"data: " + data + b"\n\n"
    assert parse(*(stream[i : i + 4096] for i in range(0, len(stream), 4096)), max_event=32 << 20) == [data]


def test_pending_tells_an_unfinished_event() -> None:
    """Between events nothing is pending."""
    parser = EventParser()
    parser.feed(b"data: a\n\n")
    assert not parser.pending
    parser.feed(b"data: b")
    assert parser.pending
