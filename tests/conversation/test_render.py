from datetime import UTC, datetime, timedelta, timezone

import pytest

from onrecord.conversation.content import Image, Part, Structured, Text
from onrecord.conversation.messages import ContextMessage, UserMessage
from onrecord.conversation.render import context_text, instruction, prefixed, preview, stamped, user_parts

pytestmark = pytest.mark.unit

AT = datetime(2026, 4, 25, 18, 47, tzinfo=timezone(timedelta(hours=-3)))
IMAGE = Image(url="https://e.test/a.png")


def text_of(*content: Text | Structured) -> str:
    """The rendered text of one context message."""
    return context_text(ContextMessage(id="c", content=content))


def words(parts: tuple[Part, ...]) -> str:
    """The text of the first part."""
    first = parts[0]
    assert isinstance(first, Text)
    return first.text


FORMS = [
    (Text("as it is"), "as it is"),
    (Structured(kind="text", text="as it is"), "as it is"),
    (Structured(kind="instruction", text="Be brief."), "Instruction:\nBe brief."),
    (
        Structured(kind="instruction", text="Be brief.", about={"priority": "high"}),
        "Instruction [high]:\nBe brief.",
    ),
    (Structured(kind="tagged-text", text="a b", about={"tag": "note"}), "<note>a b</note>"),
    (
        Structured(kind="domain-event", payload={"n": 1, "city": "São Paulo"}, about={"event_type": "paid"}),
        'Domain event: paid\n{\n  "n": 1,\n  "city": "São Paulo"\n}',
    ),
    (Structured(kind="domain_event", text="paid", payload=[1]), "Domain event: paid\n[\n  1\n]"),
    (
        Structured(kind="state-snapshot", payload={}, about={"state_type": "board"}),
        "State snapshot: board\n{}",
    ),
    (Structured(kind="summary", text="They met."), "Summary:\nThey met."),
    (Structured(kind="summary", text="They met.", payload={"turns": 2}), 'Summary:\nThey met.\n{\n  "turns": 2\n}'),
    (Structured(kind="reference", about={"ref_type": "order", "target_id": "7"}), "Reference: order -> 7"),
    (
        Structured(kind="reference", about={"ref_type": "order", "target_id": "7", "note": "late"}),
        "Reference: order -> 7\nlate",
    ),
    (
        Structured(
            kind="runtime-context", payload=[{"source": "clock", "text": "noon"}, {"source": "dog", "text": "up"}]
        ),
        "[Context]\n- clock: noon\n- dog: up",
    ),
    (Structured(kind="of_a_feature", text="words", payload={"a": 1}), 'of_a_feature:\nwords\n{\n  "a": 1\n}'),
    (Structured(kind="of_a_feature"), "of_a_feature:"),
]


@pytest.mark.parametrize(("content", "expected"), FORMS)
def test_every_form_of_context(content: Text | Structured, expected: str) -> None:
    """The table of forms, and a kind that the table does not have."""
    assert text_of(content) == expected


def test_history_block_forms() -> None:
    """Each item on lines of its own, with or without the wrapping object."""
    items = [
        {"type": "summary", "text": "Before.", "window": {"from": 3}},
        {"type": "summary", "text": "Early.", "window": {"from": "", "to": 3}},
        {"type": "summary", "text": "No window."},
        {"type": "reaction", "reaction_type": "like", "text": "nice"},
        {"type": "domain_event", "event_type": "paid", "payload": {"n": 1}},
        {"type": "turn", "action": {"kind": "text", "text": "Hello."}},
        {"type": "turn", "action": {"kind": "event", "name": "ring", "payload": {"n": 2}}},
        {"type": "turn", "action": {"kind": "move-played", "san": "e4"}},
        {"type": "turn", "action": {"kind": "move_executed", "san": "e5"}},
        {"type": "turn", "action": {"kind": "other", "x": 1}},
        "loose",
    ]
    expected = (
        "Summary:\nBefore.\nWindow: 3 -> ?.\nSummary:\nEarly.\nWindow: ? -> 3.\nSummary:\nNo window.\nlike: nice\n"
        'Domain event: paid\n{\n  "n": 1\n}\nHello.\nring {"n":2}\nmove-played e4\nmove-executed e5\n'
        '{"kind":"other","x":1}\n"loose"'
    )
    assert text_of(Structured(kind="history-block", payload={"compacted": True, "items": items})) == expected
    assert text_of(Structured(kind="history-block", payload=items)) == expected


