"""Aliases: short names for what no property of a JSON Schema may be called at every vendor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count

__all__ = ("aliases",)

_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch


def aliases(names: Iterable[str], prefix: str, taken: Iterable[str] = ()) -> Mapping[str, str]:
    """The name each of ``names`` travels under, in their order.

    What is made of letters, digits, ``_`` and ``-`` travels as it is, unless it is ``taken``. The others get the
    prefix and a number, from 1, that makes no name in use. Equal names in equal order give equal aliases.
    """
    listed, reserved = list(dict.fromkeys(names)), frozenset(taken)
    plain = {name for name in listed if name not in reserved and _plain(name)}
    made = dict(zip(listed, listed, strict=True))
    if len(plain) < len(listed):
        used = plain | reserved
        free = (alias for number in count(1) if (alias := f"{prefix}{number}") not in used)
        made |= {name: next(free) for name in listed if name not in plain}
    return made
