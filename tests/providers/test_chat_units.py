"""Chat Completions: the bytes of each unit, and what a Chat body cannot carry."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Audio, CallRef, File, Image, Refusal, Structured, Text, Thinking
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import ContextMessage, Continuation, Note, Unit
from onrecord.models.lanes import portable_id
from onrecord.models.model import ModelCard, scope_of
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_compatible import openai_compatible
from tests.models.requests import CARD, PLAIN, call, context, native, projection, request, said, settled, user

pytestmark = pytest.mark.unit

TEXTUAL = replace(CARD, arrays=False)
R0, R1 = portable_id("r", 0), portable_id("r", 1)


def bytes_of(unit: Unit, card: ModelCard = CARD, dialect: Dialect = PLAIN, scope: str = "") -> str:
    """One unit on the wire."""
    return ",".join(body.decode() for _, body in projection(card, dialect).runs(unit, scope))


def problems_of(unit: Unit, card: ModelCard = CARD) -> tuple[str, ...]:
    """What of a unit cannot be carried."""
    return projection(card).problems(unit, "")


def content_of(unit: Unit, card: ModelCard = CARD) -> Any:
    """The content of the one message that a unit becomes."""
    return json.loads(bytes_of(unit, card))["content"]


GOLDEN: dict[str, tuple[Unit, str]] = {
    "a text": (user("hi"), '{"role":"user","content":"hi"}'),
    "a text with characters of all kinds": (user('q"\\\n☃'), '{"role":"user","content":"q\\"\\\\\\n☃"}'),
    "a file without a name": (
        user(File(data=b"abc", media="text/csv")),
        (
            '{"role":"user","content":[{"type":"file","file":'
            '{"file_data":"data:text/csv;base64,YWJj","filename":"file.csv"}}]}'
        ),
    ),
    "a blank text": (user(""), '{"role":"user","content":""}'),
    "no content": (user(), ""),
    "a notice": (
        user("done", notice="recipe:Research"),
        '{"role":"user","content":"[Notice from recipe:Research; the owner did not write this.]\\ndone"}',
    ),
    "a reply": (
        user("yes", reply_to="m1", reply_preview="Shall  I?"),
        '{"role":"user","content":"[Replying to: Shall I?]\\nyes"}',
    ),
    "an image by URL": (
        user("see", Image(url="https://e.test/a.png", detail="low")),
        (
            '{"role":"user","content":[{"type":"text","text":"see"},'
            '{"type":"image_url","image_url":{"url":"https://e.test/a.png","detail":"low"}}]}'
        ),
    ),
    "an image as bytes": (
        user(Image(data=b"abc")),
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}]}',
    ),
    "audio": (
        user(Audio(data=b"abc", format="mp3")),
        '{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"YWJj","format":"mp3"}}]}',
    ),
    "a file by id": (
        user(File(file_id="f1", name="r.pdf")),
        '{"role":"user","content":[{"type":"file","file":{"filename":"r.pdf","file_id":"f1"}}]}',
    ),
    "a file as bytes": (
        user(File(data=b"abc", name="r.pdf", media="application/pdf")),
        (
            '{"role":"user","content":[{"type":"file","file":'
            '{"file_data":"data:application/pdf;base64,YWJj","filename":"r.pdf"}}]}'
        ),
    ),
    "system text in place": (context("be brief", "system"), '{"role":"system","content":"be brief"}'),
    "developer text where the role is not known": (
        context("be brief", "developer"),
        '{"role":"system","content":"be brief"}',
    ),
    "data": (context("news", "data"), '{"role":"user","content":"news"}'),
    "structured data": (
        ContextMessage(id="c", content=(Text("Now:"), Structured(kind="domain-event", about={"event_type": "e"}))),
        '{"role":"user","content":"Now:Domain event: e\\nnull"}',
    ),
    "context without words": (context("", "system"), ""),
    "words": (settled("r", "hi ", "there"), '{"role":"assistant","content":"hi there"}'),
    "thinking is not shown": (
        replace(settled("r"), content=(Thinking("hm"), Text("hi"))),
        '{"role":"assistant","content":"hi"}',
    ),
    "nothing said": (settled("r", ""), ""),
    "a call": (
        settled("r", calls=[call("r", 0)]),
        (
            '{"role":"assistant","content":"","tool_calls":'
            f'[{{"id":"{R0}","type":"function","function":{{"name":"price","arguments":"{{\\"n\\":1}}"}}}}]}},'
            f'{{"role":"tool","tool_call_id":"{R0}","content":"sunny"}}'
        ),
    ),
    "text and call are one message": (
        replace(settled("r", calls=[call("r", 0)]), content=(CallRef("r/c0"), Text("Let me see."))),
        (
            '{"role":"assistant","content":"Let me see.","tool_calls":'
            f'[{{"id":"{R0}","type":"function","function":{{"name":"price","arguments":"{{\\"n\\":1}}"}}}}]}},'
            f'{{"role":"tool","tool_call_id":"{R0}","content":"sunny"}}'
        ),
    ),
    "notes of the library": (
        settled("r", calls=[call("r", 0, notes=(Note("l", "It was cut."), Note("m", "Twice.")))]),
        (
            '{"role":"assistant","content":"","tool_calls":'
            f'[{{"id":"{R0}","type":"function","function":{{"name":"price","arguments":"{{\\"n\\":1}}"}}}}]}},'
            f'{{"role":"tool","tool_call_id":"{R0}","content":"sunny\\nIt was cut.\\nTwice."}}'
        ),
    ),
    "a draft with its correction": (
        settled("r", "four", revised=(context("It is five.", "system"),)),
        '{"role":"assistant","content":"four"},{"role":"system","content":"It is five."}',
    ),
    "text before a round": (
        settled("r", "four", before=(context("Look.", "data"),)),
        '{"role":"user","content":"Look."},{"role":"assistant","content":"four"}',
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_of_each_unit(name: str) -> None:
    """Golden: bytes that change make every vendor's prompt cache miss."""
    unit, expected = GOLDEN[name]
    assert bytes_of(unit) == expected
    assert problems_of(unit) == ()


