"""A type as the tools see it: its form, and a value read as it."""

from typing import Any

from onrecord.jsonio import Json
from onrecord.tools.annotations import Forms
from onrecord.tools.forms import Form
from onrecord.tools.problems import compiled

__all__ = ("form", "reading")


def form(kind: Any) -> Form:
    """The form of a type by itself."""
    return Forms({}).of(kind)


def reading(kind: Any, value: Json) -> Any:
    """A value checked and read as the type."""
    forms = Forms({})
    made = forms.of(kind)
    found = compiled(forms.closed(made.schema))(value)
    assert not found, found
    return made.read(value) if made.read else value
