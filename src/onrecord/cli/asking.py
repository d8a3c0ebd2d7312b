"""Questions to a person: how one is put, and how what is typed becomes the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, Protocol

from onrecord.cli.terminal import Screen, quoted
from onrecord.conversation.inputs import Answered, AskField, Question
from onrecord.errors import OnrecordError
from onrecord.honesty.sentences import call_text
from onrecord.jsonio import Json, dumps, loads
from onrecord.session.session import Session
from onrecord.turn.answering import field_problem

__all__ = ("ANSWER", "LATER", "Form", "Lines", "answer_to", "form_of", "put", "show_private", "value_of", "yes_or_no")

Form = Literal["approval", "fields", "free"]


class Lines(Protocol):
    """Where answers are typed; ``live`` is a person at a terminal."""

    live: bool

    def line(self, prompt: str) -> str: ...


LATER = ("/later", "/l")
DECLINE = "/decline"
ANSWER = "answer> "

_YES = frozenset("y yes yeah yep ok okay sure approve approved go sim s claro si sí ja oui d'accord".split())
_NO = frozenset("n no nope never decline declined deny denied não nao nein non nunca".split())
_NO_ALONE = re.compile(r"\s*\w+\s*(?:[,.;:!?\u2014\u2013-]|$)")
"""A no that is all that is said, or is cut off from the rest; "no idea" is none, and would be lost as a refusal."""
_FIRST = re.compile(r"\s*([^\s,.;:!?\u2014\u2013-]+)[\s,.;:!?\u2014\u2013-]*(.*)", re.DOTALL)


def form_of(session: Session) -> Form:
    """What the open question of a session wants: a yes or no, values for its fields, or words."""
    pending = session.pending
    if pending is None:
        return "free"
    return "approval" if pending.question.decision else "fields" if pending.question.fields else "free"


def put(screen: Screen, session: Session, form: Form, private: Mapping[str, Mapping[str, str]]) -> None:
    """Shows the open question of a session: who asks, about what, and how it can be answered.

    ``private`` is what is for the person alone, by the key of the question that it came with.
    """
    pending = session.pending
    if pending is None:
        return
    question = pending.question
    screen.line(f"? {question.text}", bold=True)
    about = [f"asked by {question.by or 'the agent'}"]
    if question.audience != "speaker":
        about.append(f"meant for: {question.audience}")
    if question.expires is not None:
        about.append(f"until {question.expires:%Y-%m-%d %H:%M} UTC")
    about += [call_text(c.name, c.args, 80) for r in pending.rounds for c in r.calls if c.id == question.call]
    screen.line(f"  {' · '.join(about)}", dim=True)
    for line in _detailed(question.detail):
        screen.line(f"  {line}", dim=True)
    show_private(screen, private.get(question.key, {}))
    how = {
        "approval": "y or n, and a note behind it if you like",
        "fields": f"one line for each value, or {DECLINE}",
        "free": "y, n, or in your own words",
    }[form]
    screen.line(f"  {how}; /later leaves the question open", dim=True)


def show_private(screen: Screen, private: Mapping[str, str]) -> None:
    """What is for the person alone, such as the address where consent is given."""
    for name, text in private.items():
        screen.line(f"  {name}: {text}")


def _detailed(detail: Json) -> Iterator[str]:
    """What a question says besides its words, a line for each part; texts stay quoted, so that none begins a line."""
    if not isinstance(detail, Mapping):
        if detail is not None:
            yield _shown(detail)
        return
    for name, held in detail.items():
        if isinstance(held, (list, tuple)) and held:
            yield f"{name}:"
            yield from (f"  - {_members(one)}" for one in held)
        elif held not in (None, "", [], {}):
            yield f"{name}: {_members(held)}"


def _members(value: Json) -> str:
    if not isinstance(value, Mapping):
        return dumps(value).decode()
    return ", ".join(f"{name} {dumps(held).decode()}" for name, held in value.items())


def answer_to(
    screen: Screen, keyboard: Lines, question: Question, form: Form, command: Callable[[str], None]
) -> Answered | None:
    """The person's answer, asked for until it is one; None when it is left for later. EOFError at the end of input.

    ``command`` runs what begins with a slash and is neither /later nor /decline.
    """
    approved: bool | None = None
    note = ""
    value: Json = None
    while form != "fields":
        line = _typed(keyboard, ANSWER, command)
        if line is None:
            return None
        if line == DECLINE:
            return Answered(question.key, approved=False)
        approved, note = yes_or_no(line)
        if form == "free":  # the words are the answer
            approved, note, value = None if approved is False and not _NO_ALONE.match(line) else approved, "", line
            break
        if approved is not None:
            break
        screen.line("  that is neither a yes nor a no", dim=True)
    if question.fields and approved is not False and form != "free":
        values = _fields(screen, keyboard, question.fields, command)
        if values == "later":
            return None
        approved, value = (False, None) if values == "declined" else (approved, values)
    return Answered(question.key, value=value, approved=approved, note=note)


def _typed(keyboard: Lines, prompt: str, command: Callable[[str], None]) -> str | None:
    """A line that is an answer. An empty one at a terminal, and /later, leave the question open: None."""
    while True:
        line = keyboard.line(prompt).strip()
        if line in LATER or (not line and keyboard.live):
            return None
        if line.startswith("/") and line != DECLINE:
            command(line)
        elif line:
            return line


def yes_or_no(text: str) -> tuple[bool | None, str]:
    """Whether a text begins with a yes or a no, and what stands behind that word; None when it does neither."""
    found = _FIRST.match(text)
    if found is None:
        return None, ""
    word, rest = found[1].casefold(), found[2].strip()
    if word in _YES:
        return True, rest
    return (False, rest) if word in _NO else (None, "")


def _fields(
    screen: Screen, keyboard: Lines, fields: tuple[AskField, ...], command: Callable[[str], None]
) -> dict[str, Json] | Literal["later", "declined"]:
    """The values that were typed, or what was said in their place."""
    values: dict[str, Json] = {}
    for field in fields:
        screen.line(f"  {field.ask or field.name}{_expected(field)}")
        while True:
            line = keyboard.line(f"{field.name}> ").strip()
            if line in LATER:
                return "later"
            if line == DECLINE:
                return "declined"
            if line.startswith("/"):
                command(line)
                continue
            if not line and not keyboard.live and field.required and "default" not in field.schema:
                continue  # a blank line of a pipe answers nothing
            try:
                if (value := value_of(field, line)) is not None:
                    values[field.name] = value
            except OnrecordError as error:
                screen.line(f"  {error}", dim=True)
                continue
            break
    return values


def _expected(field: AskField) -> str:
    """What kind of value is wanted, in a few words."""
    schema = field.schema
    told: list[str] = []
    if options := schema.get("enum"):
        told.append(" / ".join(map(_shown, options)))
    elif (kind := schema.get("type")) and kind != "string":
        told.append({"boolean": "y or n", "array": "a list, with commas between"}.get(str(kind), f"{kind}"))
    if schema.get("format"):
        told.append(str(schema["format"]))
    if "default" in schema:
        told.append(f"empty: {_shown(schema['default'])}")
    elif not field.required:
        told.append("may stay empty")
    return f" ({', '.join(told)})" if told else ""


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def value_of(field: AskField, text: str) -> Json:
    """The value that a line gives to a field; None for one that stays empty. OnrecordError says what is expected."""
    schema = field.schema
    if not text:
        if "default" in schema:
            return schema["default"]
        if field.required:
            raise OnrecordError(f"{field.name} is needed")
        return None
    if options := schema.get("enum"):
        for option in options:
            if _shown(option).casefold() == text.casefold():
                return option
        raise OnrecordError(f"expected one of {', '.join(map(_shown, options))}; found {quoted(text, 40)}")
    value = _typed_value(str(schema.get("type") or "string"), text)
    if wrong := field_problem(field, {field.name: value}, partial=False):
        raise OnrecordError(wrong)
    return value


def _typed_value(kind: str, text: str) -> Json:
    if kind == "string":
        return text
    if kind == "boolean":
        approved, _ = yes_or_no(text)
        if approved is None and text.casefold() in {"true", "false"}:
            approved = text.casefold() == "true"
        if approved is None:
            raise OnrecordError("expected y or n")
        return approved
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text) if "." in text or "e" in text.casefold() else int(text)
    except ValueError:
        raise OnrecordError(f"expected {'a whole number' if kind == 'integer' else 'a number'}") from None
    if kind == "array" and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        value = loads(text)
    except ValueError:
        raise OnrecordError(f"expected JSON ({kind})") from None
    if (kind == "array") != isinstance(value, list) or (kind == "object") != isinstance(value, dict):
        raise OnrecordError(f"expected JSON of type {kind}")
    return value
