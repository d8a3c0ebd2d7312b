"""JSON bytes and digests: one encoder, one canonical form, keyed and chained digests.

Digests are BLAKE2b. They are keyed with a secret of the session, so that a short text cannot be guessed from its
digest at rest, and chained over a list, so that one value vouches for everything before it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

__all__ = ("Json", "canonical", "chained", "digest", "dumps", "loads")

# JSON is the one place where a public signature says Any: its values come from models and hosts.
Json: TypeAlias = Any

DIGEST_BYTES = 12

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def dumps(value: Json) -> bytes:
    """Compact JSON, non-ASCII kept as is. Raises TypeError for what JSON cannot hold."""
    return _encode(value)


def canonical(value: Json) -> bytes:
    """Compact JSON with sorted keys: equal values give equal bytes."""
    return _encode_sorted(value)


def loads(data: bytes | str) -> Json:
    """Strict JSON. Raises `msgspec.DecodeError`, a ValueError-like error without the data."""
    return _decode(data)


def digest(data: bytes, key: str = "") -> str:
    """Keyed digest of bytes, 24 hexadecimal digits."""
    return blake2b(data, digest_size=DIGEST_BYTES, key=key.encode()[:64]).hexdigest()


def chained(before: str, data: bytes, key: str = "") -> str:
    """Digest of a list grown by ``data``, given the digest of the list before it."""
    return blake2b(before.encode() + b"\x1f" + data, digest_size=DIGEST_BYTES, key=key.encode()[:64]).hexdigest()
