"""What answers a question: checked before anything of the turn runs, so that a wrong answer changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from onrecord.conversation.inputs import Answered, AskField, Input, Question, Said, Woke
from onrecord.errors import UsageError
from onrecord.jsonio import Json, dumps, peek
from onrecord.record.kinds import Pending
from onrecord.tools.time_formats import time_problem

__all__ = ("answer_of", "check_answer", "field_problem", "still_fits")


def answer_of(pending: Pending, input: Input, now: datetime) -> Answered:
    """The answer that an input is to the question of a paused turn.

    A message that counts as one is its text; the wake that ends the question, and an approval or value that comes when
    its time is over, are an answer that came too late. UsageError for one that does not fit the question.
    """
    question = pending.question
    if isinstance(input, Answered) and (input.approved is False or input.expired):
        return replace(input, approved=False)
    if isinstance(input, Woke) or (question.expires is not None and now >= question.expires):
        return Answered(question.key, approved=False, by=getattr(input, "by", ""), expired=True)
    if isinstance(input, Said):
        return Answered(question.key, value=input.content if isinstance(input.content, str) else None)
    if not isinstance(input, Answered):
        raise UsageError(f"a {type(input).__name__} answers no question")
    check_answer(question, input)
    return input


def still_fits(pending: Pending | None, input: Input, before: Answered, after: Answered) -> Answered:
    """What input rules made of an answer. UsageError where it does not fit the question any more."""
    if pending is not None and isinstance(input, Answered) and after is not before:
        check_answer(pending.question, after)
    return after


def check_answer(question: Question, answer: Answered) -> None:
    """UsageError for an answer that does not say what the question asks. Nothing of the answer is in its words."""
    if answer.approved is False or answer.expired:
        return
    if answer.approved is None and question.decision:
        raise UsageError(
            "this question takes a decision, and nothing else", code="decision-required",
            hint="answer with approved(question, by=...) or declined(question, by=...)",
        )  # fmt: skip
    if answer.approved is None and answer.value is None:
        raise UsageError("an answer says something", code="answer-required", hint="Answered(question.key, value=...)")
    if question.fields and not (answer.approved and question.decision and answer.value is None):
        wrong = _misfit(question, peek(dumps(answer.value)))  # as it is stored: what is no number in JSON is null there
        if wrong:
            raise UsageError(
                f"the answer does not fit the question: {wrong}", code="answer-invalid",
                hint="value= is an object with the question's fields; the question stays open",
            )  # fmt: skip


def _misfit(question: Question, value: Json) -> str:
    if not isinstance(value, Mapping):
        return "it is no object with a value for each field"
    fields = {field.name: field for field in question.fields}
    if unknown := [name for name in value if name not in fields]:
        return f"{len(unknown)} of its values are for fields that were not asked for"
    if question.partial and not value:
        return "it has no value for any field"
    for field in fields.values():
        wrong = field_problem(field, value, partial=question.partial)
        if wrong:
            return wrong
    return ""


def field_problem(field: AskField, value: Mapping[str, Json], *, partial: bool) -> str:
    """What is wrong with the value of a field, without a word of it; empty when it fits, or may be missing."""
    if field.name not in value:
        return "" if partial or not field.required else f"{field.name!r} is missing"
    given = value[field.name]
    if why := time_problem(field.schema.get("format"), given):
        return f"{field.name!r}: {why}"
    if not field.schema:
        return ""
    from onrecord.tools.issues import listed  # every agent imports this module, and few ask for fields
    from onrecord.tools.problems import compiled

    found = compiled(field.schema)(given)
    return listed(found, repr(field.name)) if found else ""
