"""The short way of reading events gives what the long way gives, for any event in any place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import event as happened
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, TextChunk
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.parse import Parser

pytestmark = pytest.mark.unit

KEEPING = Dialect(keeps=("reasoning_content", "reasoning_details"), keeps_all=True)


class LongWay(Parser):
    """Never learns."""

    __slots__ = ()

    def _learn(self, data: bytes, text: str) -> None:
        pass


def outcome(parser: Parser, events: list[bytes]) -> tuple[list[Chunk], tuple[object, ...]]:
    """All chunks, and how it ended."""
    out: list[Chunk] = []
    try:
        for data in events:
            out += parser.feed(data)
        out += parser.close()
    except ModelError as error:
        return out, (error.kind, str(error), error.started)
    return out, ("ended", "", parser.started)


TEXTS = st.sampled_from(
    ["a", "", " ", "ab", '"', "\\", "\n", "é", "☃", "\u2028", "😀", '","x":"', '"},"content":"']
) | st.text(max_size=6)
SHAPES = st.sampled_from(
    [
        '{"id":"1","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}',
        '{"id":"1","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"usage":null,"obfuscation":"%p"}',
        '{"id":"1","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"obfuscation":"%p","x":1}',
        '{"id":"%p","choices":[{"index":0,"delta":{"content":%s}}]}',
        '{"choices":[{"delta":{"content":%s,"content":"b"}}]}',
        '{"choices":[{"delta":{"content":"b","content":%s}}]}',
        '{"content":%s,"choices":[{"delta":{"content": "a"}}]}',
        '{"x":{"content":"a"},"choices":[{"delta":{"content": %s}}]}',
        '{"choices":[{"delta":{"content":%s,"reasoning_content":"h"}}]}',
        '{"choices":[{"delta":{"content":%s,"reasoning_content":""}}]}',
        '{"choices":[{"delta":{"content":%s,"reasoning_details":[{"type":"t","text":"h"}]}}]}',
        '{"choices":[{"delta":{"content":%s,"refusal":"no"}}]}',
        '{"choices":[{"delta":{"content":%s,"tool_calls":[{"function":{"name":"f","arguments":"1"}}]}}]}',
        '{"choices":[{"delta":{"content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}',
        '{"choices":[{"delta":{"content":%s}},{"index":0,"delta":{"content":"second"}}]}',
        '{"choices":[{"index":1,"delta":{"content":%s}}]}',
        '{"choices":[{"message":{"content":%s}}]}',
        '{"model":%s,"choices":[{"delta":{"content":"a"}}]}',
        '{"error":null,"choices":[{"delta":{"content":%s}}]}',
    ]
)
RAW = st.sampled_from(["\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\q", 'a"b', "a\x01", "\\n"])


@st.composite
def event_of(draw: st.DrawFn) -> bytes:
    """An event of some server, or nearly one."""
    pad = draw(st.sampled_from(["", "Ab3", "x-y", "zz"]))
    text = json.dumps(draw(TEXTS), ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 5)) == 0:
        text = f'"{draw(RAW)}"'
    data = draw(SHAPES).replace("%s", text).replace("%p", pad).encode("utf-8", "surrogatepass")
    damage = draw(st.integers(0, 40))
    if damage == 0:
        return data[:-1]
    return data.replace(b"a", b"\xff") if damage == 1 else data


@settings(max_examples=400, deadline=None)
@given(st.lists(event_of(), max_size=3), event_of(), st.lists(event_of(), max_size=6), st.integers(1, 20))
def test_any_events_are_read_alike(before: list[bytes], often: bytes, after: list[bytes], times: int) -> None:
    """With one event many times over, so that something is learned and learned again."""
    events = [*before, *[often] * times, *after]
    short = Parser("acme", KEEPING)
    assert outcome(short, events) == outcome(LongWay("acme", KEEPING), events)
    happened(f"learned: {short._shape is not None}")


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=30), st.booleans(), st.booleans())
def test_the_texts_of_a_usual_stream_are_all_there(texts: list[str], padded: bool, ascii_only: bool) -> None:
    """As OpenAI and as most servers write it."""
    events = []
    for n, text in enumerate(texts):
        pad = f',"usage":null,"obfuscation":"{"x" * (n % 4)}"' if padded else ""
        told = json.dumps(text, ensure_ascii=ascii_only)
        events.append(f'{{"choices":[{{"index":0,"delta":{{"content":{told}}},"finish_reason":null}}]{pad}}}'.encode())
    chunks, _ = outcome(Parser("acme", Dialect()), events)
    assert chunks == [TextChunk(text) for text in texts if text]


def shape_after(*texts: str, head: str = "1") -> tuple[Any, int]:
    """What was learned from these texts, and in how many tries."""
    parser = Parser("acme", Dialect())
    for text in texts:
        parser.feed(f'{{"id":"{head}","choices":[{{"delta":{{"content":"{text}"}}}}]}}'.encode())
    return parser._shape, parser._tries


def test_the_shape_is_learned_from_the_first_text_and_kept() -> None:
    """One try for a whole stream."""
    shape, tries = shape_after("a", "b", "c", "\\n", "d")
    assert shape is not None
    assert tries == 1


def test_a_first_event_unlike_the_others_is_soon_forgotten() -> None:
    """Many servers name the role in the first event only."""
    parser = Parser("acme", Dialect())
    parser.feed(b'{"choices":[{"delta":{"role":"assistant","content":"a"}}]}')
    for _ in range(10):
        parser.feed(b'{"choices":[{"delta":{"content":"a"}}]}')
    assert parser._matched == 9


def test_a_server_whose_events_always_differ_is_read_the_long_way_after_a_while() -> None:
    """Learning costs more than it brings there; a server that counts seconds is learned anew each second."""
    for same, kept in ((1, False), (20, True)):
        parser = Parser("acme", Dialect())
        for n in range(400):
            data = f'{{"created":{n // same},"choices":[{{"delta":{{"content":"a"}}}}]}}'.encode()
            assert list(parser.feed(data)) == [TextChunk("a")]
        assert (parser._tries < 8) is kept
        assert parser._tries <= 8
        assert (parser._matched > 0) is kept


def test_what_follows_the_padding_is_not_passed_over() -> None:
    """Padding is letters and digits up to the end of the event; an error behind it is an error."""
    said = b'{"choices":[{"delta":{"content":"a"}}],"obfuscation":"%b"}'
    events = [said % b"xx", said % b"x", said % b"", said % b'x","error":"failed']
    chunks, (kind, *_) = outcome(Parser("acme", Dialect()), events)
    assert chunks == [TextChunk("a")] * 3
    assert kind != "ended"


@pytest.mark.parametrize("middle", [b'a"b', b"a\\", b"a\x01", b"\xff", b'a","content":"b'])
def test_what_stands_in_the_place_of_a_text_but_is_no_string_is_read_the_long_way(middle: bytes) -> None:
    """Between the same words as always."""
    events = [b'{"choices":[{"delta":{"content":"%b"}}]}' % text for text in (b"a", b"b", middle, b"c")]
    short = Parser("acme", Dialect())
    assert outcome(short, events) == outcome(LongWay("acme", Dialect()), events)
    assert short._shape is not None
