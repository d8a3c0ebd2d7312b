"""How what is typed becomes an answer."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import pytest

from onrecord.cli.asking import Form, answer_to, form_of, put, value_of, yes_or_no
from onrecord.cli.terminal import Screen
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, AskField, Question, Said
from onrecord.errors import OnrecordError
from onrecord.jsonio import Json
from onrecord.record.kinds import Pending
from onrecord.session.session import Session
from onrecord.testing import FakeEffects

pytestmark = pytest.mark.unit


class Typed:
    """A keyboard that types these lines."""

    def __init__(self, *lines: str, live: bool = True) -> None:
        self.lines, self.live, self.prompts = list(lines), live, list[str]()

    def line(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def answered(
    *lines: str, form: Form, fields: Iterable[AskField] = (), live: bool = True
) -> tuple[Answered | None, list[str]]:
    """The answer that these lines give, and the commands among them."""
    commands: list[str] = []
    question = Question(key="t/q0", text="Well?", by="rule", fields=tuple(fields))
    screen = Screen(io.StringIO())
    return answer_to(screen, Typed(*lines, live=live), question, form, commands.append), commands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y", (True, "")),
        ("YES!", (True, "")),
        ("yes, but gently", (True, "but gently")),
        ("sim", (True, "")),
        ("Sí — claro", (True, "claro")),
        ("n", (False, "")),
        ("No: too late", (False, "too late")),
        ("não", (False, "")),
        ("nobody knows", (None, "")),
        ("yesterday", (None, "")),
        ("", (None, "")),
        ("???", (None, "")),
    ],
)
def test_a_yes_or_a_no_is_the_first_word(text: str, expected: tuple[bool | None, str]) -> None:
    """Case, punctuation and accents do not matter; what follows is a note; other words are neither."""
    assert yes_or_no(text) == expected


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({}, "Ana Costa", "Ana Costa"),
        ({"type": "integer"}, "33", 33),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "2", 2),
        ({"type": "boolean"}, "y", True),
        ({"type": "boolean"}, "FALSE", False),
        ({"type": "array"}, "a, b,", ["a", "b"]),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"enum": ["Single", "double"]}, "single", "Single"),
        ({"enum": [1, 2]}, "2", 2),
        ({"default": 7}, "", 7),
    ],
)
def test_a_field_is_read_by_its_schema(schema: Mapping[str, Json], text: str, value: Json) -> None:
    """Numbers, booleans, lists, objects, choices and defaults."""
    assert value_of(AskField(name="x", schema=schema), text) == value


@pytest.mark.parametrize(
    ("schema", "text", "told"),
    [
        ({}, "", "x is needed"),
        ({"type": "integer"}, "2.5", "expected a whole number"),
        ({"type": "number"}, "many", "expected a number"),
        ({"type": "boolean"}, "perhaps", "expected y or n"),
        ({"type": "object"}, "a=1", "expected JSON"),
        ({"type": "object"}, "[1]", "expected JSON of type object"),
        ({"type": "array"}, "[1", "expected JSON"),
        ({"enum": ["a", "b"]}, "c", "expected one of a, b"),
        ({"type": "string", "format": "instant"}, "tomorrow", "it is no instant such as"),
        ({"type": "integer", "minimum": 1}, "0", "'x'"),
    ],
)
def test_a_value_that_does_not_fit_says_what_is_expected(schema: Mapping[str, Json], text: str, told: str) -> None:
    """One short line each."""
    with pytest.raises(OnrecordError, match=told):
        value_of(AskField(name="x", schema=schema), text)


def test_an_optional_field_may_stay_empty() -> None:
    """It is not in the answer then."""
    fields = (AskField(name="name"), AskField(name="age", schema={"type": "integer"}, required=False))
    answer, _ = answered("Ana", "", form="fields", fields=fields)
    assert answer == Answered("t/q0", value={"name": "Ana"})


def test_an_approval_with_fields_asks_for_them_after_the_yes_only() -> None:
    """A no needs no values."""
    fields = (AskField(name="reason"),)
    assert answered("y", "late", form="approval", fields=fields)[0] == Answered(
        "t/q0", value={"reason": "late"}, approved=True
    )
    assert answered("n", form="approval", fields=fields)[0] == Answered("t/q0", approved=False)


def test_decline_says_no_at_every_prompt() -> None:
    """Also where values are asked for, and where any words would be an answer."""
    fields = (AskField(name="name"), AskField(name="age"))
    no = Answered("t/q0", approved=False)
    assert answered("/decline", form="approval")[0] == answered("/decline", form="free")[0] == no
    assert answered("Ana", "/decline", form="fields", fields=fields) == (no, [])
    assert answered("y", "/decline", form="approval", fields=fields)[0] == no


def test_later_and_an_empty_line_leave_the_question_open() -> None:
    """At every prompt; on a pipe an empty line answers nothing instead."""
    fields = (AskField(name="name"),)
    assert answered("/later", form="approval")[0] is None
    assert answered("", form="free")[0] is None
    assert answered("/later", form="fields", fields=fields)[0] is None
    assert answered("y", "/later", form="approval", fields=fields)[0] is None
    assert answered("", "y", form="approval", live=False)[0] == Answered("t/q0", approved=True)
    assert answered("", "Ana", form="fields", fields=fields, live=False)[0] == Answered("t/q0", value={"name": "Ana"})


def test_commands_work_while_a_question_is_open() -> None:
    """They are run, and the question is asked on."""
    answer, commands = answered("/why", "y", form="approval")
    assert (answer, commands) == (Answered("t/q0", approved=True), ["/why"])
    answer, commands = answered("/help", "Ana", form="fields", fields=(AskField(name="name"),))
    assert (answer, commands) == (Answered("t/q0", value={"name": "Ana"}), ["/help"])


def test_the_end_of_the_input_is_no_answer() -> None:
    """The question stays open."""
    with pytest.raises(EOFError):
        answered(form="free")


def paused(question: Question, place: str) -> Session:
    """A session that waits for this question's answer."""
    pending = Pending(
        turn="t", row="r", input=Said("hi"), now=FakeEffects().now(), key="answer", place=place, question=question
    )
    return Session(key=SessionKey("s"), pending=pending)


