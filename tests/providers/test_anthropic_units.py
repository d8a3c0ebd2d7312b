"""Messages: the bytes of each unit, and what a Messages body cannot carry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Audio, File, Image, Part, Refusal, Text, Thinking
from onrecord.conversation.messages import Message, Note, Unit
from onrecord.models.lanes import portable_id
from onrecord.providers.anthropic.cards import PROTOCOL, anthropic_card, rules_of
from onrecord.providers.anthropic.project import AnthropicProjection
from tests.models.requests import call, context, native, request, said, settled, user
from tests.providers.anthropic_requests import BUDGET, body_of, bytes_of, projection, words

pytestmark = pytest.mark.unit

R0, R1 = portable_id("r", 0), portable_id("r", 1)
IMAGE = Image(url="https://e.test/a.png")
THOUGHT = b'{"type":"thinking","thinking":"hm","signature":"s"}'
SAID = b'{"type":"text","text":"a"}'
ASKS = b'{"type":"tool_use","id":"t1","name":"price","input":{"n": 1}}'

GOLDEN: dict[str, tuple[Unit, str]] = {
    "a text": (user("hi"), 'user:{"type":"text","text":"hi"}'),
    "texts": (user("hi", " ", "you"), 'user:{"type":"text","text":"hi"},{"type":"text","text":"you"}'),
    "characters of all kinds": (user('q"\\\n☃'), 'user:{"type":"text","text":"q\\"\\\\\\n☃"}'),
    "a blank text": (user(" \n"), ""),
    "no content": (user(), ""),
    "a notice": (
        user("done", notice="recipe:R"),
        'user:{"type":"text","text":"[Notice from recipe:R; the owner did not write this.]\\ndone"}',
    ),
    "an image by URL": (
        user("see", Image(url="https://e.test/a.png", detail="low")),
        (
            'user:{"type":"text","text":"see"},'
            '{"type":"image","source":{"type":"url","url":"https://e.test/a.png"}}'
        ),
    ),
    "an image as bytes": (
        user(Image(data=b"abc")),
        'user:{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YWJj"}}',
    ),
    "an image by data URL": (
        user(Image(url="data:image/jpeg;base64,YWJj")),
        'user:{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"YWJj"}}',
    ),
    "an image by id": (
        user(Image(file_id="file_1")),
        'user:{"type":"image","source":{"type":"file","file_id":"file_1"}}',
    ),
    "a PDF as bytes": (
        user(File(data=b"abc", name="r.pdf")),
        (
            'user:{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"YWJj"},'
            '"title":"r.pdf"}'
        ),
    ),
    "a text file": (
        user(File(data="ü".encode(), media="text/markdown")),
        'user:{"type":"document","source":{"type":"text","media_type":"text/plain","data":"ü"}}',
    ),
    "a file by URL": (
        user(File(url="https://e.test/r.pdf")),
        'user:{"type":"document","source":{"type":"url","url":"https://e.test/r.pdf"}}',
    ),
    "a file by id": (
        user(File(file_id="file_1")),
        'user:{"type":"document","source":{"type":"file","file_id":"file_1"}}',
    ),
    "system text in place": (
        context("be brief", "system"),
        (
            'user:{"type":"text","text":"<instruction from=\\"application\\" authority=\\"system\\">\\n'
            'be brief\\n</instruction>"}'
        ),
    ),
    "data": (context("news"), 'user:{"type":"text","text":"news"}'),
    "data that says nothing": (context(" "), ""),
    "words": (settled("r", "hi ", "there"), 'model:{"type":"text","text":"hi there"}'),
    "a refusal is words": (settled("r", Refusal("No.")), 'model:{"type":"text","text":"No."}'),
    "thinking is not shown": (
        replace(settled("r"), content=(Thinking("hm"), Text("hi"))),
        'model:{"type":"text","text":"hi"}',
    ),
    "nothing said": (settled("r", " "), ""),
    "a call": (
        settled("r", calls=[call("r", 0, args='{"n": 1.50}')]),
        (
            f'model:{{"type":"tool_use","id":"{R0}","name":"price","input":{{"n": 1.50}}}} '
            f'user:{{"type":"tool_result","tool_use_id":"{R0}","content":"sunny"}}'
        ),
    ),
    "words and a call with arguments that are none": (
        settled("r", "So.", calls=[call("r", 0, args='{"n"')]),
        (
            f'model:{{"type":"text","text":"So."}},{{"type":"tool_use","id":"{R0}","name":"price","input":{{}}}} '
            f'user:{{"type":"tool_result","tool_use_id":"{R0}","content":"sunny"}}'
        ),
    ),
    "notes of the library": (
        settled("r", calls=[call("r", 0, notes=(Note("l", "It was cut."),))]),
        (
            f'model:{{"type":"tool_use","id":"{R0}","name":"price","input":{{"n":1}}}} '
            f'user:{{"type":"tool_result","tool_use_id":"{R0}","content":"sunny\\nIt was cut."}}'
        ),
    ),
    "a draft and its correction": (
        settled("r", "hm", revised=(context("say more", "developer"),)),
        (
            'model:{"type":"text","text":"hm"} '
            'user:{"type":"text","text":"<instruction from=\\"application\\" authority=\\"developer\\">\\n'
            'say more\\n</instruction>"}'
        ),
    ),
    "a native reply": (
        settled("r", "a", continuation=native(THOUGHT, SAID, protocol=PROTOCOL, scope="")),
        f"thought:{THOUGHT.decode()} model:{SAID.decode()}",
    ),
    "a native reply without thinking": (
        settled("r", "a", continuation=native(SAID, ASKS, protocol=PROTOCOL, scope=""), calls=[
            call("r", 0, wire_id="t1"),
        ]),
        (
            f"model:{SAID.decode()},{ASKS.decode()} "
            'user:{"type":"tool_result","tool_use_id":"t1","content":"sunny"}'
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_of_each_unit(name: str) -> None:
    """Golden: bytes that change make every vendor's prompt cache miss."""
    unit, expected = GOLDEN[name]
    assert bytes_of(unit) == expected
    assert projection().problems(unit, "") == ()


