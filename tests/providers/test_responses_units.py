"""Responses: the bytes of each unit, and what an item cannot carry."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Audio, CallRef, File, Image, Part, Refusal, Text, Thinking
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import Note, Unit
from onrecord.models.lanes import portable_id
from onrecord.models.model import ModelCard, scope_of
from onrecord.providers.openai_responses.cards import PROTOCOL, Dialect
from onrecord.providers.openai_responses.client import openai_responses
from onrecord.providers.openai_responses.project import ResponsesProjection
from tests.models.requests import call, context, native, request, said, settled, user

pytestmark = pytest.mark.unit

CARD = ModelCard(provider="acme", model="m", protocol=PROTOCOL, base_url="http://localhost:1/v1")
R0, R1 = portable_id("r", 0), portable_id("r", 1)
SCOPE = scope_of(CARD, "conversation-1")


def bytes_of(unit: Unit, card: ModelCard = CARD, scope: str = "") -> str:
    """One unit on the wire."""
    return ",".join(body.decode() for _, body in ResponsesProjection(card, Dialect()).runs(unit, scope))


def items_of(unit: Unit, card: ModelCard = CARD, scope: str = "") -> list[Any]:
    """The items that a unit becomes."""
    held: list[Any] = json.loads(f"[{bytes_of(unit, card, scope)}]")
    return held


def problems_of(unit: Unit, card: ModelCard = CARD) -> tuple[str, ...]:
    """What of a unit cannot be carried."""
    return ResponsesProjection(card, Dialect()).problems(unit, "")


ASKED = f'{{"type":"function_call","call_id":"{R0}","name":"price","arguments":"{{\\"n\\":1}}"}}'
ANSWERED = f'{{"type":"function_call_output","call_id":"{R0}","output":"sunny"}}'


def spoken(words: str) -> str:
    """An assistant's message of one text."""
    return f'{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{words}"}}]}}'


