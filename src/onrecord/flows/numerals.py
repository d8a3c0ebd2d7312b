"""Numbers between texts and values: how one reads in a sentence, and how what a model wrote is read as one."""

from __future__ import annotations

import math
import re

__all__ = ("number_text", "read_number")

_decimal = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch
_whole = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_LARGEST = 2**63
"""Whole numbers up to here can be stored as such everywhere; larger ones are kept as floats."""
_PLAIN_BELOW = 1e21


def number_text(value: bool | float) -> str:  # noqa: FBT001 - a value to write, not a switch
    """``true`` and ``false``, whole numbers without a decimal point, others as short as they can be written."""
    if value is True or value is False:
        return "true" if value else "false"
    if value.__class__ is float and value.is_integer() and abs(value) < _PLAIN_BELOW:
        return str(int(value))
    try:
        return str(value)
    except ValueError:  # Python writes no int of more than 4300 digits
        return repr(float("inf") if value > 0 else float("-inf"))


def read_number(raw: object) -> int | float | None:
    """A finite number from a number or a text; None for everything else.

    In a text one comma is the decimal mark: ``"1500,50"`` is 1500.5 and ``"1,000"`` is 1. Whole numbers become ints.
    """
    if isinstance(raw, bool):
        return None
    if isinstance(raw, str):
        text = raw.strip().replace(",", ".", 1)
        if _whole(text):
            return int(text)
        return _kept(float(text)) if _decimal(text) else None
    return _kept(raw) if isinstance(raw, (int, float)) else None


def _kept(value: float) -> int | float | None:
    if isinstance(value, int):
        if -_LARGEST <= value < _LARGEST:
            return value
        try:
            value = float(value)
        except OverflowError:
            return None
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