# ---- what cannot be carried ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "model", "told"),
    [
        (Audio(data=b"a"), BUDGET, "audio: Messages takes none"),
        (Audio(url="https://e.test/a"), BUDGET, "audio: Messages takes none"),
        (IMAGE, "claude-2.1", "an image: 'anthropic:claude-2.1' reads none"),
        (File(data=b"a"), "claude-3-opus-20240229", "a file: 'anthropic:claude-3-opus-20240229' reads none"),
        (Image(data=b"a", media="image/svg+xml"), BUDGET, "an image of type 'image/svg+xml'"),
        (Image(url="data:image/png,abc"), BUDGET, "an image by a data URL that is not base64"),
        (File(data=b"a", media="application/msword"), BUDGET, "a file of type 'application/msword'"),
        (File(data=b"\xff", media="text/plain"), BUDGET, "a file of type 'text/plain' that is not UTF-8"),
    ],
)
def test_media_that_cannot_be_carried_are_named(part: Part, model: str, told: str) -> None:
    """By kind, in a message and in a result; the rest of the unit is shown."""
    wire = projection(model)
    for unit in (user("x", part), settled("r", calls=[call("r", 0, result=(Text("x"), part))])):
        (what,) = wire.problems(unit, "")
        assert what.startswith(told)
        assert '"x"' in bytes_of(unit, wire)
    assert [issue.unit for issue in wire.wire(request(user("hi"), user("x", part, id="u1"))).issues] == [1]


def test_a_round_of_which_something_is_lost_is_refused_out_of_its_scope_alone() -> None:
    """Its vendor takes it back; for any other it is not what was said."""
    lost = settled("r", "a", continuation=native(SAID, protocol=PROTOCOL, scope="s"), lost=("a dream",))
    assert projection().problems(lost, "s") == ()
    assert projection().problems(lost, "other") == ("a dream",)


# ---- calls and results --------------------------------------------------------------------------------------------


def results(*calls: Any) -> list[Any]:
    """The results of a round."""
    found: list[Any] = json.loads(f"[{bytes_of(settled('r', calls=calls)).partition(' user:')[2]}]")
    return found


def test_parallel_calls_are_one_entry_then_their_results_in_order() -> None:
    """One entry with both calls, one with both results."""
    calls = [call("r", 0, "first"), call("r", 1, "second", result=(Text("2"),))]
    asked, answered = body_of(request(user("hi"), said(settled("r", calls=calls))))["messages"][1:]
    assert [one["name"] for one in asked["content"]] == ["first", "second"]
    assert [(one["tool_use_id"], one["content"]) for one in answered["content"]] == [(R0, "sunny"), (R1, "2")]


