"""Which fields of a type can hold words at all: numbers, instants and names are not looked at each time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date, time, timedelta
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

__all__ = ("worded_fields",)

_WORDLESS = (int, float, timedelta, date, time, type(None))

Fixed = Callable[[type[Struct]], Collection[str]]
"""The fields of a type that say what is what, and are left as they are when they hold a text."""


def worded_fields(kind: type[Struct], fixed: Fixed) -> tuple[str, ...]:
    """The fields of a type that may hold words which are to be looked at."""
    return _worded(kind, fixed, ())


def _worded(kind: type[Struct], fixed: Fixed, above: tuple[type, ...]) -> tuple[str, ...]:
    try:
        fields = msgspec.structs.fields(kind)
    except (AttributeError, NameError, TypeError):  # annotations that name what is not there at run time
        return kind.__struct_fields__
    left = fixed(kind)
    return tuple(
        field.name
        for field in fields
        if not (field.name in left and field.type is str) and _may_hold(field.type, fixed, (*above, kind))
    )


def _may_hold(kind: Any, fixed: Fixed, above: tuple[type, ...]) -> bool:
    """Whether a value of this type may hold words. Whatever is not known well enough may."""
    origin = get_origin(kind)
    if origin is Literal:
        return False
    if isinstance(kind, type) and issubclass(kind, _WORDLESS):
        return False
    if args := [arg for arg in get_args(kind) if arg is not Ellipsis]:
        return any(_may_hold(arg, fixed, above) for arg in args)
    if isinstance(kind, type) and issubclass(kind, Struct) and kind.__module__.startswith("onrecord."):
        return kind in above or bool(_worded(kind, fixed, above))
    return True