# ---- parts -----------------------------------------------------------------------------------------------


def test_b1_texts_of_a_user_become_one_string() -> None:
    """Joined without a separator."""
    assert content_of(user("hi", " there")) == "hi there"


def test_b3_an_image_is_dropped_where_content_must_be_a_string() -> None:
    """The text stays; nothing is refused."""
    seen = user("see this", Image(url="https://e.test/a.png"))
    assert content_of(seen, TEXTUAL) == "see this"
    assert problems_of(seen, TEXTUAL) == ()


def test_b4_audio_and_files_are_dropped_where_content_must_be_a_string() -> None:
    """A file by URL too: what is dropped cannot be refused."""
    assert content_of(user("q", Audio(data=b"a"), File(file_id="f")), TEXTUAL) == "q"
    assert problems_of(user("q", File(url="https://e.test/a")), TEXTUAL) == ()


def test_b5_a_file_by_url_is_refused_before_anything_is_sent() -> None:
    """An issue of the wire, which names the unit; the turn and the client refuse what has issues."""
    wire = projection().wire(request(user("hi"), user("read", File(url="https://e.test/a"), id="u1")))
    assert [(issue.unit, issue.what.split(":")[0]) for issue in wire.issues] == [(1, "a file by URL")]


@pytest.mark.parametrize(
    ("part", "card", "told"),
    [
        (Image(file_id="f"), CARD, "an image by file id"),
        (Image(url="https://e.test/a"), replace(CARD, images=False), "an image"),
        (Audio(url="https://e.test/a"), CARD, "audio by URL"),
        (Audio(data=b"a"), replace(CARD, audio=False), "audio"),
        (File(file_id="f"), replace(CARD, files=False), "a file"),
    ],
)
def test_media_that_cannot_be_carried_are_named(part: Any, card: ModelCard, told: str) -> None:
    """By kind, in a message, in a result and in a swap."""
    for unit in (user("x", part), settled("r", calls=[call("r", 0, result=(part,))])):
        assert [what.split(":")[0] for what in problems_of(unit, card)] == [told]


def test_b6_a_refusal_is_a_part_of_its_own() -> None:
    """Also where content is else a string."""
    refused = settled("r", Refusal("Cannot do that."))
    expected = [{"type": "refusal", "refusal": "Cannot do that."}]
    assert content_of(refused) == content_of(refused, TEXTUAL) == expected
    both = content_of(settled("r", "Well. ", Refusal("No.")))
    assert both == [{"type": "text", "text": "Well. "}, {"type": "refusal", "refusal": "No."}]


def test_a_message_of_which_nothing_is_left_is_not_shown() -> None:
    """An empty list of parts is refused by servers; text that is empty is text."""
    deaf = replace(CARD, audio=False)
    assert bytes_of(user(Audio(data=b"a")), deaf) == ""
    assert bytes_of(user("", Audio(data=b"a")), deaf) == '{"role":"user","content":[{"type":"text","text":""}]}'


