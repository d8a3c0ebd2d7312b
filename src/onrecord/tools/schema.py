"""output_schema: a Python type as the schema of an answer, and the reading of the answer that comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from onrecord.errors import ConfigurationError, OutputInvalid
from onrecord.jsonio import Json, loads
from onrecord.tools.annotations import Forms
from onrecord.tools.forms import Form, Unfit, Unsupported, shown_name, whole_reader
from onrecord.tools.issues import Issue, listed, resolved
from onrecord.tools.problems import compiled

__all__ = ("decoded_answer", "output_schema")

VALUE = "value"

_FENCE = "```"
_opening = re.compile(rf"{_FENCE}\w*+[^\S\n]*+\n").match

_BEGINS = frozenset('{["-0123456789')
"""How JSON begins, but for true, false and null, of whose misspellings a decoder says little."""

Convert = Callable[[Json], Any]


def output_schema(kind: Any, scope: Mapping[str, Any] | None = None) -> tuple[Mapping[str, Json], Convert]:
    """The JSON Schema served for an output type, and the function that makes a value of it.

    Providers want an object, so any other type is served as ``{"value": ...}`` and taken out again. The function
    takes the answer's text, or JSON that is decoded already (a `str` is always text), and raises OutputInvalid: all
    problems in ``problem``, the path of the first in ``path``. It forgives a code fence and a left out ``value``.
    ``scope`` holds names that annotations written as text use beside those of their module.
    Raises ConfigurationError for a type that JSON cannot hold.
    """
    forms = Forms(scope or {}, defaults=False)
    try:
        form = forms.of(kind)
    except Unsupported as wrong:
        raise ConfigurationError(f"output type {shown_name(kind)}: {wrong.what}", hint=wrong.hint) from wrong
    whole = forms.closed(form.schema)
    if "$ref" in whole:
        whole = {**resolved(whole["$ref"], whole), **{word: whole[word] for word in whole if word != "$ref"}}
    wrapped = whole.get("type") != "object"
    served = _wrapped(forms, form) if wrapped else whole
    return served, _converter(form, whole, wrapped=wrapped)


def _wrapped(forms: Forms, form: Form) -> dict[str, Json]:
    return forms.closed(
        {"type": "object", "properties": {VALUE: form.schema}, "required": [VALUE], "additionalProperties": False}
    )


def _converter(form: Form, whole: Mapping[str, Json], *, wrapped: bool) -> Convert:
    check, read, known = compiled(whole), whole_reader(form), frozenset(_names(whole))

    def convert(answer: Json) -> Any:
        value = decoded_answer(answer) if isinstance(answer, str) else answer
        if wrapped and isinstance(value, Mapping) and value.keys() == {VALUE}:
            value = value[VALUE]
        if found := check(value):
            raise _invalid(found, known)
        try:
            return read(value)
        except Unfit as unfit:
            raise _invalid(unfit.issues, known) from None

    return convert


def decoded_answer(text: str) -> Json:
    """The JSON of an answer, out of its code fence if it stands in one. OutputInvalid says why it is none."""
    stripped = text.strip()
    opened = _opening(stripped)
    if opened is not None and stripped.endswith(_FENCE, opened.end()):
        stripped = stripped[opened.end() : -len(_FENCE)].strip()
    try:
        return loads(stripped)
    except ValueError as error:
        if not stripped:
            raise OutputInvalid("not JSON: it is empty") from None
        if stripped[0] not in _BEGINS:
            raise OutputInvalid("not JSON: it begins with other text") from None
        raise OutputInvalid(f"not JSON: {error}") from None


class _Misfit(OutputInvalid):
    """For the model that is asked again, ``problem`` names properties that only its answer has; ``public`` does not."""

    def __init__(self, problem: str, *, path: str, public: str) -> None:
        super().__init__(problem, path=path)
        self.public = public


def _invalid(issues: Sequence[Issue], known: frozenset[str]) -> _Misfit:
    masked = [issue._replace(path=tuple(_masked(part, known) for part in issue.path)) for issue in issues]
    return _Misfit(listed(issues), path=".".join(issues[0].path), public=listed(masked))


def _masked(part: str, known: frozenset[str]) -> str:
    """A property or a place, as it is where the type knows it."""
    return part if part in known or part.isdecimal() else "*"


def _names(schema: Json) -> Iterator[str]:
    """Every property that a schema declares, anywhere."""
    if isinstance(schema, Mapping):
        declared = schema.get("properties")
        yield from declared if isinstance(declared, Mapping) else ()
        for part in schema.values():
            yield from _names(part)
    elif isinstance(schema, (list, tuple)):
        for part in schema:
            yield from _names(part)
