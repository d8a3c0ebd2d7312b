"""generateContent: the bytes of each unit, and what a body cannot carry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Audio, CallRef, File, Image, Refusal, Text, Thinking
from onrecord.conversation.messages import Note, Unit
from onrecord.models.lanes import portable_id
from onrecord.providers.google.cards import GOOGLE_URL, PROTOCOL, google_card
from onrecord.providers.google.project import GoogleProjection
from tests.models.requests import call, context, native, request, said, settled, user

pytestmark = pytest.mark.unit

THIRD = "gemini-3.8-flash"
R0, R1 = portable_id("r", 0), portable_id("r", 1)
WRAPPED = r"<instruction from=\"application\" authority=\"system\">\nbe brief\n</instruction>"


def projection(model: str = THIRD) -> GoogleProjection:
    """GenerateContent for a model."""
    return GoogleProjection(*google_card(model))


def bytes_of(unit: Unit, model: str = THIRD, scope: str = "") -> list[tuple[str, str]]:
    """One unit on the wire: kind and parts of each content."""
    return [(kind, body.decode()) for kind, body in projection(model).runs(unit, scope)]


def problems_of(unit: Unit, model: str = THIRD) -> list[str]:
    """What of a unit cannot be carried."""
    return list(projection(model).problems(unit, ""))


def asked(id: str, name: str = "price", *, signed: bool = False) -> str:
    """A call as another vendor made it."""
    signature = ',"thoughtSignature":"skip_thought_signature_validator"' if signed else ""
    return f'{{"functionCall":{{"id":"{id}","name":"{name}","args":{{"n":1}}}}{signature}}}'


def told(id: str, text: str = "sunny", name: str = "price") -> str:
    """A result of text."""
    return f'{{"functionResponse":{{"id":"{id}","name":"{name}","response":{{"result":"{text}"}}}}}}'


GOLDEN: dict[str, tuple[Unit, list[tuple[str, str]]]] = {
    "a text": (user("hi"), [("user", '{"text":"hi"}')]),
    "a text with characters of all kinds": (user('q"\\\n☃'), [("user", '{"text":"q\\"\\\\\\n☃"}')]),
    "a blank text": (user(" "), []),
    "no content": (user(), []),
    "texts stay apart": (user("a", " ", "b"), [("user", '{"text":"a"},{"text":"b"}')]),
    "a notice": (
        user("done", notice="recipe:Research"),
        [("user", '{"text":"[Notice from recipe:Research; the owner did not write this.]\\ndone"}')],
    ),
    "an image as bytes": (
        user(Image(data=b"abc")), [("user", '{"inlineData":{"mimeType":"image/png","data":"YWJj"}}')],
    ),
    "an image in its address": (
        user(Image(url="data:image/jpeg;base64,YWJj")),
        [("user", '{"inlineData":{"mimeType":"image/jpeg","data":"YWJj"}}')],
    ),
    "a text in its address": (
        user(File(url="data:,a%20b")), [("user", '{"inlineData":{"mimeType":"text/plain","data":"YSBi"}}')],
    ),
    "an image by URL": (
        user("see", Image(url="https://e.test/a.webp?x=1")),
        [("user", '{"text":"see"},{"fileData":{"mimeType":"image/webp","fileUri":"https://e.test/a.webp?x=1"}}')],
    ),
    "an image whose address does not say what it is": (
        user(Image(url="https://e.test/a")), [("user", '{"fileData":{"fileUri":"https://e.test/a"}}')],
    ),
    "audio": (
        user(Audio(data=b"abc", format="mp3")), [("user", '{"inlineData":{"mimeType":"audio/mp3","data":"YWJj"}}')],
    ),
    "audio by URL": (
        user(Audio(url="https://e.test/a")),
        [("user", '{"fileData":{"mimeType":"audio/wav","fileUri":"https://e.test/a"}}')],
    ),
    "a file as bytes": (
        user(File(data=b"abc", name="r")), [("user", '{"inlineData":{"mimeType":"application/pdf","data":"YWJj"}}')],
    ),
    "a file by id": (
        user(File(file_id="files/f1", media="text/csv")),
        [("user", f'{{"fileData":{{"mimeType":"text/csv","fileUri":"{GOOGLE_URL}/files/f1"}}}}')],
    ),
    "an image by id": (
        user(Image(file_id="f1")), [("user", f'{{"fileData":{{"fileUri":"{GOOGLE_URL}/files/f1"}}}}')],
    ),
    "a file by its whole id": (
        user(File(file_id="https://e.test/files/f1")), [("user", '{"fileData":{"fileUri":"https://e.test/files/f1"}}')],
    ),
    "a file in Google's own store": (
        user(File(url="gs://b/o.pdf")),
        [("user", '{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/o.pdf"}}')],
    ),
    "instructions in their place": (context("be brief", "system"), [("user", f'{{"text":"{WRAPPED}"}}')]),
    "data": (context("news", "data"), [("user", '{"text":"news"}')]),
    "context without words": (context("", "system"), []),
    "words": (settled("r", "hi ", "there"), [("model", '{"text":"hi there"}')]),
    "words of declining": (settled("r", Refusal("No.")), [("model", '{"text":"No."}')]),
    "thinking is not shown": (
        replace(settled("r"), content=(Thinking("hm"), Text("hi"))), [("model", '{"text":"hi"}')],
    ),
    "nothing said": (settled("r", " "), []),
    "a call": (
        settled("r", calls=[call("r", 0)]), [("model", asked(R0, signed=True)), ("result", told(R0))],
    ),
    "text and two calls": (
        replace(
            settled("r", calls=[call("r", 0), call("r", 1, "other")]), content=(CallRef("r/c0"), Text("Let me see.")),
        ),
        [
            ("model", f'{{"text":"Let me see."}},{asked(R0, signed=True)},{asked(R1, "other")}'),
            ("result", f'{told(R0)},{told(R1, name="other")}'),
        ],
    ),
    "notes of the library": (
        settled("r", calls=[call("r", 0, notes=(Note("l", "Cut."),))]),
        [("model", asked(R0, signed=True)), ("result", told(R0, "sunny\\nCut."))],
    ),
    "a call without a result": (
        settled("r", calls=[call("r", 0, result=None, status="denied")]),
        [
            ("model", asked(R0, signed=True)),
            ("result", told(R0, '{\\"error\\":\\"The call was not allowed.\\"}')),
        ],
    ),
    "arguments that are no object": (
        settled("r", calls=[call("r", 0, args="[1")]),
        [("model", asked(R0, signed=True).replace('{"n":1}', "{}")), ("result", told(R0))],
    ),
    "a draft with its correction": (
        settled("r", "four", revised=(context("be brief", "system"),)),
        [("model", '{"text":"four"}'), ("user", f'{{"text":"{WRAPPED}"}}')],
    ),
    "text before a round": (
        settled("r", "four", before=(context("Look."),)), [("user", '{"text":"Look."}'), ("model", '{"text":"four"}')],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_of_each_unit(name: str) -> None:
    """Golden: bytes that change make every vendor's prompt cache miss."""
    unit, expected = GOLDEN[name]
    assert bytes_of(unit) == expected
    assert problems_of(unit) == []