# ---- calls and results ----------------------------------------------------------------------------------------------


def test_b8_parallel_calls_are_one_message_then_their_results_in_order() -> None:
    """One assistant message with both calls, a tool message for each."""
    messages = json.loads(
        f"[{bytes_of(settled('r', calls=[call('r', 0, 'first'), call('r', 1, 'second', result=(Text('2'),))]))}]"
    )
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool"]
    assert [one["function"]["name"] for one in messages[0]["tool_calls"]] == ["first", "second"]
    assert [one["id"] for one in messages[0]["tool_calls"]] == [R0, R1]
    assert [(m["tool_call_id"], m["content"]) for m in messages[1:]] == [(R0, "sunny"), (R1, "2")]


@pytest.mark.parametrize("status", ["denied", "cancelled", "not_run", "failed", "invalid", "absent"])
def test_a_call_that_ended_without_a_result_says_so(status: str) -> None:
    """The protocol wants an answer to every call."""
    (_, told) = json.loads(f"[{bytes_of(settled('r', calls=[call('r', 0, result=None, status=status)]))}]")
    assert "error" in json.loads(told["content"])


def test_a_call_still_asked_never_reaches_the_wire() -> None:
    """Neither in portable form nor inside native items, which cannot leave it out."""
    asked = call("r", 1, "second", result=None, status="asked")
    unit = settled("r", calls=[call("r", 0, "first"), asked], continuation=native(b'{"native":1}'))
    for scope in ("s", "other"):
        assert "second" not in bytes_of(unit, scope=scope)
        assert "native" not in bytes_of(unit, scope=scope)
    assert bytes_of(settled("r", calls=[asked])) == ""
    assert bytes_of(settled("r", "Wait.", calls=[asked])) == '{"role":"assistant","content":"Wait."}'


@pytest.mark.parametrize("broken", ['{"city":"Osl', "", "[1]", "null", "so it goes"])
def test_arguments_that_are_no_object_are_sent_as_an_empty_one(broken: str) -> None:
    """Servers that read arguments of old calls would refuse every later request."""
    (asked, _) = json.loads(f"[{bytes_of(settled('r', calls=[call('r', 0, args=broken)]))}]")
    assert asked["tool_calls"][0]["function"]["arguments"] == "{}"


def test_images_in_results_follow_all_results_of_the_round() -> None:
    """A tool message holds text only; results of one round stay together."""
    shown = call("r", 0, result=(Image(url="https://e.test/a"),))
    messages = json.loads(f"[{bytes_of(settled('r', calls=[shown, call('r', 1)]))}]")
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
    assert messages[1]["content"] == "[The result is the media below.]"
    assert [part["type"] for part in messages[3]["content"]] == ["text", "image_url"]
    messages = json.loads(f"[{bytes_of(settled('r', calls=[shown]), TEXTUAL)}]")
    assert [message["role"] for message in messages] == ["assistant", "tool"]


# ---- instructions in the conversation --------------------------------------------------------------------------------


def test_instructions_keep_their_role_where_the_vendor_has_it() -> None:
    """The developer role is OpenAI's own."""
    assert bytes_of(context("x", "developer"), dialect=Dialect(developer=True)) == '{"role":"developer","content":"x"}'


def test_with_one_system_message_leading_text_joins_it_and_later_text_is_wrapped() -> None:
    """For chat templates that fail on a second system message."""
    wire = projection(dialect=Dialect(one_system=True))
    leading, later = context("lead", "system"), context("later", "developer", "c1")
    body = json.loads(wire.wire(request(leading, user("hi"), later)).body)["messages"]
    assert [message["role"] for message in body] == ["system", "user", "user"]
    assert body[0]["content"] == "lead"
    assert body[2]["content"].startswith("<instruction ")


# ---- native replies -----------------------------------------------------------------------------------------------

ITEM = b'{"role":"assistant","content":"hi","reasoning_content":"hm","x":{"nested":[1, 2]}}'
SCOPE = scope_of(CARD, "conversation-1")


def test_b11_native_data_of_the_same_scope_is_replayed_byte_for_byte() -> None:
    """Unknown and nested keys, and the white space between them."""
    unit = settled("r", "hi", continuation=native(ITEM, scope=SCOPE))
    assert bytes_of(unit, scope=SCOPE) == ITEM.decode()