def test_media_of_a_result_stay_in_it() -> None:
    """With what was said beside them."""
    (held,) = results(call("r", 0, result=(Text("see"), IMAGE, File(data=b"abc"), Text(" "))))
    assert [one["type"] for one in held["content"]] == ["text", "image", "document"]


def test_an_empty_result_has_no_content() -> None:
    """A blank one would be refused."""
    for empty in ((), (Text(""),), (Text(" "),)):
        assert results(call("r", 0, result=empty)) == [{"type": "tool_result", "tool_use_id": R0}]


@pytest.mark.parametrize("status", ["failed", "denied", "invalid", "absent", "not_run", "cancelled"])
def test_a_call_that_did_not_succeed_is_an_error(status: Any) -> None:
    """With words, which the vendor wants of an error; one with media cannot say that it is one."""
    (held,) = results(call("r", 0, status=status, result=None))
    assert held["is_error"] is True
    assert held["content"].startswith('{"error":')
    assert results(call("r", 0, status=status, result=()))[0]["content"] == "(no text)"
    assert "is_error" not in results(call("r", 0, status=status, result=(Text("x"), IMAGE)))[0]
    assert all("is_error" not in results(call("r", 0, status=fine))[0] for fine in ("returned", "partial"))


def test_a_call_that_nobody_answered_is_left_out() -> None:
    """Also of a reply that could else go back as it came."""
    calls = [call("r", 0, wire_id="t1"), call("r", 1, wire_id="t2", status="asked", result=None)]
    held = native(THOUGHT, ASKS, protocol=PROTOCOL, scope="")
    shown = bytes_of(settled("r", "a", calls=calls, continuation=held))
    assert shown.startswith(f'model:{{"type":"text","text":"a"}},{{"type":"tool_use","id":"{R0}"')
    assert "thinking" not in shown
    assert R1 not in shown


# ---- native replies -----------------------------------------------------------------------------------------------


def test_a_native_reply_is_taken_back_in_its_scope_and_told_in_portable_form_elsewhere() -> None:
    """Signatures are for the model and the session that made them."""
    unit = settled("r", "a", continuation=native(THOUGHT, SAID, protocol=PROTOCOL, scope="s"))
    assert "sig" in bytes_of(unit, scope="s").replace("signature", "sig")
    assert bytes_of(unit, scope="other") == 'model:{"type":"text","text":"a"}'
    foreign = settled("r", "a", continuation=native(SAID, protocol="openai-responses", scope="s"))
    assert bytes_of(foreign, scope="s") == 'model:{"type":"text","text":"a"}'


def test_thinking_alone_is_not_sent() -> None:
    """A reply that ends in it would be refused."""
    alone = settled("r", continuation=native(THOUGHT, protocol=PROTOCOL, scope=""))
    assert bytes_of(alone) == ""
    assert words(request(user("hi"), said(alone), user("so?", id="u1"))) == ["user: hi | so?"]


def test_thinking_begins_its_entry_whatever_was_said_before() -> None:
    """A line that the application spoke, then a reply with thinking: a word of the user's stands between them."""
    line = settled("v", "Welcome.")
    thinks = settled("r", "a", continuation=native(THOUGHT, SAID, protocol=PROTOCOL, scope=""))
    plain = settled("p", "b")
    talk: list[Message] = [
        user("hi"),
        said(line, id="a0"),
        said(thinks, id="a1"),
        said(plain, id="a2"),
        said(thinks, id="a3"),
    ]
    assert words(request(*talk)) == [
        "user: hi", "assistant: Welcome.", "user: (continue)", "assistant: thinking | a | b", "user: (continue)",
        "assistant: thinking | a", "user: (continue)",
    ]  # fmt: skip


def test_models_that_write_units_differently_share_no_bytes() -> None:
    """A conversation that changes its model, and back, is written for each as if it had no other."""
    shown = (user("see", IMAGE), user("and?", id="u1"))
    both = request(*shown).conversation
    for model in (BUDGET, "claude-2.1", BUDGET):
        wire = AnthropicProjection(anthropic_card(model), rules_of(model))
        assert wire.wire(request(conversation=both)) == wire.wire(request(*shown))