# ---- calls --------------------------------------------------------------------------------------------------------


def test_models_that_sign_nothing_get_no_placeholder() -> None:
    """Before the third generation."""
    assert bytes_of(settled("r", calls=[call("r", 0)]), "gemini-2.5-pro")[0] == ("model", asked(R0))


SIGNED = b'{"functionCall":{"name":"price","args":{"n":1}},"thoughtSignature":"EpwI+/=="}'


def test_a_rounds_own_parts_stand_as_they_came() -> None:
    """Signatures untouched; a result names its call by the id that Google gave, or by none."""
    for wire_id, named in (("ab12", '"id":"ab12",'), ("#0", ""), ("ab12#1", '"id":"ab12",')):
        calls = [call("r", 0, wire_id=wire_id)]
        held = settled("r", calls=calls, continuation=native(SIGNED, b'{"text":"so"}', protocol=PROTOCOL))
        assert bytes_of(held, scope="s") == [
            ("model", SIGNED.decode() + ',{"text":"so"}'),
            ("result", f'{{"functionResponse":{{{named}"name":"price","response":{{"result":"sunny"}}}}}}'),
        ]
        assert bytes_of(held, scope="another")[0] == ("model", asked(R0, signed=True))


def test_what_has_no_portable_form_goes_home_and_nowhere_else() -> None:
    """Named before anything is sent to another model; in its own scope there is nothing to name."""
    item = b'{"executableCode":{"code":"1"}}'
    held = settled("r", "a", continuation=native(item, protocol=PROTOCOL), lost=("code that Google ran",))
    asked_here, asked_there = (request(user("hi"), said(held), scope=scope) for scope in ("s", "t"))
    here, there = (projection().wire(one) for one in (asked_here, asked_there))
    assert item in here.body
    assert here.issues == ()
    assert [issue.what for issue in there.issues] == ["code that Google ran"]
    assert b'{"text":"a"}' in there.body