GOLDEN: dict[str, tuple[Unit, str]] = {
    "a text": (user("hi"), '{"type":"message","role":"user","content":"hi"}'),
    "texts": (user("hi", " there"), '{"type":"message","role":"user","content":"hi there"}'),
    "a text with characters of all kinds": (
        user('q"\\\n☃'),
        '{"type":"message","role":"user","content":"q\\"\\\\\\n☃"}',
    ),
    "a blank text": (user(""), '{"type":"message","role":"user","content":""}'),
    "no content": (user(), ""),
    "a notice": (
        user("done", notice="recipe:Research"),
        (
            '{"type":"message","role":"user","content":'
            '"[Notice from recipe:Research; the owner did not write this.]\\ndone"}'
        ),
    ),
    "an image by URL": (
        user("see", Image(url="https://e.test/a.png")),
        (
            '{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},'
            '{"type":"input_image","image_url":"https://e.test/a.png"}]}'
        ),
    ),
    "an image as bytes": (
        user(Image(data=b"abc")),
        '{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,YWJj"}]}',
    ),
    "a file by URL, where a name is refused": (
        user(File(url="https://e.test/r.pdf", name="r.pdf")),
        '{"type":"message","role":"user","content":[{"type":"input_file","file_url":"https://e.test/r.pdf"}]}',
    ),
    "a file as bytes": (
        user(File(data=b"abc", name="r.csv", media="text/csv")),
        (
            '{"type":"message","role":"user","content":'
            '[{"type":"input_file","file_data":"data:text/csv;base64,YWJj","filename":"r.csv"}]}'
        ),
    ),
    "a file without a name, where one is required": (
        user(File(data=b"abc")),
        (
            '{"type":"message","role":"user","content":'
            '[{"type":"input_file","file_data":"data:application/pdf;base64,YWJj","filename":"file.pdf"}]}'
        ),
    ),
    "system text in place": (
        context("be brief", "system"),
        '{"type":"message","role":"system","content":[{"type":"input_text","text":"be brief"}]}',
    ),
    "developer text in place": (
        context("be brief", "developer"),
        '{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}]}',
    ),
    "data": (context("news", "data"), '{"type":"message","role":"user","content":"news"}'),
    "context without words": (context("", "system"), ""),
    "words": (
        settled("r", "hi ", "there"),
        (
            '{"type":"message","role":"assistant","content":'
            '[{"type":"output_text","text":"hi "},{"type":"output_text","text":"there"}]}'
        ),
    ),
    "a refusal": (
        settled("r", "Well. ", Refusal("No.")),
        (
            '{"type":"message","role":"assistant","content":'
            '[{"type":"output_text","text":"Well. "},{"type":"refusal","refusal":"No."}]}'
        ),
    ),
    "thinking is not shown": (replace(settled("r"), content=(Thinking("hm"), Text("hi"))), spoken("hi")),
    "nothing said": (settled("r", ""), ""),
    "a call": (settled("r", calls=[call("r", 0)]), f"{ASKED},{ANSWERED}"),
    "notes of the library": (
        settled("r", calls=[call("r", 0, notes=(Note("l", "It was cut."), Note("m", "Twice.")))]),
        f"{ASKED},{ANSWERED}".replace("sunny", "sunny\\nIt was cut.\\nTwice."),
    ),
    "a draft with its correction": (
        settled("r", "four", revised=(context("It is five.", "system"),)),
        spoken("four") + ',{"type":"message","role":"system","content":[{"type":"input_text","text":"It is five."}]}',
    ),
    "text before a round": (
        settled("r", "four", before=(context("Look.", "data"),)),
        '{"type":"message","role":"user","content":"Look."},' + spoken("four"),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_of_each_unit(name: str) -> None:
    """Golden: bytes that change make every vendor's prompt cache miss."""
    unit, expected = GOLDEN[name]
    assert bytes_of(unit) == expected
    assert problems_of(unit) == ()


# ---- parts -----------------------------------------------------------------------------------------------


def test_c2_an_image_keeps_its_detail() -> None:
    """The whole content of the message."""
    (item,) = items_of(user(Image(url="https://e.test/a.png", detail="low")))
    assert item["content"] == [{"type": "input_image", "image_url": "https://e.test/a.png", "detail": "low"}]


BLIND = replace(CARD, images=False, files=False)


@pytest.mark.parametrize(
    ("part", "card", "told"),
    [
        (Audio(data=b"a"), CARD, "audio"),
        (Audio(data=b"a"), replace(CARD, audio=True), "audio"),  # whatever a card claims: the wire has no place for it
        (Audio(url="https://e.test/a.wav"), CARD, "audio"),
        (File(file_id="f1"), CARD, "a file by file id"),
        (Image(file_id="f1"), CARD, "an image by file id"),
        (Image(data=b"a"), BLIND, "an image"),
        (File(data=b"a"), BLIND, "a file"),
    ],
)
def test_c4_what_the_wire_cannot_carry_is_named_and_left_out(part: Part, card: ModelCard, told: str) -> None:
    """In a message and in a result; audio and file ids are the case's."""
    for unit in (user("x", part), settled("r", calls=[call("r", 0, result=(Text("x"), part))])):
        assert [what.split(":")[0] for what in problems_of(unit, card)] == [told]
        left = items_of(unit, card)[-1]
        assert left.get("content", left.get("output")) == [{"type": "input_text", "text": "x"}]


def test_a_message_or_a_result_of_which_nothing_is_left_is_no_empty_list() -> None:
    """Servers refuse one."""
    assert not ResponsesProjection(CARD, Dialect()).user((Audio(data=b"a"),))
    answered = items_of(settled("r", calls=[call("r", 0, result=(Audio(data=b"a"),))]), CARD)[-1]
    assert answered["output"] == ""


# ---- rounds ---------------------------------------------------------------------------------------------


def test_words_and_calls_keep_their_order() -> None:
    """Items stand for themselves, so a round is not pressed into one message."""
    calls = [call("r", 0, "first"), call("r", 1, "second")]
    content = (Text("a"), CallRef("r/c0"), Text("b"), Refusal("c"), CallRef("r/c1"), Text("d"))
    items = items_of(replace(settled("r", calls=calls), content=content))
    kinds = [item["content"][0].get("text") if "content" in item else item.get("name", "out") for item in items]
    assert kinds == ["a", "first", "b", "second", "d", "out", "out"]
    assert [part["type"] for part in items[2]["content"]] == ["output_text", "refusal"]
    assert [item.get("call_id") for item in items] == [None, R0, None, R1, None, R0, R1]


def test_calls_without_a_place_follow_the_words() -> None:
    """Those that a shape found inside an envelope."""
    kinds = [item["type"] for item in items_of(settled("r", "a", calls=[call("r", 0), call("r", 1)]))]
    assert kinds == ["message", "function_call", "function_call", "function_call_output", "function_call_output"]


def test_c6_media_in_a_result_are_parts_of_its_output() -> None:
    """Wire half of the case: text, an image with its detail, a file."""
    shown = (Text("Here."), Image(url="https://e.test/a", detail="low"), File(data=b"abc", name="r.pdf"))
    (_, answered) = items_of(settled("r", calls=[call("r", 0, result=shown, notes=(Note("l", "Cut."),))]))
    assert answered["output"] == [
        {"type": "input_text", "text": "Here."},
        {"type": "input_image", "image_url": "https://e.test/a", "detail": "low"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,YWJj", "filename": "r.pdf"},
        {"type": "input_text", "text": "\nCut."},
    ]


@pytest.mark.parametrize("status", ["denied", "cancelled", "not_run", "failed", "invalid", "absent"])
def test_a_call_that_ended_without_a_result_says_so(status: str) -> None:
    """The protocol wants an answer to every call."""
    (_, told) = items_of(settled("r", calls=[call("r", 0, result=None, status=status)]))
    assert "error" in json.loads(told["output"])


def test_a_call_still_asked_never_reaches_the_wire() -> None:
    """Neither in portable form nor inside native items, which cannot leave it out."""
    asked = call("r", 1, "second", result=None, status="asked")
    items = native(b'{"native":1}', protocol=PROTOCOL)
    content = (Text("Wait."), CallRef("r/c0"), CallRef("r/c1"))
    unit = replace(settled("r", calls=[call("r", 0, "first"), asked], continuation=items), content=content)
    for scope in ("s", "other"):
        assert "second" not in bytes_of(unit, scope=scope)
        assert "native" not in bytes_of(unit, scope=scope)
    assert bytes_of(settled("r", calls=[asked])) == ""
    assert bytes_of(settled("r", "Wait.", calls=[asked])) == spoken("Wait.")


@pytest.mark.parametrize("broken", ['{"city":"Osl', "", "[1]", "null", "so it goes"])
def test_arguments_that_are_no_object_are_sent_as_an_empty_one(broken: str) -> None:
    """Servers that read arguments of old calls would refuse every later request."""
    (asked, _) = items_of(settled("r", calls=[call("r", 0, args=broken)]))
    assert asked["arguments"] == "{}"


# ---- native replies -----------------------------------------------------------------------------------------------

REASONED = b'{"id":"rs","type":"reasoning","encrypted_content":"gA==","summary":[],"x":{"nested":[1, 2]}}'
SAID = (
    b'{"id":"msg","type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}],"phase":"final"}'
)
REPLY = settled("r", "hi", continuation=native(REASONED, SAID, scope=SCOPE, protocol=PROTOCOL))


def test_d1_the_same_provider_endpoint_model_and_conversation_replay_the_items() -> None:
    """Responses form of the case: byte for byte, reasoning and unknown keys included."""
    assert bytes_of(REPLY, scope=scope_of(CARD, "conversation-1")) == f"{REASONED.decode()},{SAID.decode()}"


def test_reasoning_that_led_to_nothing_does_not_go_back() -> None:
    """The provider refuses a request that holds it, and would do so for the rest of the conversation."""
    alone = settled("r", continuation=native(REASONED, REASONED, scope=SCOPE, protocol=PROTOCOL))
    behind = settled("r", "hi", continuation=native(REASONED, SAID, REASONED, scope=SCOPE, protocol=PROTOCOL))
    assert bytes_of(alone, scope=SCOPE) == ""
    assert bytes_of(behind, scope=SCOPE) == f"{REASONED.decode()},{SAID.decode()}"
    assert ResponsesProjection(CARD, Dialect()).problems(alone, SCOPE) == ()
    named = b'{"id":"rs_2","type":"reasoning","encrypted_content":null,"summary":[{"type":"summary_text","text":"hm"}]}'
    clear = b'{"id":"rs_3","type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}],"summary":[]}'
    bare = settled("r", "hi", continuation=native(named, clear, SAID, scope=SCOPE, protocol=PROTOCOL))
    assert bytes_of(bare, scope=SCOPE) == f"{clear.decode()},{SAID.decode()}"  # nothing is stored under the first name
    odd = settled("r", "hi", continuation=native(REASONED, b"[1]", scope=SCOPE, protocol=PROTOCOL))
    assert bytes_of(odd, scope=SCOPE) == f"{REASONED.decode()},[1]"


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
def test_d2_another_model_provider_endpoint_or_conversation_gets_the_words(scope: str) -> None:
    """Responses form of the case: ``output_text``, and no reasoning item."""
    assert bytes_of(REPLY, scope=scope) == spoken("hi")


def test_d2_another_protocol_gets_the_words() -> None:
    """The scope alone is not enough."""
    other = replace(REPLY, continuation=native(SAID, scope=SCOPE, protocol="openai-chat"))
    assert bytes_of(other, scope=SCOPE) == spoken("hi")


def test_results_after_native_calls_keep_the_provider_s_ids() -> None:
    """They have to match what the native item says."""
    item = b'{"type":"function_call","call_id":"call_x","name":"price","arguments":"{}"}'
    held = native(REASONED, item, scope=SCOPE, protocol=PROTOCOL)
    unit = settled("r", calls=[call("r", 0, wire_id="call_x")], continuation=held)
    assert [one.get("call_id") for one in items_of(unit, scope=SCOPE)] == [None, "call_x", "call_x"]
    assert [one.get("call_id") for one in items_of(unit, scope="other")] == [R0, R0]


def test_d3_another_key_or_header_keeps_native_replay_and_nothing_stored_holds_a_key() -> None:
    """Responses form of the case: the scope has no room for credentials."""
    url = "http://localhost:1/v1"
    first, second = (
        openai_responses("m", api_key=key, base_url=url, headers={"X-Tenant": key}) for key in ("sk-first", "sk-second")
    )
    scope = scope_of(first.card, "conversation-1")
    assert scope == scope_of(second.card, "conversation-1")
    reply = replace(REPLY, continuation=native(REASONED, SAID, scope=scope, protocol=PROTOCOL))
    held = Conversation.of((user("q"), said(reply)))
    for model in (first, second):
        assert REASONED in model.wire(request(conversation=held, scope=scope)).body
    assert "sk-" not in msgspec.json.encode(list(held.messages)).decode() + scope


def test_c12_what_is_lost_elsewhere_is_an_issue_there_and_whole_here() -> None:
    """Wire half of the case: the same scope has both items, another is refused and sends nothing."""
    wire = ResponsesProjection(CARD, Dialect())
    held = Conversation.of((user("q"), said(replace(REPLY, lost=("content of type 'hologram'",)))))
    here = wire.wire(request(conversation=held, scope=SCOPE))
    assert here.issues == ()
    assert REASONED in here.body
    (issue,) = wire.wire(request(conversation=held, scope="other")).issues
    assert (issue.unit, issue.what) == (1, "content of type 'hologram'")


def test_projection_changes_nothing_in_the_conversation() -> None:
    """Compared with a copy taken before."""
    messages = (user("q", Image(url="https://e.test/a")), said(settled("r", "a", calls=[call("r", 0)])))
    before = msgspec.json.encode(messages)
    ResponsesProjection(CARD, Dialect()).wire(request(*messages))
    assert msgspec.json.encode(messages) == before
