"""Form: how a Python type looks as JSON, that is its JSON Schema and how a value that fits it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from onrecord.jsonio import Json
from onrecord.tools.issues import Issue, listed

__all__ = (
    "Form",
    "Member",
    "Read",
    "Unfit",
    "Unsupported",
    "inside",
    "of_members",
    "plain_default",
    "reader",
    "refusing",
    "shown_name",
    "whole_reader",
)

Read = Callable[[Json], Any]


class Form(Struct, frozen=True):
    """``read`` turns a value that fits ``schema`` into the Python value; None: it is one already.

    ``fallible``: the type has rules of its own that its schema does not show, so reading may raise `Unfit`.
    """

    schema: Mapping[str, Json]
    read: Read | None = None
    fallible: bool = False


class Unsupported(Exception):
    """A type cannot be written as JSON Schema: ``what`` is wrong with it, and what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


class Unfit(Exception):
    """A value fits its schema, but its type refuses it."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__(listed(issues))
        self.issues = tuple(issues)

    def below(self, name: str) -> Unfit:
        """The same, seen from one level up."""
        return Unfit([issue.below(name) for issue in self.issues])


class Member(Struct, frozen=True, kw_only=True):
    """One named part of an object: ``name`` in JSON, ``attribute`` in Python."""

    name: str
    attribute: str
    form: Form
    required: bool


def reader(form: Form) -> Read:
    """The reading of a form as a function, also where there is nothing to do."""
    return form.read or _unchanged


def _unchanged(value: Json) -> Json:
    return value


def whole_reader(form: Form) -> Read:
    """The reading of a whole value: one that is too deep for a recursive type is refused like any other."""
    read = reader(form)
    if not form.fallible:
        return read

    def bounded(value: Json) -> Any:
        try:
            return read(value)
        except RecursionError:
            raise Unfit([Issue((), "is nested too deeply")]) from None

    return bounded


def inside(name: str, form: Form) -> Read:
    """Reads one part of a whole, so that what its type refuses is told with its place."""
    read = reader(form)
    if not form.fallible:
        return read

    def placed(value: Json) -> Any:
        try:
            return read(value)
        except Unfit as unfit:
            raise unfit.below(name) from None

    return placed


def of_members(
    members: Sequence[Member],
    make: Callable[..., Any],
    *,
    own_rules: bool = False,
    fixed: Mapping[str, Json] | None = None,
    description: str = "",
) -> Form:
    """The form of an object with these members and no others, made by calling ``make`` with keywords.

    ``own_rules``: making it may be refused. ``fixed`` are properties that only tell types apart (a tag).
    """
    properties = {**(fixed or {}), **{member.name: member.form.schema for member in members}}
    required = [*(fixed or {}), *(member.name for member in members if member.required)]
    schema: dict[str, Json] = {"type": "object"}
    if description:
        schema["description"] = description
    schema["properties"] = properties
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    reads = tuple((member.name, member.attribute, inside(member.name, member.form)) for member in members)

    def read(value: Json) -> Any:
        return make(**{attribute: get(value[name]) for name, attribute, get in reads if name in value})

    fallible = own_rules or any(member.form.fallible for member in members)
    return Form(schema, refusing(read) if own_rules else read, fallible)


def refusing(read: Read) -> Read:
    """Turns what an author's own check raises into `Unfit`, with the author's words where it is meant as a refusal."""

    def checked(value: Json) -> Any:
        try:
            return read(value)
        except Unfit:
            raise
        except (ValueError, TypeError, AssertionError) as error:
            raise Unfit([Issue((), str(error) or "invalid")]) from error
        except Exception as error:
            raise Unfit([Issue((), f"cannot be used ({type(error).__name__})")]) from error

    return checked


def plain_default(value: object) -> Json | UnsetType:
    """A default as JSON, or UNSET when it says nothing to a model (None) or is no JSON."""
    if value is None or isinstance(value, UnsetType):
        return UNSET
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError):
        return UNSET


def shown_name(kind: Any) -> str:
    """A type as its author would write it."""
    if isinstance(kind, type):
        return kind.__qualname__.rpartition(".<locals>.")[2]
    return "a number" if isinstance(kind, int) else str(kind).replace("typing.", "")
