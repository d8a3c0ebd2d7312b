"""Pseudonyms: what stands in spans and logs in place of ids, which applications make of names and phone numbers."""

from __future__ import annotations

import os
from hashlib import blake2b
from urllib.parse import unquote

from onrecord.errors import ConfigurationError

__all__ = ("Pseudonyms", "session_of")

_BYTES = 8


class Pseudonyms:
    """Sixteen hexadecimal digits for an id, always the same ones under one ``key``.

    Without a key this object makes one: lines of one process then belong together, and nobody can try out phone
    numbers against them. Processes whose lines are to be compared share a ``key`` of 16 to 64 random bytes.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes | None = None) -> None:
        if key is not None and not 16 <= len(key) <= 64:
            raise ConfigurationError(
                f"a key of {len(key)} bytes does not do", hint="give 16 to 64 random bytes, such as os.urandom(32)"
            )
        self._key = os.urandom(32) if key is None else key

    def __call__(self, id: str) -> str:
        return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=_BYTES, key=self._key).hexdigest()

    def __repr__(self) -> str:
        return "Pseudonyms()"


def session_of(turn: str) -> str:
    """The id of the session that a turn of this id belongs to."""
    return unquote(turn.partition(":")[0])
