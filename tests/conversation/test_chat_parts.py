import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.conversation.chat_parts import content_of, parts_from, result_from, said_from
from onrecord.conversation.content import Audio, File, Image, Refusal, Text
from onrecord.conversation.messages import ContextMessage, UserMessage
from onrecord.conversation.transcript import history_of, messages_from

pytestmark = pytest.mark.unit

AT = datetime(2026, 4, 25, 18, 47, tzinfo=UTC)
B64 = base64.b64encode(b"bytes").decode()

PARTS: list[tuple[Any, Any]] = [
    ("plain", Text("plain")),
    (Text("ours"), Text("ours")),
    ({"type": "text", "text": "t"}, Text("t")),
    ({"type": "image_url", "image_url": {"url": "u", "detail": "low"}}, Image(url="u", detail="low")),
    ({"type": "image_url", "image_url": {"url": "u", "detail": "finest"}}, Image(url="u")),
    ({"type": "image_url", "image_url": {"url": "u", "detail": ["low"]}}, Image(url="u")),
    ({"type": "image_url", "image_url": "u", "description": "a cat"}, Image(url="u", description="a cat")),
    ({"type": "image_file", "image_file": {"file_id": "i1"}}, Image(file_id="i1")),
    ({"type": "input_audio", "input_audio": {"data": B64, "format": "mp3"}}, Audio(data=b"bytes", format="mp3")),
    ({"type": "input_audio", "input_audio": {"url": "u"}, "transcript": "hi"}, Audio(url="u", transcript="hi")),
    ({"type": "file", "file": {"file_data": B64, "filename": "r.pdf"}}, File(name="r.pdf", data=b"bytes")),
    (
        {"type": "file", "file": {"file_data": f"data:text/plain;base64,{B64}"}},
        File(data=b"bytes", media="text/plain"),
    ),
]


@pytest.mark.parametrize(("plain", "part"), PARTS)
def test_content_parts(plain: Any, part: object) -> None:
    """Each Chat part, and our own parts as they are."""
    assert parts_from([plain]) == (part,)


MEDIA = [
    Image(url="u", detail="low", description="a cat"),
    Image(file_id="i1"),
    Audio(data=b"x", format="mp3", transcript="t"),
    Audio(url="u"),
    File(name="r.pdf", data=b"x", media="application/pdf"),
    File(data=b"x"),
    File(url="u"),
    File(file_id="f"),
]


@pytest.mark.parametrize("part", MEDIA)
def test_media_survive_the_way_out_and_back(part: Image | Audio | File) -> None:
    """Each source of each kind."""
    sent = UserMessage(id="u", content=(Text("see"), part), at=AT)
    (back,) = messages_from(history_of([sent]))
    assert isinstance(back, UserMessage)
    assert back.content == sent.content


@pytest.mark.parametrize(("media", "named"), [("image/gif", "image/gif"), ("", "image/png")])
def test_an_image_of_bytes_comes_back_as_the_same_picture(media: str, named: str) -> None:
    """As a data URL; bytes without a type are PNG."""
    (record,) = history_of([UserMessage(id="u", content=(Image(data=b"bytes", media=media),))])
    assert record["content"] == [{"type": "image_url", "image_url": {"url": f"data:{named};base64,{B64}"}}]


def test_said_and_result() -> None:
    """Empty words leave; our own parts pass; results of any kind become text."""
    assert said_from(["a", Text("b"), Refusal("c"), {"type": "text", "text": ""}]) == (
        Text("a"),
        Text("b"),
        Refusal("c"),
    )
    assert said_from(None) == ()
    assert result_from([Image(url="u")]) == (Image(url="u"),)
    assert result_from({"a": 1}) == (Text('{"a":1}'),)


def test_content_of_text_is_one_string() -> None:
    """Only media makes a list."""
    assert content_of([Text("a"), Text("b")]) == "ab"
    assert content_of([Text("a"), File(url="u")]) == [
        {"type": "text", "text": "a"},
        {"type": "file", "file": {"file_url": "u"}},
    ]


def test_nothing_is_no_content() -> None:
    """A record without content, and refusals beside media."""
    assert parts_from(None) == ()
    assert content_of([Refusal("No."), Image(url="u")]) == [
        {"type": "refusal", "refusal": "No."},
        {"type": "image_url", "image_url": {"url": "u"}},
    ]


def test_a_reply_finds_its_target_among_messages_and_parts() -> None:
    """Our own messages by their id, plain records by theirs."""
    reply = {"role": "user", "content": "yes", "reply_to_message_id": "m1"}
    own = UserMessage(id="m1", content=(Text("shall I?"),))
    parts = [{"type": "text", "text": "shall"}, {"type": "text", "text": "I?"}, "ok"]
    plain = {"role": "assistant", "id": "m1", "content": parts}
    context = ContextMessage(id="m1", content=(Text("data"),))
    for target, shown in ((own, "shall I?"), (plain, "shall I? ok"), (context, "data")):
        (*_, message) = messages_from([target, {"role": "user", "id": "m2", "content": "no"}, reply])
        assert isinstance(message, UserMessage)
        assert message.reply_preview == shown
