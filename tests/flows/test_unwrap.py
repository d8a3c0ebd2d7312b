"""What people see of a reply while it streams is its message, and nothing of the envelope around it."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onrecord.conversation.content import Mark
from onrecord.flows.unwrap import Unwrap, unescaped

pytestmark = pytest.mark.unit

NAMES = frozenset({"message", "name", "size", "toolCalls"})
SIZE = 100_000


def deltas(pieces: Sequence[str]) -> list[str]:
    """What each piece lets through, and then the end."""
    unwrap = Unwrap(NAMES)
    shown = [item for piece in pieces for item in unwrap.feed(piece)] + list(unwrap.close())
    return [item for item in shown if isinstance(item, str)]


def shown(text: str) -> str:
    """What a reply in one piece lets through; the same in pieces of any length."""
    whole = "".join(deltas([text]))
    for size in (1, 2, 3, 4, 7, 16):
        assert "".join(deltas([text[at : at + size] for at in range(0, len(text), size)])) == whole, size
    return whole


# ---- envelopes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"message":"Hi"}', "Hi"),
        ('  \n{ "message" : "Hi" } \n', "Hi"),
        ('{"message":"Hi","name":"Jo"}', "Hi"),
        ('{"name":"Jo","size":null,"message":"Hi"}', "Hi"),
        ('{"name":"Jo","message":null}', ""),
        ('{"name":"Jo"}', ""),
        ('{"message":{"message":"no"}}', ""),
        ('{"message":["a"],"name":"b"}', ""),
        ('{"message":}', ""),
        ('{"message":"","name":"b"}', ""),
        ('{"toolCalls":[{"toolName":"message","arguments":{"message":"no"}}],"message":"Let me see"}', "Let me see"),
        ('{"other":{"message":"no"},"message":"yes"}', "yes"),
        ('{"other":"\\"message\\":\\"no\\"","message":"yes"}', "yes"),
        ('{"other":[["{",{"message":"no"}]],"message":"yes"}', "yes"),
        ('{"other":"message","message":"yes"}', "yes"),
        ('{"message":"first","message":"second"}', "first"),
        ('{"message":null,"message":"second"}', "second"),
        ('{"mess\\u0061ge":"Hi"}', "Hi"),
        ('[{"message":"Hi"}]', "Hi"),
        ('{{"message":"Hi"}}', "Hi"),
        ('{"message":"Hi"} and {"message":"again"}', "Hi"),
    ],
)
def test_of_an_envelope_only_its_own_message_is_shown(text: str, message: str) -> None:
    """Fields before it, nested and later messages, and whatever follows are left out."""
    assert shown(text) == message


def test_o2_fields_before_the_message_and_escapes() -> None:
    """Case O2: nothing of the field is shown, quotes and line ends are read."""
    assert shown('{"name":"Jo","message":"Hi \\"you\\"\\n') == 'Hi "you"\n'


def test_the_message_streams_while_the_envelope_is_open() -> None:
    """Each piece shows what it adds."""
    assert deltas(['{"na', 'me":"Jo","mes', 'sage":"Hi', " you", '!","size":', '"1"}']) == ["Hi", " you", "!"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\n\t\r\b\f\/\\\"", 'a\n\t\r\b\f/\\"'),
        (r"caf\u00e9", "café"),
        (r"\ud83d\ude00!", "😀!"),
        (r"\ud83d!", "\ufffd!"),
        (r"\ude00!", "\ufffd!"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\ud83d\n", "\ufffd\n"),
        (r"\ud83d\uzz", "\ufffd\ufffdzz"),
        (r"\ud83d", "\ufffd"),
        (r"\\ud83d\\n", r"\ud83d\n"),
        (r"\u12", "\ufffd12"),
        (r"don\'t \(x\)", r"don't \(x\)"),
        ("two\nlines\tof \x01 it", "two\nlines\tof \x01 it"),
    ],
)
def test_escapes_are_read(written: str, read: str) -> None:
    """Halves of a character without the other half are replaced; what JSON does not know stays readable."""
    assert shown(f'{{"message":"{written}"}}') == read
    assert unescaped(written) == read


@pytest.mark.parametrize(
    ("cut", "read"),
    [
        ("Hi\\", "Hi"), ("Hi\\u", "Hi"), ("Hi\\u00", "Hi"), ("Hi\\u00e9", "Hié"), ("Hi\\ud83d", "Hi"),
        ("Hi\\ud83d\\", "Hi"), ("Hi\\ud83d\\ude0", "Hi"), ("Hi\\ud83d\\ude00", "Hi😀"), ("Hi\\\\", "Hi\\"),
    ],
)  # fmt: skip
def test_o4_an_escape_is_shown_when_it_is_whole(cut: str, read: str) -> None:
    """Case O4: of one that is cut off, nothing; a half that may get its other half waits for it."""
    unwrap = Unwrap(NAMES)
    assert "".join(map(str, unwrap.feed(f'{{"message":"{cut}'))) == read
    assert not unwrap.close()


@pytest.mark.parametrize(
    "opening", ["```json\n", "```\n", "``` json\n\n", "~", "```JSON\r\n", "Here you go:\n```json\n"]
)
def test_o5_a_fence_around_an_envelope_is_not_shown(opening: str) -> None:
    """Case O5: nor what follows it."""
    assert shown(f'{opening}{{"message":"Hi","name":null}}\n```\nBye') == "Hi"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": None, "message": "Hi"}', '{"name": Jo Smith, "message": "Hi"}', '{"message": "Hi",}',
        '{"name": "Jo" "message": "Hi"}', '{"size": 1.500, "message": "Hi" oops',
        '{"name": "two\nlines", "message": "Hi"', '{"name":,"size": ,"message":"Hi"}',
    ],
)  # fmt: skip
def test_an_envelope_that_is_not_quite_json_is_one_all_the_same(text: str) -> None:
    """Words without quotes, commas too many or missing, line ends in strings."""
    assert shown(text) == "Hi"


# ---- what is cut off -----------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
preambles = st.sampled_from(["", " ", "\n\n", "```json\n", "```\n", "Sure:\n```json\n", "Here {it} is: "])
fields = st.dictionaries(
    st.sampled_from(["name", "size", "toolCalls"]), st.none() | texts | st.lists(texts, max_size=2)
)


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[str, str, str]:
    """What stands before an envelope, the envelope, and its message."""
    message = draw(texts)
    value: dict[str, object] = dict(draw(fields))
    before = draw(st.integers(0, len(value)))
    value = dict([*list(value.items())[:before], ("message", message), *list(value.items())[before:]])
    written = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return draw(preambles), written, message


@given(envelopes())
def test_a_whole_envelope_shows_exactly_its_message(drawn: tuple[str, str, str]) -> None:
    """Whatever stands before it, and in it."""
    before, envelope, message = drawn
    assert shown(before + envelope + "\n```") == message


@given(envelopes(), st.data())
def test_an_envelope_cut_anywhere_shows_the_beginning_of_its_message(
    drawn: tuple[str, str, str], data: st.DataObject
) -> None:
    """Not a brace, a quote or a field name of it. Words before it are shown if nothing else ever came."""
    before, envelope, message = drawn
    cut = data.draw(st.integers(0, len(envelope)))
    seen = shown(before + envelope[:cut])
    words = before if before.strip(" \n`json") else ""
    if words and envelope[:cut].strip() == "{":
        assert seen == before + envelope[:cut]  # nothing tells this brace from one in a sentence
    else:
        assert message.startswith(seen) or (words and words.startswith(seen)) or (not cut and seen == before)


@given(st.text('{}":,\\`\n amesgeu0d', max_size=60), st.lists(st.integers(0, 60), max_size=6))
@example('{"message":"\\ud83d\\ude00"}', [14, 19])
@example("x" * 65 + '```json\n{"message":"a"}', [66, 70, 74])
@example('{"a":' + "1" * 70 + '{"message":"x"}', [69, 70, 71])
@example('{} ```json\n{"message":"x"}', [1, 2, 3, 5])
def test_the_pieces_of_a_reply_make_no_difference(text: str, places: list[int]) -> None:
    """Any split shows what the whole shows."""
    cuts = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    pieces = [text[start:stop] for start, stop in pairwise(cuts)]
    assert "".join(deltas(pieces)) == "".join(deltas([text]))


# ---- words before an envelope ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 63, 64])
def test_up_to_64_characters_before_an_envelope_are_dropped(length: int) -> None:
    """A preamble of the model is no part of what it says."""
    assert shown("x" * length + '{"message":"Hi"}') == "Hi"
    assert shown("  \n" + "x" * length + '```json\n{"message":"Hi"}') == "Hi"


def test_longer_words_before_an_envelope_stream_and_stay() -> None:
    """They were shown; the envelope adds its message, and a fence around it does not show."""
    words = "y" * 65
    assert shown(words + ' {"message":"Hi","name":null} z') == words + " Hi"
    assert shown(words + '\n```json\n{"message":"Hi"}\n```') == words + "\nHi"
    assert deltas([words, "more ", '{"mess', 'age":"Hi"}']) == [words, "more ", "Hi"]


def test_a_fence_in_words_is_held_back_only_while_it_may_open_an_envelope() -> None:
    """Then it is shown like everything else."""
    words = "z" * 70
    assert deltas([words, " ``", "`py", "thon\n", "print()\n", "```"]) == [
        words, " ", "```python\nprint()\n", "```"
    ]  # fmt: skip


# ---- plain text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Hello", "  Hello\n", "{name} is a placeholder", "a { b", "oh no :{", "{{x}}", '"Hi"', "{'message': 'Hi'}",
        'Set {"a": 1} in the file.', '{"a": 1} is what you need', '{"a": 1, "b"} is not', '{"Hello"} she said', "``` x",
        "```python\nprint()\n```", "Use {x} and {y}.", '{"a": {"message": "x"}} is nested', "{'a': 1}", "{}, then",
        '{"note": ' + "word " * 14 + '}"', "x" * 65 + "`", "x" * 65 + "```js", '{"a":, b',
    ],
)  # fmt: skip
def test_o6_plain_text_is_shown_as_it_is(text: str) -> None:
    """Case O6: with its braces and quotes, where they belong to no envelope."""
    assert shown(text) == text


@pytest.mark.parametrize(
    "text", ['{"reply":"Hello"}', '```json\n{"text":"Hello"}\n```', " {} \n", '{"reply":"Hel', "{"]
)
def test_a_reply_that_is_an_object_and_nothing_else_is_never_shown(text: str) -> None:
    """Also without any expected key: people read no JSON."""
    assert not shown(text).strip()


@given(st.text(st.characters(exclude_characters="{", exclude_categories=["Cs"]), max_size=100))
def test_text_without_a_brace_is_shown_as_it_is(text: str) -> None:
    """Whatever it is."""
    assert shown(text) == text


def test_long_text_streams() -> None:
    """After the first 64 characters nothing waits."""
    assert deltas(["a" * 40, "b" * 40, "c", "d{", "e"]) == ["a" * 40, "b" * 40, "c", "d", "{", "e"]


def test_marks_pass() -> None:
    """What is no text is not for this filter."""
    mark = Mark(kind="sticker", raw="[wave]")
    assert Unwrap(NAMES).feed(mark) == (mark,)


# ---- values ------------------------------------------------------------------------------------------------------


def values(text: str) -> Mapping[str, str]:
    """The values of a reply in one piece."""
    unwrap = Unwrap(NAMES)
    unwrap.feed(text)
    unwrap.close()
    return unwrap.values(text)


def test_values_are_those_that_came_whole() -> None:
    """As they are written; of a key that comes twice the last one."""
    assert values('x {"name":"J\\"o", "size" : 12 ,"other":1,"name":"Bo","toolCalls":[{"a":"') == {
        "name": '"Bo"', "size": "12 "
    }  # fmt: skip
    assert values('{"message":"Hi","toolCalls":[{"a":"]"}]}') == {"message": '"Hi"', "toolCalls": '[{"a":"]"}]'}


def test_what_is_no_envelope_has_no_values() -> None:
    """Also where it has fields inside."""
    assert not values('{"a":{"name":"Jo"}}')
    assert not values("plain")


# ---- time ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        "{", '"', "\\", "`", " ", "{ ", '{"', "{}", '{"a":', '{"name":', '{"a":1}', '{"message":"x"', '{"a":"\\',
        "```json\n", '{"name":[', "{\n", '{"a"', "``` ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", ["", '{"message":"', '{"name":', "x" * 70])
def test_hostile_replies_take_linear_time(unit: str, start: str) -> None:
    """What takes quadratic time would not end within the time a test has."""
    text = start + unit * (SIZE // len(unit))
    assert "".join(deltas([text])) == "".join(deltas([text[at : at + 4] for at in range(0, len(text), 4)]))


@pytest.mark.parametrize("escape", ["\\\\", "\\ud83d", "\\ude00", "\\u00", "\\x", '\\"'])
def test_a_message_of_escapes_takes_linear_time(escape: str) -> None:
    """In one piece and in small ones."""
    text = '{"message":"' + escape * (SIZE // len(escape)) + '"}'
    assert "".join(deltas([text])) == "".join(deltas([text[at : at + 4] for at in range(0, len(text), 4)]))
