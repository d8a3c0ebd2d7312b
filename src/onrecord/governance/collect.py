"""Asking people for things: a tool by which the model asks, and typed values that a handler collects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from onrecord.conversation.inputs import Ask, AskField, OnMessage
from onrecord.declared import declared
from onrecord.errors import ConfigurationError, UsageError
from onrecord.jsonio import Json, canonical, is_json
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.answering import field_problem

__all__ = ("ask_fields", "ask_human", "request_input")

MOST_FIELDS = 32
LONGEST_TEXT = 4096
MOST_CHOICES = 100
LARGEST_CONTEXT = 16384
LONGEST_QUOTE = 64
TYPES = ("string", "number", "integer", "boolean")


@declared
def ask_human(
    *, id: str = "ask_human", description: str = "", audience: str = "speaker", on_message: OnMessage = "hold",
    expires_s: float | None = None,
) -> Tool:  # fmt: skip
    """A tool by which the model asks a person: ``{"question": ..., "options": [...]}``. What is answered is its result.

    ``audience`` is who may answer, ``on_message`` what another message does meanwhile (``answer``: it is the answer),
    ``expires_s`` how long the question waits. After-tool rules see the answer as they see any result. The question is
    the model's own words, so the person is told that the tool asks.
    """

    def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ask:
        options = args.get("options")
        detail = {"options": options} if options else None
        return Ask(
            str(args["question"]), detail=detail, audience=audience, on_message=on_message, expires_s=expires_s
        )  # fmt: skip

    Ask("", audience=audience, on_message=on_message, expires_s=expires_s)  # refuses here what it would refuse later
    return Tool(
        id, handler, description or "Ask a person something that only they can say, and wait for the answer.",
        parameters=_QUESTION, check_arguments=True,
    )  # fmt: skip


_QUESTION: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "description": "One question, with what is needed to answer."},
        "options": {
            "type": "array", "items": {"type": "string"}, "maxItems": 20,
            "description": "Answers to choose from, where there are only a few.",
        },
    },
    "required": ["question"],
    "additionalProperties": False,
}  # fmt: skip


@declared
def ask_fields(of: type) -> tuple[AskField, ...]:
    """The fields of a type (a struct, a dataclass, a TypedDict) as things to ask for; a plain type is one, ``value``.

    ConfigurationError for a type without fields of its own, such as a mapping.

    What has no default is required; what a field is about comes from the type's docstring or annotations.
    """
    from onrecord.tools.schema import output_schema

    schema, _ = output_schema(of)
    properties, required = schema.get("properties"), schema.get("required") or ()
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        raise ConfigurationError(
            f"{getattr(of, '__name__', of)!r} has no fields to ask for",
            hint="give a dataclass, a TypedDict or a msgspec struct",
        )
    return tuple(
        AskField(
            name, ask=str(held.get("description", "")) if isinstance(held, Mapping) else "",
            schema=cast(Mapping[str, Json], held if isinstance(held, Mapping) else {}), required=name in required,
        )
        for name, held in properties.items()
    )  # fmt: skip


class Collected(Struct, frozen=True, kw_only=True):
    """What was collected so far: the values, and where each comes from."""

    values: Mapping[str, Json]
    origins: Mapping[str, str]

    def missing(self, fields: Sequence[AskField]) -> list[str]:
        """The required fields without a value."""
        return [field.name for field in fields if field.required and field.name not in self.values]


@declared
async def request_input(
    ctx: ToolContext[Any], question: str, fields: Sequence[AskField] | type, *, request: str = "",
    supplied: Mapping[str, Json] | None = None, about: Json = None, audience: str = "speaker",
    on_message: OnMessage = "hold", expires_s: float | None = None,
) -> ToolResult:  # fmt: skip
    """Collects typed values from a person, inside a handler, and gives the result that the handler returns.

    ``fields`` are `AskField` of strings, numbers and booleans (``enum``: where only some values will do), or a type,
    see `ask_fields`. ``supplied`` are values known already. What is still missing is asked for, by as many questions as
    it takes: an answer may give some of it, and no model is called in between. A value of another type, and one that
    was not asked for, is refused and the question stays open. A text may have a ``format``: ``instant``, ``time-range``
    or ``zone`` (see `onrecord.tools.time_formats`), or one of JSON Schema. Where messages count as answers, one that
    does not fit is asked about again, with ``refused`` and ``repeat`` in the question's detail. ``about`` is JSON for
    whoever shows the question.

    The result is ``{"status": "input_received", "request", "values", "origins"}``, each origin ``declaration`` for what
    was supplied and ``response`` for what was answered; declined or expired, it is ``{"status": "input_declined"}``
    with the person's note, and has failed. UsageError (``input-request-invalid``) for what nobody could answer.
    """
    asked = tuple(fields) if isinstance(fields, Sequence) else ask_fields(fields)
    given = dict(supplied or {})
    _check(question, asked, given, about)
    got = Collected(values=given, origins=dict.fromkeys(given, "declaration"))
    refused: dict[str, Json] = {}
    while missing := got.missing(asked):
        shown = tuple(field for field in asked if field.name not in got.values)
        detail: dict[str, Json] = {"request": request, "missing": missing, "supplied": dict(got.values), **refused}
        if about is not None:
            detail["about"] = about
        answer = await ctx.ask(
            Ask(
                question, fields=shown, detail=detail, audience=audience, on_message=on_message, partial=True,
                expires_s=expires_s,
            )
        )  # fmt: skip
        if answer.approved is False:
            note = "nobody answered in time" if answer.expired else answer.note
            return ToolResult({"status": "input_declined", "request": request, "note": note}, status="failed")
        got, refused = _with(got, _read(answer.value, shown)), _refused(answer.value, shown, refused)
    return ToolResult(
        {"status": "input_received", "request": request, "values": got.values, "origins": got.origins}
    )  # fmt: skip


def _with(held: Collected, values: Mapping[str, Json]) -> Collected:
    return Collected(values={**held.values, **values}, origins={**held.origins, **dict.fromkeys(values, "response")})


def _read(value: Json, shown: Sequence[AskField]) -> Mapping[str, Json]:
    """The values of an answer. A message that counts as one is the value of the only text that is missing."""
    if isinstance(value, Mapping):
        return {field.name: value[field.name] for field in shown if field.name in value and not _wrong(field, value)}
    wanted = [field for field in shown if field.required]
    if isinstance(value, str) and len(wanted) == 1 and not _wrong(wanted[0], {wanted[0].name: value}):
        return {wanted[0].name: value}
    return {}


def _refused(value: Json, shown: Sequence[AskField], before: Mapping[str, Json]) -> dict[str, Json]:
    """What the next question says of a message that was taken for an answer and is none: the words, why, how often."""
    wanted = [field for field in shown if field.required]
    if not isinstance(value, str) or len(wanted) != 1:
        return {}
    why = field_problem(wanted[0], {wanted[0].name: value}, partial=False)
    if not why:
        return {}
    repeat = before.get("repeat")
    count = repeat.get("count") if isinstance(repeat, Mapping) else 0
    return {
        "refused": {"answer": value[:LONGEST_QUOTE], "reason": why},
        "repeat": {"count": (count if isinstance(count, int) else 0) + 1},
    }


def _wrong(field: AskField, values: Mapping[str, Json]) -> bool:
    return bool(field_problem(field, values, partial=False))


def _check(question: str, fields: Sequence[AskField], supplied: Mapping[str, Json], about: Json) -> None:
    names = [field.name for field in fields]
    problem = ""
    if not question.strip() or len(question) > LONGEST_TEXT:
        problem = f"its question has 1 to {LONGEST_TEXT} characters"
    elif not fields or len(fields) > MOST_FIELDS or len(set(names)) < len(names):
        problem = f"it has 1 to {MOST_FIELDS} fields, each of another name"
    elif not all(isinstance(cast(object, field), AskField) and _is_simple(field) for field in fields):
        kinds = ", ".join(TYPES)
        problem = f"each field is one of {kinds}, with at most {MOST_CHOICES} values in enum, a format for texts alone"
    elif unknown := [name for name in supplied if name not in names]:
        problem = f"{unknown[0]!r} is supplied and is no field of it"
    elif any(_wrong(field, supplied) for field in fields if field.name in supplied):
        problem = "a value that is supplied does not fit its field"
    elif not any(field.required and field.name not in supplied for field in fields):
        problem = "no required field is missing, so there is nothing to ask"
    elif not is_json(about) or len(canonical(about)) > LARGEST_CONTEXT:
        problem = f"about= is JSON of at most {LARGEST_CONTEXT} characters"
    if problem:
        raise UsageError(f"this is no request for input: {problem}", code="input-request-invalid")


def _is_simple(field: AskField) -> bool:
    choices: Any = field.schema.get("enum", ())
    texts = [field.name, field.ask, *(str(choice) for choice in choices)]
    kind = field.schema.get("type", "string")
    return (
        bool(field.name)
        and kind in TYPES
        and (kind == "string" or "format" not in field.schema)
        and len(choices) <= MOST_CHOICES
        and all(len(text) <= LONGEST_TEXT for text in texts)
    )