def test_b11_results_after_native_calls_keep_the_provider_s_ids() -> None:
    """They have to match what the native item says."""
    unit = settled("r", calls=[call("r", 0, wire_id="call_x")], continuation=native(ITEM, scope=SCOPE))
    assert bytes_of(unit, scope=SCOPE).endswith(',{"role":"tool","tool_call_id":"call_x","content":"sunny"}')


def test_b11_where_content_must_be_a_string_native_lists_are_flattened_but_refusals() -> None:
    """The one change that array compatibility makes to native data."""
    listed = b'{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"x":1}'
    refused = b'{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}'
    for item, expected in ((listed, '{"role":"assistant","content":"ab","x":1}'), (refused, refused.decode())):
        unit = settled("r", "ab", continuation=native(item, scope=SCOPE))
        assert bytes_of(unit, scope=SCOPE) == item.decode()
        assert bytes_of(unit, TEXTUAL, scope=SCOPE) == expected


def test_b12_projection_changes_nothing_in_the_conversation() -> None:
    """Compared with a copy taken before."""
    messages = (user("q", Image(url="https://e.test/a")), said(settled("r", "a", calls=[call("r", 0)])))
    before = msgspec.json.encode(messages)
    projection().wire(request(*messages))
    assert msgspec.json.encode(messages) == before


def test_d1_the_same_provider_endpoint_model_and_conversation_replay_natively() -> None:
    """Chat form of the case."""
    unit = settled("r", "hi", continuation=native(ITEM, scope=SCOPE))
    assert bytes_of(unit, scope=scope_of(CARD, "conversation-1")) == ITEM.decode()


@pytest.mark.parametrize(
    "scope",
    [
        scope_of(replace(CARD, model="other"), "conversation-1"),
        scope_of(replace(CARD, provider="other"), "conversation-1"),
        scope_of(replace(CARD, base_url="http://localhost:2/v1"), "conversation-1"),
        scope_of(CARD, "conversation-2"),
        scope_of(CARD, None),
    ],
)
def test_d2_another_model_provider_endpoint_or_conversation_gets_portable_text(scope: str) -> None:
    """Chat form of the case: the words, and no reasoning."""
    unit = settled("r", "hi", continuation=native(ITEM, scope=SCOPE))
    assert bytes_of(unit, scope=scope) == '{"role":"assistant","content":"hi"}'


def test_d2_another_protocol_gets_portable_text() -> None:
    """The scope alone is not enough."""
    unit = settled("r", "hi", continuation=native(ITEM, scope=SCOPE, protocol="openai-responses"))
    assert bytes_of(unit, scope=SCOPE) == '{"role":"assistant","content":"hi"}'


def test_d4_the_scope_names_provider_endpoint_model_and_conversation() -> None:
    """As compact JSON in this order."""
    card = ModelCard(provider="p", model="m", protocol="x", base_url="u")
    assert scope_of(card, None) == '["p","u","m",null]'


def test_d6_stored_native_data_that_is_no_list_is_refused_when_it_is_read() -> None:
    """Our type for it is a list: no projection ever meets anything else."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"protocol":"openai-chat","scope":"s","items":{"role":"assistant"}}', type=Continuation)


def test_what_native_data_alone_could_say_is_an_issue_elsewhere_and_only_where_it_is_shown() -> None:
    """The parser names what is lost; the same scope has it."""
    unit = settled("r", "hi", continuation=native(ITEM, scope=SCOPE), lost=("a video",))
    held = Conversation.of((user("q"), said(unit)))
    wire = projection()
    assert wire.wire(request(conversation=held, scope=SCOPE)).issues == ()
    (issue,) = wire.wire(request(conversation=held, scope="other")).issues
    assert (issue.unit, issue.what) == (1, "a video")
    hidden = request(user("q"), conversation=held, scope="other")
    assert wire.wire(replace(hidden, view=replace(hidden.view, spans=()))).issues == ()


def test_d3_another_key_or_header_keeps_native_replay_and_nothing_stored_holds_a_key() -> None:
    """The scope has no room for credentials; what is stored of a reply is its items and that scope."""
    first, second = (
        openai_compatible("http://localhost:1/v1", "m", api_key=key, headers={"X-Tenant": key}, provider="acme")
        for key in ("sk-first", "sk-second")
    )
    scope = scope_of(first.card, "conversation-1")
    assert scope == scope_of(second.card, "conversation-1")
    held = Conversation.of((user("q"), said(settled("r", "hi", continuation=native(ITEM, scope=scope)))))
    for model in (first, second):
        assert ITEM in model.wire(request(conversation=held, scope=scope)).body
    assert "sk-" not in msgspec.json.encode(list(held.messages)).decode() + scope