# ---- media --------------------------------------------------------------------------------------------------------

PIXEL = '{"inlineData":{"mimeType":"image/png","data":"YQ=="}}'
SOUND = '{"inlineData":{"mimeType":"audio/wav","data":"Yg=="}}'
BELOW = '{"text":"[The media of the tool results above.]"}'


def test_media_of_a_result_stand_in_it_where_the_model_takes_them() -> None:
    """The rest comes behind all results, as a message of its own."""
    result = (Text("two"), Image(data=b"a"), Audio(data=b"b"))
    held = settled("r", calls=[call("r", 0, result=result), call("r", 1)])
    inside = told(R0, "two")[:-2] + f',"parts":[{PIXEL}]}}}}'
    assert bytes_of(held)[1:] == [("result", f"{inside},{told(R1)}"), ("user", f"{BELOW},{SOUND}")]
    assert bytes_of(held, "gemini-2.5-pro")[1:] == [
        ("result", f'{told(R0, "two")},{told(R1)}'), ("user", f"{BELOW},{PIXEL},{SOUND}"),
    ]  # fmt: skip


def test_a_result_of_nothing_but_media_says_where_they_are() -> None:
    """Unless they stand in it."""
    held = settled("r", calls=[call("r", 0, result=(Image(data=b"a"),))])
    (_, inside), (_, outside), _ = bytes_of(held)[1], *bytes_of(held, "gemini-2.0-flash")[1:]
    assert json.loads(inside)["functionResponse"]["response"] == {"result": ""}
    assert json.loads(outside)["functionResponse"]["response"] == {"result": "[The result is the media below.]"}


@pytest.mark.parametrize(
    ("part", "model", "why"),
    [
        (Image(url="http://e.test/a.png"), THIRD, "an image by URL: Google fetches https addresses only"),
        (File(url="ftp://e.test/a"), THIRD, "a file by URL: Google fetches https addresses only"),
        (
            Audio(url="https://e.test/a"), "gemini-2.0-flash",
            "audio by URL: 'google:gemini-2.0-flash' takes bytes and uploaded files only",
        ),
        (Image(data=b"a"), "gemma-3-1b-it", "an image: 'google:gemma-3-1b-it' reads none"),
        (Audio(data=b"a"), "gemma-3-27b-it", "audio: 'google:gemma-3-27b-it' hears none"),
        (File(data=b"a"), "gemma-3-27b-it", "a file: 'google:gemma-3-27b-it' reads none"),
        (Image(url="data:image/png;base64"), THIRD, "an image in a data: address that holds nothing"),
    ],
)  # fmt: skip
def test_media_that_cannot_be_carried_are_named(part: Any, model: str, why: str) -> None:
    """In a message and in a result; what can be carried beside them is."""
    assert problems_of(user("x", part), model) == [why]
    assert bytes_of(user("x", part), model) == [("user", '{"text":"x"}')]
    assert problems_of(settled("r", calls=[call("r", 0, result=(part,))]), model) == [why]
