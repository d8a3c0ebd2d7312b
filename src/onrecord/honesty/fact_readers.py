"""Facts: functions from a body and the words of a language to a text.

A field is read by its name, of a body or of the JSON that it was stored as: there a field with its default is left out,
and reads as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from onrecord.jsonio import dumps

__all__ = ("Fact", "Facts", "Words", "at_path", "because", "field", "fields_of", "named", "shown", "word")

Words = Mapping[str, str]
"""The words of a language for what is one of a few, such as a moment or a status."""

Fact = Callable[[Any, Words], str]
Facts = Mapping[str, Fact]


def shown(value: object) -> str:
    """A value as a person reads it: a text as it is, a number short, a time to the second, anything else as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case int():
            return str(value)
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S%z}"
        case _:
            try:
                return dumps(value).decode()
            except (TypeError, ValueError):
                return type(value).__name__


def at_path(value: Any, *path: str) -> Any:
    """A field of a field, of a body or of the JSON that it was stored as; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def field(*path: str) -> Fact:
    """What a field says."""
    return lambda body, _words: shown(at_path(body, *path))


def word(group: str, *path: str) -> Fact:
    """The language's word for what a field says; the field itself where the language has none."""

    def worded(body: Any, words: Words) -> str:
        said = shown(at_path(body, *path))
        return words.get(f"{group}.{said}", said)

    return worded


def named(word: str, *path: str) -> Fact:
    """A name, or the language's word for somebody without one."""
    return lambda body, words: shown(at_path(body, *path)) or words[word]


def because(*path: str) -> Fact:
    """``: `` and a reason, or nothing."""
    return lambda body, _words: f": {why}" if (why := shown(at_path(body, *path))) else ""


def fields_of(body: type[Any]) -> Facts:
    """The fields of a body as facts."""
    return {name: field(name) for name in body.__struct_fields__}
