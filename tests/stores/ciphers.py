"""A stand-in for a cipher, made of what Python comes with. It shows the seam; protect nothing with it."""

import hmac
import os
from hashlib import blake2b


class KeystreamCipher:
    """A keystream of keyed digests under a fresh nonce, and a digest over everything. For tests only."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, data: bytes, about: bytes, /) -> bytes:
        nonce = os.urandom(16)
        body = self._mixed(nonce, data)
        return nonce + self._tag(nonce, body, about) + body

    def open(self, data: bytes, about: bytes, /) -> bytes:
        nonce, tag, body = data[:16], data[16:32], data[32:]
        if not hmac.compare_digest(tag, self._tag(nonce, body, about)):
            raise ValueError(f"the wrong key: {self._key!r}")
        return self._mixed(nonce, body)

    def _tag(self, nonce: bytes, body: bytes, about: bytes) -> bytes:
        return blake2b(nonce + len(about).to_bytes(8) + about + body, digest_size=16, key=self._key).digest()

    def _mixed(self, nonce: bytes, data: bytes) -> bytes:
        blocks = range(len(data) // 64 + 1)
        stream = b"".join(blake2b(nonce + n.to_bytes(8), key=self._key).digest() for n in blocks)
        return (int.from_bytes(data) ^ int.from_bytes(stream[: len(data)])).to_bytes(len(data))
