"""JSON bytes and digests: one encoder, one canonical form, keyed and chained digests.

Digests are BLAKE2b. They are keyed with a secret of the session, so that a short text cannot be guessed from its
digest at rest, and chained over a list, so that one value vouches for everything before it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

__all__ = (
    "Json", "canonical", "chained", "copies", "digest", "dumps", "is_json", "kept", "loads", "own", "peek",
    "read_object", "same_json", "writable",
)  # fmt: skip

# JSON is the one place where a public signature says Any: its values come from models and hosts.
Json: TypeAlias = Any

DIGEST_BYTES = 12

DEEPEST = 200
"""Levels of nesting in what a model writes as arguments."""

_encode = msgspec.json.Encoder().encode
_in_order = msgspec.json.Encoder(order="deterministic").encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def dumps(value: Json) -> bytes:
    """Compact JSON, non-ASCII kept as is. Raises TypeError for what JSON cannot hold."""
    return _encode(value)


def canonical(value: Json) -> bytes:
    """Compact JSON with sorted keys: equal values give equal bytes."""
    return _encode_sorted(value)


def loads(data: bytes | str) -> Json:
    """Strict JSON. Raises `msgspec.DecodeError`, a ValueError-like error without the data.

    So does text that is no Unicode, and JSON nested deeper than the interpreter goes.
    """
    try:
        return _decode(data)
    except (RecursionError, UnicodeError):
        raise msgspec.DecodeError("JSON is nested too deeply or is no valid Unicode") from None


UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What msgspec raises for bytes that do not decode."""


def misfit(error: Exception) -> str:
    """Why something does not decode, without its content: msgspec quotes a value where only some are allowed."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not isinstance(error, msgspec.ValidationError):
        return "not valid JSON"  # such messages may quote a byte or two
    told = str(error)
    if not told.startswith(("Invalid value ", "Invalid enum value ")):
        return told
    _, at, place = told.rpartition(" - at ")
    return f"Invalid value{at}{place}" if at else "Invalid value"


def peek(data: bytes | str) -> Json:
    """The value of JSON that may be none; None for what does not decode."""
    try:
        return loads(data)
    except msgspec.DecodeError:
        return None


def kept(data: bytes | msgspec.Raw) -> msgspec.Raw:
    """Somebody else's JSON as it can be stored and sent again: the same bytes, and memory of their own.

    What was only skipped while it was read may be no Unicode inside, or too deep to be read elsewhere: DecodeError.
    """
    data = bytes(data)
    value = loads(data)
    if data.count(b"{") + data.count(b"[") > DEEPEST and _is_deep([value]):
        raise msgspec.DecodeError("JSON is nested too deeply to be kept")
    return msgspec.Raw(data)


def read_object(text: str) -> dict[str, Json] | None:
    """The JSON object that a model wrote; None for anything else, and for one nested deeper than `DEEPEST`.

    What is deeper could be read here and not be written somewhere else, where the interpreter has less room left.
    """
    if not text or text == "{}":
        return {}
    try:
        value = loads(text)
    except msgspec.DecodeError:
        return None
    if not isinstance(value, dict) or (text.count("{") + text.count("[") > DEEPEST and _is_deep(value)):
        return None
    return value


def _is_deep(value: Json) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        items = [item for held in level for item in (held.values() if isinstance(held, dict) else held)]
        level = [item for item in items if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def is_json(value: Json) -> bool:
    """Whether the value can be kept as JSON: nothing foreign, nothing circular, no text that is no Unicode."""
    try:
        _encode(value)
    except Exception:  # noqa: BLE001 - hooks of foreign types may raise anything
        return False
    return True


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same to the letter, in any order of names: ``1``, ``1.0`` and ``true`` differ."""
    return _in_order(one) == _in_order(other)


_FLAT = frozenset((str, int, float, bool, type(None)))


def own(value: Json) -> Json:
    """The value with objects and lists of its own: whoever gets it may change it and changes nothing else."""
    if isinstance(value, dict):
        mine = value.copy()
        for name, item in mine.items():
            if item.__class__ not in _FLAT:  # most arguments are flat
                mine[name] = own(item)
        return mine
    return [own(item) for item in value] if isinstance(value, list) else value


def copies(value: Json) -> Callable[[], Json]:
    """What gives `own` of a value each time, for one that many get a copy of and nobody changes meanwhile."""
    if value.__class__ is dict and all(item.__class__ in _FLAT for item in value.values()):
        return value.copy
    return partial(own, value)


def writable(text: str) -> str:
    """The text with unpaired surrogates replaced, which no wire and no file could hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def digest(data: bytes, key: str = "") -> str:
    """Keyed digest of bytes, 24 hexadecimal digits."""
    return blake2b(data, digest_size=DIGEST_BYTES, key=key.encode()[:64]).hexdigest()


def chained(before: str, data: bytes, key: str = "") -> str:
    """Digest of a list grown by ``data``, given the digest of the list before it."""
    return blake2b(before.encode() + b"\x1f" + data, digest_size=DIGEST_BYTES, key=key.encode()[:64]).hexdigest()