def test_the_words_of_a_free_answer_are_no_refusal_because_they_begin_with_a_no() -> None:
    """A handler that was refused does not look at the words: "no idea" would be lost. All of them are the value."""
    for words, approved in [
        ("no idea", None), ("não sei", None), ("no", False), ("No!", False), ("no, thanks", False),
        ("yes please", True), ("who knows", None),
    ]:  # fmt: skip
        assert answered(words, form="free")[0] == Answered("t/q0", value=words, approved=approved)
    assert answered("no idea", form="approval")[0] == Answered("t/q0", approved=False, note="idea")


def test_who_asked_decides_what_kind_of_answer_is_wanted() -> None:
    """What asks for a decision, as every rule before a tool does, wants a yes or a no; else words, or values."""
    plain = Question(key="t/q0", text="Well?", by="x")
    fields = Question(key="t/q0", text="Well?", by="x", fields=(AskField(name="a"),))
    assert form_of(paused(fields, "handler")) == "fields"
    assert form_of(paused(plain, "handler")) == "free"
    decision = Question(key="t/q0", text="Well?", by="agent:clerk", fields=(AskField(name="a"),), decision=True)
    assert form_of(paused(decision, "handler")) == form_of(paused(decision, "before/rule")) == "approval"


def test_a_question_says_until_when_it_waits() -> None:
    """Where it does not wait for ever."""
    out = io.StringIO()
    until = datetime(2026, 11, 30, 10, 20, tzinfo=UTC)
    put(Screen(out), paused(Question(key="t/q0", text="Well?", by="x", expires=until), "handler"), "free", {})
    assert "asked by x · until 2026-11-30 10:20 UTC" in out.getvalue()


def test_a_question_shows_its_detail_a_line_for_each_part() -> None:
    """Texts in it stay quoted, so that what a model wrote begins no line; what is empty is left out."""
    read: list[Json] = [{"from": "message", "text": "Pay it.\ny or n"}]
    for detail, told in [
        ({"price": 220}, ["price: 220"]),
        ("as text", ["as text"]),
        ([1, 2], ["[1,2]"]),
        (
            {"will_do": {"tool": "pay", "args": {"euros": "9"}}, "said": "", "read": read, "drivers": []},
            ['will_do: tool "pay", args {"euros":"9"}', "read:", '  - from "message", text "Pay it.\\ny or n"'],
        ),
        (None, []),
    ]:
        out = io.StringIO()
        put(Screen(out), paused(Question(key="t/q0", text="Well?", by="x", detail=detail), "handler"), "free", {})
        assert out.getvalue().splitlines()[2:-1] == [f"  {line}" for line in told]
