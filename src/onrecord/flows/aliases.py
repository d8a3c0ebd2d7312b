"""Aliases: short names for what no property of a JSON Schema may be called at every vendor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = ("aliases",)

_plain = re.compile(r"[A-Za-z0-9_-]+")


def aliases(names: Iterable[str], prefix: str, taken: Iterable[str] = ()) -> Mapping[str, str]:
    """The name each of ``names`` travels under, in their order.

    What is made of letters, digits, ``_`` and ``-`` travels as it is, unless it is ``taken``. The others get the
    prefix and a number, from 1, that makes no name in use. Equal names in equal order give equal aliases.
    """
    listed, reserved = list(dict.fromkeys(names)), frozenset(taken)
    plain = {name for name in listed if name not in reserved and _plain.fullmatch(name)}
    used, number = plain | reserved, 0
    made: dict[str, str] = {}
    for name in listed:
        made[name] = name
        while name not in plain and made[name] == name:
            number += 1
            if (alias := f"{prefix}{number}") not in used:
                made[name] = alias
    return made
