import pytest

from onrecord.conversation.content import (
    Audio,
    CallRef,
    File,
    Image,
    Mark,
    Refusal,
    Structured,
    Text,
    Thinking,
)
from onrecord.conversation.display import DisplayLine, displayed, labelled
from onrecord.conversation.messages import AssistantMessage, ContextMessage, Round, ToolCall, UserMessage

pytestmark = pytest.mark.unit

BYTES = b"\x89PNG picture bytes"
PICTURE = Image(data=BYTES)


def answer(*rounds: Round, **more: object) -> AssistantMessage:
    """An answer from rounds."""
    return AssistantMessage(id="a", rounds=rounds, **more)  # type: ignore[arg-type]  # any field may be given


def test_f24_labels_stand_for_media() -> None:
    """F24: text, image and file ``r.pdf`` with a tool result that holds an image; no base64 anywhere."""
    user = UserMessage(id="u", content=(Text("see "), PICTURE, File(name="r.pdf", data=b"%PDF")))
    call = ToolCall(id="c", wire_id="w", name="scan", raw_args='{"page":1}', result=(Text("page: "), PICTURE))
    lines = displayed([user, answer(Round(id="r", content=(CallRef("c"),), calls=(call,)))])
    assert lines == (
        DisplayLine("user", "see [Image][File: r.pdf]"),
        DisplayLine("assistant", 'scan({"page":1})'),
        DisplayLine("user", "page: [Image]"),
    )
    assert "base64" not in repr(lines)
    assert "iVBOR" not in repr(lines)


LABELS = [
    (Text("a"), "a"),
    (Refusal("no"), "no"),
    (PICTURE, "[Image]"),
    (Image(url="data:image/png;base64,AAAA"), "[Image]"),
    (Audio(data=b"x", transcript="hi"), "[Audio]"),
    (File(data=b"x"), "[File: attachment]"),
    (Thinking("hm"), ""),
    (CallRef("c"), ""),
    (Structured(kind="summary", text="s"), "Summary:\ns"),
    (Mark(kind="act", raw="<|ACT|>"), ""),
    (Mark(kind="act", raw="<|ACT|>", hidden=False), "<|ACT|>"),
]


@pytest.mark.parametrize(("part", "label"), LABELS)
def test_labels(part: Text, label: str) -> None:
    """One label per kind of part."""
    assert labelled([part]) == label


def test_roles_and_authorities() -> None:
    """Instructions keep their role; data belongs to the user."""
    lines = displayed(
        [
            ContextMessage(id="1", content=(Text("s"),), authority="system"),
            ContextMessage(id="2", content=(Text("d"),), authority="developer"),
            ContextMessage(id="3", content=(Text("c"),)),
            answer(Round(id="r", content=(Text("hello"),))),
        ]
    )
    assert [line.role for line in lines] == ["system", "developer", "user", "assistant"]


def test_words_and_calls_of_a_round_are_one_line() -> None:
    """Text before calls, context around the round on lines of its own, nothing for an empty round."""
    asked = ToolCall(id="c", wire_id="w", name="price", raw_args="{}")
    before = ContextMessage(id="b", content=(Text("note"),))
    draft = ContextMessage(id="d", content=(Text("fix it"),), authority="system")
    held = Round(id="r", before=(before,), content=(Text("One moment. "),), calls=(asked,), revised=(draft,))
    assert displayed([answer(held, Round(id="q"))]) == (
        DisplayLine("user", "note"),
        DisplayLine("assistant", "One moment. price({})"),
        DisplayLine("system", "fix it"),
    )


def test_an_interrupted_answer_shows_what_was_heard() -> None:
    """Cut where the person stopped listening, and marked."""
    message = answer(
        Round(id="r", content=(Text("one two"),)), shown=(Text("one two"),), interrupted="stopped", heard=3
    )
    assert displayed([message]) == (DisplayLine("assistant", "one [interrupted here]"),)


def test_prefix_lines_show() -> None:
    """A reply line is part of what people see."""
    user = UserMessage(id="u", content=(Text("yes"),), reply_to="m", reply_preview="shall I?")
    assert displayed([user]) == (DisplayLine("user", "[Replying to: shall I?]\nyes"),)
