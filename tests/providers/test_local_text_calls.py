"""Calls that models write into their text: found however it is cut, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.providers.local.text_calls import CallReader, FoundCall

pytestmark = pytest.mark.unit

ARGS = '{"city": "O{s]lo \\"\\\\"}'
CALL = '{"name": "weather", "arguments": ' + ARGS + "}"
BOOK = '{"name": "book", "arguments": {}}'
WEATHER = ("weather", ARGS)


def read(text: str, size: int) -> tuple[str, list[tuple[str, str]]]:
    """The text and the calls of a reply that arrives in pieces of one size."""
    reader = CallReader({"weather", "book"}, harmless={"weather"})
    found: list[str | FoundCall] = []
    for at in range(0, len(text), size):
        found += reader.feed(text[at : at + size])
    found += reader.close()
    said = "".join(one for one in found if isinstance(one, str))
    return said, [(one.name, one.raw_args) for one in found if isinstance(one, FoundCall)]


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        (CALL, "", [WEATHER]),
        ("  \n" + CALL + "\n", "", [WEATHER]),
        ("```json\n" + CALL + "\n```", "", [WEATHER]),
        ("```\n" + CALL + "\n```\n", "", [WEATHER]),
        ("```tool_call\n" + CALL + "```", "", [WEATHER]),
        ("<tool_call>\n" + CALL + "\n</tool_call>", "", [WEATHER]),
        ("<tools>\n" + CALL + "\n</tools>", "", [WEATHER]),
        ("<tool_call>```json\n" + CALL + "```</tool_call>", "", [WEATHER]),
        # doubled braces, whole or half of them, and one too many
        ("{" + CALL + "}", "", [WEATHER]),
        ("{" + CALL, "", [WEATHER]),
        (CALL + "}", "", [WEATHER]),
        # several
        (CALL + "\n" + BOOK, "", [WEATHER, ("book", "{}")]),
        ("[" + CALL + ", " + BOOK + "]", "", [WEATHER, ("book", "{}")]),
        (f"<tool_call>{CALL}</tool_call>\n<tool_call>{BOOK}</tool_call>", "", [WEATHER, ("book", "{}")]),
        # words around it
        ("Sure.\n```json\n" + CALL + "\n```\n\nDone.", "Sure.\nDone.", [WEATHER]),
        ("Sure.\n<tool_call>" + BOOK + "</tool_call>", "Sure.\n", [("book", "{}")]),
        ("Sure <tool_call>" + CALL + "</tool_call> done", "Sure done", [WEATHER]),
        # other spellings
        ('{"name": "weather", "parameters": {"city": "Oslo"}}', "", [("weather", '{"city": "Oslo"}')]),
        ('{"type": "function", "function": {"name": "book", "arguments": {}}}', "", [("book", "{}")]),
        ('{"name": "book", "arguments": "{\\"nights\\": 2}"}', "", [("book", '{"nights": 2}')]),
    ],
)
def test_calls_are_taken_out_of_the_text(text: str, said: str, calls: list[tuple[str, str]]) -> None:
    """In every spelling seen, in pieces of any size."""
    for size in (1, 2, 3, 5, 8, 1000):
        assert read(text, size) == (said, calls)


@pytest.mark.parametrize(
    "text",
    [
        "Hello there.\nHow are you? 1 < 2, and <b>this</b>\n\n",
        '{"room": "double", "nights": 3}',
        '{"name": "Ada", "age": 36}',
        '{"name": "unknown", "arguments": {}}',
        '{"name": "weather", "arguments": []}',
        '{"name": "weather", "arguments": "no object"}',
        '{"name": "weather"}',
        "You can use this command:\n" + BOOK,
        "You can use this command:\n```json\n" + BOOK + "\n```\n",
        '{"name": "weather", "arguments": {',
        "[" + BOOK + ', {"name": "unknown", "arguments": {}}]',
        "Such a call is written " + CALL + " in the middle of a line",
        "```python\nprint({'a': 1})\n```\n",
        "```\nplain\n```",
        "```json\n[1, 2]\n```",
        "[link](https://example.com) and `code`\n- {x}\n",
        "<toolbox> <tool_call> nothing",
        "  ",
    ],
)
def test_everything_else_stays_text_to_the_letter(text: str) -> None:
    """What only resembles a call is not touched."""
    for size in (1, 2, 3, 5, 8, 1000):
        assert read(text, size) == (text, [])


def test_words_are_not_held_back() -> None:
    """Text that cannot become a call is passed on with the piece that shows it."""
    reader = CallReader({"weather"})
    assert "".join(map(str, reader.feed("Hello, "))) == "Hello, "
    assert "".join(map(str, reader.feed('\n{"room": '))) == '\n{"room": '  # no key that a call begins with


def test_blanks_are_no_words() -> None:
    """A call after nothing but blanks counts for any tool, also where something else came between them."""
    reader = CallReader({"book"})
    assert [*reader.feed(" \n"), *reader.close()] == [" \n"]
    assert list(reader.feed(BOOK)) == [FoundCall("book", "{}")]


@given(st.text(alphabet='{}[]"\\`<>:, \nanme', max_size=60), st.integers(1, 7))
def test_how_a_reply_is_cut_never_matters(text: str, size: int) -> None:
    """Text without a call comes out as it went in, whatever it is made of."""
    assert read(text, size) == read(text, len(text) or 1)
    assert read(text, size)[0] == text