def test_runtime_context_starts_a_line_only_behind_other_content() -> None:
    """The bucket never runs into the words before it."""
    bucket = Structured(kind="runtime-context", payload=[{"source": "clock", "text": "noon"}])
    assert text_of(bucket) == "[Context]\n- clock: noon"
    assert text_of(Text("Hi"), bucket) == "Hi\n[Context]\n- clock: noon"


def test_parts_join_without_a_separator() -> None:
    """Texts are pieces of one text."""
    assert text_of(Text("hi"), Text(" there")) == "hi there"


def test_instruction_says_whose_it_is() -> None:
    """A wire without the role still tells system from developer text."""
    shown = instruction("Be brief.", "developer")
    assert "Be brief." in shown
    assert "developer" in shown
    assert shown != instruction("Be brief.", "system")


def test_blanks_behind_a_bracket_are_looked_at_once() -> None:
    """However many: the square of that would hold the process up."""
    told = instruction(f"<{' ' * 100_000}x <{' ' * 100_000}/ instruction>", "developer")
    assert told.count("&lt;") == 1


def test_a_message_without_a_prefix_is_its_own_content() -> None:
    """Nothing is built for the common case."""
    content = (Text("hello"), IMAGE)
    assert user_parts(UserMessage(id="u", content=content)) is content


def test_a12_time_prefix() -> None:
    """A12: a message of 18:47 reads ``[2026-04-25 18:47] hello``.

    The stamp is a function of its own here: plain agents send what was written, a feature mounts the stamp.
    """
    message = UserMessage(id="u", content=(Text("hello"),), at=AT)
    assert stamped(user_parts(message), message.at) == (Text("[2026-04-25 18:47] hello"),)
    assert stamped(message.content, None) is message.content


def test_the_stamp_uses_the_offset_the_instant_carries() -> None:
    """Zero padded, and in no machine's own zone."""
    assert words(stamped((Text("x"),), AT.astimezone(UTC))) == "[2026-04-25 21:47] x"
    assert words(stamped((Text("x"),), datetime(2026, 1, 2, 3, 4, tzinfo=UTC))) == "[2026-01-02 03:04] x"


def test_a15_prefix_before_media() -> None:
    """A15: content that is one image gets a text part in front."""
    assert stamped((IMAGE,), AT) == (Text("[2026-04-25 18:47] "), IMAGE)


def test_missing_content_becomes_the_prefix() -> None:
    """Words before nothing are the content."""
    assert prefixed((), "[x] ") == (Text("[x] "),)


def test_a16_long_reply_preview() -> None:
    """A16: a preview of 600 characters is cut to 479, right-trimmed, plus an ellipsis."""
    long = "a" * 478 + " " + "b" * 121
    message = UserMessage(id="u", content=(Text("yes"),), reply_to="m1", reply_preview=long)
    assert user_parts(message) == (Text("[Replying to: " + "a" * 478 + "…]\nyes"),)
    assert preview("c" * 600) == "c" * 479 + "…"
    assert preview("c" * 480) == "c" * 480
    assert preview("  a \n\t b  ") == "a b"
    assert preview(preview("c" * 600)) == preview("c" * 600)


def test_a17_reply_to_a_message_without_text() -> None:
    """A17: a target with white space only is named by its id; an unknown target has no line.

    An unknown target is dropped where a message is admitted or imported, so the message has no ``reply_to``.
    """
    message = UserMessage(id="u", content=(Text("yes"),), reply_to="m1", reply_preview=" \n ")
    assert words(user_parts(message)) == "[Replying to: message m1]\nyes"
    assert user_parts(UserMessage(id="u", content=(Text("yes"),))) == (Text("yes"),)


def test_prefixes_come_in_order() -> None:
    """Time, notice, reply, then what was written."""
    message = UserMessage(
        id="u", content=(Text("done"),), at=AT, notice="recipe:Research", reply_to="m1", reply_preview="a  b"
    )
    assert words(stamped(user_parts(message), message.at)) == (
        "[2026-04-25 18:47] [Notice from recipe:Research; the owner did not write this.]\n[Replying to: a b]\ndone"
    )
